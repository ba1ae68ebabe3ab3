package postgres

import (
	"context"

	"parley/desk"

	"github.com/jackc/pgx/v5"
)

const (
	dailyPlaceQuery = `SELECT seq, tag FROM daily_places WHERE workspace_id = $1`
	dailyQuery      = `SELECT day, kind, key, label, n FROM daily WHERE workspace_id = $1 AND day >= $2 ORDER BY day, kind, key`
	countDaysQuery  = `WITH moved AS (INSERT INTO daily_places (workspace_id, seq, tag) VALUES ($1, $2, $3)
			ON CONFLICT (workspace_id) DO UPDATE SET seq = excluded.seq, tag = excluded.tag
			WHERE daily_places.seq = $4 AND daily_places.tag = $5 RETURNING 1)
		INSERT INTO daily (workspace_id, day, kind, key, label, n)
		SELECT $1, u.* FROM unnest($6::bigint[], $7::text[], $8::text[], $9::text[], $10::bigint[]) u WHERE EXISTS (SELECT FROM moved)
		ON CONFLICT (workspace_id, day, kind, key) DO UPDATE SET n = daily.n + excluded.n, label = excluded.label`
)

// DailyPlace returns the position up to which a workspace's events are counted.
func (s *Store) DailyPlace(ctx context.Context, ws desk.ID) (place desk.EventPlace, err error) {
	err = s.read(ctx, func(p *pipe) error {
		place, err = one(p, "place of daily counts", func(row pgx.Row) (place desk.EventPlace, err error) {
			return place, row.Scan(&place.Seq, &place.Tag)
		}, dailyPlaceQuery, uuid(ws))
		return err
	})
	return place, err
}

// Daily returns the counts of a day and of all later days.
func (s *Store) Daily(ctx context.Context, ws desk.ID, from int64) (counts []desk.DailyCount, err error) {
	err = s.read(ctx, func(p *pipe) error {
		counts, err = all(p, "daily counts", func(row pgx.Row) (c desk.DailyCount, err error) {
			err = row.Scan(&c.Day, (*string)(&c.Kind), &c.Key, &c.Label, &c.N)
			return c, err
		}, dailyQuery, uuid(ws), from)
		return err
	})
	return counts, err
}

func (t *tx) CountDays(from, to desk.EventPlace, counts []desk.DailyCount) error {
	days, n := make([]int64, len(counts)), make([]int64, len(counts))
	kinds, keys, labels := make([]string, len(counts)), make([]string, len(counts)), make([]string, len(counts))
	for i, c := range counts {
		days[i], kinds[i], keys[i], labels[i], n[i] = c.Day, string(c.Kind), c.Key, c.Label, c.N
	}
	t.put(countDaysQuery, uuid(t.ws), to.Seq, to.Tag, from.Seq, from.Tag, days, kinds, keys, labels, n)
	return t.fail
}

func (t *tx) DropDays(before int64) error {
	t.put(`DELETE FROM daily WHERE workspace_id = $1 AND day < $2`, uuid(t.ws), before)
	return t.fail
}
