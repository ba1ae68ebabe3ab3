package postgres

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// migrationTries is how often a step begins at most. Servers of the release before write
	// meanwhile, and their transactions lock the same tables in another order, so PostgreSQL
	// may end the step to resolve a deadlock.
	migrationTries = 50

	// boundLocks limits how long a step waits for a lock on a table, for example while pg_dump
	// reads the table. Reads and writes that come later queue behind the step. Between two
	// tries they go on; those pauses grow from the first to the longest.
	boundLocks       = `SET LOCAL lock_timeout = '2s'`
	freeLocks        = `SET LOCAL lock_timeout = 0`
	firstLockPause   = time.Second
	longestLockPause = 30 * time.Second
)

// step runs do in a transaction that does not wait long for locks. It begins again after
// a deadlock, and as often as needed after a wait for a lock. do may send freeLocks once it
// has all locks on tables.
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
