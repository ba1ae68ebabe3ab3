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

	// Conversations returns up to limit conversations that match the filter and come after
	// the given position (nil: from the start), newest first. It also returns the position
	// after which the list continues, nil at its end.
	Conversations(ctx context.Context, ws desk.ID, f desk.ConversationFilter, after *desk.ConversationPlace, limit int) ([]*desk.Conversation, *desk.ConversationPlace, error)

	// Windows returns the windows that exist for the given references: up to
	// desk.MaxLimit, all different.
	Windows(ctx context.Context, ws desk.ID, refs []desk.WindowRef) (map[desk.WindowRef]desk.Window, error)

	// CountConversations counts open conversations of a channel, or (zero) of all
	// channels: those assigned to the member, the unassigned ones, all, and those assigned
	// to the member in which a customer waits. Each count ends at desk.MaxCount. The
	// waiting ones, and for one channel also the first two counts, are counted only among
	// the first desk.MaxMemberLooked conversations, as in the console's lists.
	CountConversations(ctx context.Context, ws, member, channel desk.ID) (desk.ConversationCounts, error)

	// Workloads returns the workload of each member, and, under the zero id, of the
	// unassigned conversations. Only the desk.MaxMemberLooked longest waits are looked at.
	// If there are more, later is when the next one began: the waits of members without
	// one began at that time or after it.
	Workloads(ctx context.Context, ws desk.ID, members []desk.ID) (loads map[desk.ID]desk.Workload, later desk.Time, err error)

	// Messages returns up to limit messages of a conversation that come after the given
	// position (nil: from the start), newest first. It also returns the position after
	// which the list continues, nil at its end.
	Messages(ctx context.Context, ws, conversation desk.ID, after *desk.MessagePlace, limit int) ([]*desk.Message, *desk.MessagePlace, error)

	// Message returns a message of a conversation, or nil.
	Message(ctx context.Context, ws, conversation, id desk.ID) (*desk.Message, error)

	// Notes returns up to limit notes of a conversation with ids before the given one
	// (nil: from the newest), newest first by id. It also returns the id before which the
	// list continues, nil at its end.
	Notes(ctx context.Context, ws, conversation desk.ID, before *desk.ID, limit int) ([]*desk.Note, *desk.ID, error)

	// MessagesBy returns the messages that exist for the given references, in no order.
	// There are up to desk.MaxLimit references, all different.
	MessagesBy(ctx context.Context, ws desk.ID, refs []desk.MessageRef) ([]*desk.Message, error)

	// ForgetErased deletes up to limit hashes of deleted people's messages that are older
	// than age, by the database's clock. It returns how many it deleted.
	ForgetErased(ctx context.Context, ws desk.ID, age time.Duration, limit int) (int, error)
}

// A ConversationTx reads and writes conversations, messages and notes.
type ConversationTx interface {
	Conversation(id desk.ID) (*desk.Conversation, error)
	OpenConversation(channel, contact desk.ID) (*desk.Conversation, error)
	PutConversation(...*desk.Conversation) error

	// HeldConversations returns up to limit open conversations assigned to a member that
	// come after the given position (nil: from the start), newest first.
	HeldConversations(member desk.ID, after *desk.ConversationPlace, limit int) ([]*desk.Conversation, error)

	// NewestConversation returns the newest conversation with a contact on a channel.
	NewestConversation(channel, contact desk.ID) (*desk.Conversation, error)

	// Message finds a message in its conversation, MessageBy by the provider's id.
	Message(conversation, id desk.ID) (*desk.Message, error)
	MessageBy(channel desk.ID, externalID string) (*desk.Message, error)

	// ReceivedMessage is like MessageBy, and also tells whether the id belongs to a
	// message of a deleted person; then known is nil. AnyErased tells whether any of the
	// messages does. Both use the hashes that are kept when a contact is deleted (see
	// ForgetErased).
	ReceivedMessage(m desk.MessageRef) (known *desk.Message, erased bool, err error)
	AnyErased([]desk.MessageRef) (bool, error)
	PutMessage(*desk.Message) error

	// PutMessageDelivery stores the delivery status and the failure of a stored message.
	// Unlike PutMessage, it does not write the message's indexes.
	PutMessageDelivery(*desk.Message) error

	// PutNote stores a new note. DeleteNote deletes one, and tells whether it existed.
	PutNote(*desk.Note) error
	DeleteNote(conversation, id desk.ID) (bool, error)
	// NewestInbound returns the newest inbound message of a conversation that has an id of
	// the provider and does not come after the given position.
	NewestInbound(conversation desk.ID, upTo desk.MessagePlace) (*desk.Message, error)

	// MarkRead marks up to most unread messages of a conversation as read, newest first,
	// without those after the given position. It returns how many it marked.
	MarkRead(conversation desk.ID, upTo desk.MessagePlace, most int) (int, error)

	// Waiting computes desk.Talk's Answered and WaitingSince from a conversation's
	// messages.
	Waiting(conversation desk.ID) (answered desk.ID, since desk.Time, err error)

	// Window returns the window of a contact on a channel, the zero Window if there is
	// none.
	Window(channel, contact desk.ID) (desk.Window, error)
	PutWindow(channel, contact desk.ID, w desk.Window) error

	// NewestMessage returns the position of the newest message of a conversation between
	// two times (the second excluded), the zero position for none.
	NewestMessage(conversation desk.ID, from, before desk.Time) (desk.MessagePlace, error)
}
