package deliver

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"parley/app/steps"
	"parley/desk"
	"parley/store"
)

// ended applies the result of a try to the fields of the endpoint. Later, store writes it
// to the database.
func (e *endpoint) ended(ctx context.Context, r *outcome) {
	a, d := e.service, r.delivery
	d.Trying = false
	e.inFlight--
	if errors.Is(r.err, errNotOurs) {
		e.webhook = nil
	}
	if r.err != nil { // the database can't be read, or the webhook has changed
		if d.DueAt = a.now() + desk.Time(idleStep.Milliseconds()); !errors.Is(r.err, errNotOurs) {
			a.Log.WarnContext(ctx, "an attempt did not begin; it will be tried again", "workspace_id", e.ref.Workspace, "webhook_id", e.ref.ID, "err", r.err)
		}
		return
	}
	r.dropped = !slices.Contains(e.pending, d)
	e.unstored = append(e.unstored, r)
	e.toStore()
	e.take(&e.state, d, r, func(at desk.Time) {
		e.mixed = true
		for _, other := range e.pending {
			other.DueAt = at
		}
	})
	if !r.dropped && !slices.Contains(e.changed, d) {
		e.changed = append(e.changed, d)
	}
	if d.Status != desk.DeliveryPending {
		e.pending = slices.DeleteFunc(e.pending, func(p *desk.WebhookDelivery) bool { return p == d })
	}
}

// take applies a result to a state and a delivery. It calls recovered if all pending
// deliveries become due.
func (e *endpoint) take(s *desk.WebhookState, d *desk.WebhookDelivery, r *outcome, recovered func(desk.Time)) {
	if r.expired {
		d.Expire(e.service.now())
		return
	}
	verdict := e.service.Rules.Tried(s, d, &r.result)
	if verdict.Recovered {
		recovered(r.result.At + r.result.Took)
	}
	if verdict.Disable != "" {
		e.disable = disabling{verdict.Disable, r.url}
	}
}

// store writes the new deliveries, the results and the cursor to the database, unless this
// process no longer has the lease.
func (e *endpoint) store(ctx context.Context) error {
	a := e.service
	if e.disable.reason == "" && !e.mixed {
		hold := store.DeliveryHold{WebhookRef: e.ref, Task: store.WebhookTask(e.ref.ID), Holder: a.holder, Calls: e.calls, Settings: e.version}
		if stored, err := a.Store.StoreDeliveries(ctx, hold, e.state, e.changed); err != nil {
			return err
		} else if stored {
			e.isStored(ctx, &e.state)
			return e.forget(ctx)
		}
	}
	return e.reconcile(ctx)
}

// isStored records that everything is stored, with the state s.
func (e *endpoint) isStored(ctx context.Context, s *desk.WebhookState) {
	e.tellFailing(ctx, s, e.unstored)
	e.added += len(e.begun)
	for _, d := range e.changed {
		for i := range d.Tries {
			d.Tries[i].Response = ""
		}
	}
	e.drop()
	e.stored, e.cursorAt = s.Cursor, time.Now()
}

// errLost says that the database has lost commits, with events that this process has read.
var errLost = errors.New("the database has lost commits")

// reconcile stores the results when something else has changed, or may have changed. It
// reads the state and the deliveries from the store, and applies the results to them. If
// somebody else has changed them meanwhile (a replay, an edit, a ping), everything is
// loaded again. A cursor that a replay has set is kept.
func (e *endpoint) reconcile(ctx context.Context) error {
	a, id := e.service, e.ref.ID
	var state desk.WebhookState
	var version int64
	var ours, changed bool
	err := a.Store.InTx(ctx, e.ref.Workspace, func(tx store.Tx) error {
		e.disable = disabling{} // the state in the store decides
		calls, held, err := tx.Leased(store.WebhookTask(id), a.holder)
		if err != nil {
			return err
		}
		webhook := tx.Settings().Webhook(id)
		if ours = held && webhook != nil; !ours {
			return nil
		}
		e.call(calls)
		if state, err = tx.WebhookState(id); err != nil {
			return err
		}
		version = tx.Settings().Version
		changed = calls != e.calls || e.webhook == nil || webhook.UpdatedAt != e.webhook.UpdatedAt
		moved := changed && state.Cursor != e.stored
		passed := calls >= e.calls
		if passed && !moved {
			passed, err = tx.Passed(e.state.Cursor)
		}
		switch {
		case err != nil:
			return err
		case !passed:
			return errLost
		}
		put, due, err := e.reapply(tx, &state)
		if err != nil {
			return err
		}
		if due != 0 {
			if err := tx.DuePending(id, due); err != nil {
				return err
			}
		}
		if moved {
			put = slices.DeleteFunc(put, func(d *desk.WebhookDelivery) bool {
				return d.Event.Seq > state.Cursor.Seq && d.Status == desk.DeliveryPending // its event will be read again
			})
		} else {
			state.Cursor = e.state.Cursor
		}
		if err := tx.PutWebhookState(id, state); err != nil {
			return err
		}
		return tx.PutDeliveries(id, put)
	})
	switch {
	case errors.Is(err, errLost):
		e.lose(e.state.Cursor)
		return nil
	case desk.IsType(err, desk.NotFound) || err == nil && !ours:
		return errNotOurs
	case err != nil:
		return err
	}
	e.isStored(ctx, &state)
	if changed {
		e.webhook = nil
		return e.forget(ctx)
	}
	e.state, e.version = state, version
	return e.forget(ctx)
}

// reapply applies the results that are not stored yet to the deliveries in the store. It
// returns the deliveries to be stored. due is the time at which all pending deliveries
// become due, or 0. A result may be stored already, by a commit whose answer was lost; it
// is not applied again.
func (e *endpoint) reapply(tx store.Tx, state *desk.WebhookState) (put []*desk.WebhookDelivery, due desk.Time, err error) {
	byID, ids := map[desk.ID]*desk.WebhookDelivery{}, []desk.ID(nil)
	for _, d := range e.begun {
		ids = append(ids, d.ID)
	}
	for _, r := range e.unstored {
		ids = append(ids, r.delivery.ID)
	}
	if ids != nil {
		if put, err = tx.DeliveriesOf(e.ref.ID, slices.CompactFunc(slices.SortedFunc(slices.Values(ids), compareIDs), func(a, b desk.ID) bool { return a == b })); err != nil {
			return nil, 0, err
		}
	}
	for _, d := range put {
		byID[d.ID] = d
	}
	for _, began := range e.begun {
		if byID[began.ID] == nil {
			d := *began
			byID[d.ID] = &d
			put = append(put, &d)
		}
	}
	for _, r := range e.unstored {
		d := byID[r.delivery.ID]
		if d == nil { // a replay has dropped it
			d = &desk.WebhookDelivery{Status: desk.DeliveryPending}
		}
		if !r.expired && slices.ContainsFunc(d.Tries, func(a desk.WebhookTry) bool { return a.At == r.result.At }) {
			continue
		}
		e.take(state, d, r, func(at desk.Time) {
			due = at
			for _, other := range put {
				if other.Status == desk.DeliveryPending {
					other.DueAt = at
				}
			}
		})
	}
	return put, due, nil
}

func compareIDs(a, b desk.ID) int { return bytes.Compare(a[:], b[:]) }

// tellFailing logs that the endpoint has begun to fail, or answers again.
func (e *endpoint) tellFailing(ctx context.Context, s *desk.WebhookState, results []*outcome) {
	failing, last := s.Failing(), ""
	for _, r := range results {
		last = cmp.Or(r.result.Error, last)
	}
	switch {
	case failing && !e.failing:
		e.service.Log.WarnContext(ctx, "a webhook's endpoint is failing: it is only probed until it answers", "workspace_id", e.ref.Workspace, "webhook_id", e.ref.ID, "error", last)
	case !failing && e.failing:
		e.service.Log.InfoContext(ctx, "a webhook's endpoint answers again", "workspace_id", e.ref.Workspace, "webhook_id", e.ref.ID)
	}
	e.failing = failing
}

// After forgetDeliveriesAfter new deliveries, a step deletes old ones.
const forgetDeliveriesAfter = steps.Group / 2

// forget deletes old deliveries once enough have been added.
func (e *endpoint) forget(ctx context.Context) error {
	if e.added < forgetDeliveriesAfter {
		return nil
	}
	e.added = 0
	before, err := e.service.oldBefore(ctx)
	if err == nil {
		_, err = e.service.Store.ForgetDeliveries(ctx, e.ref.Workspace, e.ref.ID, before, desk.MaxDeliveries, steps.Group)
	}
	return err
}
