package store

import (
	"context"
	"errors"

	"parley/desk"
)

// ErrCommitLost is wrapped in Unavailable if the result of a commit is not known. The
// data may be stored, or may be stored later.
var ErrCommitLost = errors.New("it is unknown whether this was stored")

// ErrNoWorkspace is wrapped in NotFound if the workspace itself is not there, such as one
// that was deleted while a call was under way.
var ErrNoWorkspace = errors.New("the workspace does not exist")

// A Store is the database. Its methods are safe for concurrent use. In addition to the
// errors they name, any may return Unavailable if the database can't answer; then
// nothing is stored, unless the error is also ErrCommitLost. Any other error is a bug.
//
// No method reads or changes another workspace than the given one. A record of another
// workspace does not exist for it.
//
// A record that is not there is nil, without an error, and a value that was never stored is
// the zero value; a look-up of many leaves it out. Only a workspace that is not there is the
// error NotFound.
type Store interface {
	Settings
	Contacts
	Conversations
	Templates
	Snippets
	Attempts
	OptOuts
	Inbound
	Pace
	Leases
	Clock
	Events
	Deliveries
	Access
	Daily
	Media
	Policy

	// Ready tells whether the database can answer now, and this process may write to it:
	// another process may have rebuilt the claims by newer rules (desk.IdentityRules).
	// Then every write to a workspace returns Unavailable.
	Ready(ctx context.Context) error

	// InTx runs f in a transaction on one workspace. It returns once the changes are
	// durable, or it returns f's error unchanged and nothing is stored. f may run more
	// than once, so it must assign its results anew each time. No other transaction
	// changes what f reads before the transaction ends. It returns NotFound if there is
	// no such workspace.
	InTx(ctx context.Context, ws desk.ID, f func(Tx) error) error
}

// A Tx is a transaction on one workspace, see Store.InTx. Puts insert or replace by id (an inbound item: by due time and
// id). An error of a method ends the transaction: the closure must return it.
type Tx interface {
	ContactTx
	ConversationTx
	AttemptTx
	OptOutTx
	InboundTx
	WebhookTx
	DeliveryTx
	AccessTx
	DailyTx
	SnippetTx
	MediaTx
	PolicyTx

	// Settings are the workspace's settings at this moment.
	Settings() *desk.Settings

	// Now is the database's clock, by which leases are measured on all nodes.
	Now() desk.Time

	// Append appends events to the workspace's events.
	Append(events ...desk.Event) error
}
