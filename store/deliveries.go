package store

import (
	"context"

	"parley/desk"
)

// Deliveries keeps deliveries of events to webhooks, and the leases of those who
// deliver.
type Deliveries interface {
	// EnabledWebhooks lists the enabled webhooks of all workspaces.
	EnabledWebhooks(ctx context.Context) ([]WebhookRef, error)

	// HoldLeases gives the tasks to a holder for some milliseconds of the database's
	// clock, or extends the holder's leases. It returns those that the holder now has,
	// each with the number of its calls (Tx.CallHolder). If another had the task before,
	// that counts as a call.
	HoldLeases(ctx context.Context, list []LeaseRef, holder desk.ID, length desk.Time) (map[LeaseRef]int64, error)

	// EndLease ends the holder's lease, so that another can have the task at once.
	EndLease(ctx context.Context, ref LeaseRef, holder desk.ID) error

	// Deliveries returns up to limit deliveries of a webhook that match the filter and
	// come after the given one (nil: from the start), newest first, and the one after
	// which the list continues, nil at its end. A page has at most a desk.PageSize.
	Deliveries(ctx context.Context, ws, webhook desk.ID, f desk.DeliveryFilter, after *desk.ID, limit int) ([]*desk.WebhookDelivery, *desk.ID, error)

	// Delivery returns a delivery of a webhook, nil if there is none.
	Delivery(ctx context.Context, ws, webhook, id desk.ID) (*desk.WebhookDelivery, error)

	// StoreDeliveries stores deliveries of a webhook, as DeliveryTx.PutDeliveries does, and
	// the webhook's state, all in one round trip. It returns false, and nothing is stored,
	// unless all is still as the hold says, and the feed has the state's cursor or had it
	// before it expired.
	StoreDeliveries(ctx context.Context, hold DeliveryHold, state desk.WebhookState, list []*desk.WebhookDelivery) (bool, error)

	// PendingDeliveries returns all pending deliveries of a webhook, without the responses
	// of their tries.
	PendingDeliveries(ctx context.Context, ws, webhook desk.ID) ([]*desk.WebhookDelivery, error)

	// DeliveredWebhooks lists the webhooks that have deliveries, also those that were
	// removed.
	DeliveredWebhooks(ctx context.Context, ws desk.ID) ([]desk.ID, error)

	// ForgetDeliveries deletes up to limit deliveries of a webhook that were settled
	// before a time or are older than the newest keep; pending ones only if keep is 0.
	// It returns how many.
	ForgetDeliveries(ctx context.Context, ws, webhook desk.ID, before desk.Time, keep, limit int) (int, error)
}

// A DeliveryHold is on what a process relies that knows the deliveries of a webhook without
// reading them.
type DeliveryHold struct {
	WebhookRef
	Task     string
	Holder   desk.ID // has the task
	Calls    int64   // and was called so often
	Settings int64   // version
}

// A DeliveryTx reads and writes deliveries of events to webhooks.
type DeliveryTx interface {
	// Leased tells whether the holder still has a task, and how often it was called.
	// Nobody else gets the task before the transaction ends. CallHolder counts a call of
	// whoever has the task. It comes first in its transaction, so that it waits for those
	// of the holder.
	Leased(task string, holder desk.ID) (calls int64, ours bool, err error)
	CallHolder(task string) error

	// Passed tells whether the workspace's feed has the event of a place, or had it before
	// it expired. A database that has lost commits does not have all.
	Passed(place desk.EventPlace) (bool, error)

	// DeliveriesOf returns deliveries of a webhook by their ids, those that exist, with
	// tries but without responses.
	DeliveriesOf(webhook desk.ID, ids []desk.ID) ([]*desk.WebhookDelivery, error)

	// PutDeliveries stores deliveries. It adds the responses of their tries, unless
	// the contact is deleted.
	PutDeliveries(webhook desk.ID, list []*desk.WebhookDelivery) error

	// DropPending deletes the pending deliveries of a webhook whose events come after a
	// number. DuePending makes all pending ones due.
	DropPending(webhook desk.ID, after int64) error
	DuePending(webhook desk.ID, at desk.Time) error
}
