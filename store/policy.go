package store

import (
	"context"
	"time"

	"parley/desk"
)

// Policy finds the work that the reply policy has left for later.
type Policy interface {
	// AutoRepliesDue returns the workspaces with automatic replies to send, and how long
	// to wait until the first reply of each is due by the database's clock (0: it is due).
	// If a reply is due later than longest from now, the clock was set back: such a reply
	// is due now.
	AutoRepliesDue(ctx context.Context, longest time.Duration) (map[desk.ID]time.Duration, error)

	// TakeAutoReply gives a workspace's job that has been due for the longest time to the
	// caller, for the time of a lease. It returns nil if no job is due.
	TakeAutoReply(ctx context.Context, ws desk.ID, lease, longest time.Duration) (*desk.AutoReplyJob, error)

	// Pools returns the workspaces that have a reply policy and open, unassigned
	// conversations that wait. It is one statement over all workspaces.
	Pools(ctx context.Context) ([]Pool, error)
}

// A Pool is a workspace in which an unassigned conversation waits. Everything that may
// make another member eligible, except the passing of time, changes one of the numbers.
type Pool struct {
	Workspace desk.ID
	Settings  int64 // their version
	Event     int64 // the number of the newest event
}

// A PolicyTx reads and writes the data of the reply policy.
type PolicyTx interface {
	// LockAssignment makes the transaction the only one that assigns by policy in the
	// workspace, until it ends.
	LockAssignment() error

	// Loads returns the load of each member, for a choice after LockAssignment: how many
	// open conversations the member holds (counted up to most), and the number of the last
	// choice of this member by the policy of a channel, or (zero) of the workspace.
	// PutTurn gives a member the next number.
	Loads(policy desk.ID, members []desk.ID, most int) (map[desk.ID]desk.Load, error)
	PutTurn(policy, member desk.ID) error

	// Pool returns up to limit open, unassigned conversations of a channel that wait,
	// longest wait first.
	Pool(channel desk.ID, limit int) ([]*desk.Conversation, error)

	// PutAutoReply inserts or replaces an automatic reply to be sent. Its key is the
	// contact and the message that it answers. AutoReply returns it, and DropAutoReply
	// deletes it.
	PutAutoReply(desk.AutoReplyJob) error
	AutoReply(contact, message desk.ID) (*desk.AutoReplyJob, error)
	DropAutoReply(contact, message desk.ID) error
}
