package app

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"parley/app/steps"
	"parley/desk"
	"parley/store"
)

// A Poster posts events to the endpoints of webhooks.
type Poster interface {
	// Post makes one attempt, and returns within 15 seconds whatever happens.
	Post(ctx context.Context, p Post) Posted
}

// A Post is a request to an endpoint.
type Post struct {
	URL     string
	ID      string // of the event
	Body    []byte
	Secrets [][]byte // sign it, the newest first
	At      time.Time
}

// Posted is what came of a Post.
type Posted struct {
	StatusCode int           // 0: there was no answer
	Error      string        // "" for a success, else a word of contract-events §3
	Response   string        // what the endpoint answered, unless it was a success
	RetryAfter time.Duration // 0: the answer did not say
	Took       time.Duration
	Err        error // no request was made, for want of something of this machine
}

// The times of delivering.
const (
	// holdFor is how long a node has an endpoint without extending its lease, in
	// milliseconds; holdEvery is how often it extends it, and looks for endpoints that
	// nobody has. holdLeast is how much of a lease must be left for an attempt to begin.
	holdFor   = desk.Time(10_000)
	holdEvery = 3 * time.Second
	holdLeast = 2 * time.Second

	// freshFor is how old the data of an attempt may be when it begins: no attempt with a
	// person's data begins over a second after the person's deletion (contract-events §4).
	// What the settings have of an event may be older. An attempt reads an event slowReads
	// times to have it so.
	freshFor      = 900 * time.Millisecond
	freshSettings = 10 * time.Second
	slowReads     = 3

	// Results are stored in groups of storeGroup, or storeEvery after the first. If they
	// can't be stored, no attempt begins once there are storeMost.
	storeEvery = 200 * time.Millisecond
	storeGroup = 100
	storeMost  = 2 * storeGroup

	// cursorEvery is how often a cursor is stored that moves without a delivery.
	cursorEvery = 5 * time.Second

	// idleStep is how long a loop waits at most while something is outstanding: a clock
	// may be set.
	idleStep = 500 * time.Millisecond

	// deliveryPage is how many events are read at a time.
	deliveryPage = 200

	// deliveredPause is the least time between two pages for an endpoint that has read
	// all: many commits share a page then.
	deliveredPause = 50 * time.Millisecond

	// maxPosts is how many attempts of a process are under way at a time.
	maxPosts = 1024

	// lastStores is how often a node that stops tries to store the last results.
	lastStores = 5
)

// delivering is what a process has to do with deliveries.
type delivering struct {
	holder    desk.ID // this process
	posts     chan struct{}
	noted     chan struct{} // has an element if an endpoint may have been added
	mu        sync.Mutex
	endpoints map[store.WebhookRef]*endpoint
	requests  map[store.WebhookRef]*requests
	results   map[string]int64 // attempts by their error; "" is success
}

func (d *delivering) init() {
	d.posts, d.noted = make(chan struct{}, maxPosts), make(chan struct{}, 1)
	d.endpoints, d.requests, d.results = map[store.WebhookRef]*endpoint{}, map[store.WebhookRef]*requests{}, map[string]int64{"": 0}
	for _, result := range desk.AttemptErrors {
		d.results[result] = 0
	}
}

// note has Deliver look for endpoints now.
func (d *delivering) note() { steps.Wake(d.noted) }

func (d *delivering) count(result string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.results[result]++
}

// WebhookAttempts counts the requests of this process to endpoints, by each error that
// there is; "" is success.
func (a *App) WebhookAttempts() map[string]int64 {
	a.delivering.mu.Lock()
	defer a.delivering.mu.Unlock()
	return maps.Clone(a.delivering.results)
}

// WebhookLag is the age of the oldest event that is not delivered yet to an endpoint
// which this process serves; 0 if there is none.
func (a *App) WebhookLag() time.Duration {
	a.delivering.mu.Lock()
	defer a.delivering.mu.Unlock()
	lag := desk.Time(0)
	for _, e := range a.delivering.endpoints {
		if oldest := desk.Time(e.oldest.Load()); oldest != 0 {
			lag = max(lag, a.now()-oldest)
		}
	}
	return time.Duration(lag) * time.Millisecond
}

func taskOf(webhook desk.ID) string { return "webhook " + webhook.String() }

// taskRef identifies the task of serving a webhook.
func taskRef(ref store.WebhookRef) store.LeaseRef {
	return store.LeaseRef{Workspace: ref.Workspace, Task: taskOf(ref.ID)}
}

// Deliver delivers events to the endpoints that no other node serves, until the context
// ends or Drain is called. It returns when no attempt is under way and the results are
// stored.
func (a *App) Deliver(ctx context.Context) {
	a.delivering.holder = a.newID()
	tick := time.NewTicker(holdEvery)
	defer tick.Stop()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var serving sync.WaitGroup
	ended := make(chan struct{})
	drained, done := a.drained, ctx.Done()
	for done != nil || ended != nil {
		err := a.holdEndpoints(ctx, func(e *endpoint) { serving.Go(func() { e.serve(ctx) }) })
		if err != nil && ctx.Err() == nil {
			a.log.WarnContext(ctx, "background work failed; it will be tried again", "work", "hold webhooks", "err", err)
		}
		noted := a.delivering.noted
		if err != nil { // whatever happens meanwhile, it does not try again sooner
			noted = nil
		}
		select {
		case <-tick.C:
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
func (a *App) holdEndpoints(ctx context.Context, begin func(*endpoint)) error {
	d := &a.delivering
	stopping := ctx.Err() != nil
	ctx = context.WithoutCancel(ctx)
	enabled := map[store.WebhookRef]bool{}
	if !stopping {
		list, err := a.store.EnabledWebhooks(ctx)
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
	d.mu.Lock()
	for ref, e := range d.endpoints {
		if !enabled[ref] {
			leases = append(leases, taskRef(ref))
			if !stopping {
				e.quit() // it was disabled or removed
			}
		}
	}
	d.mu.Unlock()
	if leases == nil {
		return nil
	}
	before := a.uptime()
	held, err := a.store.HoldLeases(ctx, leases, d.holder, holdFor)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for ref := range enabled {
		calls, ours := held[taskRef(ref)]
		if e := d.endpoints[ref]; e == nil && ours {
			e = &endpoint{app: a, ref: ref, woken: make(chan struct{}, 1), places: d.useRequests(ref).places, results: make(chan *attempted, desk.MaxInFlight), stopped: make(chan struct{})}
			e.extend(before, calls)
			d.endpoints[ref] = e
			begin(e)
		}
	}
	for ref, e := range d.endpoints {
		if calls, ours := held[taskRef(ref)]; ours {
			e.extend(before, calls)
		} else {
			e.quit()
		}
	}
	return nil
}

// errSlow says that an event could not be read in time: what was read may have been erased
// since.
var errSlow = errors.New("the database is too slow to deliver what it has")

// deliverOne makes one attempt. It reads the event anew unless it has a page with it that
// was read just now.
func (a *App) deliverOne(ctx context.Context, ref store.WebhookRef, hook *desk.Webhook, d *desk.WebhookDelivery, event *desk.FeedEvent, page *FeedPage, readAt time.Time, probe bool) (r *attempted) {
	r = &attempted{delivery: d}
	defer steps.Caught("attempt of a webhook", &r.err)
	for n := 0; page == nil || time.Since(readAt) > freshOf(event.Type); n++ {
		if n == slowReads {
			r.err = errSlow
			return r
		}
		readAt = time.Now()
		p, err := a.eventAt(ctx, ref, d.Event)
		if err != nil {
			r.err = err
			return r
		}
		if len(p.Events) == 0 {
			r.expired = true
			return r
		}
		if page, event, hook = p, &p.Events[0], p.Settings.Webhook(ref.ID); hook == nil || !hook.Enabled {
			r.err = errNotOurs
			return r
		}
	}
	r.url = hook.URL
	r.result, r.err = a.post(ctx, ref.Workspace, hook, event.ID, a.event(page, event))
	r.result.Probe, r.result.Jitter = probe, rand.Float64() //nolint:gosec // it spreads load
	return r
}

// freshOf is how old the data of an event of a type may be when an attempt begins.
func freshOf(t desk.EventType) time.Duration {
	if t.OfSettings() {
		return freshSettings
	}
	return freshFor
}

// eventAt reads one event with its record as it stands now.
func (a *App) eventAt(ctx context.Context, ref store.WebhookRef, place desk.EventPlace) (*FeedPage, error) {
	page, err := a.store.Events(ctx, ref.Workspace, store.EventQuery{From: store.AtPlace, After: place, AtOnce: true}, func(*desk.Settings) ([]desk.EventType, error) {
		return desk.EventTypes, nil
	})
	if err != nil {
		return nil, err
	}
	return a.complete(ctx, page)
}

// post sends a body to an endpoint.
func (a *App) post(ctx context.Context, ws desk.ID, hook *desk.Webhook, id string, body []byte) (r desk.WebhookResult, err error) {
	at := a.clock()
	secrets, err := a.webhookSecrets(ws, hook, desk.TimeOf(at))
	if err != nil {
		return r, err
	}
	p := a.poster.Post(ctx, Post{URL: hook.URL, ID: id, Body: body, Secrets: secrets, At: at})
	switch {
	case p.Err != nil:
		return r, &desk.Error{Type: desk.Unavailable, Message: "this server can't open a connection now: try again", RetryAfter: 1, Err: p.Err}
	case ctx.Err() != nil: // who pinged has left
		return r, &desk.Error{Type: desk.Unavailable, Message: "the request was given up", Err: ctx.Err()}
	}
	a.delivering.count(p.Error)
	return desk.WebhookResult{
		WebhookAttempt: desk.WebhookAttempt{
			At: desk.TimeOf(at), Took: desk.Time(p.Took.Milliseconds()), StatusCode: p.StatusCode, Error: p.Error, Response: p.Response,
		},
		RetryAfter: p.RetryAfter,
	}, nil
}

// disableWebhook disables a webhook whose endpoint has failed for too long, or is gone,
// unless its URL was changed meanwhile.
func (a *App) disableWebhook(ctx context.Context, ref store.WebhookRef, why disabling) error {
	disabled := false
	err := store.UpdateSettings(ctx, a.store, ref.Workspace, desk.Actor{Kind: desk.BySystem}, a.now, func(s *desk.Settings) (desk.Change, error) {
		w := s.Webhook(ref.ID)
		if disabled = w != nil && w.Enabled && w.URL == why.url; !disabled {
			return desk.Change{}, nil
		}
		edited := *w
		edited.Enabled, edited.DisabledReason = false, why.reason
		return desk.Change{Webhook: &edited}, nil
	})
	if err == nil && disabled {
		a.log.WarnContext(ctx, "a webhook was disabled", "workspace_id", ref.Workspace, "webhook_id", ref.ID, "reason", why.reason)
	}
	return err
}
