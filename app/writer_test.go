package app

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/desk"
	"parley/store"
)

// A flushStore is a Store that has only UpdateContacts. Each flush first calls gate.
type flushStore struct {
	store.Store
	abreast int
	gate    func(ops []*desk.Op) error
}

func (s *flushStore) FlushesAbreast() int { return s.abreast }

func (s *flushStore) UpdateContacts(_ context.Context, _ desk.ID, ops []*desk.Op, apply func(*desk.Book, int, int)) error {
	if err := s.gate(ops); err != nil {
		return err
	}
	// Operations are applied in parts, as by a store that can't load everything at once.
	for from, part := 0, 1; from < len(ops); from, part = from+part, part+1 {
		apply(desk.NewBook(desk.NewSettings(desk.Workspace{}, 1, nil, nil, nil, nil), 1), from, min(from+part, len(ops)))
	}
	return nil
}

func newWriter(gate func([]*desk.Op) error) *writer {
	var ids atomic.Uint32
	return &writer{
		store: &flushStore{abreast: 1, gate: gate},
		now:   func() desk.Time { return 1 },
		newID: func() desk.ID { return desk.ID{byte(ids.Add(1))} },

		longest: time.Hour,
		lanes:   map[desk.ID]*lane{},
	}
}

func upserts(n int) *request {
	r := &request{}
	for range n {
		r.ops = append(r.ops, &desk.Op{Kind: desk.OpUpsert, Write: desk.ContactWrite{Sent: []desk.Identity{{Kind: "k", Value: "v"}}}})
	}
	return r
}

// TestEveryRequestIsAnswered: each request gets an answer, even if lanes fill and empty
// again and again.
func TestEveryRequestIsAnswered(t *testing.T) {
	t.Parallel()
	var flushed atomic.Int64
	w := newWriter(func(ops []*desk.Op) error { flushed.Add(int64(len(ops))); return nil })
	const callers, each = 64, 200
	var group sync.WaitGroup
	for n := range callers {
		group.Go(func() {
			for i := range each {
				r := upserts(1 + i%20)
				w.write(desk.ID{byte(n % 2)}, r)
				if r.err != nil || len(r.outcomes) != len(r.ops) {
					t.Errorf("%d outcomes of %d operations, %v", len(r.outcomes), len(r.ops), r.err)
				}
			}
		})
	}
	group.Wait()
	if want := int64(callers * each / 20 * 210); flushed.Load() != want {
		t.Errorf("%d operations were flushed, want %d", flushed.Load(), want)
	}
	if len(w.lanes) != 0 {
		t.Error("an idle lane is kept")
	}
}

// TestSmallRequestsTakeTurnsWithLarge: a small request waits for at most one group of
// batches, however many batches wait.
func TestSmallRequestsTakeTurnsWithLarge(t *testing.T) {
	t.Parallel()
	first, release := make(chan struct{}), make(chan struct{})
	var sizes []int
	w := newWriter(func(ops []*desk.Op) error {
		if sizes = append(sizes, len(ops)); len(sizes) == 1 {
			close(first)
			<-release
		}
		return nil
	})
	var group sync.WaitGroup
	send := func(n int) { group.Go(func() { w.write(desk.ID{}, upserts(n)) }) }
	send(1)
	<-first
	for _, n := range []int{1000, 1000, 1, 1, 600, 300, 200, 1} {
		send(n)
	}
	waitFor(t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.lanes[desk.ID{}].small)+len(w.lanes[desk.ID{}].large) == 8
	})
	close(release)
	group.Wait()
	if sizes[1] == 3 || sizes[2] != 3 {
		t.Errorf("groups of %v: the three singles did not go together, after one batch", sizes)
	}
	for _, n := range sizes {
		if n > groupOps {
			t.Errorf("a group of %d operations", n)
		}
	}
}

// TestLateRequestsFail: requests that have waited long for a flush fail with it if the database
// does not answer. Later ones, and those behind another failure, have a flush of their own.
func TestLateRequestsFail(t *testing.T) {
	t.Parallel()
	away := &desk.Error{Type: desk.Unavailable}
	for _, tc := range []struct {
		longest time.Duration
		failure error
		flushed int // operations
	}{{0, away, 1}, {time.Hour, away, 1 + 3 + 40}, {0, errors.New("another"), 1 + 3 + 40}} {
		first, release, flushed := make(chan struct{}), make(chan struct{}), 0
		w := newWriter(func(ops []*desk.Op) error {
			if flushed += len(ops); flushed > 1 {
				return nil
			}
			close(first)
			<-release
			return tc.failure
		})
		w.longest = tc.longest
		var group sync.WaitGroup
		requests := []*request{upserts(1), upserts(1), upserts(2), upserts(40)}
		for n, r := range requests {
			group.Go(func() { w.write(desk.ID{}, r) })
			if n == 0 {
				<-first
			}
		}
		waitFor(t, func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.lanes[desk.ID{}].waiting == 43
		})
		close(release)
		group.Wait()
		for n, r := range requests {
			if failed := r.err != nil; failed != (n == 0 || tc.flushed == 1) {
				t.Errorf("%+v: request %d: %v", tc, n, r.err)
			}
		}
		if flushed != tc.flushed || len(w.lanes) != 0 {
			t.Errorf("%+v: %d operations flushed, %d lanes left", tc, flushed, len(w.lanes))
		}
	}
}

// TestFlushesAbreast: a second flush begins beside the first if enough operations wait: as
// many as are under way, but at most abreastFrom. A third flush never begins.
func TestFlushesAbreast(t *testing.T) {
	t.Parallel()
	for first, second := range map[int]int{1: 1, 10: 10, 1000: abreastFrom} {
		begun, release := make(chan int, 3), make(chan struct{})
		w := newWriter(func(ops []*desk.Op) error {
			begun <- len(ops)
			<-release
			return nil
		})
		w.store.(*flushStore).abreast = 2
		var group sync.WaitGroup
		send := func(n int) { group.Go(func() { w.write(desk.ID{}, upserts(n)) }) }
		queued := func(ops int) func() bool {
			return func() bool {
				w.mu.Lock()
				defer w.mu.Unlock()
				return w.lanes[desk.ID{}].waiting == ops
			}
		}
		send(first)
		if n := <-begun; n != first {
			t.Errorf("the first flush has %d operations, want %d", n, first)
		}
		for n := range second - 1 {
			send(1)
			waitFor(t, queued(n+1)) // too few operations for a second flush
		}
		send(1)
		if n := <-begun; n != second {
			t.Errorf("the second flush has %d operations, want the %d that waited", n, second)
		}
		send(1000)
		waitFor(t, queued(1000)) // these operations wait for the end of one of the two flushes
		close(release)
		group.Wait()
		if n := <-begun; n != 1000 || len(w.lanes) != 0 {
			t.Errorf("the third flush has %d operations, %d lanes are left", n, len(w.lanes))
		}
	}
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for range 5_000_000 {
		if ok() {
			return
		}
		runtime.Gosched()
	}
	t.Fatal("still waiting")
}

// TestOneRequestDoesNotFailItsNeighbours: a group that the database refuses is split. A group
// that fails because the database is unavailable is not tried again.
func TestOneRequestDoesNotFailItsNeighbours(t *testing.T) {
	t.Parallel()
	for _, refusal := range []error{errors.New("constraint"), desk.Errorf(desk.Unavailable, "disk full")} {
		first, release := make(chan struct{}), make(chan struct{})
		flushes := 0
		w := newWriter(func(ops []*desk.Op) error {
			if flushes++; flushes == 1 {
				close(first)
				<-release
			}
			if len(ops) > 1 || len(ops[0].Write.Sent) == 2 {
				return refusal
			}
			return nil
		})
		good, bad := upserts(1), upserts(1)
		bad.ops[0].Write.Sent = append(bad.ops[0].Write.Sent, desk.Identity{Kind: "k", Value: "w"})
		var group sync.WaitGroup
		group.Go(func() { w.write(desk.ID{}, upserts(1)) })
		<-first
		group.Go(func() { w.write(desk.ID{}, good) })
		group.Go(func() { w.write(desk.ID{}, bad) })
		waitFor(t, func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return len(w.lanes[desk.ID{}].small) == 2
		})
		close(release)
		group.Wait()
		if !errors.Is(bad.err, refusal) {
			t.Errorf("the bad request's error = %v", bad.err)
		}
		if unavailable := desk.IsType(refusal, desk.Unavailable); unavailable != (good.err != nil) || unavailable != (flushes == 2) {
			t.Errorf("after %v: the good request's error = %v, %d flushes", refusal, good.err, flushes)
		}
	}
}

// TestPanicFreesTheLane: a panic in a flush is an error of that request only.
func TestPanicFreesTheLane(t *testing.T) {
	t.Parallel()
	broken := true
	w := newWriter(func([]*desk.Op) error {
		if broken {
			panic("bug")
		}
		return nil
	})
	r := upserts(1)
	if w.write(desk.ID{}, r); r.err == nil {
		t.Error("a panic was answered as success")
	}
	broken = false
	again := upserts(1)
	if w.write(desk.ID{}, again); again.err != nil {
		t.Errorf("after a panic: %v", again.err)
	}
}

// A largeStore is a Store with one contact. It runs each flush in parts of part operations.
// Each part has a Book with the contact.
type largeStore struct {
	store.Store
	contact desk.Contact
	part    int
	gate    func(n int) error // called before the n-th flush
	flushes []int             // how many operations each flush has stored
	stored  []*desk.Op        // all operations that were stored
}

func (s *largeStore) FlushesAbreast() int { return 1 }

func (s *largeStore) UpdateContacts(_ context.Context, _ desk.ID, ops []*desk.Op, apply func(*desk.Book, int, int)) error {
	s.flushes = append(s.flushes, 0)
	n := len(s.flushes) - 1
	if err := s.gate(n); err != nil {
		return err
	}
	for from, ended := 0, false; from < len(ops) && !ended; from += s.part {
		book := desk.NewBook(desk.NewSettings(desk.Workspace{}, 1, nil, nil, nil, nil), 1)
		book.Load(&s.contact)
		apply(book, from, min(from+s.part, len(ops)))
		s.flushes[n] += len(book.Events()) // each operation makes one event
		ended = book.Ended()
	}
	s.stored = append(s.stored, ops[:s.flushes[n]]...)
	return nil
}

// TestOutcomesOfAGroupAreBounded: a group whose outcomes would have too many bytes of contacts
// ends between two requests. Its other requests come first in the next group, in order. Large
// requests still take turns with small ones.
func TestOutcomesOfAGroupAreBounded(t *testing.T) {
	t.Parallel()
	const mib, singles, batch = 1 << 20, 20, 600
	for _, part := range []int{1, 3, groupOps} {
		for refused, want := range map[bool][]int{
			false: {1, batch, 8, batch, 8, 8, 8, 8},
			true:  {1, batch, 0, 2, 2, 2, 2, batch, 8, 8, 8, 8}, // each is tried alone after that
		} {
			first, release := make(chan struct{}), make(chan struct{})
			s := &largeStore{part: part, gate: func(n int) error {
				if n == 0 {
					close(first)
					<-release
				}
				if n == 2 && refused {
					return errors.New("constraint")
				}
				return nil
			}}
			s.contact = desk.Contact{ID: desk.ID{1}, Further: []desk.Identity{{Kind: "k", Value: "v"}}, Note: strings.Repeat("n", mib)}
			w := newWriter(nil)
			w.store = s
			var group sync.WaitGroup
			var sent []*desk.Op // the operations of small requests
			send := func(n int, whole bool) {
				r := upserts(n)
				for i, op := range r.ops {
					op.Brief = !whole
					op.Write.Name = desk.Field[string]{Set: true, Value: fmt.Sprint(len(sent), " ", i)}
					if whole {
						sent = append(sent, op)
					}
				}
				group.Go(func() {
					w.write(desk.ID{}, r)
					for i, o := range r.outcomes {
						if r.err != nil || r.errs[i] != nil || whole && o.Contact.Name != r.ops[i].Write.Name.Value {
							t.Errorf("%v, %v, %+v", r.err, r.errs[i], o)
						}
					}
				})
			}
			send(1, true)
			<-first
			for n := range singles + 2 {
				if n < singles {
					send(2, true)
				} else {
					send(batch, false)
				}
				waitFor(t, func() bool {
					w.mu.Lock()
					defer w.mu.Unlock()
					return len(w.lanes[desk.ID{}].small)+len(w.lanes[desk.ID{}].large) == n+1
				})
			}
			close(release)
			group.Wait()
			if !slices.Equal(s.flushes, want) || len(w.lanes) != 0 {
				t.Errorf("parts of %d: flushes of %v, want %v; %d lanes are kept", part, s.flushes, want, len(w.lanes))
			}
			small := slices.DeleteFunc(s.stored, func(op *desk.Op) bool { return !slices.Contains(sent, op) })
			if !slices.Equal(small, sent) {
				t.Errorf("parts of %d: the order of requests is lost", part)
			}
		}
	}
}
