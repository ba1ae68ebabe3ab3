package desk

import (
	"cmp"
	"strings"
)

// A ConversationStatus is the status of a conversation (spec, States).
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
	return "", InvalidAt("/status", "send open, closed or archived")
}

// An AssignedVia says how a conversation was assigned (contract §5).
type AssignedVia string

// The ways.
const (
	ViaMember AssignedVia = "member" // by a person or the API
	ViaOwner  AssignedVia = "owner"  // as the contact's owner
)

// A Conversation is the thread with one contact on one channel (spec, Conversation). A
// contact has at most one open conversation on a channel; the store ensures that.
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

// NewConversation opens a conversation with a contact, assigned to the contact's owner.
func NewConversation(id, channel ID, contact *Contact, now Time) Conversation {
	c := Conversation{ID: id, ChannelID: channel, ContactID: contact.ID, Status: StatusOpen, CreatedAt: now}
	if contact.Owner != nil {
		c.AssignedMember, c.AssignedVia = contact.Owner.ID, ViaOwner
	}
	return c
}

// Assign assigns the conversation to a member, even if another has it, and tells
// whether that changed anything.
func (c *Conversation) Assign(member ID) bool {
	if c.AssignedMember == member && c.AssignedVia == ViaMember {
		return false
	}
	c.AssignedMember, c.AssignedVia = member, ViaMember
	return true
}

// Unassign makes the conversation unassigned.
func (c *Conversation) Unassign() { c.AssignedMember, c.AssignedVia = ID{}, "" }

// Changes are the names of the fields that differ from an earlier state, sorted. The
// newest message is not one of them (contract-events §1).
func (c *Conversation) Changes(before *Conversation) []string {
	var changed fields
	changed.add("assigned_member_id", c.AssignedMember != before.AssignedMember)
	changed.add("assigned_via", c.AssignedVia != before.AssignedVia)
	changed.add("contact_id", c.ContactID != before.ContactID)
	changed.add("status", c.Status != before.Status)
	return changed
}

// Note uses a message for the conversation's preview, unless there is a newer one.
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

// A ConversationFilter narrows the list of conversations; its zero value matches all.
type ConversationFilter struct {
	Status     ConversationStatus // "": any
	Assignee   ID                 // zero: any
	Unassigned bool
	Channel    ID // zero: any
	Contact    ID // zero: any

	// Looked is how many conversations are looked at for one page, 0: MaxLooked. It does
	// not change which match.
	Looked int
}

// MostLooked is how many conversations are looked at for one page.
func (f ConversationFilter) MostLooked() int { return cmp.Or(f.Looked, MaxLooked) }

// MaxCount is where counts of conversations end.
const MaxCount = 100

// ConversationCounts are numbers of open conversations, each up to MaxCount.
type ConversationCounts struct{ Held, Unassigned, Open int }

// Passes tells whether a conversation matches the filter.
func (f ConversationFilter) Passes(c *Conversation) bool {
	return (f.Status == "" || c.Status == f.Status) && (f.Assignee.IsZero() || c.AssignedMember == f.Assignee) &&
		(!f.Unassigned || c.AssignedMember.IsZero()) && (f.Channel.IsZero() || c.ChannelID == f.Channel) && (f.Contact.IsZero() || c.ContactID == f.Contact)
}

// A ConversationPlace is the position of a conversation in lists: newest first, by last
// message, then creation, then id.
type ConversationPlace struct {
	LastMessageAt, CreatedAt Time
	ID                       ID
}

// Place is the conversation's position.
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

// A Delivery is the delivery status of an outbound message; "" for an inbound one.
type Delivery string

// The deliveries (contract §5).
const (
	Queued    Delivery = "queued"
	Sent      Delivery = "sent"
	Failed    Delivery = "failed"
	Delivered Delivery = "delivered"
	Read      Delivery = "read"
)

// reach orders the deliveries. A message only moves forward in this order: statuses
// come late, twice and in any order, and the result must not depend on that. A message
// that was delivered did not fail before, and can't fail afterwards (a person's other
// devices may refuse what one has shown).
var reach = map[Delivery]int{Queued: 1, Sent: 2, Failed: 3, Delivered: 4, Read: 5}

// A Failure says why a provider did not accept or deliver a message, and what to do.
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
	Failure        *Failure // the failure, even if the message was delivered afterwards
	TS             Time
	OptIn          *OptIn // of a template
	Template       string // NAME/LANGUAGE of an outbound message; "" if it has none, or is of an older release
	ContactID      ID     // of its conversation; only a Tx fills it in
}

// An OptIn is the caller's assertion that the person opted in: who made it, when, and in
// which request (spec, Message).
type OptIn struct {
	Key     ID // zero if a member made it
	At      Time
	Request ID
	Member  ID // zero if a key made it
}

// NewOptIn is the assertion of a key or a member.
func NewOptIn(by Actor, at Time, request ID) OptIn {
	o := OptIn{At: at, Request: request}
	switch by.Kind {
	case ByKey:
		o.Key = by.ID
	case ByMember:
		o.Member = by.ID
	}
	return o
}

// Actor is who made the assertion.
func (o OptIn) Actor() Actor {
	if !o.Member.IsZero() {
		return Actor{Kind: ByMember, ID: o.Member}
	}
	return Actor{Kind: ByKey, ID: o.Key}
}

// A MessageRef names a message by its id at the provider.
type MessageRef struct {
	Channel    ID
	ExternalID string
}

// Reach moves the message forward to a reported status, and returns the names of the
// fields that changed, sorted.
func (m *Message) Reach(d Delivery, f *Failure) []string {
	var changed fields
	if reach[d] > reach[m.Delivery] {
		m.Delivery = d
		changed.add("delivery_status", true)
	}
	if d == Failed && m.Failure == nil && f != nil {
		m.Failure = f
		changed.add("failure", true)
	}
	return changed
}

// InboundTime returns the time to store for an inbound message. Providers report
// seconds. If the conversation has a message of the same second already (newest, 0 for
// none), the result is one millisecond later than that, so the order of arrival is
// kept.
func InboundTime(at, newest Time) Time {
	_, end := at.Second()
	return min(max(at, newest+1), end-1)
}

// A MessagePlace is the position of a message in its conversation, newest first.
type MessagePlace struct {
	TS Time
	ID ID
}

// Place is the message's position.
func (m *Message) Place() MessagePlace { return MessagePlace{m.TS, m.ID} }
