package store

import (
	"context"

	"parley/desk"
)

// Merges keeps which contacts were merged into others.
type Merges interface {
	// MergesByID returns the merges that exist for these ids, in no order.
	MergesByID(ctx context.Context, ws desk.ID, ids []desk.ID) ([]*desk.Merge, error)

	// Merges returns a page of merges without Undo, newest first by id: up to limit merges
	// whose ids are smaller than before (nil: the page begins with the newest). If a contact
	// is given, they are the merges into it, of it, and of all contacts that are part of it.
	// Merges also returns the value of before for the next page, nil if this page is the last.
	Merges(ctx context.Context, ws, contact desk.ID, before *desk.ID, limit int) ([]*desk.Merge, *desk.ID, error)

	// Merged tells, for each of the ids that is of a merged contact, where it is now.
	Merged(ctx context.Context, ws desk.ID, ids []desk.ID) (map[desk.ID]desk.Merged, error)

	// MergedInto returns the ids of all contacts that are part of a contact.
	MergedInto(ctx context.Context, ws, contact desk.ID) ([]desk.ID, error)

	// CountParts returns how many conversations and files a contact has, each up to most.
	CountParts(ctx context.Context, ws, contact desk.ID, most int) (conversations, files int, err error)

	// CountConversationsOf returns how many of the conversations are a contact's.
	CountConversationsOf(ctx context.Context, ws, contact desk.ID, conversations []desk.ID) (int, error)

	// ForgetMerges takes the values of contacts from up to limit merges that were made before
	// a moment, and deletes those that were undone before it. It returns their number.
	ForgetMerges(ctx context.Context, ws desk.ID, before desk.Time, limit int) (int, error)
}

// A MergeTx merges contacts, and undoes merges. Its caller has locked the contacts, by
// loading them.
type MergeTx interface {
	// Merge returns a merge, or nil.
	Merge(id desk.ID) (*desk.Merge, error)

	// MergeOf returns the merge by which a contact became part of another one, or nil.
	MergeOf(from desk.ID) (*desk.Merge, error)

	// NewestMerge returns the id of the newest merge in force into a contact or of it; zero if
	// there is none.
	NewestMerge(contact desk.ID) (desk.ID, error)

	// PutMerge stores a merge. A stored merge keeps who was merged, and when. With an undone one,
	// it takes the values from the records of later merges of the contact, which are undone too,
	// and deletes the responses of endpoints since the merge: they may have values of the contact
	// that is separate again.
	PutMerge(*desk.Merge) error

	// Parts returns the conversations of a contact, in the order of ids, and the number of its
	// files, each up to most.
	Parts(contact desk.ID, most int) (conversations []Part, files int, err error)

	// MoveContact makes everything of a contact another one's: conversations, files, the jobs
	// of both, attempts that sent nothing, and the merges into it, whose ids it returns. The
	// caller moves the windows and the unsettled attempts.
	MoveContact(from, into desk.ID) (merges []desk.ID, err error)

	// MoveConversations makes those of the conversations that are a contact's another one's,
	// with the files in them that the person sent, their jobs and the replies in them that were
	// not sent. It also moves templates that were not sent to these numbers, and these merges. It
	// returns the conversations that it moved.
	MoveConversations(from, into desk.ID, conversations []desk.ID, numbers []string, merges []desk.ID) (moved []desk.ID, err error)

	// WindowsOf returns the windows of a contact by channel.
	WindowsOf(contact desk.ID) (map[desk.ID]desk.Window, error)
	DropWindow(channel, contact desk.ID) error

	// HeardSince returns the time of the newest message that a contact has written on a
	// channel after a time; 0 if there is none.
	HeardSince(channel, contact desk.ID, after desk.Time) (desk.Time, error)
}

// A Part is a conversation of a contact that is being merged.
type Part struct {
	ID      desk.ID
	Channel desk.ID
	Open    bool
}
