package postgres

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// migrationTries limits how often a step begins. Servers of the previous release write
	// meanwhile. Their transactions lock the same tables in another order, so PostgreSQL
	// may end the step to resolve a deadlock.
	migrationTries = 50

	// boundLocks limits how long a step waits for a lock on a table, for example while
	// pg_dump reads the table. Later reads and writes of the table queue behind the waiting
	// step. They go on in the pause between two tries. The first pause is firstLockPause,
	// and pauses get longer up to longestLockPause.
	boundLocks       = `SET LOCAL lock_timeout = '2s'`
	freeLocks        = `SET LOCAL lock_timeout = 0`
	firstLockPause   = time.Second
	longestLockPause = 30 * time.Second
)

// step runs the callback do in a transaction that does not wait long for locks. After a
// deadlock, it begins again, up to migrationTries times. If it did not get a lock in
// time, it begins again as often as needed. do may send freeLocks when it has all locks
// on tables.
func step(ctx context.Context, c *pgx.Conn, log *slog.Logger, do func(pgx.Tx) error) error {
	lockPause := firstLockPause
	for try := 1; ; {
		err := pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, boundLocks); err != nil {
				return err
			}
			return do(tx)
		})
		var pause time.Duration
		switch {
		case sqlState(err) == lockNotAvailable:
			log.Warn("an upgrade waits for a table that another transaction uses, such as pg_dump", "err", err)
			pause, lockPause = lockPause, min(2*lockPause, longestLockPause)
		case conflicts(err) && try < migrationTries:
			pause = 10*time.Millisecond + rand.N(100*time.Millisecond)
			try++
		default:
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
