package store

import (
	"context"

	"parley/desk"
)

// Exports reads all records of a kind, page by page. A page has up to limit records that come
// after a place; more tells whether others follow. It also ends at the size of a
// desk.PageSize. No transaction stays open between two pages.
type Exports interface {
	// ContactsAfter returns contacts whose ids are greater than after, in order.
	ContactsAfter(ctx context.Context, ws, after desk.ID, limit int) (list []*desk.Contact, more bool, err error)

	// LastContact returns the greatest id of a contact; zero if there is none.
	LastContact(ctx context.Context, ws desk.ID) (desk.ID, error)

	// ConversationsAfter returns conversations whose ids are greater than after, in order.
	ConversationsAfter(ctx context.Context, ws, after desk.ID, limit int) (list []*desk.Conversation, more bool, err error)

	// MessagesAfter returns messages of all conversations with their contacts: by
	// conversation, and in it the oldest first.
	MessagesAfter(ctx context.Context, ws desk.ID, after MessageKey, limit int) (list []*desk.Message, more bool, err error)

	// NotesAfter returns notes whose ids are greater than after, in order, with their
	// contacts.
	NotesAfter(ctx context.Context, ws, after desk.ID, limit int) (list []*desk.Note, more bool, err error)

	// Erasures returns deleted contacts whose ids are greater than after, in order.
	Erasures(ctx context.Context, ws, after desk.ID, limit int) (list []desk.Erasure, more bool, err error)

	// AttemptsOf returns unsettled attempts to a contact or to its numbers whose ids are greater
	// than after, in order. They come without stored answers and profiles.
	AttemptsOf(ctx context.Context, ws, contact desk.ID, numbers []string, after desk.ID, limit int) (list []*desk.Attempt, more bool, err error)

	// RowsOf returns rows of broadcasts: those of a contact, and those that name only one of its
	// numbers. They come after a place, by broadcast and id.
	RowsOf(ctx context.Context, ws, contact desk.ID, numbers []string, after RowRef, limit int) (list []*desk.BroadcastRow, more bool, err error)

	// ResponsesOf returns responses of endpoints to events of a contact, by delivery and time.
	ResponsesOf(ctx context.Context, ws, contact desk.ID, after desk.EventResponse, limit int) ([]desk.EventResponse, error)

	// CallbacksOf returns the callbacks that name one of the people, oldest first.
	CallbacksOf(ctx context.Context, ws desk.ID, people []string, after desk.HeldCallback, limit int) ([]desk.HeldCallback, error)

	// CountOptOuts returns for how many handles an opt-out is stored.
	CountOptOuts(ctx context.Context, ws desk.ID) (int, error)
}

// A MessageKey is the place of a message among all.
type MessageKey struct {
	Conversation desk.ID
	desk.MessagePlace
}

// An ErasureTx stores which contacts were deleted. Flush stores those that a Book deletes.
type ErasureTx interface {
	// PutErasures stores erasures, each contact once. The earlier one of a contact stays.
	PutErasures([]desk.Erasure) error
}
