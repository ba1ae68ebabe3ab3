package deliver

import (
	"context"
	"errors"
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
	h := holding{service: a, begin: func(e *endpoint) { serving.Go(func() { e.serve(ctx) }) }}
	ended := make(chan struct{})
	drained, done := a.Drained, ctx.Done()
	var noted, news <-chan struct{}              // nil until a pause has passed
	var notedRested, newsRested <-chan time.Time // nil after a failure: then only tick starts the next look
	for look := h.all; done != nil || ended != nil; {
		if look != nil {
			err := look(ctx)
			if err != nil && ctx.Err() == nil {
				a.Log.WarnContext(ctx, "background work failed; it will be tried again", "work", "hold webhooks", "err", err)
			}
			noted, notedRested, news, newsRested = nil, nil, nil, nil
			if err == nil {
				notedRested, newsRested = time.After(max(0, holdPause-time.Since(h.lookedAt))), time.After(newsPause)
			}
		}
		look = nil
		select {
		case <-tick.C:
			look = h.again
		case <-notedRested:
			noted, notedRested = a.noted, nil
		case <-newsRested:
			news, newsRested = a.news.Woken, nil
		case <-noted:
			look = h.all
		case <-news:
			look = h.news
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

// A holding decides which endpoints this process serves. Only Run uses it.
type holding struct {
	service  *Service
	begin    func(*endpoint)
	enabled  map[desk.ID][]desk.ID     // the enabled webhooks of each workspace
	fresh    map[desk.ID]bool          // workspaces with news for which no endpoint was taken yet
	refused  map[store.WebhookRef]bool // endpoints that another process served at the last look
	lookedAt time.Time                 // when all webhooks were last read
}

// again extends the leases of the endpoints that this process serves, and takes those with
// news. If it is time, it looks at all webhooks.
func (h *holding) again(ctx context.Context) error {
	err := h.extend(ctx)
	if ctx.Err() != nil {
		return err
	}
	if time.Since(h.lookedAt) >= lookEvery-holdEvery/2 { // it is called every holdEvery, not exactly
		return errors.Join(err, h.look(ctx))
	}
	return errors.Join(err, h.news(ctx))
}

// all extends the leases and looks at all webhooks.
func (h *holding) all(ctx context.Context) error {
	err := h.extend(ctx)
	if ctx.Err() != nil {
		return err
	}
	return errors.Join(err, h.look(ctx))
}

// look reads all webhooks. It takes the busy endpoints that nobody serves, and leaves those of
// webhooks that are no longer enabled.
func (h *holding) look(ctx context.Context) error {
	fresh, anywhere := h.service.news.Take()
	list, err := h.service.Store.EnabledWebhooks(context.WithoutCancel(ctx))
	if err != nil {
		h.service.news.Add(fresh, anywhere)
		return err
	}
	h.enabled, h.fresh, h.refused = map[desk.ID][]desk.ID{}, map[desk.ID]bool{}, map[store.WebhookRef]bool{}
	busy := make(map[store.WebhookRef]bool, len(list))
	for _, w := range list {
		h.enabled[w.Workspace] = append(h.enabled[w.Workspace], w.ID)
		busy[w.WebhookRef] = w.Busy
	}
	var wanted []store.WebhookRef
	a := h.service
	a.mu.Lock()
	for ref, e := range a.endpoints {
		if _, enabled := busy[ref]; !enabled {
			e.quit() // it was disabled or removed
		}
	}
	for ref, is := range busy {
		switch e := a.endpoints[ref]; {
		case e == nil && is:
			wanted = append(wanted, ref)
		case e != nil && e.quitting():
			h.fresh[ref.Workspace] = true // it is to be taken again
		}
	}
	a.mu.Unlock()
	err = h.take(ctx, wanted)
	if err == nil {
		h.lookedAt = time.Now()
	}
	return err
}

// news takes the endpoints of workspaces with news.
func (h *holding) news(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	a := h.service
	list, anywhere := a.news.Take()
	if anywhere {
		a.news.Add(list, false)
		return h.look(ctx)
	}
	for _, ws := range list {
		if len(h.enabled[ws]) > 0 {
			h.fresh[ws] = true
		}
	}
	var wanted []store.WebhookRef
	a.mu.Lock()
	for ws := range h.fresh {
		waits := false // for an endpoint that is being left; serve wakes this loop when it has ended
		for _, id := range h.enabled[ws] {
			ref := store.WebhookRef{Workspace: ws, ID: id}
			switch e := a.endpoints[ref]; {
			case e != nil && e.quitting():
				waits = true
			case e == nil && !h.refused[ref]:
				wanted = append(wanted, ref)
			}
		}
		if !waits {
			delete(h.fresh, ws)
		}
	}
	a.mu.Unlock()
	err := h.take(ctx, wanted)
	if err != nil {
		for _, ref := range wanted {
			h.fresh[ref.Workspace] = true
		}
	}
	return err
}

// take begins to serve the wanted endpoints, unless another process serves them.
func (h *holding) take(ctx context.Context, wanted []store.WebhookRef) error {
	if len(wanted) == 0 {
		return nil
	}
	a := h.service
	leases := make([]store.LeaseRef, len(wanted))
	for i, ref := range wanted {
		leases[i] = taskRef(ref)
	}
	before := a.Uptime()
	held, err := a.Store.HoldLeases(context.WithoutCancel(ctx), leases, a.holder, holdFor) // also with an error, held has what was held
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, ref := range wanted {
		calls, ours := held[taskRef(ref)]
		switch {
		case ours && a.endpoints[ref] == nil:
			e := &endpoint{service: a, ref: ref, woken: make(chan struct{}, 1), places: a.useRequests(ref).places, results: make(chan *outcome, desk.MaxInFlight), stopped: make(chan struct{})}
			e.extend(before, calls)
			a.endpoints[ref] = e
			h.begin(e)
		case !ours && err == nil:
			h.refused[ref] = true
		}
	}
	return err
}

// extend extends the leases of the endpoints that this process serves.
func (h *holding) extend(ctx context.Context) error {
	a := h.service
	var served []*endpoint
	var leases []store.LeaseRef
	a.mu.Lock()
	for ref, e := range a.endpoints {
		served, leases = append(served, e), append(leases, taskRef(ref))
	}
	a.mu.Unlock()
	if len(leases) == 0 {
		return nil
	}
	before := a.Uptime()
	held, err := a.Store.ExtendLeases(context.WithoutCancel(ctx), leases, a.holder, holdFor)
	for _, e := range served {
		if calls, ours := held[taskRef(e.ref)]; ours {
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
