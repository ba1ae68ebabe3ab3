package postgres

import (
	"context"
	"slices"
	"strings"
	"time"

	"parley/desk"

	"github.com/jackc/pgx/v5"
)

const (
	// lockBucket creates a bucket, or locks the bucket that exists. Every transaction locks
	// buckets in the order of their names.
	lockBucket = `INSERT INTO pace (workspace_id, bucket, until_us) VALUES ($1, $2, 0)
	ON CONFLICT (workspace_id, bucket) DO UPDATE SET until_us = excluded.until_us WHERE false`

	databaseMicros = `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`
	paceQuery      = `WITH clock AS MATERIALIZED (SELECT ` + databaseMicros + ` AS now),
	next AS MATERIALIZED (
		SELECT b.place, b.taken + u.every AS until_us, b.taken - now + u.every - u.burst * u.every AS wait
		FROM clock, unnest($2::text[], $3::bigint[], $4::bigint[]) u (bucket, every, burst) CROSS JOIN LATERAL
			(SELECT ctid AS place, CASE WHEN until_us > now + $5::bigint + u.burst * u.every THEN now ELSE greatest(until_us, now) END AS taken
			FROM pace WHERE workspace_id = $1 AND bucket = u.bucket LIMIT 1) b),
	longest AS (SELECT greatest(max(wait), 0) AS wait FROM next),
	taken AS (UPDATE pace SET until_us = next.until_us FROM next, longest WHERE pace.ctid = next.place AND longest.wait <= $5)
	SELECT wait FROM longest`
	forgetPaceQuery = `DELETE FROM pace p USING
	(SELECT ctid AS place FROM pace WHERE workspace_id = $1 
		AND (until_us <= ` + databaseMicros + ` OR until_us > ` + databaseMicros + ` + $2::bigint) FOR UPDATE SKIP LOCKED) l WHERE p.ctid = l.place`
)

var (
	paceOnCitus = `WITH taking AS MATERIALIZED (
		SELECT p.bucket, p.until_us, u.every, u.burst, ` + shardMicros("p.workspace_id") + ` AS now FROM unnest($2::text[], $3::bigint[], $4::bigint[]) u (bucket, every, burst)
			JOIN pace p ON p.workspace_id = $1 AND p.bucket = u.bucket),
	next AS MATERIALIZED (
		SELECT bucket, now, every, burst, CASE WHEN until_us > now + $5::bigint + burst * every THEN now ELSE greatest(until_us, now) END AS taken FROM taking),
	longest AS MATERIALIZED (SELECT greatest(max(taken - now + every - burst * every), 0) AS wait FROM next),
	taken AS (UPDATE pace p SET until_us = next.taken + next.every FROM next, longest
		WHERE p.workspace_id = $1 AND p.bucket = next.bucket AND longest.wait <= $5::bigint RETURNING 1)
	SELECT wait FROM longest`
	forgetPaceOnCitus = `DELETE FROM pace WHERE workspace_id = $1 AND bucket IN
	(SELECT bucket FROM pace WHERE workspace_id = $1 AND (until_us <= ` + shardMicros("workspace_id") + ` OR until_us > ` + shardMicros("workspace_id") + ` + $2::bigint) FOR UPDATE SKIP LOCKED)`
)

// Pace takes one place in each of the buckets, and returns how long the caller must wait
// before it goes on. If this wait would be longer than most, it takes no place; new
// buckets then have no places taken.
func (s *Store) Pace(ctx context.Context, ws desk.ID, buckets []desk.Bucket, most time.Duration) (wait time.Duration, ok bool, err error) {
	buckets = slices.SortedFunc(slices.Values(buckets), func(a, b desk.Bucket) int { return strings.Compare(a.Name, b.Name) })
	n := len(buckets)
	names, every, burst := make([]string, n), make([]int64, n), make([]int64, n)
	for i, b := range buckets {
		names[i], every[i], burst[i] = b.Name, b.Interval.Microseconds(), int64(b.Burst)
	}
	var longest int64
	err = s.atOnce(ctx, "pace", func(p *pipe) {
		for _, name := range names {
			p.put(lockBucket, uuid(ws), name)
		}
		p.each(func(row pgx.Row) error { return row.Scan(&longest) }, form(s.citus, paceQuery, paceOnCitus), uuid(ws), names, every, burst, most.Microseconds())
	})
	return time.Duration(longest) * time.Microsecond, err == nil && longest <= most.Microseconds(), err
}

// ForgetPace deletes the buckets of a workspace whose places are all in the past. It also
// deletes buckets with places further ahead than longest, because such places are
// impossible.
func (s *Store) ForgetPace(ctx context.Context, ws desk.ID, longest time.Duration) error {
	_, err := s.exec(ctx, "forget pace", form(s.citus, forgetPaceQuery, forgetPaceOnCitus), uuid(ws), longest.Microseconds())
	return err
}
