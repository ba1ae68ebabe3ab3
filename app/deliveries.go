package app

import (
	"context"
	"fmt"
	"time"

	"parley/app/cursors"
	"parley/app/steps"
	"parley/desk"
	"parley/store"
)

// A WebhookDelivery is a delivery as callers see it.
type WebhookDelivery struct {
	*desk.WebhookDelivery
	EventID string
	Next    desk.Time // when the next attempt is planned; 0: none is
}

// delivered is one of a webhook's deliveries as callers see it.
func (a *App) delivered(ws desk.ID, d *desk.WebhookDelivery, w *desk.Webhook, state *desk.WebhookState, probed desk.ID) WebhookDelivery {
	return WebhookDelivery{d, a.EventID(ws, d.Event), d.NextAttempt(w, state, d.ID == probed)}
}

// probed is the delivery with which a failing endpoint is probed next, the zero id if
// there is none.
func (a *App) probed(ctx context.Context, ws desk.ID, w *desk.Webhook, state *desk.WebhookState) (desk.ID, error) {
	if !state.Failing() || !w.Enabled {
		return desk.ID{}, nil
	}
	pending, err := a.store.PendingDeliveries(ctx, ws, w.ID)
	if err != nil {
		return desk.ID{}, err
	}
	held := *state
	held.HeldUntil = 0
	next, _ := a.rules.Next(&held, pending, a.now())
	if next == nil {
		return desk.ID{}, nil
	}
	return next.ID, nil
}

// directed is the webhook with this id. It returns NotFound, and Forbidden for a caller
// who may not read its events.
func directed(p desk.Principal, id desk.ID) (*desk.Webhook, error) {
	w := p.Settings.Webhook(id)
	if w == nil {
		return nil, desk.NoWebhook()
	}
	return w, p.MayDeliver(desk.FilterOf(w.Types))
}

// A DeliveryQuery narrows a list of deliveries.
type DeliveryQuery struct {
	Status  desk.DeliveryStatus // "": any
	EventID string              // "": any
	Cursor  string
	Limit   int
}

// Deliveries returns a page of a webhook's deliveries, newest first, and the cursor of
// the next page, "" if there is none. It returns NotFound, Forbidden, and InvalidRequest
// for an id of an event or a cursor that it did not give out.
func (a *App) Deliveries(ctx context.Context, p desk.Principal, id desk.ID, q DeliveryQuery) ([]WebhookDelivery, string, error) {
	w, err := directed(p, id)
	if err != nil {
		return nil, "", err
	}
	ws := p.Workspace()
	f := desk.DeliveryFilter{Status: q.Status}
	if q.EventID != "" {
		place, ok := a.EventPlace(ws, q.EventID)
		if !ok {
			return nil, "", desk.InvalidAt("/event_id", "this workspace has no event with this id")
		}
		f.Event = &place
	}
	list := cursors.List{Workspace: ws, Name: "deliveries", Filter: fmt.Sprintf("%s %q %q", id, q.Status, q.EventID)}
	var after *desk.ID
	if q.Cursor != "" {
		place, err := a.cursors.Open(list, q.Cursor)
		if err != nil {
			return nil, "", err
		}
		after = (*desk.ID)(place)
	}
	states, err := a.store.WebhookStates(ctx, ws)
	if err != nil {
		return nil, "", err
	}
	state := states[id]
	probed, err := a.probed(ctx, ws, w, &state)
	if err != nil {
		return nil, "", err
	}
	page, next, err := a.store.Deliveries(ctx, ws, id, f, after, q.Limit)
	if err != nil {
		return nil, "", err
	}
	found := make([]WebhookDelivery, len(page))
	for i, d := range page {
		found[i] = a.delivered(ws, d, w, &state, probed)
	}
	if next == nil {
		return found, "", nil
	}
	return found, a.cursors.Seal(list, next[:]), nil
}

// Delivery returns a delivery of a webhook, and the body that an attempt would send now,
// nil if the event is no longer kept. It returns NotFound and Forbidden.
func (a *App) Delivery(ctx context.Context, p desk.Principal, id, delivery desk.ID) (d WebhookDelivery, body []byte, err error) {
	w, err := directed(p, id)
	if err != nil {
		return d, nil, err
	}
	ref := store.WebhookRef{Workspace: p.Workspace(), ID: id}
	stored, err := a.store.Delivery(ctx, ref.Workspace, id, delivery)
	if err != nil {
		return d, nil, err
	}
	if stored == nil {
		return d, nil, noDelivery()
	}
	states, err := a.store.WebhookStates(ctx, ref.Workspace)
	if err != nil {
		return d, nil, err
	}
	state := states[id]
	probed, err := a.probed(ctx, ref.Workspace, w, &state)
	if err != nil {
		return d, nil, err
	}
	page, err := a.eventAt(ctx, ref, stored.Event)
	if err == nil && len(page.Events) > 0 {
		body = a.event(page, &page.Events[0])
	}
	return a.delivered(ref.Workspace, stored, w, &state, probed), body, err
}

// Behind tells since when the oldest event waits whose delivery to a webhook has not
// begun; 0 if none waits. lost tells that events have expired meanwhile.
func (a *App) Behind(ctx context.Context, p desk.Principal, w *Webhook) (since desk.Time, lost bool, err error) {
	f, err := desk.ParseEventFilter(w.Types)
	if err != nil {
		return 0, false, err
	}
	page, err := a.Feed(ctx, p, FeedQuery{Cursor: w.Cursor, Types: f, Limit: 1, Bare: true})
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
func (a *App) Redeliver(ctx context.Context, p desk.Principal, id, delivery desk.ID) (WebhookDelivery, error) {
	w, err := directed(p, id)
	if w == nil {
		return WebhookDelivery{}, err
	}
	ref := store.WebhookRef{Workspace: p.Workspace(), ID: id}
	stored, e := a.store.Delivery(ctx, ref.Workspace, id, delivery)
	switch {
	case e != nil:
		return WebhookDelivery{}, e
	case stored == nil:
		return WebhookDelivery{}, noDelivery()
	case err != nil:
		return WebhookDelivery{}, err
	}
	event, err := a.eventAt(ctx, ref, stored.Event)
	if err != nil {
		return WebhookDelivery{}, err
	}
	var d *desk.WebhookDelivery
	var state desk.WebhookState
	err = a.directWebhook(ctx, p, id, func(tx store.Tx, now *desk.Webhook) error {
		w = now
		if !w.Enabled {
			return desk.Errorf(desk.EndpointOff, "the webhook is disabled: enable it first").Advise(desk.EnableWebhook, id.String())
		}
		if len(event.Events) == 0 {
			return a.expired(event.EventPage, desk.ExpiredByRetention)
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
		return WebhookDelivery{}, err
	}
	for _, before := range stored.Attempts {
		d.Respond(before.At, before.Response)
	}
	return a.delivered(ref.Workspace, d, w, &state, desk.ID{}), nil
}

func noDelivery() *desk.Error { return desk.NotFoundf("the webhook has no delivery with this id") }

// directWebhook changes what belongs to a webhook's deliveries, and tells the process that
// serves it. It returns NotFound, and Forbidden for a caller who may not read its events.
func (a *App) directWebhook(ctx context.Context, p desk.Principal, id desk.ID, change func(store.Tx, *desk.Webhook) error) error {
	err := a.store.InTx(ctx, p.Workspace(), func(tx store.Tx) error {
		if err := p.Still(tx.Settings(), desk.WebhooksWrite, a.now()); err != nil {
			return err
		}
		w, err := directed(p.In(tx.Settings()), id)
		if err != nil {
			return err
		}
		if err := tx.CallHolder(taskOf(id)); err != nil {
			return err
		}
		return change(tx, w)
	})
	if err == nil {
		a.delivering.note()
	}
	return err
}

// Replay has the deliveries of a webhook go on at a cursor: pending ones of later events
// are dropped. It returns the errors of Feed, and NotFound.
func (a *App) Replay(ctx context.Context, p desk.Principal, id desk.ID, cursor string) (Webhook, error) {
	if _, err := directed(p, id); err != nil {
		return Webhook{}, err
	}
	if cursor == "" {
		return Webhook{}, desk.InvalidAt("/cursor", "missing; send the id of an event, a cursor of an answer, oldest or latest")
	}
	q, err := a.eventStart(p.Workspace(), cursor)
	if err != nil {
		return Webhook{}, err
	}
	page, err := a.store.Events(ctx, p.Workspace(), q, func(*desk.Settings) ([]desk.EventType, error) { return nil, nil })
	if err != nil {
		return Webhook{}, err
	}
	if page.Expired != "" {
		return Webhook{}, a.expired(page, page.Expired)
	}
	err = a.directWebhook(ctx, p, id, func(tx store.Tx, _ *desk.Webhook) error {
		state, err := tx.WebhookState(id)
		if err != nil {
			return err
		}
		state.Cursor = page.Next
		if err := tx.DropPending(id, state.Cursor.Seq); err != nil {
			return err
		}
		if err := tx.PutWebhookState(id, state); err != nil {
			return err
		}
		return tx.Append(desk.Event{Type: desk.WebhookUpdated, Subject: id, Actor: p.Actor, At: a.now(), Changed: []string{"cursor"}})
	})
	if err != nil {
		return Webhook{}, err
	}
	s, err := a.store.Settings(ctx, p.Workspace())
	if err != nil {
		return Webhook{}, err
	}
	return a.changedWebhook(ctx, s, s.Webhook(id))
}

// forgetDeliveries deletes the old deliveries of a workspace's webhooks, and all of those
// that were removed: the process may have ended while it deleted them.
func (a *App) forgetDeliveries(ctx context.Context, ws desk.ID) error {
	list, err := a.store.DeliveredWebhooks(ctx, ws)
	if err != nil {
		return err
	}
	s, err := a.store.Settings(ctx, ws) // after the list: what it lacks was removed
	if err != nil {
		return err
	}
	before := a.now() - desk.Time(desk.KeepDelivery/time.Millisecond)
	for _, id := range list {
		forget := a.forgetRemoved(ctx, store.WebhookRef{Workspace: ws, ID: id})
		if s.Webhook(id) != nil {
			forget = func(limit int) (int, error) {
				return a.store.ForgetDeliveries(ctx, ws, id, before, desk.MaxDeliveries, limit)
			}
		}
		if err := steps.InGroups(ctx, steps.Group, forget); err != nil {
			return err
		}
	}
	return nil
}

// forgetRemoved is a step that deletes deliveries of a webhook that was removed.
func (a *App) forgetRemoved(ctx context.Context, ref store.WebhookRef) func(limit int) (int, error) {
	return func(limit int) (int, error) { return a.store.ForgetDeliveries(ctx, ref.Workspace, ref.ID, 0, 0, limit) }
}

// dropDeliveries deletes the deliveries of a webhook that was removed. What it leaves is
// deleted with what is old.
func (a *App) dropDeliveries(ctx context.Context, ref store.WebhookRef) {
	if err := steps.InGroups(ctx, steps.Group, a.forgetRemoved(ctx, ref)); err != nil {
		a.log.WarnContext(ctx, "the deliveries of a removed webhook are left", "workspace_id", ref.Workspace, "webhook_id", ref.ID, "err", err)
	}
}
