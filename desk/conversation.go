package desk

import (
	"bytes"
	"cmp"
	"math"
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

// The ways of assigning.
const (
	ViaMember AssignedVia = "member" // by a person or the API
	ViaOwner  AssignedVia = "owner"  // as the contact's owner
	ViaRule   AssignedVia = "rule"   // by the reply policy
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
	Dormant        bool // a broadcast made it, and its status has not changed since
	Talk           Talk
}

// A Talk summarises the messages of a conversation: how many are unread, and since when
// the person waits. It is stored with the conversation, and always agrees with its
// messages (contract-talk §3).
type Talk struct {
	LastDirection Direction    // of the message in the preview
	Unread        int          // inbound messages that nobody has marked as read
	Read          MessagePlace // the newest message up to which a member marked as read
	WaitingSince  Time         // the time of the oldest message that waits for an answer; 0: none
	Answered      ID           // the greatest id of a message that is an answer
	Heard         ID           // the greatest id of a message for whose answer the person waits (Message.IsWaitedOn)
}

// Hear counts an inbound message that is new.
func (t *Talk) Hear(m *Message) {
	t.Unread++
	if !m.IsWaitedOn() {
		return
	}
	if m.ID.Compare(t.Heard) > 0 {
		t.Heard = m.ID
	}
	if m.ID.Compare(t.Answered) > 0 && (t.WaitingSince == 0 || m.TS < t.WaitingSince) {
		t.WaitingSince = m.TS
	}
}

// Answer counts an outbound message that is an answer. It returns false if the person wrote
// while the message was sent. In that case, only the stored messages show whether the
// person still waits (Waiting).
func (t *Talk) Answer(m *Message) bool {
	if m.ID.Compare(t.Answered) > 0 {
		t.Answered = m.ID
	}
	if t.Heard.Compare(t.Answered) > 0 {
		return t.WaitingSince == 0
	}
	t.WaitingSince = 0
	return true
}

// NewConversation opens a conversation with a contact, assigned to the contact's owner.
func NewConversation(id, channel ID, contact *Contact, now Time) Conversation {
	c := Conversation{ID: id, ChannelID: channel, ContactID: contact.ID, Status: StatusOpen, CreatedAt: now}
	if contact.Owner != nil {
		c.AssignedMember, c.AssignedVia = contact.Owner.ID, ViaOwner
	}
	return c
}

// Wake opens a dormant conversation, as if it were a new one. A broadcast's message alone
// opens none (contract-broadcast §5).
func (c *Conversation) Wake(contact *Contact) {
	opened := NewConversation(c.ID, c.ChannelID, contact, c.CreatedAt)
	c.Status, c.Dormant, c.AssignedMember, c.AssignedVia = opened.Status, false, opened.AssignedMember, opened.AssignedVia
}

// Wakes tells whether a message at this time opens the dormant conversation.
func (c *Conversation) Wakes(at Time) bool {
	return c.Dormant && c.Status == StatusArchived && at-c.LastMessageAt <= Time(DormantLife.Milliseconds())
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

// AssignByRule assigns an unassigned conversation to the member whom the reply policy chose.
func (c *Conversation) AssignByRule(member ID) { c.AssignedMember, c.AssignedVia = member, ViaRule }

// Unassign makes the conversation unassigned.
func (c *Conversation) Unassign() { c.AssignedMember, c.AssignedVia = ID{}, "" }

// Changes are the names of the fields that differ from an earlier state, sorted. A new
// message alone changes none of these fields (contract-events §1).
func (c *Conversation) Changes(before *Conversation) []string {
	var changed fields
	changed.add("assigned_member_id", c.AssignedMember != before.AssignedMember)
	changed.add("assigned_via", c.AssignedVia != before.AssignedVia)
	changed.add("contact_id", c.ContactID != before.ContactID)
	changed.add("status", c.Status != before.Status)
	return changed
}

// Note uses a message for the conversation's preview, unless the preview is of a newer
// message.
func (c *Conversation) Note(m *Message) {
	if m.TS >= c.LastMessageAt {
		c.LastMessageAt, c.Preview, c.Talk.LastDirection = m.TS, Preview(m.Text), m.Direction
	}
}

// Forget clears the preview if its message is older than a time: such messages are deleted.
// It tells whether that changed anything. The rest of the conversation stays: who waits and
// what is unread are not forgotten with the messages.
func (c *Conversation) Forget(before Time) bool {
	if c.LastMessageAt >= before || c.Preview == "" {
		return false
	}
	c.Preview = ""
	return true
}

// ForgottenTogether is how many messages or notes one transaction deletes because they are
// old, and how many conversations it looks at.
const ForgottenTogether = 200

// MaxPreview is the greatest number of characters in a preview (contract §5).
const MaxPreview = 140

// Preview is the beginning of a text on one line: each run of white space becomes one
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

	ActiveSince Time // the newest message has this time or a later one; 0: any
	Unread      bool // only conversations with unread messages
	Waiting     bool // only conversations in which the person waits
	Longest     bool // like Waiting, and the longest wait comes first; Status must be set
	Awake       bool // only conversations that are not dormant

	// Looked limits how many conversations are examined for one page; 0: MaxLooked. It does
	// not affect which conversations match.
	Looked int
}

// MaxCount is the number up to which conversations are counted.
const MaxCount = 100

// ConversationCounts are numbers of open conversations, each up to MaxCount.
type ConversationCounts struct {
	Held, Unassigned, Open int
	Waiting                int // number of held conversations in which the person waits
}

// A Workload counts the conversations of a member, or the unassigned conversations.
type Workload struct {
	Open    int  // open conversations, up to MaxCount
	Waiting Time // when the longest wait began; 0: nobody waits
}

// Passes tells whether a conversation matches the filter.
func (f ConversationFilter) Passes(c *Conversation) bool {
	return (f.Status == "" || c.Status == f.Status) && (f.Assignee.IsZero() || c.AssignedMember == f.Assignee) &&
		(!f.Unassigned || c.AssignedMember.IsZero()) && (f.Channel.IsZero() || c.ChannelID == f.Channel) && (f.Contact.IsZero() || c.ContactID == f.Contact) &&
		c.LastMessageAt >= f.ActiveSince && (!f.Unread || c.Talk.Unread > 0) && (!f.Waiting && !f.Longest || c.Talk.WaitingSince > 0) && (!f.Awake || !c.Dormant)
}

// A ConversationPlace is the position of a conversation in lists: newest first, by last
// message, then creation, then id.
type ConversationPlace struct {
	LastMessageAt, CreatedAt Time
	ID                       ID
}

// Compare orders positions by time.
func (p ConversationPlace) Compare(q ConversationPlace) int {
	return cmp.Or(cmp.Compare(p.LastMessageAt, q.LastMessageAt), cmp.Compare(p.CreatedAt, q.CreatedAt), p.ID.Compare(q.ID))
}

// Place is the conversation's position.
func (c *Conversation) Place() ConversationPlace {
	return ConversationPlace{c.LastMessageAt, c.CreatedAt, c.ID}
}

// PlaceIn is the conversation's position in a filter's list.
func (c *Conversation) PlaceIn(f ConversationFilter) ConversationPlace {
	if f.Longest {
		return ConversationPlace{c.Talk.WaitingSince, c.CreatedAt, c.ID}
	}
	return c.Place()
}

// Start returns the position before the first conversation of the filter's list.
func (f ConversationFilter) Start() *ConversationPlace {
	if f.Longest {
		return &ConversationPlace{}
	}
	return &ConversationPlace{math.MaxInt64, math.MaxInt64, ID(bytes.Repeat([]byte{0xff}, len(ID{})))}
}

// NotOpen is the detail of a reply into a conversation that is not open.
type NotOpen struct {
	Status ConversationStatus
	Open   ID // the open conversation with the person on the channel; zero: none
}

// NoConversation is the answer for an id that no conversation of the workspace has.
func NoConversation() *Error { return NotFoundf("no conversation in this workspace has this id") }

// NoMessage is the error for an unknown message of a conversation.
func NoMessage() *Error { return NotFoundf("this conversation has no such message") }
