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

	// Attempts returns up to limit attempts in a phase ("" for all) with ids before the
	// given one (nil: from the newest), newest first by id. It also returns the id before
	// which the list continues, nil at its end. The attempts come without stored answers
	// and profiles, because a list does not show them.
	Attempts(ctx context.Context, ws desk.ID, phase desk.Phase, before *desk.ID, limit int) ([]*desk.Attempt, *desk.ID, error)

	// OldestInDoubt returns up to limit attempts in doubt with ids after the given one, oldest
	// first by id.
	OldestInDoubt(ctx context.Context, ws, after desk.ID, limit int) ([]AttemptRef, error)

	// Lapsed returns up to limit attempts of all workspaces that are still dispatching
	// although their lease has ended. Times are by the database's clock. A lease has ended
	// if its end is more than margin milliseconds ago, or more than length and margin
	// ahead: then the clock was set back.
	Lapsed(ctx context.Context, length, margin desk.Time, limit int) ([]LapsedAttempt, error)

	// ForgetAttempts deletes up to limit attempts of a workspace that have been settled
	// for this many hours of the counter, and the keys that they still hold. It returns
	// how many attempts it deleted.
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

	// Untouched tells whether an attempt is still as it was when it took its key: being
	// sent, and not erased. This is much cheaper than reading the attempt.
	Untouched(id desk.ID) (bool, error)

	// AttemptsTo returns the attempts to a contact that are not settled.
	AttemptsTo(contact desk.ID) ([]*desk.Attempt, error)

	// PutAttempt stores an attempt. If the attempt is now settled, its hour of the counter
	// is stored too.
	PutAttempt(*desk.Attempt) error
}

// An AttemptRef identifies an attempt, and has the time when it was made.
type AttemptRef struct {
	ID        desk.ID
	CreatedAt desk.Time
}

// A LapsedAttempt is an attempt whose process must have died.
type LapsedAttempt struct{ Workspace, ID desk.ID }
