package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"time"

	"parley/desk"
	"parley/store/internal/stored"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// writeBound is how long a write may take in all, including every wait. It is less than the
	// 30 s that many clients wait: a client that gets 503 knows what happened.
	writeBound = 25 * time.Second
	// writeTries is how often a transaction runs at most.
	writeTries = 10
	// aloneFrom is the number of the first run in which a transaction has its workspace to
	// itself, so that others can't overtake it forever.
	aloneFrom = 3
	// tryPause is the unit of the random pause between two runs.
	tryPause = 4 * time.Millisecond
)

// Transactions on a workspace hold an advisory lock, shared or alone, from their first
// statement on. An edit of the settings holds it alone, so a flush never uses settings
// that were replaced before it was stored. A shared lock on the workspace's row would
// have the same effect. But such a lock writes the row each time, and newcomers could
// overtake a transaction that waits to hold it alone. The advisory lock has a queue.
const (
	// ofWorkspace lets a query that needs no table run where the rows of the workspace $1
	// are. inWorkspace does the same for a query with another source.
	ofWorkspace = ` FROM workspaces WHERE id = $1`
	inWorkspace = ` CROSS JOIN workspaces w WHERE w.id = $1`

	lockShared = `SELECT pg_advisory_xact_lock_shared($2)` + ofWorkspace
	lockAlone  = `SELECT pg_advisory_xact_lock($2)` + ofWorkspace
)

// pinShards keeps the shards of the workspace $1 on their server until the transaction
// ends, without changing a row. Citus waits with a move for transactions that write. For a
// row that is only locked, it does not wait; so after the move, the row would not be
// locked any more.
const pinShards = `UPDATE workspaces SET country = country WHERE id = $1 AND settings_version < 0`

// lockOf is the number of a workspace's lock. If two workspaces share a number, they
// only wait for each other.
func lockOf(ws desk.ID) int64 {
	return int64(binary.BigEndian.Uint64(ws[:8]) ^ binary.BigEndian.Uint64(ws[8:]))
}

// write runs the callback do in a transaction on a workspace. It returns nil once the
// changes are durable. If do returns an error, write returns it, and nothing is stored.
// If another transaction conflicts, do runs again. A write goes on even if the caller
// leaves.
func (s *Store) write(ctx context.Context, ws desk.ID, alone bool, do func(*tx) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeBound)
	defer cancel()
	own, done := s.shares.use(ws)
	defer done()
	assigns := false
	for try := 1; ; try++ {
		again, err := s.transact(ctx, ws, own, assigns, alone || try >= aloneFrom, do)
		if errors.Is(err, errAssigning) && !assigns { // this try has done nothing
			if err := takePlace(ctx, own.assigns); err != nil {
				return err
			}
			defer func() { <-own.assigns }()
			assigns, try = true, try-1
			continue
		}
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

// transact runs the callback do in one transaction. It tells whether do must run again,
// in another transaction. If do has to assign while another transaction assigns, and the
// caller has not taken the place to assign, it returns errAssigning.
func (s *Store) transact(ctx context.Context, ws desk.ID, own *share, assigns, alone bool, do func(*tx) error) (again bool, err error) {
	if err := takePlace(ctx, own.slots); err != nil {
		return false, err
	}
	defer func() { <-own.slots }()
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return false, stored.Unavailable(err)
	}
	defer c.Release() // closes it if its transaction is still open, for example after a panic
	t := &tx{pipe: s.newPipe(ctx, c), s: s, ws: ws, own: own, assigns: assigns}
	if !assigns {
		defer func() {
			if t.assigns {
				<-own.assigns
			}
		}()
	}
	t.begin(alone)
	if err = do(t); err == nil && t.fail == nil {
		err = t.commit()
	}
	if t.fail != nil && t.committing && s.commitLost(c, t.fail) {
		return false, stored.CommitLost(t.fail)
	}
	if t.fail != nil && c.Conn().IsClosed() { // nothing is stored
		return ctx.Err() == nil, stored.Unavailable(t.fail)
	}
	if (t.fail != nil || err != nil) && c.Conn().PgConn().TxStatus() != 'I' {
		_, _ = c.Exec(ctx, `ROLLBACK`) // if this fails, Release closes the connection
	}
	if t.fail == nil { // do has succeeded, or has refused
		s.statistics.Wrote()
		return false, err
	}
	if errors.Is(t.fail, errAssigning) {
		return false, t.fail
	}
	if err == nil { // do has met an error and has not returned it
		err = failed("transaction", t.fail)
	}
	switch sqlState(t.fail) {
	case uniqueViolation:
		return !alone, err // a transaction that was alone would meet the same data again
	case readOnlyTransaction:
		s.pool.Reset() // the server has become a standby; the URL may lead to another
	}
	return conflicts(t.fail), err
}

// atOnce runs the statements of f in one transaction and one round trip. It waits only
// for transactions that hold the same rows.
func (s *Store) atOnce(ctx context.Context, doing string, f func(*pipe)) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeBound)
	defer cancel()
	return s.sendAtOnce(ctx, doing, f)
}

// atOnceIn is like atOnce, but takes one of the connections that the workspace may have
// (see shares), because f locks the workspace.
func (s *Store) atOnceIn(ctx context.Context, ws desk.ID, doing string, f func(*pipe)) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeBound)
	defer cancel()
	own, done := s.shares.use(ws)
	defer done()
	if err := takePlace(ctx, own.slots); err != nil {
		return err
	}
	defer func() { <-own.slots }()
	return s.sendAtOnce(ctx, doing, f)
}

func (s *Store) sendAtOnce(ctx context.Context, doing string, f func(*pipe)) error {
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return stored.Unavailable(err)
	}
	defer c.Release() // closes it if its transaction is still open
	p := s.newPipe(ctx, c)
	p.put(`BEGIN ISOLATION LEVEL READ COMMITTED`)
	f(p)
	p.put(`COMMIT`)
	err = p.send(doing)
	if err != nil && s.commitLost(c, p.fail) && !pgconn.SafeToRetry(p.fail) {
		return stored.CommitLost(p.fail)
	}
	return err
}

// exec runs one statement that needs no transaction around it.
func (s *Store) exec(ctx context.Context, doing, query string, args ...any) (pgconn.CommandTag, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeBound)
	defer cancel()
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return pgconn.CommandTag{}, stored.Unavailable(err)
	}
	defer c.Release()
	tag, err := c.Exec(ctx, query, args...)
	if err != nil && s.commitLost(c, err) && !pgconn.SafeToRetry(err) {
		return tag, stored.CommitLost(err)
	}
	return tag, failed(doing, err)
}
