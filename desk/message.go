package desk

// A Direction tells who wrote a message.
type Direction string

// The directions.
const (
	Inbound  Direction = "inbound"
	Outbound Direction = "outbound"
)

// A DeliveryStatus says how far the provider got with an outbound message; "" for an inbound one.
type DeliveryStatus string

// The delivery statuses (contract §5).
const (
	Queued    DeliveryStatus = "queued"
	Sent      DeliveryStatus = "sent"
	Failed    DeliveryStatus = "failed"
	Delivered DeliveryStatus = "delivered"
	Read      DeliveryStatus = "read"
)

// reach orders the delivery statuses. A message only moves forward in this order: reports
// come late, twice and in any order, and the result must not depend on that. Delivered is
// after failed: one device of the person may refuse a message that another one has shown.
var reach = map[DeliveryStatus]int{Queued: 1, Sent: 2, Failed: 3, Delivered: 4, Read: 5}

// A Failure says why a provider did not accept or deliver a message, and what to do.
type Failure struct {
	Code       int // the provider's code
	Title, Fix string
}

// A Message is one bubble of a conversation (spec, Message).
type Message struct {
	ID             ID
	ConversationID ID
	ChannelID      ID
	Direction      Direction
	ExternalID     string // the provider's id; "": not known
	Text           string
	Delivery       DeliveryStatus
	Failure        *Failure // the failure, even if the message was delivered afterwards
	TS             Time
	OptIn          *OptIn // of a template
	Attempt        ID     // the attempt that sent the message; it is stored, but not read
	Template       string // NAME/LANGUAGE; "" without a template, or for a message of an earlier release
	ContactID      ID     // of its conversation; only a Tx and an export fill it in
	Kind           MessageKind
	Author         Author // zero: inbound, or typed in the business's phone app
	ReplyTo        ID     // the message that it quotes or reacts to; zero: none, or not known
	Media          ID     // its file; zero: none
	Attachment     *Media // the file's record, in lists and events; nil: deleted
	Extra          *Extra // the content besides the text; nil: none
}

// Event returns an event of type t about the message.
func (m *Message) Event(t EventType, by Actor, now Time) Event {
	return Event{Type: t, Subject: m.ID, Conversation: m.ConversationID, Contact: m.ContactID, TS: m.TS, Actor: by, At: now}
}

// An Extra is the content of a message besides its text. One of the fields is set.
type Extra struct {
	Buttons  []Button  `json:"buttons,omitzero"`
	Links    []Link    `json:"links,omitzero"`
	Choice   *Button   `json:"choice,omitzero"`
	Location *Location `json:"location,omitzero"`
	Reaction *Reaction `json:"reaction,omitzero"`
}

// A Button can be tapped by the person.
type Button struct {
	ID    string `json:"id"`
	Title string `json:"title"`
}

// A Location is a place on the map.
type Location struct {
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
	Name      string  `json:"name"`    // "" if there is none
	Address   string  `json:"address"` // "" if there is none
}

// A Reaction is an emoji on a message; "" removes it.
type Reaction struct {
	Emoji string `json:"emoji"`
}

// Older completes a message of an earlier release: it fills in the fields that this release
// did not store.
func (m *Message) Older() {
	if m.Kind != "" {
		return
	}
	m.Kind = KindText
	if m.Direction == Outbound {
		m.Kind = KindTemplate
		if m.OptIn != nil {
			by := m.OptIn.Actor()
			m.Author = Author{Type: AuthorType(by.Kind), ID: by.ID}
		}
	}
}

// IsAnswer tells whether the message ends a person's wait: it is outbound, is not an
// automatic reply or of a broadcast, and did not fail (contract-talk §3).
func (m *Message) IsAnswer() bool {
	return m.Direction == Outbound && m.Author.Type != AuthorRule && m.Author.Type != AuthorBroadcast && m.Delivery != Failed
}

// IsWaitedOn tells whether the person who wrote the message waits for an answer.
func (m *Message) IsWaitedOn() bool { return m.Direction == Inbound && m.Kind != KindReaction }

// An OptIn is the caller's assertion that the person opted in: who made it, when, and in
// which request (spec, Message).
type OptIn struct {
	Key     ID // zero if a member made it
	At      Time
	Request ID
	Member  ID // zero if a key made it

	Attribute string `json:",omitzero"` // the contact's attribute that says so, of a broadcast's messages; "": the caller asserts it
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
func (m *Message) Reach(d DeliveryStatus, f *Failure) []string {
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

// InboundTime returns the time to store for an inbound message. Providers report whole
// seconds. newest is the time of the conversation's newest message in the same second, or
// 0. If there is such a message, the result is later by one millisecond, so that the order
// of arrival is kept.
func InboundTime(at, newest Time) Time {
	_, end := at.Second()
	return min(max(at, newest+1), end-1)
}

// A MessagePlace is the position of a message in its conversation, newest first.
type MessagePlace struct {
	TS Time
	ID ID
}

// After tells whether a position is newer than another.
func (p MessagePlace) After(other MessagePlace) bool {
	return p.TS > other.TS || p.TS == other.TS && p.ID.Compare(other.ID) > 0
}

// Place is the message's position.
func (m *Message) Place() MessagePlace { return MessagePlace{m.TS, m.ID} }

// MaxMessage is the longest message that a person can write, in characters.
const MaxMessage = 4096

// ParseMessage returns a message's text, trimmed: 1 to 4,096 characters.
func ParseMessage(s string) (string, error) { return parseText(s, "a message", 1, MaxMessage) }
