package store

import (
	"context"
	"time"

	"parley/desk"
)

// Policy finds the work that the reply policy has left for later.
type Policy interface {
	// AutoRepliesDue returns the workspaces with automatic replies to send, and how long to
	// wait until the first reply of each is due by the database's clock (0: it is due). If
	// a reply's due time is further ahead than longest, the clock was set back. Such a
	// reply is due now.
	AutoRepliesDue(ctx context.Context, longest time.Duration) (map[desk.ID]time.Duration, error)

	// TakeAutoReply gives the caller the job of a workspace that has been due for the
	// longest time. The caller has the job until its lease ends. TakeAutoReply returns nil
	// if no job is due.
	TakeAutoReply(ctx context.Context, ws desk.ID, lease, longest time.Duration) (*desk.AutoReplyJob, error)

	// Pools returns those of the workspaces that have a reply policy and in which open,
	// unassigned conversations wait; nil asks for all workspaces.
	Pools(ctx context.Context, of []desk.ID) ([]Pool, error)
}

// A Pool is a workspace in which an unassigned conversation waits. Whatever may make
// another member eligible also changes one of the numbers. The only exception is that
// time passes.
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

	// Loads returns the load of each member, so that one of them can be chosen after
	// LockAssignment. A load has the number of open conversations that the member holds,
	// counted up to most. It also has the number of the last choice in which the policy of
	// a channel (zero: of the workspace) chose this member. PutTurn gives a member the next
	// number.
	Loads(policy desk.ID, members []desk.ID, most int) (map[desk.ID]desk.Load, error)
	PutTurn(policy, member desk.ID) error

	// Pool returns up to limit open, unassigned conversations of a channel in which a
	// customer waits, longest wait first.
	Pool(channel desk.ID, limit int) ([]*desk.Conversation, error)

	// PutAutoReply inserts or replaces an automatic reply that is to be sent. The contact,
	// and the message that the reply answers, identify the reply. AutoReply returns it, and
	// DropAutoReply deletes it.
	PutAutoReply(desk.AutoReplyJob) error
	AutoReply(contact, message desk.ID) (*desk.AutoReplyJob, error)
	DropAutoReply(contact, message desk.ID) error
}
