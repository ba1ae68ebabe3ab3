package store

import (
	"context"

	"parley/desk"
)

// Attempts keeps attempts and the keys that they hold.
type Attempts interface {
	// AttemptOfKey returns the attempt that holds an Idempotency-Key, or nil.
	AttemptOfKey(ctx context.Context, ws desk.ID, key string) (*desk.Attempt, error)

	// Attempt returns an attempt, or nil.
	Attempt(ctx context.Context, ws, id desk.ID) (*desk.Attempt, error)

	// Attempts returns up to limit attempts in a phase, "" for all, with ids before the given
	// one (nil: from the newest), newest first by id, and the id before which the list
	// continues, nil at its end. They lack what a list does not show: stored answers and
	// profiles.
	Attempts(ctx context.Context, ws desk.ID, phase desk.Phase, before *desk.ID, limit int) ([]*desk.Attempt, *desk.ID, error)

	// OldestInDoubt returns up to limit attempts in doubt with ids after the given one, oldest
	// first by id.
	OldestInDoubt(ctx context.Context, ws, after desk.ID, limit int) ([]AttemptRef, error)

	// Lapsed returns up to limit attempts of all workspaces that are still dispatching
	// although their lease has ended: more than margin milliseconds ago by the
	// database's clock, or it ends more than margin later than a lease of this length
	// that is given now.
	Lapsed(ctx context.Context, length, margin desk.Time, limit int) ([]LapsedAttempt, error)

	// ForgetAttempts deletes up to limit attempts of a workspace that have been settled
	// for this many hours of the counter, with the keys that they still hold, and
	// returns how many.
	ForgetAttempts(ctx context.Context, ws desk.ID, hours int64, limit int) (int, error)
}

// An AttemptTx reads and writes attempts and the keys that they hold.
type AttemptTx interface {
	// AttemptOfKey returns the attempt that holds a key. TakeKey makes an attempt the
	// key's holder, and FreeKey frees the key.
	AttemptOfKey(key string) (*desk.Attempt, error)
	TakeKey(key string, attempt desk.ID) error
	FreeKey(key string) error
	Attempt(id desk.ID) (*desk.Attempt, error)

	// Untouched tells whether an attempt is still as when it took its key: being sent, and not
	// erased. To read this is much cheaper than to read the attempt.
	Untouched(id desk.ID) (bool, error)

	// AttemptsTo returns the attempts to a contact that are not settled.
	AttemptsTo(contact desk.ID) ([]*desk.Attempt, error)

	// PutAttempt stores the hour of the counter in which the attempt was settled, if it
	// now is.
	PutAttempt(*desk.Attempt) error
}

// An AttemptRef identifies an attempt, and says when it was made.
type AttemptRef struct {
	ID        desk.ID
	CreatedAt desk.Time
}

// A LapsedAttempt is an attempt whose process must have died.
type LapsedAttempt struct{ Workspace, ID desk.ID }
