package web

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/desk"
)

var ada, bob = desk.ID{1}, desk.ID{2}

// A body is a body that a test reads in a budget. cut gets a value when the body is
// dropped.
type body struct {
	*hold
	cut chan time.Duration // the time from its beginning
}

func read(b *budget, owner desk.ID, limit int) body {
	begun, cut := time.Now(), make(chan time.Duration, 1)
	return body{b.enter(owner, limit, func() { cut <- time.Since(begun) }), cut}
}

func (b body) wasCut() bool {
	select {
	case <-b.cut:
		return true
	default:
		return false
	}
}

func (b body) must(t *testing.T, size int) {
	t.Helper()
	if err := b.grow(t.Context(), size); err != nil {
		t.Fatalf("%d bytes: %v", size, err)
	}
}

// empty is a check: the test fails unless the budget has forgotten all bodies.
func empty(t *testing.T, b *budget) {
	t.Helper()
	if b.used != 0 || b.waits != 0 || len(b.owners) != 0 || len(b.queues) != 0 || b.holds.Len() != 0 {
		t.Errorf("%d bytes of %d bodies and %d owners are left, %d wait", b.used, b.holds.Len(), len(b.owners), b.waits)
	}
}

// TestShare: an owner can take half of the memory. The other half stays for other owners.
func TestShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100, 50)
		first, second, other := read(b, ada, 40), read(b, ada, 20), read(b, bob, 50)
		first.must(t, 40)
		first.work()
		begun := time.Now()
		if err := second.grow(t.Context(), 20); !errors.Is(err, errNoRoom) || time.Since(begun) != patience {
			t.Errorf("above the share: %v after %v", err, time.Since(begun))
		}
		begun = time.Now()
		other.must(t, 50)
		if time.Since(begun) != 0 {
			t.Errorf("another owner waited %v", time.Since(begun))
		}
		time.AfterFunc(time.Second, first.leave)
		second.must(t, 20)
		if time.Since(begun) != time.Second {
			t.Errorf("it was granted after %v", time.Since(begun))
		}
		second.leave()
		other.leave()
		empty(t, b)
	})
}

// TestGivesWay: if memory is needed, the body that has stood still for the longest time is
// dropped. No body is dropped before. A body that moves, or that the server works on, is
// not dropped.
func TestGivesWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100_000, 100_000)
		works, moves, old, older := read(b, ada, 20_000), read(b, ada, 20_000), read(b, ada, 20_000), read(b, ada, 20_000)
		works.must(t, 20_000)
		works.work()
		older.must(t, 20_000)
		time.Sleep(100 * time.Millisecond)
		old.must(t, 20_000)
		moves.must(t, 20_000)
		for range 20 {
			time.Sleep(stillAfter / 2)
			moves.progress(stir / 2)
		}
		if works.wasCut() || moves.wasCut() || older.wasCut() || old.wasCut() {
			t.Error("a body gave way to nobody")
		}
		leave := func(h body) { <-h.cut; h.work(); h.leave() }
		go leave(older)
		begun, a := time.Now(), read(b, bob, 30_000)
		a.must(t, 30_000)
		if time.Since(begun) != 0 || old.wasCut() || works.wasCut() || moves.wasCut() {
			t.Errorf("after %v: not only the body that stood still for longest gave way", time.Since(begun))
		}
		if err := older.grow(t.Context(), 1); !errors.Is(err, errGaveWay) {
			t.Errorf("a body that gave way goes on: %v", err)
		}
		go leave(old)
		read(b, bob, 20_000).must(t, 20_000)
	})
}

// TestTrickle: a body that moves only a byte now and then does not keep its memory.
func TestTrickle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100, 100)
		slow := read(b, ada, 100)
		slow.must(t, 100)
		go func() {
			for !slow.wasCut() {
				time.Sleep(stillAfter / 10)
				slow.progress(1)
			}
			slow.leave()
		}()
		begun := time.Now()
		read(b, bob, 50).must(t, 50)
		if took := time.Since(begun); took < stillAfter || took > 2*stillAfter {
			t.Errorf("it gave way after %v", took)
		}
	})
}

// TestShareCutsItsOwn: if an owner's share is full, a new body of this owner drops only
// bodies of the same owner.
func TestShareCutsItsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100, 50)
		other, own := read(b, bob, 50), read(b, ada, 50)
		other.must(t, 50)
		own.must(t, 50)
		time.Sleep(2 * stillAfter)
		go func() { <-own.cut; own.leave() }()
		read(b, ada, 50).must(t, 50)
		if other.wasCut() {
			t.Error("another owner's body gave way")
		}
	})
}

// TestAnswers: an answer that exists already counts even if there is no memory for it. An
// answer that does not exist yet is not made without memory.
func TestAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100, 50)
		there := b.enter(ada, 60, nil)
		there.force(60)
		if b.enter(ada, 10, nil).try(10) {
			t.Error("an answer has room above the share")
		}
		if !b.enter(bob, 10, nil).try(10) {
			t.Error("another owner's has none")
		}
		late := b.enter(ada, 10, nil)
		if err := late.grow(t.Context(), 10); !errors.Is(err, errNoRoom) {
			t.Error(err)
		}
		time.Sleep(2 * stillAfter) // an answer that is being made is not dropped, and nothing panics
		if err := late.grow(t.Context(), 10); !errors.Is(err, errNoRoom) {
			t.Error(err)
		}
		cut := false
		there.move(func() { cut = true; go there.leave() })
		if err := late.grow(t.Context(), 10); err != nil || !cut {
			t.Errorf("%v, cut %v", err, cut)
		}
	})
}

// TestAllEnd: bodies that together need many times the memory all finish, one after the
// other, and never take more than the limit.
func TestAllEnd(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			b := newBudget(64<<20, 32<<20)
			var wg sync.WaitGroup
			for i := range 40 {
				size, pause := 1<<(14+random.IntN(11)), time.Duration(random.IntN(20))*time.Millisecond
				h := read(b, desk.ID{byte(i % (1 + int(seed%4)))}, 16<<20)
				wg.Go(func() {
					defer h.leave()
					for have := 32 << 10; ; have *= 2 {
						if err := h.grow(t.Context(), min(have, size)); err != nil {
							t.Errorf("seed %d: a body of %d at %d: %v", seed, size, have, err)
							return
						}
						time.Sleep(pause / 10)
						h.progress(have / 2)
						b.mu.Lock()
						if b.used > b.limit || b.owners[h.owner] > b.share {
							t.Errorf("seed %d: %d bytes, %d of one owner", seed, b.used, b.owners[h.owner])
						}
						b.mu.Unlock()
						if have >= size {
							break
						}
					}
					h.work()
					time.Sleep(pause)
				})
			}
			wg.Wait()
			empty(t, b)
		})
	}
}

// TestLeaver: a client that leaves while its body waits keeps no memory.
func TestLeaver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100, 100)
		full := read(b, ada, 100)
		full.must(t, 100)
		full.work()
		ctx, leave := context.WithCancel(t.Context())
		go leave()
		h := read(b, bob, 100)
		if err := h.grow(ctx, 100); !errors.Is(err, errNoRoom) {
			t.Error(err)
		}
		h.leave()
		full.leave()
		empty(t, b)
	})
}

// TestManyWait: only so many bodies of one owner may wait, because each request for memory
// looks at all waiting bodies. The bodies of another owner do not wait for them.
func TestManyWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100, 50)
		full := read(b, ada, 50)
		full.must(t, 50)
		full.work()
		refused := make(chan time.Duration, maxWaits+1)
		begun := time.Now()
		for range maxWaits + 1 {
			go func() {
				h := read(b, ada, 20)
				if err := h.grow(t.Context(), 20); !errors.Is(err, errNoRoom) {
					t.Error(err)
				}
				h.leave()
				refused <- time.Since(begun)
			}()
		}
		if waited := <-refused; waited != 0 {
			t.Errorf("one more than may wait is refused after %v", waited)
		}
		other := read(b, bob, 20)
		other.must(t, 20)
		if waited := <-refused; waited != patience {
			t.Errorf("the others are refused after %v", waited)
		}
		synctest.Wait()
		full.leave()
		other.leave()
		empty(t, b)
	})
}
