package deliver

import (
	"context"
	"math"
	"time"

	"parley/app/feed"
	"parley/desk"
	"parley/store"
)

// PingType is the type of the event that a ping sends. No feed has it.
const PingType desk.EventType = "webhook.ping"

// How often an endpoint may be pinged, on all nodes together: ten times, and then once more
// for each tenth of a minute.
const (
	pingEvery = 6 * time.Second
	pingBurst = 10
)

// pingWait is how long a ping waits at most for a place among the requests to its endpoint,
// and to all: as long as one of them takes.
const pingWait = 15 * time.Second

func pingedTooOften(wait time.Duration, format string, args ...any) error {
	e := desk.Errorf(desk.RateLimited, format, args...)
	e.RetryAfter = max(1, int(math.Ceil(wait.Seconds())))
	return e
}

// pingPlace waits for a place among the requests to an endpoint, and returns what gives it
// back. It returns RateLimited or Unavailable if there is none.
func (a *Service) pingPlace(ctx context.Context, ref store.WebhookRef) (end func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.useRequests(ref)
	if left := r.until - a.Uptime(); left > 0 && left <= pingBurst*pingEvery {
		a.leaveRequests(ref)
		return nil, pingedTooOften(left, "this webhook was pinged %d times in a minute: wait a little", pingBurst)
	}
	if r.pings >= desk.MaxInFlight {
		a.leaveRequests(ref)
		return nil, pingedTooOften(time.Second, "%d pings of this webhook are under way", r.pings)
	}
	r.pings++
	var taken []chan struct{}
	leave := func() {
		for _, places := range taken {
			<-places
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		r.pings--
		a.leaveRequests(ref)
	}
	a.mu.Unlock()
	defer a.mu.Lock()
	defer func() {
		if err != nil {
			leave()
		}
	}()
	wait, ok, err := a.Store.Pace(ctx, ref.Workspace, []desk.Bucket{{Name: "ping " + ref.ID.String(), Interval: pingEvery, Burst: pingBurst}}, 0)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		a.mu.Lock()
		r.until = a.Uptime() + wait
		a.mu.Unlock()
		return nil, pingedTooOften(wait, "this webhook was pinged %d times in a minute: wait a little", pingBurst)
	}
	patience := time.NewTimer(pingWait)
	defer patience.Stop()
	for _, places := range []chan struct{}{r.places, a.posts} {
		select {
		case places <- struct{}{}:
			taken = append(taken, places)
		case <-patience.C:
			e := desk.Errorf(desk.Unavailable, "too many requests to endpoints are under way: try again")
			e.RetryAfter = 1
			return nil, e
		case <-ctx.Done():
			return nil, &desk.Error{Type: desk.Unavailable, Message: "the request was given up", Err: ctx.Err()}
		}
	}
	return leave, nil
}

// Ping makes one try now, even if the webhook is disabled, and returns what came of
// it. It counts among the requests under way, and ends when its caller leaves. It returns
// NotFound, Forbidden, RateLimited, and Unavailable.
func (a *Service) Ping(ctx context.Context, p desk.Principal, id desk.ID) (desk.WebhookTry, error) {
	w, err := directed(p, id)
	if err != nil {
		return desk.WebhookTry{}, err
	}
	ws := p.Workspace()
	end, err := a.pingPlace(ctx, store.WebhookRef{Workspace: ws, ID: id})
	if err != nil {
		return desk.WebhookTry{}, err
	}
	defer end()
	shown, err := a.oneWebhook(ctx, p.Settings, w)
	if err != nil {
		return desk.WebhookTry{}, err
	}
	event := desk.FeedEvent{ID: "ping_" + a.NewID().String(), Event: desk.Event{Type: PingType, Subject: id, Actor: p.Actor, At: a.now()}}
	page := &feed.Page{EventPage: &store.EventPage{Settings: p.Settings}, Webhooks: map[desk.ID]*feed.Webhook{id: &shown}}
	r, err := a.post(ctx, ws, w, event.ID, a.Event(page, &event))
	if err != nil {
		return desk.WebhookTry{}, err
	}
	// What follows from it is not the caller's: the try was made.
	ctx = context.WithoutCancel(ctx)
	if err := a.pinged(ctx, store.WebhookRef{Workspace: ws, ID: id}, w.URL, &r); err != nil {
		a.Log.WarnContext(ctx, "what a ping showed is not stored", "workspace_id", ws, "webhook_id", id, "err", err)
	}
	return r.WebhookTry, nil
}

// pinged stores what follows from a ping to a URL.
func (a *Service) pinged(ctx context.Context, ref store.WebhookRef, url string, r *desk.WebhookResult) error {
	states, err := a.Store.WebhookStates(ctx, ref.Workspace)
	if err != nil {
		return err
	}
	state := states[ref.ID]
	before := state
	if verdict := state.Pinged(r); verdict.Disable != "" {
		return a.disableWebhook(ctx, ref, disabling{verdict.Disable, url})
	}
	if state == before {
		return nil
	}
	err = a.Store.InTx(ctx, ref.Workspace, func(tx store.Tx) error {
		if err := tx.CallHolder(taskOf(ref.ID)); err != nil {
			return err
		}
		state, err := tx.WebhookState(ref.ID)
		if err != nil {
			return err
		}
		if state.Pinged(r).Recovered {
			if err := tx.DuePending(ref.ID, a.now()); err != nil {
				return err
			}
		}
		return tx.PutWebhookState(ref.ID, state)
	})
	if err == nil {
		a.Note()
	}
	return err
}
