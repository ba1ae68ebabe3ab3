package store

import (
	"context"

	"parley/desk"
)

// OptOuts keeps opt-outs.
type OptOuts interface {
	// Choices returns the newest marketing choices of the numbers' holders. It leaves out
	// numbers for which none is stored.
	Choices(ctx context.Context, ws desk.ID, numbers []NumberHash) (map[NumberHash]OptOut, error)
}

// An OptOutTx reads and writes marketing choices.
type OptOutTx interface {
	// OptOut returns a number's newest marketing choice. SetOptOut stores a choice.
	OptOut(NumberHash) (OptOut, error)
	SetOptOut(NumberHash, OptOut) error
}

// A NumberHash is a keyed hash of a phone number. It may be kept longer than the
// contact, because the number can't be computed from it.
type NumberHash [32]byte

// An OptOut is the newest marketing choice of a number's holder.
type OptOut struct {
	Since desk.Time // 0: not opted out
	At    desk.Time // when the choice was made
}
