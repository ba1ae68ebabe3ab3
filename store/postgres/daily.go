package postgres

import (
	"context"

	"parley/desk"

	"github.com/jackc/pgx/v5"
)

const (
	dailyPlaceQuery = `SELECT seq, tag FROM daily_places WHERE workspace_id = $1`
	dailyQuery      = `SELECT day, kind, key, label, n FROM daily WHERE workspace_id = $1 AND day >= $2 ORDER BY day, kind, key`
	// lockDaysQuery creates the position, or locks it. The next two statements do nothing
	// if it is not the expected one.
	lockDaysQuery = `INSERT INTO daily_places (workspace_id, seq, tag) VALUES ($1, $2, $3)
		ON CONFLICT (workspace_id) DO UPDATE SET seq = excluded.seq WHERE false`
	countDaysQuery = `INSERT INTO daily (workspace_id, day, kind, key, label, n)
		SELECT p.workspace_id, u.* FROM daily_places p CROSS JOIN unnest($4::bigint[], $5::text[], $6::text[], $7::text[], $8::bigint[]) u
		WHERE p.workspace_id = $1 AND p.seq = $2 AND p.tag = $3
		ON CONFLICT (workspace_id, day, kind, key) DO UPDATE SET n = daily.n + excluded.n, label = excluded.label`
	moveDaysQuery = `UPDATE daily_places SET seq = $4, tag = $5 WHERE workspace_id = $1 AND seq = $2 AND tag = $3`
)

// DailyPlace returns the position up to which a workspace's events are counted.
func (s *Store) DailyPlace(ctx context.Context, ws desk.ID) (desk.EventPlace, error) {
	return readOne(ctx, s, "place of daily counts", func(row pgx.Row) (place desk.EventPlace, err error) {
		return place, row.Scan(&place.Seq, &place.Tag)
	}, dailyPlaceQuery, uuid(ws))
}

// Daily returns the counts of a day and of all later days.
func (s *Store) Daily(ctx context.Context, ws desk.ID, from int64) ([]desk.DailyCount, error) {
	return readAll(ctx, s, "daily counts", func(row pgx.Row) (c desk.DailyCount, err error) {
		err = row.Scan(&c.Day, (*string)(&c.Kind), &c.Key, &c.Label, &c.N)
		return c, err
	}, dailyQuery, uuid(ws), from)
}

func (t *tx) CountDays(from, to desk.EventPlace, counts []desk.DailyCount) error {
	days, n := make([]int64, len(counts)), make([]int64, len(counts))
	kinds, keys, labels := make([]string, len(counts)), make([]string, len(counts)), make([]string, len(counts))
	for i, c := range counts {
		days[i], kinds[i], keys[i], labels[i], n[i] = c.Day, string(c.Kind), c.Key, c.Label, c.N
	}
	t.put(lockDaysQuery, uuid(t.ws), from.Seq, from.Tag)
	t.put(countDaysQuery, uuid(t.ws), from.Seq, from.Tag, days, kinds, keys, labels, n)
	t.put(moveDaysQuery, uuid(t.ws), from.Seq, from.Tag, to.Seq, to.Tag)
	return t.fail
}

func (t *tx) DropDays(before int64) error {
	t.put(`DELETE FROM daily WHERE workspace_id = $1 AND day < $2`, uuid(t.ws), before)
	return t.fail
}
