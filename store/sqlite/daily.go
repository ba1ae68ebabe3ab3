package sqlite

import (
	"context"

	"parley/desk"
)

const (
	dailyPlaceQuery = `SELECT seq, tag FROM daily_places WHERE workspace_id = ?`
	dailyQuery      = `SELECT day, kind, key, label, n FROM daily WHERE workspace_id = ? AND day >= ? ORDER BY day, kind, key`
	moveDailyQuery  = `INSERT INTO daily_places (workspace_id, seq, tag) VALUES (?1, ?2, ?3)
		ON CONFLICT (workspace_id) DO UPDATE SET seq = excluded.seq, tag = excluded.tag WHERE seq = ?4 AND tag = ?5`
	addDailyQuery = `INSERT INTO daily (workspace_id, day, kind, key, label, n) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (workspace_id, day, kind, key) DO UPDATE SET n = n + excluded.n, label = excluded.label`
)

// DailyPlace returns the position up to which a workspace's events are counted.
func (s *Store) DailyPlace(ctx context.Context, ws desk.ID) (place desk.EventPlace, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		place, err = one("place of daily counts", c.stmt(dailyPlaceQuery).id(ws), func(s *stmt) desk.EventPlace {
			return desk.EventPlace{Seq: s.readInt(), Tag: s.readInt()}
		})
		return err
	})
	return place, err
}

// Daily returns the counts of a day and of all later days.
func (s *Store) Daily(ctx context.Context, ws desk.ID, from int64) (counts []desk.DailyCount, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		counts, err = all("daily counts", c.stmt(dailyQuery).id(ws).int(from), func(s *stmt) desk.DailyCount {
			return desk.DailyCount{Day: s.readInt(), Kind: desk.DailyKind(s.readText()), Key: s.readText(), Label: s.readText(), N: s.readInt()}
		})
		return err
	})
	return counts, err
}

func (t *tx) CountDays(from, to desk.EventPlace, counts []desk.DailyCount) error {
	if err := t.c.stmt(moveDailyQuery).id(t.ws).int(to.Seq).int(to.Tag).int(from.Seq).int(from.Tag).run(); err != nil || t.c.Changes() == 0 {
		return failed("count days", err)
	}
	for _, c := range counts {
		if err := t.c.stmt(addDailyQuery).id(t.ws).int(c.Day).text(string(c.Kind)).text(c.Key).text(c.Label).int(c.N).run(); err != nil {
			return failed("count days", err)
		}
	}
	return nil
}

func (t *tx) DropDays(before int64) error {
	return failed("drop days", t.c.stmt(`DELETE FROM daily WHERE workspace_id = ? AND day < ?`).id(t.ws).int(before).run())
}
