package store

import (
	"context"

	"parley/desk"
)

// Conflicts keeps conflicts between contacts.
type Conflicts interface {
	// ConflictsByID returns the conflicts that exist for these ids, in no order.
	ConflictsByID(ctx context.Context, ws desk.ID, ids []desk.ID) ([]*desk.Conflict, error)

	// Conflicts returns a page of the conflicts with a status, the newest refusal first: up to
	// limit conflicts after a place in this order (nil: from the newest on). It also returns
	// the place at which the next page begins, nil if this page is the last.
	Conflicts(ctx context.Context, ws desk.ID, status desk.ConflictStatus, after *ConflictPlace, limit int) ([]*desk.Conflict, *ConflictPlace, error)

	// ConflictsOf returns up to limit conflicts of a contact, and of the contacts that are part of
	// it, whose ids are greater than after, in the order of ids.
	ConflictsOf(ctx context.Context, ws, contact, after desk.ID, limit int) ([]*desk.Conflict, error)

	// ContactNames returns the names of those of the contacts that exist.
	ContactNames(ctx context.Context, ws desk.ID, ids []desk.ID) (map[desk.ID]string, error)

	// ForgetConflicts deletes up to limit conflicts without a refusal since a moment, and
	// returns their number.
	ForgetConflicts(ctx context.Context, ws desk.ID, before desk.Time, limit int) (int, error)
}

// A ConflictPlace is the position of a conflict in the list.
type ConflictPlace struct {
	LastAt desk.Time
	ID     desk.ID
}

// A ConflictTx reads and writes conflicts. Whoever changes one has locked its contacts.
type ConflictTx interface {
	// Conflict returns a conflict, or nil.
	Conflict(id desk.ID) (*desk.Conflict, error)

	// ConflictOf returns the conflict of a set of contacts (desk.Conflict.Key), or nil.
	ConflictOf(key [32]byte) (*desk.Conflict, error)

	// ConflictsWith returns all conflicts of a contact, in the order of ids.
	ConflictsWith(contact desk.ID) ([]*desk.Conflict, error)

	PutConflict(*desk.Conflict) error
	DropConflict(id desk.ID) error

	// TrimConflicts keeps the conflicts with the newest refusals, and deletes the others.
	TrimConflicts(keep int) error
}
