package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"parley/store"

	"zombiezen.com/go/sqlite"
)

// Writers begin IMMEDIATE. A transaction that reads first and writes later can fail with
// SQLITE_BUSY at once, without waiting for busy_timeout, because its snapshot is no
// longer the newest. Without IMMEDIATE, all tests without concurrent processes still
// pass.
const beginWrite = "BEGIN IMMEDIATE"

// lockEvery is how often a writer tries to take SQLite's lock. SQLite's own pauses grow to
// 100 ms, so it would miss the gaps that another process leaves.
const lockEvery = time.Millisecond

// joinFor is how long a running transaction accepts further changes. If it accepted them
// for longer, its callers would wait too long.
const joinFor = 10 * time.Millisecond

// write runs the callback do inside a transaction. It returns nil once the changes are
// durable. If do returns an error, write returns it and stores nothing. The transaction
// may be shared with other changes. Their failure does not affect this change, but do may
// then run twice. A transaction that wrote no row costs no sync.
func (s *Store) write(ctx context.Context, do func(conn) error) error {
	return s.enqueue(&change{do: do, background: store.IsBackground(ctx), patient: store.IsPatient(ctx)})
}

// alone is for an action that needs all transactions of this process to be closed: it
// runs the callback do between two of them.
func (s *Store) alone(do func() error) error {
	return s.enqueue(&change{alone: true, do: func(conn) error { return do() }})
}

func (s *Store) enqueue(ch *change) error {
	ch.turn = make(chan []*change, 1)
	group := s.queue.enter(ch)
	if group == nil {
		if group = s.queue.await(ch); group == nil {
			return ch.err
		}
	}
	group = s.commit(group)
	s.shorten()
	next := s.queue.leave()
	if next != nil {
		s.waited.Store(time.Now().UnixNano())
	}
	for _, other := range group {
		if other != ch {
			other.turn <- nil
		}
	}
	if next != nil {
		next[0].turn <- next
	}
	return ch.err
}

// commit runs the changes of a group in one transaction, with the changes that arrive
// while it runs, and returns all of them. If the transaction fails, each change is run
// in a transaction of its own, so that one change can't make the others fail. If the
// machine fails, the changes are not run again: that would only make all wait longer.
func (s *Store) commit(group []*change) []*change {
	if group[0].alone {
		group[0].err = group[0].do(s.writer)
		return group
	}
	end := s.takeTurn()
	defer end()
	s.balance()
	group, err := s.transact(group, true)
	if err == nil {
		return group
	}
	again := len(group) > 1 && !byMachine(err)
	for _, ch := range group {
		ch.err = err
		if again {
			if _, err := s.transact([]*change{ch}, false); err != nil {
				ch.err = err
			}
		}
	}
	return group
}

// transact runs changes in one transaction and gives each change its own error. If
// nothing was stored, it returns the error that caused this. If open is set, changes
// that arrive while the transaction runs join it.
func (s *Store) transact(group []*change, open bool) (_ []*change, err error) {
	if err := s.begin(); err != nil {
		return group, failed("begin", err)
	}
	defer func() {
		// If the commit failed, SQLite may already have rolled back by itself.
		if err != nil && !s.writer.AutocommitEnabled() {
			if e := s.writer.stmt("ROLLBACK").run(); e != nil {
				err = errors.Join(err, e)
			}
		}
	}()
	began := time.Now()
	s.edited = false
	clear(s.current)
	clear(s.writer.newest) // another process may have written, or a group may have been rolled back
	before := s.written()
	rows := before
	for n := 0; n < len(group); n++ {
		if open && n > 0 && group[n].patient && time.Since(began) > aheadFor {
			group = s.queue.giveWay(group, n)
		}
		ch := group[n]
		ch.err = s.perform(ch)
		last := rows
		rows = s.written()
		// A refusal that wrote nothing does not abort the group. The refusal may depend on
		// data of other changes of the group, so it is returned only after this data is
		// stored.
		if ch.err != nil && (rows != last || byMachine(ch.err)) {
			return group, ch.err
		}
		if s.writer.AutocommitEnabled() {
			return group, errRolledBack
		}
		if open && n == len(group)-1 && time.Since(began) < joinFor {
			group = append(group, s.queue.join(groupChanges-len(group))...)
		}
	}
	if err := s.writer.stmt("COMMIT").run(); err != nil {
		return group, failed("commit", fmt.Errorf("%w (%w)", store.ErrCommitLost, err))
	}
	if rows > before {
		s.grew(int(rows - before))
	}
	return group, nil
}

// begin begins a transaction that writes. It waits for the lock of another process.
func (s *Store) begin() error {
	s.writer.SetBusyTimeout(0)
	defer s.writer.SetBusyTimeout(busyTimeout)
	for stop := time.Now().Add(s.patience); ; time.Sleep(lockEvery) {
		err := s.writer.stmt(beginWrite).run()
		if err == nil || sqlite.ErrCode(err).ToPrimary() != sqlite.ResultBusy || time.Now().After(stop) {
			return err
		}
		s.hadToWait()
	}
}

func (s *Store) perform(ch *change) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a transaction: %v\n%s", p, debug.Stack())
		}
	}()
	c := s.writer
	c.changing = true
	return ch.do(c)
}

// written is a count: it returns how many rows the writer has written since it was
// opened.
func (s *Store) written() int64 {
	row := s.writer.stmt("SELECT total_changes()")
	row.next()
	n := row.readInt()
	_ = row.done() // no failure is possible: it reads a counter in memory
	return n
}
