package sqlite

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"parley/desk"
)

// Writers begin IMMEDIATE. A transaction that reads first and writes later can
// fail with SQLITE_BUSY at once, without waiting for busy_timeout, because the
// snapshot it read is no longer the newest. Removing this passes every quiet test.
const beginWrite = "BEGIN IMMEDIATE"

// groupChanges is how many changes share a commit at most.
const groupChanges = 256

// A change is one caller's part of a transaction, or, when it is alone, something
// done between two of them.
type change struct {
	do    func(conn) (rows int, err error)
	alone bool
	rows  int
	err   error
	turn  chan []*change // a group to lead, or nil when another has led it
}

// A queue lets the changes that arrive during a commit share the next one. Whoever
// finds it idle leads; whoever led hands it to the first of the next group.
type queue struct {
	mu      sync.Mutex
	busy    bool
	waiting []*change
}

// write runs do inside a transaction and returns once what it wrote is durable, or
// with an error and nothing stored. do returns how many rows it wrote; a
// transaction that wrote none costs no commit. It may share the transaction with
// others, whose failure does not touch it.
func (s *Store) write(do func(conn) (rows int, err error)) error {
	return s.enqueue(&change{do: do})
}

// alone runs do while no transaction of this process is open.
func (s *Store) alone(do func() error) error {
	return s.enqueue(&change{alone: true, do: func(conn) (int, error) { return 0, do() }})
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

// commit runs a group's changes in one transaction. When one fails with company,
// each is run alone, so that it can't take its neighbours with it; but not when it
// is the machine that fails, which would only make all wait for it in turn.
func (s *Store) commit(group []*change) {
	if group[0].alone {
		_, group[0].err = group[0].do(s.writer)
		return
	}
	end := s.takeTurn()
	defer end()
	s.balance()
	err := s.transact(group)
	again := err != nil && len(group) > 1 && !desk.IsType(err, desk.Unavailable)
	rows := 0
	for _, ch := range group {
		ch.err = err
		if again {
			ch.err = s.transact([]*change{ch})
		}
		if ch.err == nil {
			rows += ch.rows
		}
	}
	if rows > 0 {
		s.grew(rows)
	}
}

func (s *Store) transact(group []*change) (err error) {
	if err := s.writer.stmt(beginWrite).run(); err != nil {
		return failed("begin", err)
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a transaction: %v\n%s", p, debug.Stack())
		}
		// A failed commit may have rolled back by itself already.
		if err != nil && !s.writer.AutocommitEnabled() {
			err = errors.Join(err, s.writer.stmt("ROLLBACK").run())
		}
	}()
	for _, ch := range group {
		if ch.rows, err = ch.do(s.writer); err != nil {
			return err
		}
	}
	return failed("commit", s.writer.stmt("COMMIT").run())
}
