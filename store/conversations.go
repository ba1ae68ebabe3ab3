package store

import (
	"context"
	"time"

	"parley/desk"
)

// Conversations keeps conversations, their messages and notes.
type Conversations interface {
	// Conversation returns a conversation, or nil.
	Conversation(ctx context.Context, ws, id desk.ID) (*desk.Conversation, error)

	// Conversations returns a page of the conversations that match the filter, newest
	// first: up to limit conversations that come after the given position in this order
	// (nil: the page begins with the newest). It also returns the position at which the
	// next page begins, nil if this page is the last.
	Conversations(ctx context.Context, ws desk.ID, f desk.ConversationFilter, after *desk.ConversationPlace, limit int) ([]*desk.Conversation, *desk.ConversationPlace, error)

	// Windows returns the windows that exist for the given references. There are up to
	// desk.MaxLimit references, all different.
	Windows(ctx context.Context, ws desk.ID, refs []desk.WindowRef) (map[desk.WindowRef]desk.Window, error)

	// WroteAt returns when each of the contacts wrote the newest of their messages, on any
	// channel. Contacts who never wrote are left out.
	WroteAt(ctx context.Context, ws desk.ID, contacts []desk.ID) (map[desk.ID]desk.Time, error)

	// CountConversations returns four counts of the open conversations of a channel (zero:
	// of all channels): those that are assigned to the member, those that are unassigned,
	// all, and those that are assigned to the member while a customer waits. Each count
	// ends at desk.MaxCount. The last count looks only at the first desk.MaxMemberLooked
	// conversations, as the console's lists do. For a single channel, so do the first two
	// counts.
	CountConversations(ctx context.Context, ws, member, channel desk.ID) (desk.ConversationCounts, error)

	// Workloads returns the workload of each member. Under the zero id, it returns that of
	// the unassigned conversations. It looks only at the desk.MaxMemberLooked longest
	// waits. If there are more waits, later is the time at which the next wait began. Then
	// a member without a wait in the result may have one that began at that time or after
	// it.
	Workloads(ctx context.Context, ws desk.ID, members []desk.ID) (loads map[desk.ID]desk.Workload, later desk.Time, err error)

	// Messages returns a page of the messages of a conversation, newest first: up to limit
	// messages that come after the given position in this order (nil: the page begins with
	// the newest). It also returns the position at which the next page begins, nil if this
	// page is the last.
	Messages(ctx context.Context, ws, conversation desk.ID, after *desk.MessagePlace, limit int) ([]*desk.Message, *desk.MessagePlace, error)

	// Message returns a message of a conversation, or nil.
	Message(ctx context.Context, ws, conversation, id desk.ID) (*desk.Message, error)

	// Notes returns a page of the notes of a conversation, newest first by id: up to limit
	// notes whose ids are smaller than before (nil: the page begins with the newest). It
	// also returns the value of before for the next page, nil if this page is the last.
	Notes(ctx context.Context, ws, conversation desk.ID, before *desk.ID, limit int) ([]*desk.Note, *desk.ID, error)

	// MessagesBy returns the messages that exist for the given references, in no order.
	// There are up to desk.MaxLimit references, all different.
	MessagesBy(ctx context.Context, ws desk.ID, refs []desk.MessageRef) ([]*desk.Message, error)

	// OldMessages returns up to limit messages that are older than a time, oldest first.
	// OldNotes does the same for notes.
	OldMessages(ctx context.Context, ws desk.ID, before desk.Time, limit int) ([]*desk.Message, error)
	OldNotes(ctx context.Context, ws desk.ID, before desk.Time, limit int) ([]*desk.Note, error)

	// OldConversations returns up to limit conversations with a status whose last message is
	// older than a time, oldest first. They come after the given position in this order.
	OldConversations(ctx context.Context, ws desk.ID, status desk.ConversationStatus, before desk.Time, after desk.ConversationPlace, limit int) ([]*desk.Conversation, error)

	// ForgetErased deletes up to limit hashes of messages that were deleted. It deletes
	// hashes that are older than age, by the database's clock, and returns their number.
	ForgetErased(ctx context.Context, ws desk.ID, age time.Duration, limit int) (int, error)
}

// A ConversationTx reads and writes conversations, messages and notes.
type ConversationTx interface {
	Conversation(id desk.ID) (*desk.Conversation, error)
	OpenConversation(channel, contact desk.ID) (*desk.Conversation, error)
	PutConversation(...*desk.Conversation) error

	// HeldConversations returns up to limit open conversations that are assigned to a
	// member, newest first. They come after the given position in this order (nil: from the
	// newest on).
	HeldConversations(member desk.ID, after *desk.ConversationPlace, limit int) ([]*desk.Conversation, error)

	// NewestConversation returns the newest conversation with a contact on a channel.
	NewestConversation(channel, contact desk.ID) (*desk.Conversation, error)

	// DormantConversation returns the newest dormant conversation with a contact on a channel.
	DormantConversation(channel, contact desk.ID) (*desk.Conversation, error)

	// Message finds a message by its conversation and its id. MessageBy finds a message by
	// the provider's id.
	Message(conversation, id desk.ID) (*desk.Message, error)
	MessageBy(channel desk.ID, externalID string) (*desk.Message, error)

	// ReceivedMessage is like MessageBy, and also tells whether the id belongs to a deleted
	// message; then known is nil. AnyErased tells whether any of the ids belongs to a deleted
	// message. Both use the hashes that are kept when a contact is deleted, and by
	// DropMessages (see ForgetErased).
	ReceivedMessage(m desk.MessageRef) (known *desk.Message, erased bool, err error)
	AnyErased([]desk.MessageRef) (bool, error)
	PutMessage(*desk.Message) error

	// PutMessageDelivery stores the delivery status and the failure of a stored message.
	// Unlike PutMessage, it does not write the message's indexes.
	PutMessageDelivery(*desk.Message) error

	// DropMessages deletes messages, which may be of several conversations. The rows of
	// broadcasts that sent them no longer name them. DropEmpty deletes a conversation if it has
	// no message and no note, and tells whether it did; the conversation must have been read in
	// this transaction.
	DropMessages([]*desk.Message) error
	DropEmpty(conversation desk.ID) (bool, error)

	// PutNote stores a new note. DeleteNote deletes a note, and tells whether the note
	// existed.
	PutNote(*desk.Note) error
	DeleteNote(conversation, id desk.ID) (bool, error)
	// NewestInbound returns the newest inbound message of a conversation that has an id of
	// the provider. It ignores messages after the given position.
	NewestInbound(conversation desk.ID, upTo desk.MessagePlace) (*desk.Message, error)

	// MarkRead marks unread messages of a conversation as read, newest first. It does not
	// mark messages after the given position, nor more than the given number. It returns
	// how many it marked.
	MarkRead(conversation desk.ID, upTo desk.MessagePlace, most int) (int, error)

	// CountUnread counts the unread messages of a conversation after a position.
	CountUnread(conversation desk.ID, after desk.MessagePlace) (int, error)

	// Waiting computes desk.Talk's Answered and WaitingSince from a conversation's
	// messages.
	Waiting(conversation desk.ID) (answered desk.ID, since desk.Time, err error)

	// Window returns the window of a contact on a channel, or the zero Window if there is
	// none.
	Window(channel, contact desk.ID) (desk.Window, error)
	PutWindow(channel, contact desk.ID, w desk.Window) error

	// NewestMessage returns the position of the newest message of a conversation between
	// two times (the second excluded), or the zero position if there is none.
	NewestMessage(conversation desk.ID, from, before desk.Time) (desk.MessagePlace, error)
}
