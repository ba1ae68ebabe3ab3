package sqlite

import (
	"context"

	"parley/desk"
)

const (
	dropEventsQuery = `DELETE FROM events WHERE workspace_id = ? AND seq <= ?`
	raiseFloorQuery = `INSERT INTO event_floors (workspace_id, seq, tag) VALUES (?, ?, ?)
		ON CONFLICT (workspace_id) DO UPDATE SET seq = excluded.seq, tag = excluded.tag WHERE seq < excluded.seq`
)

// DropEvents drops the oldest events from the feed, up to limit.
func (s *Store) DropEvents(ctx context.Context, ws desk.ID, expired desk.Expired, limit int) (n int, err error) {
	err = s.write(ctx, func(c conn) error {
		n = 0
		oldest, err := all("oldest events", c.stmt(`SELECT seq, `+eventColumns+` FROM events WHERE workspace_id = ? ORDER BY seq LIMIT +?`).id(ws).int(int64(limit)), readEvent)
		if err != nil {
			return err
		}
		if n = expired.Count(oldest); n == 0 {
			return nil
		}
		followed, err := searchPlace(c, ws)
		if err != nil {
			return err
		}
		if n = followed.Had(oldest[:n]); n == 0 {
			return nil
		}
		place := oldest[n-1].Place
		if err := c.stmt(dropEventsQuery).id(ws).int(place.Seq).run(); err != nil {
			return failed("drop events", err)
		}
		return failed("drop events", c.stmt(raiseFloorQuery).id(ws).int(place.Seq).int(place.Tag).run())
	})
	return n, err
}
