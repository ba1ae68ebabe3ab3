package work_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/desk"
	"parley/store"
	"parley/work"
)

// A fake is an App whose inbound items take some time each, by the clock of synctest.
type fake struct {
	mu       sync.Mutex
	left     map[desk.ID]int           // items of each workspace
	takes    map[desk.ID]time.Duration // how long one takes
	due      map[desk.ID]bool
	running  map[desk.ID]bool
	most     int // the greatest number of steps at the same time
	twice    bool
	done     map[desk.ID]time.Duration // when the last item was processed
	start    time.Time
	noted    chan struct{}
	stale    chan struct{}
	count    map[string]int
	broken   error
	unmarked bool          // a step's context is not marked as background work
	slow     time.Duration // a fetch of templates
}

func newFake() *fake {
	return &fake{
		left: map[desk.ID]int{}, takes: map[desk.ID]time.Duration{}, due: map[desk.ID]bool{}, running: map[desk.ID]bool{},
		done: map[desk.ID]time.Duration{}, start: time.Now(), noted: make(chan struct{}, 1), stale: make(chan struct{}, 1), count: map[string]int{},
	}
}

func (f *fake) has(ws byte, n int, takes time.Duration) {
	id := desk.ID{ws}
	f.left[id], f.takes[id], f.due[id] = n, takes, true
}

func (f *fake) InboundDue() (list []desk.ID, next time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for ws := range f.due {
		list = append(list, ws)
	}
	clear(f.due)
	return list, time.Hour
}

func (f *fake) InboundNoted() <-chan struct{}   { return f.noted }
func (f *fake) TemplatesNoted() <-chan struct{} { return f.stale }

type fakeBroadcasts struct{ fakeSearch }

func (fakeBroadcasts) FollowDeliveries(ctx context.Context) {
	if !store.IsPatient(ctx) {
		panic("what follows deliveries is not patient")
	}
	<-ctx.Done()
}

func (fakeBroadcasts) ForgetRows(context.Context, time.Duration) error { return nil }

type fakeSearch struct{}

func (fakeSearch) Run(ctx context.Context) { <-ctx.Done() }

type fakeImports struct{}

func (fakeImports) ImportUploads(ctx context.Context) { <-ctx.Done() }

type fakeConflicts struct{}

func (fakeConflicts) Remember(ctx context.Context) { <-ctx.Done() }

func (f *fake) SendAutoReplies(ctx context.Context) { <-ctx.Done() }

func (f *fake) AssignWaiting(ctx context.Context) { <-ctx.Done() }

// parts are the parts of a fake.
func (f *fake) parts() work.Parts {
	return work.Parts{App: f, Access: fakeAccess{f}, Clock: fakeClock{f}, Feed: fakeFeed{f}, Deliver: fakeDeliver{}, Daily: fakeDaily{f}, Media: fakeMedia{f}, Search: fakeSearch{}, Imports: fakeImports{}, Broadcasts: fakeBroadcasts{}, Conflicts: fakeConflicts{}}
}

type fakeAccess struct{ *fake }

func (f fakeAccess) StoreKeyUses(context.Context) error { return f.did("uses") }

type fakeClock struct{ *fake }

func (f fakeClock) Look(context.Context) error { return f.did("clock") }

type fakeFeed struct{ *fake }

func (f fakeFeed) Look(context.Context) error                  { return f.did("events") }
func (f fakeFeed) Forget(context.Context, time.Duration) error { return f.did("forget events") }

type fakeDeliver struct{}

func (fakeDeliver) Run(ctx context.Context) { <-ctx.Done() }

type fakeDaily struct{ *fake }

func (f fakeDaily) Count(context.Context) error { return f.did("count") }

type fakeMedia struct{ *fake }

func (fakeMedia) Fetch(ctx context.Context)                        { <-ctx.Done() }
func (f fakeMedia) DropContents(context.Context) error             { return f.did("drop") }
func (f fakeMedia) ForgetOld(context.Context, time.Duration) error { return f.did("forget media") }

func (f *fake) TakeInbound(ctx context.Context, ws desk.ID) error {
	f.mu.Lock()
	f.unmarked = f.unmarked || !store.IsBackground(ctx)
	f.twice = f.twice || f.running[ws]
	f.running[ws] = true
	f.most = max(f.most, len(f.running))
	f.mu.Unlock()
	time.Sleep(f.takes[ws])
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.running, ws)
	f.done[ws] = time.Since(f.start)
	if f.left[ws]--; f.left[ws] > 0 {
		f.due[ws] = true
		select {
		case f.noted <- struct{}{}:
		default:
		}
	}
	return nil
}

func (f *fake) did(what string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count[what]++
	return f.broken
}

func (f *fake) LookForInbound(context.Context) error { return f.did("look") }
func (f *fake) SyncStale(ctx context.Context) error {
	err := f.did("sync")
	select {
	case <-time.After(f.slow):
	case <-ctx.Done():
	}
	return err
}
func (f *fake) Sweep(context.Context) error       { return f.did("sweep") }
func (f *fake) ForgetAlone(context.Context) error { return f.did("forget") }
func (f *fake) ForgetMessages(_ context.Context, age time.Duration) error {
	return f.did(fmt.Sprint("forget messages of ", age))
}

// during is a helper that runs the schedules for a time. It returns how long they took to
// stop.
func (f *fake) during(d time.Duration, log *slog.Logger) time.Duration {
	ctx, stop := context.WithTimeout(context.Background(), d)
	defer stop()
	began := time.Now()
	work.Run(ctx, f.parts(), work.Keep{Events: time.Hour, Messages: 2 * time.Hour, Media: time.Hour, Rows: time.Hour}, log)
	return time.Since(began) - d
}

var quiet = slog.New(slog.DiscardHandler)

// A slow workspace takes one place. Meanwhile, the others go on, each with one step at a
// time. A workspace with many items does not delay a workspace with few items.
func TestInboundIsFair(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.has(1, 1, time.Hour)              // its only item takes very long
		f.has(2, 100_000, time.Millisecond) // many items
		for ws := byte(3); ws < 200; ws++ {
			f.has(ws, 2, time.Millisecond)
		}
		f.during(time.Second, quiet)
		if f.twice || f.most != 4 || f.unmarked {
			t.Errorf("a workspace was taken in twice at once: %v; %d steps at once; without a mark of background work: %v", f.twice, f.most, f.unmarked)
		}
		for ws := byte(3); ws < 200; ws++ {
			if id := (desk.ID{ws}); f.left[id] != 0 || f.done[id] > 200*time.Millisecond {
				t.Errorf("workspace %d has %d items left, and took %v", ws, f.left[id], f.done[id])
			}
		}
	})
}

// When the context ends, Run waits for the steps that are under way, and begins no further
// step.
func TestRunStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		for ws := byte(1); ws < 50; ws++ {
			f.has(ws, 1000, 2*time.Second)
		}
		if took := f.during(5*time.Second, quiet); took > 2*time.Second {
			t.Errorf("it stopped after %v", took)
		}
		if len(f.running) != 0 {
			t.Errorf("%d steps are under way", len(f.running))
		}
	})
}

// Each schedule begins at once and has its own period. Reports of changed templates are
// collected.
func TestSchedules(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, log := newFake(), new(strings.Builder)
		f.broken = errors.New("away")
		go func() {
			time.Sleep(30*time.Minute + time.Second)
			f.stale <- struct{}{}
		}()
		f.during(time.Hour-time.Millisecond, slog.New(slog.NewTextHandler(log, nil)))
		want := map[string]int{"events": 3600, "forget events": 20, "look": 720, "sweep": 720, "forget": 1, "clock": 60, "count": 240, "uses": 61, "sync": 61, "drop": 180, "forget media": 1, "forget messages of 2h0m0s": 1}
		if !maps.Equal(f.count, want) {
			t.Errorf("%v, want %v", f.count, want)
		}
		if !strings.Contains(log.String(), `level=WARN msg="background work failed; it will be tried again" work="look at the clock" err=away`) {
			t.Error("a failure is not logged")
		}
	})
}

// A fetch of templates that takes long does not delay the next one, and ends when Run does.
func TestSchedules_slow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.slow = time.Hour
		if took := f.during(10*time.Minute-time.Millisecond, quiet); f.count["sync"] != 10 || took != 0 {
			t.Errorf("%d fetches began in ten minutes, and it stopped after %v", f.count["sync"], took)
		}
	})
}
