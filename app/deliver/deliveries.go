package deliver

import (
	"context"
	"fmt"

	"parley/app/cursors"
	"parley/app/feed"
	"parley/desk"
	"parley/store"
)

// A Delivery is a delivery as callers see it.
type Delivery struct {
	*desk.WebhookDelivery
	EventID string
	Next    desk.Time // when the next try is planned; 0: no try is planned
}

// delivered returns a delivery of a webhook in the form that callers see.
func (a *Service) delivered(ws desk.ID, d *desk.WebhookDelivery, w *desk.Webhook, state *desk.WebhookState, probed desk.ID) Delivery {
	return Delivery{d, a.Feed.EventID(ws, d.Event), d.NextTry(w, state, d.ID == probed)}
}

// probed returns the id of the delivery that is sent next to a failing endpoint, or the
// zero id if there is none.
func (a *Service) probed(ctx context.Context, ws desk.ID, w *desk.Webhook, state *desk.WebhookState) (desk.ID, error) {
	if !state.Failing() || !w.Enabled {
		return desk.ID{}, nil
	}
	pending, err := a.Store.PendingDeliveries(ctx, ws, w.ID)
	if err != nil {
		return desk.ID{}, err
	}
	held := *state
	held.HeldUntil = 0
	next, _ := a.Rules.Next(&held, pending, a.now())
	if next == nil {
		return desk.ID{}, nil
	}
	return next.ID, nil
}

// A Query narrows a list of deliveries.
type Query struct {
	Status  desk.WebhookDeliveryStatus // "": any
	EventID string                     // "": any
	Cursor  string
	Limit   int
}

// Deliveries returns a page of a webhook's deliveries, newest first, and the cursor of the
// next page ("" if there is none). It returns NotFound, Forbidden, and InvalidRequest for
// an event id or a cursor that parley did not give out.
func (a *Service) Deliveries(ctx context.Context, p desk.Principal, id desk.ID, q Query) ([]Delivery, string, error) {
	w, err := directed(p, id)
	if err != nil {
		return nil, "", err
	}
	ws := p.Workspace()
	f := desk.DeliveryFilter{Status: q.Status}
	if q.EventID != "" {
		place, ok := a.Feed.EventPlace(ws, q.EventID)
		if !ok {
			return nil, "", desk.InvalidAt("/event_id", "this workspace has no event with this id")
		}
		f.Event = &place
	}
	list := cursors.List{Workspace: ws, Name: "deliveries", Filter: fmt.Sprintf("%s %q %q", id, q.Status, q.EventID)}
	after, err := a.Cursors.OpenID(list, q.Cursor)
	if err != nil {
		return nil, "", err
	}
	states, err := a.Store.WebhookStates(ctx, ws)
	if err != nil {
		return nil, "", err
	}
	state := states[id]
	probed, err := a.probed(ctx, ws, w, &state)
	if err != nil {
		return nil, "", err
	}
	page, next, err := a.Store.Deliveries(ctx, ws, id, f, after, q.Limit)
	if err != nil {
		return nil, "", err
	}
	found := make([]Delivery, len(page))
	for i, d := range page {
		found[i] = a.delivered(ws, d, w, &state, probed)
	}
	return found, a.Cursors.SealID(list, next), nil
}

// Delivery returns a delivery of a webhook, and the body that a try would send now. The
// body is nil if the event is no longer kept. It returns NotFound and Forbidden.
func (a *Service) Delivery(ctx context.Context, p desk.Principal, id, delivery desk.ID) (d Delivery, body []byte, err error) {
	w, err := directed(p, id)
	if err != nil {
		return d, nil, err
	}
	ref := store.WebhookRef{Workspace: p.Workspace(), ID: id}
	stored, err := a.Store.Delivery(ctx, ref.Workspace, id, delivery)
	if err != nil {
		return d, nil, err
	}
	if stored == nil {
		return d, nil, noDelivery()
	}
	states, err := a.Store.WebhookStates(ctx, ref.Workspace)
	if err != nil {
		return d, nil, err
	}
	state := states[id]
	probed, err := a.probed(ctx, ref.Workspace, w, &state)
	if err != nil {
		return d, nil, err
	}
	page, err := a.Feed.At(ctx, ref.Workspace, stored.Event)
	if err == nil && len(page.Events) > 0 {
		body = a.Event(page, &page.Events[0])
	}
	return a.delivered(ref.Workspace, stored, w, &state, probed), body, err
}

// Behind looks for the oldest event whose delivery to a webhook has not begun. It returns
// the time of this event, or 0 if no event waits. lost means that events have expired
// before their delivery began.
func (a *Service) Behind(ctx context.Context, p desk.Principal, w *feed.Webhook) (since desk.Time, lost bool, err error) {
	f, err := desk.ParseEventFilter(w.Types)
	if err != nil {
		return 0, false, err
	}
	page, err := a.Feed.Page(ctx, p, feed.Query{Cursor: w.Cursor, Types: f, Limit: 1, Bare: true})
	switch {
	case desk.IsType(err, desk.CursorExpired):
		return 0, true, nil
	case err != nil || len(page.Events) == 0:
		return 0, false, err
	}
	return page.Events[0].At, false, nil
}

// Redeliver makes a delivery due now, with a new schedule. It returns NotFound, Forbidden,
// EndpointOff if the webhook is disabled, and CursorExpired if the event is gone.
func (a *Service) Redeliver(ctx context.Context, p desk.Principal, id, delivery desk.ID) (Delivery, error) {
	w, err := directed(p, id)
	if w == nil {
		return Delivery{}, err
	}
	ref := store.WebhookRef{Workspace: p.Workspace(), ID: id}
	stored, e := a.Store.Delivery(ctx, ref.Workspace, id, delivery)
	switch {
	case e != nil:
		return Delivery{}, e
	case stored == nil:
		return Delivery{}, noDelivery()
	case err != nil:
		return Delivery{}, err
	}
	event, err := a.Feed.At(ctx, ref.Workspace, stored.Event)
	if err != nil {
		return Delivery{}, err
	}
	var d *desk.WebhookDelivery
	var state desk.WebhookState
	err = a.directWebhook(ctx, p, id, func(tx store.Tx, now *desk.Webhook) error {
		w = now
		if !w.Enabled {
			return desk.Errorf(desk.EndpointOff, "the webhook is disabled: enable it first").Advise(desk.EnableWebhook, id.String())
		}
		if len(event.Events) == 0 {
			return a.Feed.Expired(event.EventPage, desk.ExpiredByRetention)
		}
		list, err := tx.DeliveriesOf(id, []desk.ID{delivery})
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return noDelivery()
		}
		if state, err = tx.WebhookState(id); err != nil {
			return err
		}
		d = list[0]
		d.Redeliver(a.now())
		return tx.PutDeliveries(id, list)
	})
	if err != nil {
		return Delivery{}, err
	}
	for _, before := range stored.Tries {
		d.Respond(before.At, before.Response)
	}
	return a.delivered(ref.Workspace, d, w, &state, desk.ID{}), nil
}

func noDelivery() *desk.Error { return desk.NotFoundf("the webhook has no delivery with this id") }

// directWebhook changes the state or the deliveries of a webhook, and informs the process
// that serves the webhook. It returns NotFound, and Forbidden for a caller who may not read
// the events of the webhook.
func (a *Service) directWebhook(ctx context.Context, p desk.Principal, id desk.ID, change func(store.Tx, *desk.Webhook) error) error {
	err := a.Store.InTx(ctx, p.Workspace(), func(tx store.Tx) error {
		if err := p.Still(tx.Settings(), desk.WebhooksWrite, a.now()); err != nil {
			return err
		}
		w, err := directed(p.In(tx.Settings()), id)
		if err != nil {
			return err
		}
		if err := tx.CallHolder(store.WebhookTask(id)); err != nil {
			return err
		}
		return change(tx, w)
	})
	if err == nil {
		a.Note()
	}
	return err
}

// Replay makes the deliveries of a webhook continue from a cursor. Pending deliveries of
// later events are dropped. It returns NotFound and the errors of Feed.Seek.
func (a *Service) Replay(ctx context.Context, p desk.Principal, id desk.ID, cursor string) (feed.Webhook, error) {
	if _, err := directed(p, id); err != nil {
		return feed.Webhook{}, err
	}
	if cursor == "" {
		return feed.Webhook{}, desk.InvalidAt("/cursor", "missing; send the id of an event, a cursor of an answer, oldest or latest")
	}
	place, err := a.Feed.Seek(ctx, p.Workspace(), cursor)
	if err != nil {
		return feed.Webhook{}, err
	}
	err = a.directWebhook(ctx, p, id, func(tx store.Tx, _ *desk.Webhook) error {
		state, err := tx.WebhookState(id)
		if err != nil {
			return err
		}
		moved := state.Cursor != place
		state.Cursor = place
		if err := tx.DropPending(id, state.Cursor.Seq); err != nil {
			return err
		}
		if err := tx.PutWebhookState(id, state); err != nil || !moved {
			return err
		}
		return tx.Append(desk.Event{Type: desk.WebhookUpdated, Subject: id, Actor: p.Actor, At: a.now(), Changed: []string{"cursor"}})
	})
	if err != nil {
		return feed.Webhook{}, err
	}
	s, err := a.Store.Settings(ctx, p.Workspace())
	if err != nil {
		return feed.Webhook{}, err
	}
	return a.changedWebhook(ctx, s, s.Webhook(id))
}
