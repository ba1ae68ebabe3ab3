package postgres

import (
	"context"

	"parley/desk"

	"github.com/jackc/pgx/v5"
)

const (
	// databaseNow is the clock by which leases are measured on all nodes, in queries. In
	// statements that change rows, it is shardNow.
	databaseNow = `(extract(epoch FROM clock_timestamp()) * 1000)::bigint`

	// thisHour is the counter of hours.
	thisHour = `(SELECT hour FROM uptime WHERE one = 1)`
)

// shardMicros and shardNow return expressions for the database's clock in a statement
// that changes rows, in microseconds and in milliseconds. The argument is a column with
// the workspace of the row: with Citus, the clock is that of the server that holds the
// row, wherever the client is connected (see migration 31).
func shardMicros(workspace string) string { return `shard_micros(` + workspace + `)` }

func shardNow(workspace string) string { return `(shard_micros(` + workspace + `) / 1000)` }

// Clock returns the time of the database's clock, and the database's counter of hours.
func (s *Store) Clock(ctx context.Context) (now desk.Time, hour int64, err error) {
	err = s.read(ctx, func(p *pipe) error {
		hour, err = one(p, "clock", func(row pgx.Row) (hour int64, err error) {
			err = row.Scan((*int64)(&now), &hour)
			return hour, err
		}, `SELECT `+databaseNow+`, `+thisHour)
		return err
	})
	return now, hour, err
}

// RaiseHour adds one to the counter of hours, if the counter is still equal to seen.
func (s *Store) RaiseHour(ctx context.Context, seen int64) error {
	_, err := s.exec(ctx, "raise the hour", `UPDATE uptime SET hour = hour + 1 WHERE one = 1 AND hour = $1`, seen)
	return err
}

// SetHour sets the counter of hours to that of another database.
func (i *Import) SetHour(ctx context.Context, hour int64) error {
	_, err := i.c.Exec(ctx, `UPDATE uptime SET hour = greatest(hour, $1) WHERE one = 1`, hour)
	return failed("set the hour", err)
}
