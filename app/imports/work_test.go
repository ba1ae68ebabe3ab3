package imports

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/desk"
	"parley/store"
)

// A leaseStore has one lease, by the clock of a test.
type leaseStore struct {
	store.Store
	mu     sync.Mutex
	holder desk.ID
	until  time.Time
	calls  int // begun
	ended  int
}

const slow = time.Second

func (s *leaseStore) HoldLeases(_ context.Context, list []store.LeaseRef, holder desk.ID, length desk.Time) (map[store.LeaseRef]int64, error) {
	s.mu.Lock()
	s.calls++
	s.mu.Unlock()
	time.Sleep(slow)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended++
	if s.holder != holder && time.Now().Before(s.until) {
		return nil, nil
	}
	s.holder, s.until = holder, time.Now().Add(time.Duration(length)*time.Millisecond)
	return map[store.LeaseRef]int64{list[0]: 1}, nil
}

func (s *leaseStore) takes(holder desk.ID) bool {
	held, _ := s.HoldLeases(context.Background(), []store.LeaseRef{leaseOf(desk.ID{1})}, holder, desk.Time(desk.ImportLease.Milliseconds()))
	return len(held) == 1
}

// TestHold: an import keeps the workspace while it does something long, and no longer. If another
// process has taken it meanwhile, the import ends; but what it had all done counts.
func TestHold(t *testing.T) {
	t.Parallel()
	ours, other := desk.ID{2}, desk.ID{3}
	held := func(t *testing.T, want error, do func(ctx context.Context, s *leaseStore) error) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			s := &leaseStore{}
			i := &Import{service: &Service{Deps: Deps{Store: s}}, lease: leaseOf(desk.ID{1}), holder: ours}
			if !s.takes(ours) {
				t.Fatal("the lease is taken")
			}
			if err := i.Hold(t.Context(), func(ctx context.Context) error { return do(ctx, s) }); !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
			calls := s.calls
			if s.ended != calls {
				t.Error("it still extends the lease at its end")
			}
			time.Sleep(10 * desk.ImportLease)
			if s.calls != calls {
				t.Error("it extends the lease after its end")
			}
		})
	}
	lost := func(ctx context.Context, s *leaseStore) {
		s.mu.Lock()
		s.until = time.Now() // the process stood still for longer than the lease
		s.mu.Unlock()
		if !s.takes(other) {
			t.Error("no other process can take it after the lease")
		}
		<-ctx.Done()
	}
	failed := errors.New("the file can't be read")
	held(t, nil, func(ctx context.Context, s *leaseStore) error {
		time.Sleep(10 * desk.ImportLease)
		if s.takes(other) {
			t.Error("another process has taken the workspace")
		}
		return ctx.Err()
	})
	held(t, failed, func(context.Context, *leaseStore) error {
		time.Sleep(desk.ImportLease/3 + slow/2) // it is extending the lease
		return failed
	})
	held(t, errMoved, func(ctx context.Context, s *leaseStore) error {
		lost(ctx, s)
		return ctx.Err()
	})
	held(t, nil, func(ctx context.Context, s *leaseStore) error {
		lost(ctx, s)
		return nil
	})
}
