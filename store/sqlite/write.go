package sqlite

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"parley/app"
)

// Writers begin IMMEDIATE. A transaction that reads first and writes later can
// fail with SQLITE_BUSY at once, without waiting for busy_timeout, because the
// snapshot it read is no longer the newest. Removing this passes every quiet test.
const beginWrite = "BEGIN IMMEDIATE"

// groupChanges is how many changes share a commit at most.
const groupChanges = 256

// A change is one caller's part of a transaction, or, if alone is set, an action
// between two transactions.
type change struct {
	do    func(conn) error
	alone bool
	err   error
	turn  chan []*change // receives a group to lead, or nil if another has led it
}

// A queue lets the changes that arrive during a commit share the next one. A caller
// that finds the queue idle leads; afterwards it passes the lead to the first of the
// next group.
type queue struct {
	mu      sync.Mutex
	busy    bool
	waiting []*change
}

// write runs do inside a transaction. It returns once the changes are durable, or with
// do's error and nothing stored. It may share the transaction with others, whose
// failure does not affect it; but do may then run twice. A transaction that wrote no
// row costs no sync.
func (s *Store) write(do func(conn) error) error {
	return s.enqueue(&change{do: do})
}

// alone runs do while no transaction of this process is open.
func (s *Store) alone(do func() error) error {
	return s.enqueue(&change{alone: true, do: func(conn) error { return do() }})
}

func (s *Store) enqueue(ch *change) error {
	ch.turn = make(chan []*change, 1)
	group := s.queue.enter(ch)
	if group == nil {
		if group = <-ch.turn; group == nil {
			return ch.err
		}
	}
	s.commit(group)
	next := s.queue.leave()
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

func (q *queue) enter(ch *change) []*change {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.busy {
		q.busy = true
		return []*change{ch}
	}
	q.waiting = append(q.waiting, ch)
	return nil
}

func (q *queue) leave() []*change {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for n < len(q.waiting) && n < groupChanges && !q.waiting[n].alone {
		n++
	}
	if n == 0 && len(q.waiting) > 0 {
		n = 1 // one that is alone
	}
	if n == 0 {
		q.busy, q.waiting = false, nil
		return nil
	}
	group := q.waiting[:n:n]
	q.waiting = q.waiting[n:]
	return group
}

// commit runs a group's changes in one transaction. If that fails, each change of a
// group is run alone, so that one can't make the others fail. It does not do so if the
// machine fails, because then all would only wait longer.
func (s *Store) commit(group []*change) {
	if group[0].alone {
		group[0].err = group[0].do(s.writer)
		return
	}
	end := s.takeTurn()
	defer end()
	s.balance()
	err := s.transact(group)
	if err == nil {
		return
	}
	again := len(group) > 1 && !byMachine(err)
	for _, ch := range group {
		ch.err = err
		if again {
			if err := s.transact([]*change{ch}); err != nil {
				ch.err = err
			}
		}
	}
}

// transact runs changes in one transaction and gives each its own error, or returns the
// error because of which nothing was stored.
func (s *Store) transact(group []*change) (err error) {
	if err := s.writer.stmt(beginWrite).run(); err != nil {
		return failed("begin", err)
	}
	defer func() {
		// A failed commit may have rolled back by itself already.
		if err != nil && !s.writer.AutocommitEnabled() {
			if e := s.writer.stmt("ROLLBACK").run(); e != nil {
				err = errors.Join(err, e)
			}
		}
	}()
	s.edited = false
	clear(s.current)
	clear(s.writer.newest) // another process may have written, or a group been rolled back
	before := s.written()
	rows := before
	for _, ch := range group {
		ch.err = s.perform(ch)
		last := rows
		rows = s.written()
		// A refusal that wrote nothing does not abort the group. It may depend on what
		// the others have written, so it is answered only after that is stored.
		if ch.err != nil && (rows != last || byMachine(ch.err)) {
			return ch.err
		}
		if s.writer.AutocommitEnabled() {
			return errRolledBack
		}
	}
	if err := s.writer.stmt("COMMIT").run(); err != nil {
		return failed("commit", fmt.Errorf("%w (%w)", app.ErrCommitLost, err))
	}
	if rows > before {
		s.grew(int(rows - before))
	}
	return nil
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

// written is how many rows the writer has written in its life.
func (s *Store) written() int64 {
	row := s.writer.stmt("SELECT total_changes()")
	row.next()
	n := row.readInt()
	_ = row.done() // it reads a counter in memory
	return n
}
