package deliver

import (
	"context"
	"sync"
	"time"

	"parley/desk"
	"parley/store"
)

// Run delivers events to the endpoints that no other node serves, until the context ends or
// the service is drained. It returns when no try is under way any more and the results are
// stored.
func (a *Service) Run(ctx context.Context) {
	a.holder = a.NewID()
	tick := time.NewTicker(holdEvery)
	defer tick.Stop()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var serving sync.WaitGroup
	ended := make(chan struct{})
	drained, done := a.Drained, ctx.Done()
	var noted <-chan struct{}   // nil until holdPause has passed
	var rested <-chan time.Time // nil after a failure: then only tick starts the next look
	for look := true; done != nil || ended != nil; {
		if look {
			err := a.holdEndpoints(ctx, func(e *endpoint) { serving.Go(func() { e.serve(ctx) }) })
			if err != nil && ctx.Err() == nil {
				a.Log.WarnContext(ctx, "background work failed; it will be tried again", "work", "hold webhooks", "err", err)
			}
			noted, rested = nil, nil
			if err == nil {
				rested = time.After(holdPause)
			}
		}
		look = true
		select {
		case <-tick.C:
		case <-rested:
			noted, rested, look = a.noted, nil, false
		case <-noted:
		case <-drained:
			drained = nil
			stop()
		case <-done:
			done = nil
			go func() {
				serving.Wait()
				close(ended)
			}()
		case <-ended:
			return
		}
	}
}

// holdEndpoints extends the leases of the endpoints that this process serves, and, until
// ctx ends, takes those that nobody serves.
func (a *Service) holdEndpoints(ctx context.Context, begin func(*endpoint)) error {
	stopping := ctx.Err() != nil
	ctx = context.WithoutCancel(ctx)
	enabled := map[store.WebhookRef]bool{}
	if !stopping {
		list, err := a.Store.EnabledWebhooks(ctx)
		if err != nil {
			return err
		}
		for _, ref := range list {
			enabled[ref] = true
		}
	}
	var leases []store.LeaseRef
	for ref := range enabled {
		leases = append(leases, taskRef(ref))
	}
	a.mu.Lock()
	for ref, e := range a.endpoints {
		if !enabled[ref] {
			leases = append(leases, taskRef(ref))
			if !stopping {
				e.quit() // it was disabled or removed
			}
		}
	}
	a.mu.Unlock()
	if leases == nil {
		return nil
	}
	before := a.Uptime()
	held, err := a.Store.HoldLeases(ctx, leases, a.holder, holdFor) // also with an error, held has what was held
	a.mu.Lock()
	defer a.mu.Unlock()
	for ref := range enabled {
		calls, ours := held[taskRef(ref)]
		if e := a.endpoints[ref]; e == nil && ours {
			e = &endpoint{service: a, ref: ref, woken: make(chan struct{}, 1), places: a.useRequests(ref).places, results: make(chan *outcome, desk.MaxInFlight), stopped: make(chan struct{})}
			e.extend(before, calls)
			a.endpoints[ref] = e
			begin(e)
		}
	}
	for ref, e := range a.endpoints {
		if calls, ours := held[taskRef(ref)]; ours {
			e.extend(before, calls)
		} else if err == nil {
			e.quit()
		}
	}
	return err
}

// Lag is the age of the oldest event that is not delivered yet to an endpoint which this
// process serves; 0 if there is none.
func (a *Service) Lag() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	lag := desk.Time(0)
	for _, e := range a.endpoints {
		if oldest := desk.Time(e.oldest.Load()); oldest != 0 {
			lag = max(lag, a.now()-oldest)
		}
	}
	return time.Duration(lag) * time.Millisecond
}
