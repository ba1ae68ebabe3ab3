package store

import (
	"context"

	"parley/desk"
)

// Attempts keeps attempts and the idempotency keys that they hold.
type Attempts interface {
	// AttemptOfKey returns the attempt that holds an Idempotency-Key, or nil.
	AttemptOfKey(ctx context.Context, ws desk.ID, key string) (*desk.Attempt, error)

	// Attempt returns an attempt, or nil.
	Attempt(ctx context.Context, ws, id desk.ID) (*desk.Attempt, error)

	// Attempts returns a page of attempts in a phase ("": in any phase), newest first by
	// id: up to limit attempts whose ids are smaller than before (nil: the page begins with
	// the newest). It also returns the value of before for the next page, nil if this page
	// is the last. The attempts come without stored answers and profiles, because a list
	// does not show them.
	Attempts(ctx context.Context, ws desk.ID, phase desk.Phase, before *desk.ID, limit int) ([]*desk.Attempt, *desk.ID, error)

	// BroadcastAttempts is like Attempts, for the attempts of a broadcast in any phase.
	BroadcastAttempts(ctx context.Context, ws, broadcast desk.ID, before *desk.ID, limit int) ([]*desk.Attempt, *desk.ID, error)

	// OldestInDoubt returns up to limit attempts in doubt, oldest first by id. Their ids
	// are greater than the given one.
	OldestInDoubt(ctx context.Context, ws, after desk.ID, limit int) ([]AttemptRef, error)

	// Lapsed returns up to limit attempts of all workspaces that are still dispatching
	// although their lease has ended. Times are by the database's clock. A lease has ended
	// if its end is more than margin milliseconds ago. A lease whose end is further ahead
	// than length and margin together has ended too: such a lease means that the clock was
	// set back.
	Lapsed(ctx context.Context, length, margin desk.Time, limit int) ([]LapsedAttempt, error)

	// ForgetAttempts deletes up to limit attempts of a workspace that were settled at least
	// this many hours ago, by the counter of hours (see Clock). It also deletes the keys
	// that these attempts still hold. It returns the number of deleted attempts.
	ForgetAttempts(ctx context.Context, ws desk.ID, hours int64, limit int) (int, error)
}

// An AttemptTx reads and writes attempts and their idempotency keys.
type AttemptTx interface {
	// AttemptOfKey returns the attempt that holds a key. TakeKey makes an attempt the
	// key's holder, and FreeKey frees the key.
	AttemptOfKey(key string) (*desk.Attempt, error)
	TakeKey(key string, attempt desk.ID) error
	FreeKey(key string) error
	Attempt(id desk.ID) (*desk.Attempt, error)

	// Untouched tells whether an attempt has not changed since it took its key: it is still
	// being sent, and it is not erased. This is much cheaper than reading the attempt.
	Untouched(id desk.ID) (bool, error)

	// AttemptsTo returns the unsettled attempts to a contact.
	AttemptsTo(contact desk.ID) ([]*desk.Attempt, error)

	// PutAttempt stores an attempt. When an attempt becomes settled, PutAttempt also stores
	// the current hour of the counter.
	PutAttempt(*desk.Attempt) error
}

// An AttemptRef identifies an attempt, and has the time when it was made.
type AttemptRef struct {
	ID        desk.ID
	CreatedAt desk.Time
}

// A LapsedAttempt is an attempt whose process must have died.
type LapsedAttempt struct{ Workspace, ID desk.ID }
