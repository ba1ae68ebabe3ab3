package deliver

import (
	"context"
	"fmt"
	"math"
	"time"

	"parley/app/feed"
	"parley/desk"
	"parley/store"
)

// PingType is the type of the event that a ping sends. No feed has it.
const PingType desk.EventType = "webhook.ping"

// pingWait is how long a ping waits at most for a free place among the requests to its
// endpoint, and among all requests of this process. One request takes at most as long.
const pingWait = 15 * time.Second

func pingedTooOften(wait time.Duration, format string, args ...any) error {
	e := desk.Errorf(desk.RateLimited, format, args...)
	e.RetryAfter = max(1, int(math.Ceil(wait.Seconds())))
	return e
}

// pingPlace waits for a place among the requests to an endpoint. It returns a function that
// frees the place. It returns RateLimited or Unavailable if it gets no place.
func (a *Service) pingPlace(ctx context.Context, ref store.WebhookRef) (end func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.useRequests(ref)
	if left := r.until - a.Uptime(); left > 0 && left <= time.Minute {
		a.leaveRequests(ref)
		return nil, pingedTooOften(left, "this webhook was pinged %d times in a minute: wait a little", desk.MaxPings)
	}
	if r.pings >= desk.MaxInFlight {
		a.leaveRequests(ref)
		return nil, pingedTooOften(time.Second, "%d pings of this webhook are under way", r.pings)
	}
	r.pings++
	r.ping = (r.ping + 1) % desk.MaxPings
	first := r.ping
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
	wait, ok, err := a.mayPing(ctx, ref, first)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		a.mu.Lock()
		r.until = a.Uptime() + wait
		a.mu.Unlock()
		return nil, pingedTooOften(wait, "this webhook was pinged %d times in a minute: wait a little", desk.MaxPings)
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

// mayPing counts a ping of an endpoint, on all nodes together. If there were too many
// pings, it returns how long the caller must wait. There are desk.MaxPings buckets. Each
// ping takes one of them, and a minute later the bucket is free again. So all pings of a
// minute may come at once, but there are never more in one minute. The bucket with the
// number first is tried first.
func (a *Service) mayPing(ctx context.Context, ref store.WebhookRef, first int) (wait time.Duration, ok bool, err error) {
	wait = time.Minute
	for n := range desk.MaxPings {
		name := fmt.Sprintf("ping %s %d", ref.ID, (first+n)%desk.MaxPings)
		left, ok, err := a.Store.Pace(ctx, ref.Workspace, []desk.Bucket{{Name: name, Interval: time.Minute, Burst: 1}}, 0)
		if ok || err != nil {
			return 0, ok, err
		}
		wait = min(wait, left)
	}
	return wait, false, nil
}

// Ping makes one try now, even if the webhook is disabled, and returns its result. The try
// counts as a request under way, and ends when its caller leaves. Ping returns NotFound,
// Forbidden, RateLimited, and Unavailable.
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
	// The request was made, so its result is stored even if the caller has left.
	ctx = context.WithoutCancel(ctx)
	if err := a.pinged(ctx, store.WebhookRef{Workspace: ws, ID: id}, w.URL, &r); err != nil {
		a.Log.WarnContext(ctx, "what a ping showed is not stored", "workspace_id", ws, "webhook_id", id, "err", err)
	}
	return r.WebhookTry, nil
}

// pinged stores the effects of a ping to a URL on the state of the webhook.
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
		if err := tx.CallHolder(store.WebhookTask(ref.ID)); err != nil {
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
