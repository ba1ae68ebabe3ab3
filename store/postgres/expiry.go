package postgres

import (
	"context"

	"parley/desk"
	"parley/store"

	"github.com/jackc/pgx/v5"
)

// DropEvents drops the oldest events from the feed, up to limit.
func (s *Store) DropEvents(ctx context.Context, ws desk.ID, expired desk.Expired, limit int) (n int, err error) {
	err = s.write(ctx, ws, false, func(t *tx) error {
		n = 0
		if err := t.open("begin"); err != nil {
			return err
		}
		oldest, err := all(t.pipe, "oldest events", readEvent, `SELECT seq, `+eventColumns+` FROM events WHERE workspace_id = $1 ORDER BY seq LIMIT $2 FOR UPDATE`, uuid(ws), limit)
		if err != nil {
			return err
		}
		if n = expired.Count(oldest); n == 0 {
			return nil
		}
		var followed store.SearchPlace
		t.each(func(row pgx.Row) (err error) { followed, err = readSearchPlace(row); return err }, searchPlaceQuery, uuid(ws))
		t.readHistoryPlace(ws, &followed)
		if err := t.send("places of the search"); err != nil {
			return err
		}
		if n = followed.Had(oldest[:n]); n == 0 {
			return nil
		}
		place := oldest[n-1].Place
		t.put(`DELETE FROM events WHERE workspace_id = $1 AND seq <= $2`, uuid(ws), place.Seq)
		t.put(`INSERT INTO event_floors (workspace_id, seq, tag) VALUES ($1, $2, $3)
			ON CONFLICT (workspace_id) DO UPDATE SET seq = excluded.seq, tag = excluded.tag WHERE event_floors.seq < excluded.seq`, uuid(ws), place.Seq, place.Tag)
		return nil
	})
	return n, err
}
