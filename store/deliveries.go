package store

import (
	"context"

	"parley/desk"
)

// Deliveries keeps deliveries of events to webhooks, and the leases of the processes
// that make them.
type Deliveries interface {
	// EnabledWebhooks lists the enabled webhooks of all workspaces.
	EnabledWebhooks(ctx context.Context) ([]EnabledWebhook, error)

	// HoldLeases gives the tasks to a holder for some milliseconds of the database's
	// clock, or extends the holder's leases. It returns the tasks that the holder now has,
	// each with its number of calls (DeliveryTx.CallHolder). Taking a task over from
	// another holder counts as a call. If only some of several database servers fail, it
	// returns the tasks of the others, and the error.
	HoldLeases(ctx context.Context, list []LeaseRef, holder desk.ID, length desk.Time) (map[LeaseRef]int64, error)

	// ExtendLeases is like HoldLeases for tasks that the holder has. It leaves out a task
	// that another holder took meanwhile, even if it was dropped since.
	ExtendLeases(ctx context.Context, list []LeaseRef, holder desk.ID, length desk.Time) (map[LeaseRef]int64, error)

	// EndLease ends the holder's lease, so that another holder can take the task at once.
	EndLease(ctx context.Context, ref LeaseRef, holder desk.ID) error

	// DropLease ends the holder's lease and forgets the task, because nothing is left to do.
	// It returns false and does nothing if the holder does not hold the task, or was called
	// more often than calls says.
	DropLease(ctx context.Context, ref LeaseRef, holder desk.ID, calls int64) (bool, error)

	// Deliveries returns a page of the deliveries of a webhook that match the filter,
	// newest first: up to limit deliveries that come after the given id in this order (nil:
	// the page begins with the newest). It also returns the id after which the next page
	// begins, nil if this page is the last. A page has at most a desk.PageSize.
	Deliveries(ctx context.Context, ws, webhook desk.ID, f desk.DeliveryFilter, after *desk.ID, limit int) ([]*desk.WebhookDelivery, *desk.ID, error)

	// Delivery returns a delivery of a webhook, or nil.
	Delivery(ctx context.Context, ws, webhook, id desk.ID) (*desk.WebhookDelivery, error)

	// StoreDeliveries stores deliveries of a webhook, as DeliveryTx.PutDeliveries does, and
	// the webhook's state, all in one round trip. It returns false and stores nothing if an
	// assumption of the hold is no longer true, or if the feed never had the state's cursor
	// (DeliveryTx.Passed).
	StoreDeliveries(ctx context.Context, hold DeliveryHold, state desk.WebhookState, list []*desk.WebhookDelivery) (bool, error)

	// PendingDeliveries returns all pending deliveries of a webhook, without the responses
	// of their tries.
	PendingDeliveries(ctx context.Context, ws, webhook desk.ID) ([]*desk.WebhookDelivery, error)

	// DeliveredWebhooks lists the webhooks that have deliveries. It includes removed
	// webhooks.
	DeliveredWebhooks(ctx context.Context, ws desk.ID) ([]desk.ID, error)

	// ForgetDeliveries deletes up to limit deliveries of a webhook: those that were settled
	// before the given time, and all that are not among the newest. The number keep says
	// how many deliveries are the newest. Pending deliveries are deleted only if keep is 0.
	// ForgetDeliveries returns how many it deleted.
	ForgetDeliveries(ctx context.Context, ws, webhook desk.ID, before desk.Time, keep, limit int) (int, error)
}

// An EnabledWebhook is a webhook that gets events.
type EnabledWebhook struct {
	WebhookRef
	Busy bool // there are events after its cursor, or its task has a lease, which may have ended
}

// WebhookTask names the task of delivering to a webhook. Whoever has done it drops the lease
// (DropLease), so a task that has a lease may have something to do.
func WebhookTask(webhook desk.ID) string { return WebhookTasks + webhook.String() }

// WebhookTasks is how the names of these tasks begin.
const WebhookTasks = "webhook "

// A DeliveryHold has the values that must not have changed if a process is to store a
// webhook's deliveries without reading them again.
type DeliveryHold struct {
	WebhookRef
	Task     string
	Holder   desk.ID // the process that holds the task
	Calls    int64   // how often the task's holder was called
	Settings int64   // the version of the settings
}

// A DeliveryTx reads and writes deliveries of events to webhooks.
type DeliveryTx interface {
	// Leased tells whether the holder still has a task, and how often the holder was
	// called. Nobody else gets the task before the transaction ends. CallHolder counts a
	// call of the task's present holder. CallHolder must be the first call of its
	// transaction, so that it waits for the holder's transactions.
	Leased(task string, holder desk.ID) (calls int64, ours bool, err error)
	CallHolder(task string) error

	// Passed tells whether the event at this place is in the workspace's feed, or was in
	// the feed before it expired. Passed returns false if the database has lost commits,
	// and the event with them.
	Passed(place desk.EventPlace) (bool, error)

	// DeliveriesOf looks for the deliveries of a webhook with these ids, and returns those
	// that exist. They come with their tries, but without the responses.
	DeliveriesOf(webhook desk.ID, ids []desk.ID) ([]*desk.WebhookDelivery, error)

	// PutDeliveries stores deliveries. It adds the responses of their tries, unless the
	// contact is deleted.
	PutDeliveries(webhook desk.ID, list []*desk.WebhookDelivery) error

	// DropPending deletes a webhook's pending deliveries of the events whose numbers are
	// greater than after. DuePending makes all pending deliveries due.
	DropPending(webhook desk.ID, after int64) error
	DuePending(webhook desk.ID, at desk.Time) error
}
