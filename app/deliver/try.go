package deliver

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"parley/app/feed"
	"parley/app/steps"
	"parley/desk"
	"parley/store"
)

// An outcome is a try that has ended.
type outcome struct {
	delivery *desk.WebhookDelivery
	url      string // the URL of the request
	result   desk.WebhookResult
	expired  bool  // the event is no longer kept
	dropped  bool  // a replay has dropped the delivery
	err      error // not nil: the try did not begin
}

// errNotOurs says that another process has the lease now, or the webhook is gone.
var errNotOurs = errors.New("the webhook is not ours")

// errSlow means that an event could not be read fast enough. The person in it may have been
// deleted since it was read.
var errSlow = errors.New("the database is too slow to deliver what it has")

// try makes one try. It reads the event again, unless it gets a page that was read just
// now.
func (a *Service) try(ctx context.Context, ref store.WebhookRef, webhook *desk.Webhook, d *desk.WebhookDelivery, event *desk.FeedEvent, page *feed.Page, readAt time.Time, probe bool) (r *outcome) {
	r = &outcome{delivery: d}
	defer steps.Caught("attempt of a webhook", &r.err)
	for n := 0; page == nil || time.Since(readAt) > freshOf(event.Type); n++ {
		if n == slowReads {
			r.err = errSlow
			return r
		}
		p, err := a.readAgain(ctx, ref.Workspace, d.Event)
		if err != nil {
			r.err = err
			return r
		}
		if len(p.Events) == 0 {
			r.expired = true
			return r
		}
		if page, event, webhook, readAt = p, &p.Events[0], p.Settings.Webhook(ref.ID), p.ReadAt; webhook == nil || !webhook.Enabled {
			r.err = errNotOurs
			return r
		}
	}
	r.url = webhook.URL
	r.result, r.err = a.post(ctx, ref.Workspace, webhook, event.ID, a.Event(page, event))
	if r.result.Response != "" && !a.mayKeep(ctx, ref.Workspace, event, d.Contact) {
		r.result.Response = ""
	}
	r.result.Probe, r.result.Jitter = probe, rand.Float64() //nolint:gosec // it spreads load
	return r
}

// mayKeep tells whether the response to an event may be stored as the delivery's contact's. It may
// not if the event's conversation is of another contact by now, as after the undo of a merge: the
// response may repeat what that contact wrote, and that contact's deletion would not reach it.
func (a *Service) mayKeep(ctx context.Context, ws desk.ID, event *desk.FeedEvent, contact desk.ID) bool {
	conversation, _ := event.Of()
	if conversation.IsZero() {
		return !event.Type.OfSeveral()
	}
	c, err := a.Store.Conversation(ctx, ws, conversation)
	return err == nil && c != nil && c.ContactID == contact
}

// readAgain reads one event. It waits until few other tries read theirs.
func (a *Service) readAgain(ctx context.Context, ws desk.ID, place desk.EventPlace) (*feed.Page, error) {
	a.reads <- struct{}{}
	defer func() { <-a.reads }()
	return a.Feed.At(ctx, ws, place)
}

// freshOf returns how old the data of an event may be when a try begins, by the type of the
// event.
func freshOf(t desk.EventType) time.Duration {
	if t.OfSettings() {
		return freshSettings
	}
	return freshFor
}

// post sends a body to an endpoint.
func (a *Service) post(ctx context.Context, ws desk.ID, webhook *desk.Webhook, id string, body []byte) (r desk.WebhookResult, err error) {
	at := a.Clock()
	secrets, err := a.webhookSecrets(ws, webhook, desk.TimeOf(at))
	if err != nil {
		return r, err
	}
	p := a.Poster.Post(ctx, Post{URL: webhook.URL, ID: id, Body: body, Secrets: secrets, At: at})
	switch {
	case p.Err != nil:
		return r, &desk.Error{Type: desk.Unavailable, Message: "this server can't open a connection now: try again", RetryAfter: 1, Err: p.Err}
	case ctx.Err() != nil: // the caller of the ping has left
		return r, &desk.Error{Type: desk.Unavailable, Message: "the request was given up", Err: ctx.Err()}
	}
	a.count(p.Error)
	return desk.WebhookResult{
		WebhookTry: desk.WebhookTry{
			At: desk.TimeOf(at), Took: desk.Time(p.Took.Milliseconds()), StatusCode: p.StatusCode, Error: p.Error, Response: p.Response,
		},
		RetryAfter: p.RetryAfter,
	}, nil
}
