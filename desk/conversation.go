package desk

import (
	"strings"
)

// A ConversationStatus is where a conversation stands (spec, States).
type ConversationStatus string

// The statuses.
const (
	StatusOpen     ConversationStatus = "open"
	StatusClosed   ConversationStatus = "closed"
	StatusArchived ConversationStatus = "archived"
)

// ParseConversationStatus accepts one of the statuses.
func ParseConversationStatus(s string) (ConversationStatus, error) {
	switch status := ConversationStatus(s); status {
	case StatusOpen, StatusClosed, StatusArchived:
		return status, nil
	}
	return "", Invalidf("status: send open, closed or archived")
}

// An AssignedVia says how a conversation got its holder (contract §5).
type AssignedVia string

// The ways.
const (
	ViaMember AssignedVia = "member" // by a person or the API
	ViaOwner  AssignedVia = "owner"  // as the contact's owner
)

// A Conversation is the thread with one contact on one channel (spec, Conversation).
// A contact has at most one open conversation on a channel, which the store keeps.
type Conversation struct {
	ID             ID
	ChannelID      ID
	ContactID      ID
	Status         ConversationStatus
	AssignedMember ID          // zero when unassigned
	AssignedVia    AssignedVia // "" when unassigned
	Preview        string      // of the newest message
	LastMessageAt  Time
	CreatedAt      Time
}

// NewConversation opens a conversation with a contact, held by the contact's owner.
func NewConversation(id, channel ID, contact *Contact, now Time) Conversation {
	c := Conversation{ID: id, ChannelID: channel, ContactID: contact.ID, Status: StatusOpen, CreatedAt: now}
	if contact.Owner != nil {
		c.AssignedMember, c.AssignedVia = contact.Owner.ID, ViaOwner
	}
	return c
}

// Assign gives the conversation to a member, even if another holds it, and tells
// whether that changed anything.
func (c *Conversation) Assign(member ID) bool {
	if c.AssignedMember == member && c.AssignedVia == ViaMember {
		return false
	}
	c.AssignedMember, c.AssignedVia = member, ViaMember
	return true
}

// Unassign returns the conversation to the pool.
func (c *Conversation) Unassign() { c.AssignedMember, c.AssignedVia = ID{}, "" }

// Note takes a message into the conversation's preview, unless a newer one is there.
func (c *Conversation) Note(m *Message) {
	if m.TS >= c.LastMessageAt {
		c.LastMessageAt, c.Preview = m.TS, Preview(m.Text)
	}
}

// MaxPreview is how many characters a preview has at most (contract §5).
const MaxPreview = 140

// Preview is the beginning of a text on one line: each run of white space is one
// space.
func Preview(text string) string {
	var b strings.Builder
	n := 0
	for word := range strings.FieldsSeq(text) {
		if n > 0 {
			word = " " + word
		}
		for _, r := range word {
			if n == MaxPreview {
				return strings.TrimRight(b.String(), " ")
			}
			b.WriteRune(r)
			n++
		}
	}
	return b.String()
}

// A ConversationFilter narrows the list of conversations; its zero value lets all
// through.
type ConversationFilter struct {
	Status     ConversationStatus // "": any
	Assignee   ID                 // zero: any
	Unassigned bool
	Channel    ID // zero: any
	Contact    ID // zero: any
}

// A ConversationPlace is where a conversation stands in the lists: newest first, by
// last message, then creation, then id.
type ConversationPlace struct {
	LastMessageAt, CreatedAt Time
	ID                       ID
}

// Place is the conversation's own.
func (c *Conversation) Place() ConversationPlace {
	return ConversationPlace{c.LastMessageAt, c.CreatedAt, c.ID}
}

// NoConversation is the answer for an id that no conversation of the workspace has.
func NoConversation() *Error { return NotFoundf("no conversation in this workspace has this id") }

// A Direction tells who wrote a message.
type Direction string

// The directions.
const (
	Inbound  Direction = "inbound"
	Outbound Direction = "outbound"
)

// A Delivery is how far an outbound message came; "" of an inbound one.
type Delivery string

// The deliveries (contract §5).
const (
	Queued    Delivery = "queued"
	Sent      Delivery = "sent"
	Failed    Delivery = "failed"
	Delivered Delivery = "delivered"
	Read      Delivery = "read"
)

// reach orders the deliveries. A message only ever moves to one that reaches
// further: statuses come late, twice and in any order, and the end must not depend
// on it. One that was delivered after all did not fail, nor does it fail afterwards
// (a person's other devices may refuse what one has shown).
var reach = map[Delivery]int{Queued: 1, Sent: 2, Failed: 3, Delivered: 4, Read: 5}

// A Failure says why a provider did not take or deliver a message, and what to do.
type Failure struct {
	Code       int // the provider's
	Title, Fix string
}

// A Message is one bubble of a conversation (spec, Message).
type Message struct {
	ID             ID
	ConversationID ID
	ChannelID      ID
	Direction      Direction
	ExternalID     string // the provider's id; "" when it is not known
	Text           string
	Delivery       Delivery
	Failure        *Failure // what failed, even if the message was delivered after all
	TS             Time
	OptIn          *OptIn // of a template
}

// An OptIn is the caller's assertion that the person opted in: who made it, when,
// and with which request (spec, Message).
type OptIn struct {
	Key     ID
	At      Time
	Request ID
}

// Reach moves the message forward to a status that the provider reports, and tells
// whether anything changed.
func (m *Message) Reach(d Delivery, f *Failure) (changed bool) {
	if reach[d] > reach[m.Delivery] {
		m.Delivery, changed = d, true
	}
	if d == Failed && m.Failure == nil && f != nil {
		m.Failure, changed = f, true
	}
	return changed
}

// A MessagePlace is where a message stands in its conversation, newest first.
type MessagePlace struct {
	TS Time
	ID ID
}

// Place is the message's own.
func (m *Message) Place() MessagePlace { return MessagePlace{m.TS, m.ID} }

// The events of conversations and messages.
const (
	ConversationCreated EventKind = "conversation.created"
	ConversationUpdated EventKind = "conversation.updated"
	MessageCreated      EventKind = "message.created"
	MessageUpdated      EventKind = "message.updated"
)
