package broadcast

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"parley/app/steps"
	"parley/desk"
	"parley/store"

	"golang.org/x/time/rate"
)

const (
	// lookEvery is how often a process looks for workspaces with something to send. A change
	// of a broadcast that runs is noticed as soon.
	lookEvery = 500 * time.Millisecond

	// A lease is extended after each 1/extendLease of its length.
	extendLease = 4

	// againAfter is how long the drive waits after something failed.
	againAfter = time.Second

	// dueAtOnce is how many broadcasts of a workspace are looked at.
	dueAtOnce = 500
)

// Run sends the broadcasts of all workspaces, until ctx ends. A workspace is driven by one
// process at a time, by its lease; a claim checks the lease again.
func (a *Service) Run(ctx context.Context) {
	ctx = store.Patiently(ctx) // a message alone makes three changes
	var drives sync.WaitGroup
	defer drives.Wait()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	extended := time.Now()
	for ctx.Err() == nil {
		if err := a.take(ctx, &drives); err != nil && ctx.Err() == nil {
			a.Log.WarnContext(ctx, "background work failed; it will be tried again", "work", "look for broadcasts", "err", err)
		}
		if time.Since(extended) > a.Lease/extendLease {
			extended = time.Now()
			a.extend(ctx)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

func (a *Service) leaseOf(ws desk.ID) store.LeaseRef {
	return store.LeaseRef{Workspace: ws, Task: desk.BroadcastTask}
}

// take begins to drive workspaces that have something to send, if nobody else drives them.
func (a *Service) take(ctx context.Context, drives *sync.WaitGroup) error {
	due, err := a.due.Now(ctx)
	if err != nil {
		return err
	}
	var free []store.LeaseRef
	a.mu.Lock()
	for _, ws := range due {
		if a.driven[ws] == nil { // else the drive looks for itself
			free = append(free, a.leaseOf(ws))
		}
	}
	a.mu.Unlock()
	if free == nil {
		return nil
	}
	held, err := a.Store.HoldLeases(ctx, free, a.holder(), desk.Time(a.Lease.Milliseconds()))
	for ref := range held {
		within, cancel := context.WithCancel(ctx)
		d := &drive{ws: ref.Workspace, cancel: cancel, woken: make(chan struct{}, 1), runners: map[desk.ID]*runner{}, limits: map[desk.ID]*rate.Limiter{}}
		a.mu.Lock()
		a.driven[d.ws] = d
		a.mu.Unlock()
		drives.Go(func() { a.drive(within, d) })
	}
	return err
}

// extend extends the leases of all workspaces that this process drives. A workspace that
// another process has taken is left to it.
func (a *Service) extend(ctx context.Context) {
	var refs []store.LeaseRef
	a.mu.Lock()
	for ws := range a.driven {
		refs = append(refs, a.leaseOf(ws))
	}
	a.mu.Unlock()
	if refs == nil {
		return
	}
	held, err := a.Store.ExtendLeases(ctx, refs, a.holder(), desk.Time(a.Lease.Milliseconds()))
	if err != nil {
		return // a claim finds out whether the lease is lost
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, ref := range refs {
		if _, ours := held[ref]; !ours && a.driven[ref.Workspace] != nil {
			a.driven[ref.Workspace].cancel()
		}
	}
}

// drive sends the broadcasts of a workspace until there is nothing left to do now.
func (a *Service) drive(ctx context.Context, d *drive) {
	defer func() {
		d.cancel()
		a.mu.Lock()
		delete(a.driven, d.ws)
		a.mu.Unlock()
		if err := a.Store.EndLease(context.WithoutCancel(ctx), a.leaseOf(d.ws), a.holder()); err != nil {
			a.Log.WarnContext(ctx, "the lease of broadcasts can't be ended", "workspace_id", d.ws, "err", err)
		}
		d.flying.Wait()
		a.due.Again()
	}()
	for ctx.Err() == nil {
		wait, busy, err := a.round(ctx, d)
		if err != nil {
			if ctx.Err() == nil && !desk.IsType(err, desk.NotFound) {
				a.failed(ctx, d, err)
			}
			wait = againAfter
			if desk.IsType(err, desk.NotFound) { // the workspace was deleted
				return
			}
		} else if !busy && a.places.of(d.ws) == 0 {
			return
		}
		timer := time.NewTimer(min(wait, lookEvery))
		select {
		case <-ctx.Done():
		case <-d.woken:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// aside does something for a broadcast that takes long, so that messages of other broadcasts don't
// wait for it. In a workspace, one thing of a kind is done at a time: that of the oldest broadcast.
// It returns how long to wait; its end wakes the drive.
func (a *Service) aside(ctx context.Context, d *drive, busy *atomic.Bool, do func() error) time.Duration {
	if busy.Swap(true) {
		return lookEvery
	}
	d.flying.Go(func() {
		err := func() (err error) {
			defer steps.Caught("broadcasts", &err)
			return do()
		}()
		if err != nil && ctx.Err() == nil {
			a.failed(ctx, d, err)
			select {
			case <-ctx.Done():
			case <-time.After(againAfter):
			}
		}
		busy.Store(false)
		steps.Wake(d.woken)
	})
	return lookEvery
}

// failed logs why a step for the broadcasts of a workspace failed.
func (a *Service) failed(ctx context.Context, d *drive, err error) {
	a.Log.WarnContext(ctx, "background work failed; it will be tried again", "work", "send broadcasts", "workspace_id", d.ws, "err", err)
}

// runner returns what is known of the present run of a broadcast. What a flight of an earlier run
// finds out later does not pause a broadcast that was resumed.
func (d *drive) runner(b *desk.Broadcast) *runner {
	r := d.runners[b.ID]
	if r == nil || r.since != b.ResumedAt {
		r = newRunner()
		r.since = b.ResumedAt
		d.runners[b.ID] = r
	}
	return r
}

// round gives each broadcast of a workspace a turn. It returns how long there is nothing to do
// for any of them; busy tells whether there will be something soon.
func (a *Service) round(ctx context.Context, d *drive) (wait time.Duration, busy bool, err error) {
	defer steps.Caught("broadcasts", &err)
	list, err := a.Store.DueBroadcasts(ctx, d.ws, dueAtOnce)
	if err != nil {
		return 0, false, err
	}
	settings, err := a.Store.Settings(ctx, d.ws)
	if err != nil {
		return 0, false, err
	}
	wait = lookEvery
	there := map[desk.ID]bool{}
	for _, b := range list {
		if b.State == desk.BroadcastScheduled && b.SendAt > a.Now() {
			continue
		}
		busy, there[b.ID] = true, true
		next, err := a.step(ctx, d, settings, b, d.runner(b))
		if err != nil {
			return 0, true, err
		}
		wait = min(wait, next)
	}
	for id := range d.runners {
		if !there[id] {
			delete(d.runners, id)
		}
	}
	return wait, busy, nil
}
