package store

import (
	"context"
	"time"

	"parley/desk"
)

// Inbound keeps inbound items and callbacks.
type Inbound interface {
	// InboundItems returns up to limit inbound items of a workspace that are due by the
	// database's clock, oldest first. It also returns how long to wait for the next item,
	// less than 0 if there is none. If an item's due time is further ahead than longest,
	// the clock was set back after the item was stored. Such an item is due now, after the
	// others.
	InboundItems(ctx context.Context, ws desk.ID, longest time.Duration, limit int) (list []desk.InboundItem, next time.Duration, err error)

	// InboundDue returns the workspaces with inbound items, and how long to wait until the
	// first item of each is due (0: it is due). An item whose due time is further ahead
	// than longest is due now, as in InboundItems.
	InboundDue(ctx context.Context, longest time.Duration) (map[desk.ID]time.Duration, error)

	// NewestCallback returns when the newest callback of a channel came, even if the
	// callback was deleted since. It returns 0 if none has come yet.
	NewestCallback(ctx context.Context, ws, channel desk.ID) (desk.Time, error)

	// ForgetCallbacks deletes up to limit callbacks of a workspace that are older than age,
	// by the database's clock, with the lists of the people whom they name. It returns how
	// many callbacks it deleted. Callbacks that are not processed yet are kept.
	ForgetCallbacks(ctx context.Context, ws desk.ID, age time.Duration, limit int) (int, error)
}

// An InboundTx reads and writes inbound items, callbacks and early statuses.
type InboundTx interface {
	// KeepStatus keeps a status of an unknown message. TakeStatuses returns and deletes the
	// statuses of a message that is now known. DropStatuses deletes the statuses that have
	// been kept for at least this many hours, by the counter of hours (see Clock).
	KeepStatus(channel desk.ID, n desk.StatusUpdate) error
	TakeStatuses(channel desk.ID, externalID string) ([]desk.StatusUpdate, error)
	DropStatuses(hours int64) error

	PutInbound(desk.InboundItem) error

	// PutCallback stores the body of an item that has a ReceivedAt. Callback returns the
	// body, or nil if it was deleted. PutCallbackPeople stores the identities of the
	// people that a callback names, so that erasing a person finds the callback.
	PutCallback(desk.InboundItem) error
	Callback(desk.InboundItem) ([]byte, error)
	PutCallbackPeople(n desk.InboundItem, people []string) error

	// EraseCallback erases the body of a callback that can't be read, or that reports on a
	// person who is already deleted. The time of the callback is kept.
	EraseCallback(desk.InboundItem) error

	// TakeInbound deletes the given items and returns them. It leaves out items that do not
	// exist any more, and items that another transaction is taking.
	TakeInbound([]desk.InboundItem) ([]desk.InboundItem, error)
}
