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

	// Conversations returns up to limit conversations that match the filter and come
	// after the given position (nil: from the start), newest first, and the position
	// after which the list continues, nil at its end.
	Conversations(ctx context.Context, ws desk.ID, f desk.ConversationFilter, after *desk.ConversationPlace, limit int) ([]*desk.Conversation, *desk.ConversationPlace, error)

	// Windows returns the windows that exist. There are up to desk.MaxLimit references, all
	// different.
	Windows(ctx context.Context, ws desk.ID, refs []desk.WindowRef) (map[desk.WindowRef]desk.Window, error)

	// CountConversations counts open conversations, of a channel or (zero) of all: those
	// that the member holds, the unassigned ones, all, and those that the member holds and
	// in which somebody waits. Each count ends at desk.MaxCount. The last, and the first two
	// of a channel, are counted among as many as the lists of the console look at for a page.
	CountConversations(ctx context.Context, ws, member, channel desk.ID) (desk.ConversationCounts, error)

	// Workloads returns what each of the members holds, and, under the zero id, what nobody
	// does. For the waits it looks at the desk.MaxMemberLooked longest ones. If there are
	// more, it returns when the last of these began: those of members without one began
	// later.
	Workloads(ctx context.Context, ws desk.ID, members []desk.ID) (loads map[desk.ID]desk.Workload, later desk.Time, err error)

	// Messages returns up to limit messages of a conversation that come after the given
	// position (nil: from the start), newest first, and the position after which the
	// list continues, nil at its end.
	Messages(ctx context.Context, ws, conversation desk.ID, after *desk.MessagePlace, limit int) ([]*desk.Message, *desk.MessagePlace, error)

	// Message returns a message of a conversation, or nil.
	Message(ctx context.Context, ws, conversation, id desk.ID) (*desk.Message, error)

	// Notes returns up to limit notes of a conversation with ids before the given one (nil:
	// from the newest), newest first by id, and the id before which the list continues, nil
	// at its end.
	Notes(ctx context.Context, ws, conversation desk.ID, before *desk.ID, limit int) ([]*desk.Note, *desk.ID, error)

	// MessagesBy returns those of the messages that exist, in no order. There are up to
	// desk.MaxLimit references, all different.
	MessagesBy(ctx context.Context, ws desk.ID, refs []desk.MessageRef) ([]*desk.Message, error)

	// ForgetErased deletes up to limit hashes of messages of deleted people that have been
	// kept for longer than age, by the database's clock. It returns how many.
	ForgetErased(ctx context.Context, ws desk.ID, age time.Duration, limit int) (int, error)
}

// A ConversationTx reads and writes conversations, messages and notes.
type ConversationTx interface {
	Conversation(id desk.ID) (*desk.Conversation, error)
	OpenConversation(channel, contact desk.ID) (*desk.Conversation, error)
	PutConversation(...*desk.Conversation) error

	// HeldConversations returns up to limit open conversations that a member holds and
	// that come after the given position (nil: from the start), newest first.
	HeldConversations(member desk.ID, after *desk.ConversationPlace, limit int) ([]*desk.Conversation, error)

	// NewestConversation returns the newest conversation with a contact on a channel.
	NewestConversation(channel, contact desk.ID) (*desk.Conversation, error)

	// Message finds a message in its conversation, MessageBy by the provider's id.
	Message(conversation, id desk.ID) (*desk.Message, error)
	MessageBy(channel desk.ID, externalID string) (*desk.Message, error)

	// ReceivedMessage is MessageBy, and tells whether a message with this id was one of a
	// deleted person; then there is none. AnyErased tells whether any of the messages was.
	// Deleting a contact keeps hashes of the messages for that, see ForgetErased.
	ReceivedMessage(m desk.MessageRef) (known *desk.Message, erased bool, err error)
	AnyErased([]desk.MessageRef) (bool, error)
	PutMessage(*desk.Message) error

	// PutMessageDelivery stores how far a message is that is stored already: its delivery and its
	// failure. PutMessage would write its indexes too.
	PutMessageDelivery(*desk.Message) error

	// PutNote stores a new note. DeleteNote deletes one, and tells whether it existed.
	PutNote(*desk.Note) error
	DeleteNote(conversation, id desk.ID) (bool, error)
	// NewestInbound returns the newest inbound message of a conversation that is not after a
	// position and whose id at the provider is known.
	NewestInbound(conversation desk.ID, upTo desk.MessagePlace) (*desk.Message, error)

	// MarkRead marks those unread messages of a conversation as read that are not after a
	// position: up to most, the newest first. It returns how many.
	MarkRead(conversation desk.ID, upTo desk.MessagePlace, most int) (int, error)

	// Waiting finds by a conversation's messages what desk.Talk has as Answered and as
	// WaitingSince.
	Waiting(conversation desk.ID) (answered desk.ID, since desk.Time, err error)

	// Window returns the window of a contact on a channel, the zero Window if there is
	// none.
	Window(channel, contact desk.ID) (desk.Window, error)
	PutWindow(channel, contact desk.ID, w desk.Window) error

	// NewestMessage returns the position of the newest message of a conversation between
	// two times (the second excluded), the zero position for none.
	NewestMessage(conversation desk.ID, from, before desk.Time) (desk.MessagePlace, error)
}
