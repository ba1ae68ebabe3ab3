package postgres

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	"parley/desk"
	"parley/store"
	"parley/store/postgres/pgtest"
)

var stoppedWaiters = flag.Int("stopped-waiters", 40, "how many transactions wait for the process that TestStoppedProcess stops")

// TestStoppedProcess: a process is stopped in a transaction, as by SIGSTOP, and has
// locked a workspace's assignment and some rows. Transactions that wait for these locks
// go on once PostgreSQL has ended the session of the stopped process. Other workspaces do
// not wait, because the waiting transactions do not have all connections. The stopped
// process learns that its commit may be lost.
func TestStoppedProcess(t *testing.T) {
	t.Parallel()
	for _, assigns := range []bool{true, false} {
		t.Run(fmt.Sprintf("assigns=%v", assigns), func(t *testing.T) {
			t.Parallel()
			url := pgtest.Database(t)
			s, stopped := openAt(t, url), openAt(t, url)
			ctx := t.Context()
			ws, other := newTestID(1), newTestID(2)
			for _, id := range []desk.ID{ws, other} {
				if err := s.CreateWorkspace(ctx, desk.Workspace{ID: id, Name: "Acme"}); err != nil {
					t.Fatal(err)
				}
			}
			now := desk.TimeOf(time.Now())
			c := desk.Conversation{ID: newTestID(3), ChannelID: newTestID(4), ContactID: newTestID(5), Status: desk.StatusOpen, CreatedAt: now, LastMessageAt: now}
			// touch also locks the rows that the stopped process has locked.
			touch := func(ws desk.ID) func(store.Tx) error {
				return func(tx store.Tx) error {
					if assigns {
						if err := tx.LockAssignment(); err != nil {
							return err
						}
					}
					own, err := tx.Conversation(c.ID)
					if err != nil {
						return err
					}
					if own == nil {
						own = &desk.Conversation{}
						*own = c
					}
					return tx.PutConversation(own)
				}
			}
			if err := s.InTx(ctx, ws, touch(ws)); err != nil {
				t.Fatal(err)
			}
			locked, resume, runs := make(chan struct{}), make(chan struct{}), 0
			resumed := make(chan error, 1)
			go func() {
				resumed <- stopped.InTx(context.WithoutCancel(ctx), ws, func(tx store.Tx) error {
					if err := touch(ws)(tx); err != nil {
						return err
					}
					if tx.Now() == 0 { // Now sends the queued statements
						return nil
					}
					if runs++; runs == 1 {
						close(locked)
						<-resume
					}
					return nil
				})
			}()
			<-locked
			began := time.Now()
			var waiters sync.WaitGroup
			begun := make(chan struct{}, *stoppedWaiters)
			for range *stoppedWaiters {
				waiters.Go(func() {
					begun <- struct{}{}
					if err := s.InTx(context.WithoutCancel(ctx), ws, touch(ws)); err != nil {
						t.Errorf("a write, after %v: %v", time.Since(began), err)
					}
				})
			}
			for range *stoppedWaiters {
				<-begun
			}
			for s.pool.Stat().AcquiredConns() == 0 { // until the waiting transactions have taken their connections
				time.Sleep(time.Millisecond)
			}
			slowest := time.Duration(0)
			for range 20 {
				from := time.Now()
				if err := s.InTx(ctx, other, touch(other)); err != nil {
					t.Errorf("a write of another workspace: %v", err)
				}
				if _, err := s.Settings(ctx, other); err != nil {
					t.Errorf("a read: %v", err)
				}
				slowest = max(slowest, time.Since(from))
			}
			if slowest > 2*time.Second {
				t.Errorf("another workspace waited %v", slowest)
			}
			waiters.Wait()
			if took := time.Since(began); took > 8*time.Second {
				t.Errorf("they waited %v", took)
			} else {
				t.Logf("they waited %v, another workspace %v", took, slowest)
			}
			close(resume)
			if err := <-resumed; !errors.Is(err, store.ErrCommitLost) || !desk.IsType(err, desk.Unavailable) || runs != 1 {
				t.Errorf("the stopped process: %d runs, %v", runs, err)
			}
		})
	}
}

// TestStoppedProcess_deliveries: a process is stopped while it has a workspace to itself.
// Then all callers who store deliveries of the workspace wait, but they do not take all
// connections: other workspaces do not wait.
func TestStoppedProcess_deliveries(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	s, stopped := openAt(t, url), openAt(t, url)
	ctx := t.Context()
	ws, other := newTestID(1), newTestID(2)
	for _, id := range []desk.ID{ws, other} {
		check(t, s.CreateWorkspace(ctx, desk.Workspace{ID: id, Name: "Acme"}))
	}
	locked, resume := make(chan struct{}), make(chan struct{})
	resumed := make(chan error, 1)
	go func() {
		resumed <- stopped.write(ctx, ws, true, func(x *tx) error {
			if err := x.open("begin"); err != nil {
				return err
			}
			close(locked)
			<-resume
			return nil
		})
	}()
	<-locked
	var waiters sync.WaitGroup
	for n := range byte(20) {
		waiters.Go(func() {
			hold := store.DeliveryHold{WebhookRef: store.WebhookRef{Workspace: ws, ID: newTestID(10 + n)}, Task: "deliver", Holder: newTestID(3)}
			if stored, err := s.StoreDeliveries(ctx, hold, desk.WebhookState{}, nil); stored || err != nil { // it holds nothing
				t.Errorf("%v, %v", stored, err)
			}
		})
	}
	began := time.Now()
	for lockWaits(t, stopped) < shareOf(8) { // until the callers have all connections that one workspace may have
		if time.Since(began) > time.Minute {
			t.Fatal("the callers don't have all connections")
		}
	}
	began = time.Now()
	if err := s.InTx(ctx, other, func(tx store.Tx) error { return nil }); err != nil {
		t.Errorf("a write of another workspace: %v", err)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("another workspace waited %v", took)
	}
	waiters.Wait()
	close(resume)
	if err := <-resumed; !errors.Is(err, store.ErrCommitLost) { // its session was ended
		t.Errorf("the stopped process: %v", err)
	}
}

func newTestID(n byte) desk.ID { return desk.ID{0: 1, 6: 0x70, 8: 0x80, 15: n} }
