package deliver

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/app/feed"
	"parley/desk"
	"parley/store"
)

// TestPatience: an endpoint that may not begin a delivery waits for some time before it
// looks again. An endpoint that may begin one looks for new events after a short pause.
func TestPatience(t *testing.T) {
	t.Parallel()
	const up = time.Hour
	for name, c := range map[string]struct {
		change      func(*endpoint)
		least, most time.Duration
	}{
		"new events":               {func(*endpoint) {}, time.Millisecond, time.Millisecond},
		"the page is fresh":        {func(e *endpoint) { e.page, e.readAt = &feed.Page{}, time.Now() }, time.Millisecond, deliveredPause},
		"a delivery waits":         {func(e *endpoint) { e.pending = []*desk.WebhookDelivery{{DueAt: desk.TimeOf(time.Now().Add(up))}} }, time.Millisecond, time.Millisecond},
		"tries under way":          {func(e *endpoint) { e.inFlight = desk.MaxInFlight }, idleStep, idleStep},
		"the lease may have ended": {func(e *endpoint) { e.until.Store(int64(up)) }, idleStep, idleStep},
		"it is stopping":           {func(e *endpoint) { e.quit() }, idleStep, idleStep},
		"too many are pending":     {func(e *endpoint) { e.pending = mostPending() }, idleStep / 10, idleStep},
		"results to store": {func(e *endpoint) {
			e.inFlight, e.since = desk.MaxInFlight, time.Now().Add(-time.Minute)
		}, time.Millisecond, time.Millisecond},
	} {
		for _, more := range []bool{true, false} { // false: an event was stored after the last page
			if more && name == "the page is fresh" {
				continue
			}
			e := &endpoint{service: &Service{Deps: Deps{Clock: time.Now, Uptime: func() time.Duration { return up }}}, stopped: make(chan struct{}), more: more, news: true}
			e.until.Store(int64(up + 10*time.Second))
			c.change(e)
			if got := e.patience(); got < c.least || got > c.most {
				t.Errorf("%s: it waits %v, want %v to %v", name, got, c.least, c.most)
			}
		}
	}
}

// TestPatience_cursor: if the cursor has moved without a delivery, it is stored some time
// later, even if nothing else happens. The endpoint wakes up for this.
func TestPatience_cursor(t *testing.T) {
	t.Parallel()
	e := &endpoint{service: &Service{Deps: Deps{Clock: time.Now, Uptime: func() time.Duration { return 0 }}}, stopped: make(chan struct{}), webhook: &desk.Webhook{}}
	e.until.Store(int64(10 * time.Second))
	e.state.Cursor.Seq = 1
	for ago, most := range map[time.Duration]time.Duration{0: cursorEvery, 2 * cursorEvery: storeEvery} {
		e.cursorAt = time.Now().Add(-ago)
		if err := e.step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := e.patience(); e.since.IsZero() != (ago == 0) || got > most || got < most/2 {
			t.Errorf("%v after it was stored, it waits %v, and is to be stored: %t", ago, got, !e.since.IsZero())
		}
		e.since = time.Time{}
	}
}

// mostPending returns as many deliveries as may be pending.
func mostPending() (list []*desk.WebhookDelivery) {
	for range desk.MaxPending {
		list = append(list, &desk.WebhookDelivery{DueAt: desk.TimeOf(time.Now().Add(time.Hour))})
	}
	return list
}

// A hooklessStore has no webhooks. It can be told to fail when it is asked for them.
type hooklessStore struct {
	store.Store
	err   error
	asked atomic.Int64
}

func (s *hooklessStore) EnabledWebhooks(context.Context) ([]store.EnabledWebhook, error) {
	s.asked.Add(1)
	return nil, s.err
}

// TestRun_noted: if webhooks change all the time, the process looks for them at most twice
// a second. While the database is away, only the regular looks are made.
func TestRun_noted(t *testing.T) {
	t.Parallel()
	t.Run("there", func(t *testing.T) {
		t.Parallel()
		testRunNoted(t, nil, int64(time.Minute/holdPause+time.Minute/holdEvery)+2)
	})
	t.Run("away", func(t *testing.T) {
		t.Parallel()
		testRunNoted(t, errors.New("away"), int64(time.Minute/holdEvery)+2)
	})
}

func testRunNoted(t *testing.T, err error, most int64) {
	synctest.Test(t, func(t *testing.T) {
		s := &hooklessStore{err: err}
		a := New(Deps{Store: s, Feed: feed.New(feed.Deps{Store: s}), NewID: func() desk.ID { return desk.ID{1} }, Log: slog.New(slog.DiscardHandler), Drained: make(chan struct{})})
		ctx, stop := context.WithCancel(t.Context())
		var loop sync.WaitGroup
		loop.Go(func() { a.Run(ctx) })
		const minute = 60_000 // milliseconds
		for range minute {
			a.Note()
			time.Sleep(time.Millisecond)
		}
		stop()
		loop.Wait()
		if n := s.asked.Load(); n > most || n < most/2 {
			t.Errorf("it looked %d times in a minute, want %d at most", n, most)
		}
	})
}

// A lostStore has a busy webhook. Its first HoldLeases fails; after that, another process
// serves the webhook.
type lostStore struct {
	store.Store
	held atomic.Int64
}

func (s *lostStore) EnabledWebhooks(context.Context) ([]store.EnabledWebhook, error) {
	return []store.EnabledWebhook{{WebhookRef: store.WebhookRef{Workspace: desk.ID{1}, ID: desk.ID{2}}, Busy: true}}, nil
}

func (s *lostStore) HoldLeases(context.Context, []store.LeaseRef, desk.ID, desk.Time) (map[store.LeaseRef]int64, error) {
	if s.held.Add(1) == 1 {
		return nil, errors.New("lost")
	}
	return nil, nil
}

// TestRun_again: if the leases can't be taken, they are asked for again soon; if another
// process has them, in time to take over when it dies.
func TestRun_again(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &lostStore{}
		a := New(Deps{
			Store: s, Feed: feed.New(feed.Deps{Store: s}), Uptime: func() time.Duration { return 0 }, NewID: func() desk.ID { return desk.ID{1} },
			Log: slog.New(slog.DiscardHandler), Drained: make(chan struct{}),
		})
		ctx, stop := context.WithCancel(t.Context())
		var loop sync.WaitGroup
		loop.Go(func() { a.Run(ctx) })
		for _, want := range []int64{1, 2, 3, 4} { // at 0 s, 3 s, 9 s, 15 s
			synctest.Wait()
			if n := s.held.Load(); n != want {
				t.Errorf("it asked %d times, want %d", n, want)
			}
			if want == 1 {
				time.Sleep(holdEvery)
			} else {
				time.Sleep(lookEvery)
			}
		}
		stop()
		loop.Wait()
	})
}
