package store

import (
	"context"
	"errors"

	"parley/desk"
)

// ErrCommitLost is wrapped in Unavailable if the result of a commit is not known. The
// data may be stored, or may be stored later.
var ErrCommitLost = errors.New("it is unknown whether this was stored")

// ErrNoWorkspace is wrapped in NotFound if the workspace itself does not exist, for
// example because it was deleted during the call.
var ErrNoWorkspace = errors.New("the workspace does not exist")

// A Store is the database. Its methods are safe for concurrent use. Besides the errors
// in its comment, any method may return Unavailable if the database can't answer. Then
// nothing is stored, unless the error is also ErrCommitLost. Any other error is a bug.
//
// A method reads and changes only the given workspace. It treats a record of another
// workspace as missing.
//
// A missing record is nil, without an error, and a value that was never stored is the
// zero value. A look-up of several records leaves out those that are missing. Only a
// missing workspace gives an error, NotFound.
type Store interface {
	Settings
	Contacts
	Conversations
	Templates
	Snippets
	Segments
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
	Search
	Imports
	Exports
	Uploads
	Merges
	Broadcasts
	Conflicts

	// Ready tells whether the database can answer now and this process may write to it.
	// Another process may have rebuilt the claims by newer rules (desk.IdentityRules).
	// Then every write to a workspace returns Unavailable.
	Ready(ctx context.Context) error

	// InTx runs f in a transaction on one workspace. It returns nil once the changes are
	// durable. If f returns an error, InTx returns it unchanged and stores nothing. f may
	// run more than once, so it must assign its results anew each time. Until the
	// transaction ends, no other transaction changes data that f has read. InTx returns
	// NotFound if there is no such workspace.
	InTx(ctx context.Context, ws desk.ID, f func(Tx) error) error
}

// A Tx is a transaction on one workspace (see Store.InTx). A method whose name begins
// with Put inserts or replaces the record with this id; an inbound item is identified by
// its due time and id. If a method returns an error, the transaction has ended: the
// closure must return the error.
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
	SegmentTx
	MediaTx
	PolicyTx
	ImportTx
	UploadTx
	ErasureTx
	MergeTx
	BroadcastTx
	ConflictTx

	// Settings are the workspace's settings at this moment.
	Settings() *desk.Settings

	// Now is the database's clock. Leases on all nodes are measured by it.
	Now() desk.Time

	// Append appends events to the workspace's feed.
	Append(events ...desk.Event) error
}

// NoContact returns the error for an id that no contact has: it may be of a merged one.
func NoContact(ctx context.Context, s Store, ws, id desk.ID) error {
	merged, err := s.Merged(ctx, ws, []desk.ID{id})
	if err != nil {
		return err
	}
	return desk.NoContactBut(merged[id])
}

// OpenConversation returns the open conversation with a contact on a channel, or nil.
func OpenConversation(ctx context.Context, s Store, ws, channel, contact desk.ID) (*desk.Conversation, error) {
	var after *desk.ConversationPlace
	for {
		list, next, err := s.Conversations(ctx, ws, desk.ConversationFilter{Status: desk.StatusOpen, Channel: channel, Contact: contact}, after, 1)
		if len(list) > 0 && err == nil {
			return list[0], nil
		}
		if err != nil || next == nil {
			return nil, err
		}
		after = next
	}
}
