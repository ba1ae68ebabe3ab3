package sqlite

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"parley/store"
)

// Writers begin IMMEDIATE. A transaction that reads first and writes later can
// fail with SQLITE_BUSY at once, without waiting for busy_timeout, because the
// snapshot it read is no longer the newest. Removing this passes every quiet test.
const beginWrite = "BEGIN IMMEDIATE"

// groupChanges is how many changes share a commit at most.
const groupChanges = 256

// joinFor is how long a transaction takes in changes that come while it runs: those who
// wait for its commit must not wait for everybody else.
const joinFor = 10 * time.Millisecond

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
	group = s.commit(group)
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
	group := q.next(groupChanges)
	if group == nil && len(q.waiting) > 0 {
		group, q.waiting = q.waiting[:1:1], q.waiting[1:] // one that is alone
	}
	if group == nil {
		q.busy, q.waiting = false, nil
	}
	return group
}

// join returns those that have come while a group ran, for the same commit.
func (q *queue) join(most int) []*change {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.next(most)
}

// next takes up to most changes out of the queue, before one that is alone.
func (q *queue) next(most int) []*change {
	n := 0
	for n < len(q.waiting) && n < most && !q.waiting[n].alone {
		n++
	}
	if n == 0 {
		return nil
	}
	group := q.waiting[:n:n]
	q.waiting = q.waiting[n:]
	return group
}

// commit runs a group's changes in one transaction, and those of changes that come while
// it runs; it returns all. If that fails, each change of a
// group is run alone, so that one can't make the others fail. It does not do so if the
// machine fails, because then all would only wait longer.
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

// transact runs changes in one transaction and gives each its own error, or returns the
// error because of which nothing was stored. If it is open, changes that come while it runs
// join it.
func (s *Store) transact(group []*change, open bool) (_ []*change, err error) {
	if err := s.writer.stmt(beginWrite).run(); err != nil {
		return group, failed("begin", err)
	}
	defer func() {
		// A failed commit may have rolled back by itself already.
		if err != nil && !s.writer.AutocommitEnabled() {
			if e := s.writer.stmt("ROLLBACK").run(); e != nil {
				err = errors.Join(err, e)
			}
		}
	}()
	began := time.Now()
	s.edited = false
	clear(s.current)
	clear(s.writer.newest) // another process may have written, or a group been rolled back
	before := s.written()
	rows := before
	for n := 0; n < len(group); n++ {
		ch := group[n]
		ch.err = s.perform(ch)
		last := rows
		rows = s.written()
		// A refusal that wrote nothing does not abort the group. It may depend on what
		// the others have written, so it is answered only after that is stored.
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
