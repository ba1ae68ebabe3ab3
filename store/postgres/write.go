package postgres

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"time"

	"parley/desk"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// writeBound is how long a write may take in all, with every wait.
	writeBound = 30 * time.Second
	// writeTries is how often a transaction runs at most.
	writeTries = 10
	// aloneFrom is the run from which it has its workspace to itself, so that it can't be
	// overtaken for ever.
	aloneFrom = 3
	// tryPause is the unit of the random pause between two runs.
	tryPause = 4 * time.Millisecond
)

// Transactions on a workspace hold an advisory lock, shared or alone, from their first
// statement on. An edit of the settings holds it alone: so a flush never rests on
// settings that were replaced before it was stored. A shared lock on the workspace's row
// would do the same, but writes the row each time, and lets newcomers pass whoever waits to
// have it alone; this lock is a queue.
const (
	lockShared = `SELECT pg_advisory_xact_lock_shared($1)`
	lockAlone  = `SELECT pg_advisory_xact_lock($1)`
)

// lockOf is the number of a workspace's lock. Two that share one only wait for each other.
func lockOf(ws desk.ID) int64 {
	return int64(binary.BigEndian.Uint64(ws[:8]) ^ binary.BigEndian.Uint64(ws[8:]))
}

// write runs do in a transaction on a workspace and returns once what it wrote is durable,
// or with do's error and nothing stored. When another transaction comes in between, it runs
// again. The caller's leaving does not count: a write that was taken runs to its end.
func (s *Store) write(ctx context.Context, ws desk.ID, alone bool, do func(*tx) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeBound)
	defer cancel()
	for try := 1; ; try++ {
		again, err := s.transact(ctx, ws, alone || try >= aloneFrom, do)
		if !again || try == writeTries {
			return err
		}
		select {
		case <-time.After(rand.N(tryPause * time.Duration(try))):
		case <-ctx.Done():
			return err
		}
	}
}

// transact runs do in one transaction, and tells whether to run it again in another.
func (s *Store) transact(ctx context.Context, ws desk.ID, alone bool, do func(*tx) error) (again bool, err error) {
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return false, unavailable(err)
	}
	defer c.Release() // closes it when its transaction is still open, as after a panic
	t := &tx{pipe: newPipe(ctx, c), s: s, ws: ws}
	t.begin(alone)
	if err = do(t); err == nil && t.fail == nil {
		err = t.commit()
	}
	if t.fail != nil && c.Conn().IsClosed() {
		return t.lost()
	}
	if t.fail != nil || err != nil {
		_, _ = c.Exec(ctx, `ROLLBACK`) // or Release does it
	}
	if t.fail == nil { // done, or refused by do
		return false, err
	}
	if err == nil { // do has kept to itself what it met
		err = failed("transaction", t.fail)
	}
	switch sqlState(t.fail) {
	case uniqueViolation:
		return !alone, err // alone, it met what is stored, and always will
	case readOnlyTransaction:
		s.pool.Reset() // the server has become a standby; the URL may lead to another
	}
	return conflicts(t.fail), err
}

// atOnce runs the statements that f puts in one transaction and one round trip. It waits
// for no other than those that hold the same rows.
func (s *Store) atOnce(ctx context.Context, doing string, f func(*pipe)) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeBound)
	defer cancel()
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return unavailable(err)
	}
	defer c.Release() // closes it when its transaction is still open
	p := newPipe(ctx, c)
	p.put(`BEGIN ISOLATION LEVEL READ COMMITTED`)
	f(p)
	p.put(`COMMIT`)
	err = p.send(doing)
	if err != nil && c.Conn().IsClosed() && !pgconn.SafeToRetry(p.fail) {
		return unknown(p.fail)
	}
	return err
}

// exec runs one statement that needs no transaction around it.
func (s *Store) exec(ctx context.Context, doing, query string, args ...any) (pgconn.CommandTag, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeBound)
	defer cancel()
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return pgconn.CommandTag{}, unavailable(err)
	}
	defer c.Release()
	tag, err := c.Exec(ctx, query, args...)
	if err != nil && c.Conn().IsClosed() && !pgconn.SafeToRetry(err) {
		return tag, unknown(err)
	}
	return tag, failed(doing, err)
}
