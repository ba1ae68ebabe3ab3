package store

import (
	"context"
	"time"

	"parley/desk"
)

// Policy finds what the reply policy left for later.
type Policy interface {
	// AutoRepliesDue returns the workspaces with automatic replies to send, and how long to
	// wait until the first of each is due by the database's clock; 0: it is due. One that is
	// due later than longest from now is due now: the clock was set back.
	AutoRepliesDue(ctx context.Context, longest time.Duration) (map[desk.ID]time.Duration, error)

	// TakeAutoReply gives the job of a workspace that has been due for the longest time to
	// the caller until a lease of this length ends. It returns nil if none is due.
	TakeAutoReply(ctx context.Context, ws desk.ID, lease, longest time.Duration) (*desk.AutoReplyJob, error)

	// Pools returns the workspaces that have a reply policy, and open conversations that
	// wait and that nobody holds. It is one statement over all workspaces.
	Pools(ctx context.Context) ([]Pool, error)
}

// A Pool is a workspace in which somebody waits whom nobody has. Whatever may make somebody
// eligible, but the time, changes one of the numbers.
type Pool struct {
	Workspace desk.ID
	Settings  int64 // their version
	Event     int64 // the number of the newest
}

// A PolicyTx reads and writes what the reply policy needs.
type PolicyTx interface {
	// LockAssignment makes the transaction the only one that assigns by policy in the
	// workspace, until it ends.
	LockAssignment() error

	// Loads returns what a choice knows of members, after LockAssignment: how many open
	// conversations each holds, up to most, and the number of the last choice of them by
	// the policy of a channel, or (zero) the workspace's. PutTurn gives a member the next
	// number.
	Loads(policy desk.ID, members []desk.ID, most int) (map[desk.ID]desk.Load, error)
	PutTurn(policy, member desk.ID) error

	// Pool returns up to limit open conversations of a channel that wait and that nobody
	// holds, longest wait first.
	Pool(channel desk.ID, limit int) ([]*desk.Conversation, error)

	// PutAutoReply inserts or replaces an automatic reply to be sent, by the contact and the
	// message that it answers. AutoReply returns it, and DropAutoReply deletes it.
	PutAutoReply(desk.AutoReplyJob) error
	AutoReply(contact, message desk.ID) (*desk.AutoReplyJob, error)
	DropAutoReply(contact, message desk.ID) error
}
