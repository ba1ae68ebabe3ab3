package sqlite

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/store"
)

// behind returns how many patient changes are gathered.
func (s *Store) behind() int {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	return len(s.queue.behind)
}

// until waits until a condition holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for stop := time.Now().Add(time.Minute); !holds(); runtime.Gosched() {
		if time.Now().After(stop) {
			t.Errorf("waited for %s in vain", what)
			return
		}
	}
}

// testRows returns how many rows tests have stored.
func (s *Store) testRows(t *testing.T) (n int64) {
	t.Helper()
	if err := s.read(t.Context(), 1, func(c conn) (err error) {
		n, err = one("count", c.stmt(`SELECT count(*) FROM directory WHERE kind = 'test'`), (*stmt).readInt)
		return err
	}); err != nil {
		t.Error(err)
	}
	return n
}

func writesNothing(conn) error { return nil }

// putTestRow stores a row that testRows counts. No two may have the same name.
func putTestRow(c conn, name string) error {
	return c.stmt(`INSERT INTO directory (kind, ref, workspace_id) VALUES ('test', ?, x'07')`).text(name).run()
}

// hold writes until so many changes of requests wait and so many patient ones are gathered, and then
// for some time. It returns once it has begun to.
func (s *Store) hold(t *testing.T, all *sync.WaitGroup, requests, patient int, d time.Duration) {
	t.Helper()
	began := make(chan struct{})
	all.Go(func() {
		if err := s.write(t.Context(), func(conn) error {
			close(began)
			until(t, "other changes", func() bool {
				s.queue.mu.Lock()
				defer s.queue.mu.Unlock()
				return len(s.queue.waiting) == requests && len(s.queue.behind) == patient
			})
			spend(d)
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
	<-began
}

// spend lets a change take some time.
func spend(d time.Duration) {
	for began := time.Now(); time.Since(began) < d; {
		runtime.Gosched()
	}
}

// TestPatient_gathered: while others write, patient changes wait, and then share a
// commit. While nobody else writes, they don't wait.
func TestPatient_gathered(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	later := store.Patiently(t.Context())
	quick := func() bool {
		began := time.Now()
		for range 5 {
			if err := s.write(later, writesNothing); err != nil {
				t.Fatal(err)
			}
		}
		return time.Since(began) < 5*gatherFor
	}
	for try := 0; !quick(); try++ { // on a slow machine, a commit may take as long
		if try == 200 {
			t.Fatal("patient changes wait while nobody else writes")
		}
	}

	waits := func() bool {
		if err := s.write(t.Context(), writesNothing); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := s.write(later, writesNothing); err != nil {
			t.Fatal(err)
		}
		return time.Since(began) >= gatherFor
	}
	for try := 0; !waits(); try++ { // on a slow machine, the others' change may be long ago
		if try == 200 {
			t.Fatal("a patient change never waits")
		}
	}

	rides := func() bool { // with the next change of others
		if err := s.write(t.Context(), writesNothing); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		done := make(chan error, 1)
		go func() { done <- s.write(later, writesNothing) }()
		until(t, "background work", func() bool { return s.behind() == 1 || len(done) > 0 })
		if err := s.write(t.Context(), writesNothing); err != nil {
			t.Fatal(err)
		}
		rode := s.behind() == 0
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		return rode || time.Since(began) < gatherFor
	}
	for try := 0; rides(); try++ {
		if try == 200 {
			t.Fatal("a patient change is not gathered, but stored with the next change of others")
		}
	}

	refused := errors.New("refused")
	var stored []int64 // rows, as others see them while a change runs
	var all sync.WaitGroup
	s.hold(t, &all, 0, 5, gatherFor)
	for i := range 5 {
		all.Go(func() {
			err := s.write(later, func(c conn) error {
				stored = append(stored, s.testRows(t)) // one at a time
				if i == 3 {
					return refused
				}
				return putTestRow(c, fmt.Sprint(i))
			})
			if (i == 3) != errors.Is(err, refused) {
				t.Errorf("change %d: %v", i, err)
			}
		})
	}
	all.Wait()
	if len(stored) != 5 || slices.Max(stored) > 0 || s.testRows(t) != 4 {
		t.Errorf("they did not share a commit: %d", stored)
	}
}

// TestPatient_givesWay: a change that comes while patient ones run is stored with what has
// run of them, before the rest.
func TestPatient_givesWay(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	for try := 1; ; try++ { // on a slow machine, the patient ones may be overdue
		order := s.gives(t)
		at := slices.Index(order, -1)
		if len(order) != 9 || at != 3 && at != 8 || try == 200 {
			t.Errorf("the other change was number %d of %d", at+1, len(order))
		}
		if at != 8 || try == 200 {
			return
		}
	}
}

// gives runs eight patient changes and another one, which comes while the third of them runs. It
// returns the order in which they ran. The other's is -1.
func (s *Store) gives(t *testing.T) (order []int) {
	t.Helper()
	later := store.Patiently(t.Context())
	came := make(chan error, 1)
	var all sync.WaitGroup
	s.hold(t, &all, 0, 8, gatherFor)
	for i := range 8 {
		all.Go(func() {
			if err := s.write(later, func(conn) error {
				if len(order) == 2 {
					go func() {
						came <- s.write(t.Context(), func(conn) error { order = append(order, -1); return nil })
					}()
					until(t, "the other", func() bool {
						s.queue.mu.Lock()
						defer s.queue.mu.Unlock()
						return len(s.queue.waiting) > 0
					})
				}
				order = append(order, i)
				spend(aheadFor + time.Millisecond)
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := <-came; err != nil {
		t.Error(err)
	}
	return order
}

// TestPatient_progress: patient changes are stored although others write all the time.
func TestPatient_progress(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	later := store.Patiently(t.Context())
	done := make(chan struct{})
	var others sync.WaitGroup
	for range 4 {
		others.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := s.write(t.Context(), func(conn) error { spend(time.Millisecond); return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	until(t, "others", func() bool { s.queue.mu.Lock(); defer s.queue.mu.Unlock(); return s.queue.busy })
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			if err := s.write(later, writesNothing); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	close(done)
	others.Wait()
	if n := s.behind(); n != 0 {
		t.Errorf("%d changes are left", n)
	}
}

// TestQueue_mixed: patient changes, those of background work, of others, and those that run alone, of which some
// fail after they wrote, all come to their end, and what is stored is what they answered.
func TestQueue_mixed(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	refused := errors.New("refused")
	var want atomic.Int64
	var all sync.WaitGroup
	for worker := range 24 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 23))
			for n := range 60 {
				ctx := t.Context()
				switch random.IntN(3) {
				case 0:
					ctx = store.Patiently(ctx)
				case 1:
					ctx = store.InBackground(ctx)
				}
				kind := random.IntN(12)
				if kind == 0 {
					if err := s.alone(func() error { return nil }); err != nil {
						t.Error(err)
					}
					continue
				}
				err := s.write(ctx, func(c conn) error {
					if kind == 1 {
						return refused
					}
					if err := putTestRow(c, fmt.Sprint(worker, ".", n)); err != nil {
						return err
					}
					if kind == 2 {
						return refused
					}
					if kind == 3 {
						panic(refused)
					}
					spend(time.Duration(random.IntN(400)) * time.Microsecond)
					return nil
				})
				if (err != nil) != (kind <= 3) {
					t.Errorf("kind %d: %v", kind, err)
				}
				if err == nil {
					want.Add(1)
				}
				if random.IntN(8) == 0 {
					spend(time.Duration(random.IntN(30)) * time.Millisecond) // so that others are quiet now and then
				}
			}
		})
	}
	all.Wait()
	if n := s.testRows(t); n != want.Load() {
		t.Errorf("%d rows are stored, want %d", n, want.Load())
	}
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	if s.queue.busy || len(s.queue.waiting)+len(s.queue.behind) > 0 {
		t.Error("the queue is not idle")
	}
}

// TestQueue_large: after a long wait, for example for another process, a commit takes no more changes
// than it may, however many of which kind have come.
func TestQueue_large(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	const requests, patient = 300, 400
	var all sync.WaitGroup
	s.hold(t, &all, requests, patient, requestsFor)
	var most atomic.Int64
	running := 0
	for i := range requests + patient {
		ctx := t.Context()
		if i >= requests {
			ctx = store.Patiently(ctx)
		}
		all.Go(func() {
			if err := s.write(ctx, func(conn) error {
				if s.edited { // as the last change of this commit has left it
					running++
				} else {
					running = 1
				}
				s.edited = true
				most.Store(max(most.Load(), int64(running)))
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := most.Load(); n > groupChanges {
		t.Errorf("a commit had %d changes", n)
	}
}

// TestQueue_overdue: patient changes that have waited for long are not put off again.
func TestQueue_overdue(t *testing.T) {
	t.Parallel()
	var q queue
	old, request := &change{patient: true, since: time.Now().Add(-2 * overdueAfter)}, &change{}
	q.waiting = []*change{request}
	if group := q.giveWay([]*change{{patient: true}, old}, 1); len(group) != 2 || len(q.behind) > 0 {
		t.Errorf("an overdue change gave way: %d changes, %d are behind", len(group), len(q.behind))
	}
	old.since = time.Now()
	if group := q.giveWay([]*change{{patient: true}, old}, 1); len(group) != 2 || group[1] != request || len(q.behind) != 1 {
		t.Errorf("a change did not give way: %d changes, %d are behind", len(group), len(q.behind))
	}
}

// TestQueue_background: background work that is not patient doesn't wait, and nothing waits for it.
func TestQueue_background(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	if err := s.write(store.InBackground(t.Context()), writesNothing); err != nil || !s.queue.quiet() {
		t.Errorf("background work counts as a request: %v", err)
	}
	if err := s.write(t.Context(), writesNothing); err != nil {
		t.Fatal(err)
	}
	group := s.queue.enter(&change{background: true})
	if len(group) != 1 {
		t.Error("background work waits")
	}
	s.queue.leave()
}
