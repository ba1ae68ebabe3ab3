package desk

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// An EventType says what happened to which kind of record: contact.created.
type EventType string

// The types of events (contract-events §1).
const (
	ContactCreated  EventType = "contact.created"
	ContactUpdated  EventType = "contact.updated"
	ContactDeleted  EventType = "contact.deleted"
	ContactOptedOut EventType = "contact.opted_out"
	ContactOptedIn  EventType = "contact.opted_in"

	MergeCreated EventType = "merge.created"
	MergeUndone  EventType = "merge.undone"

	ConflictCreated EventType = "conflict.created"
	ConflictUpdated EventType = "conflict.updated"

	ConversationCreated EventType = "conversation.created"
	ConversationUpdated EventType = "conversation.updated"

	MessageReceived  EventType = "message.received"
	MessageSent      EventType = "message.sent"
	MessageUpdated   EventType = "message.updated"
	MessageDelivered EventType = "message.delivered"
	MessageRead      EventType = "message.read"
	MessageFailed    EventType = "message.failed"

	NoteCreated EventType = "note.created"
	NoteDeleted EventType = "note.deleted"

	SendInDoubt EventType = "send.in_doubt" // the outcome of the send is unknown
	SendSettled EventType = "send.settled"  // the outcome was unknown, and is known now

	TemplateCreated EventType = "template.created"
	TemplateUpdated EventType = "template.updated"
	TemplateDeleted EventType = "template.deleted"

	SnippetCreated EventType = "snippet.created"
	SnippetUpdated EventType = "snippet.updated"
	SnippetDeleted EventType = "snippet.deleted"

	SegmentCreated EventType = "segment.created"
	SegmentUpdated EventType = "segment.updated"
	SegmentDeleted EventType = "segment.deleted"

	AttributeCreated EventType = "attribute.created"
	AttributeUpdated EventType = "attribute.updated"

	ChannelCreated EventType = "channel.created"
	ChannelUpdated EventType = "channel.updated"

	PolicyUpdated EventType = "policy.updated"

	MemberCreated EventType = "member.created"
	MemberUpdated EventType = "member.updated"
	MemberDeleted EventType = "member.deleted"

	KeyCreated EventType = "key.created"
	KeyUpdated EventType = "key.updated"

	WorkspaceUpdated EventType = "workspace.updated"

	WebhookCreated  EventType = "webhook.created"
	WebhookUpdated  EventType = "webhook.updated"
	WebhookDeleted  EventType = "webhook.deleted"
	WebhookDisabled EventType = "webhook.disabled"

	BroadcastCreated      EventType = "broadcast.created"
	BroadcastUpdated      EventType = "broadcast.updated"
	BroadcastDeletedEvent EventType = "broadcast.deleted"
)

// EventTypes lists all types, in the order in which they are shown.
var EventTypes = []EventType{
	ContactCreated, ContactUpdated, ContactDeleted, ContactOptedOut, ContactOptedIn,
	MergeCreated, MergeUndone, ConflictCreated, ConflictUpdated,
	ConversationCreated, ConversationUpdated,
	MessageReceived, MessageSent, MessageUpdated, MessageDelivered, MessageRead, MessageFailed,
	NoteCreated, NoteDeleted, SendInDoubt, SendSettled,
	TemplateCreated, TemplateUpdated, TemplateDeleted,
	SnippetCreated, SnippetUpdated, SnippetDeleted,
	SegmentCreated, SegmentUpdated, SegmentDeleted,
	AttributeCreated, AttributeUpdated,
	ChannelCreated, ChannelUpdated,
	PolicyUpdated,
	MemberCreated, MemberUpdated, MemberDeleted,
	KeyCreated, KeyUpdated,
	WorkspaceUpdated,
	WebhookCreated, WebhookUpdated, WebhookDeleted, WebhookDisabled,
	BroadcastCreated, BroadcastUpdated, BroadcastDeletedEvent,
}

// Kind is the kind of record that the type is about: contact.
func (t EventType) Kind() string {
	kind, _, _ := strings.Cut(string(t), ".")
	return kind
}

// OfSeveral tells whether the type is about several people. Nobody can erase one of them from a
// text about all (contract-events §4).
func (t EventType) OfSeveral() bool { return t.Kind() == "merge" || t.Kind() == "conflict" }

// OfSettings tells whether the type is about the workspace's settings, as people and the
// command line edit them. Types about templates do not count, because the provider changes
// templates.
func (t EventType) OfSettings() bool {
	switch t.Kind() {
	case "attribute", "channel", "key", "member", "policy", "snippet", "webhook", "workspace":
		return true
	}
	return false
}

// SettingsTypes are the types about the workspace's settings.
func SettingsTypes() (list []EventType) {
	for _, t := range EventTypes {
		if t.OfSettings() {
			list = append(list, t)
		}
	}
	return list
}

// eventNeeds are the permissions that show the records of a kind. Kinds that are not listed
// need none: the record of a key is never shown, and that of the workspace is shown to all.
var eventNeeds = map[string]Permission{
	"contact":      ContactsRead,
	"merge":        ContactsRead,
	"conflict":     ContactsRead,
	"conversation": ConversationsRead,
	"message":      ConversationsRead,
	"note":         ConversationsRead,
	"send":         AttemptsRead,
	"template":     TemplatesRead,
	"snippet":      TemplatesRead,
	"segment":      ContactsRead,
	"attribute":    AttributesRead,
	"channel":      ChannelsRead,
	"policy":       ChannelsRead,
	"member":       MembersRead,
	"webhook":      WebhooksRead,
	"broadcast":    BroadcastsRead,
}

// Needs is the permission that a key needs for events of this type, in addition to
// events:read; "" if it needs no other one.
func (t EventType) Needs() Permission { return eventNeeds[t.Kind()] }

// An EventFilter says which types of events to return: all that the reader may read,
// certain named types, or both. The zero EventFilter stands for all.
type EventFilter struct {
	all   bool
	named []EventType
}

// maxEventTypes is the greatest number of types that a filter names.
const maxEventTypes = 50

// ParseEventFilter reads a list of types, of kinds as KIND.*, and of *. Its errors say
// what is wrong with the list.
func ParseEventFilter(list []string) (f EventFilter, err error) {
	if len(list) == 0 || len(list) > maxEventTypes {
		return f, fmt.Errorf("name 1 to %d types", maxEventTypes)
	}
	for _, word := range list {
		if word == "*" {
			f.all = true
			continue
		}
		before := len(f.named)
		for _, t := range EventTypes {
			if string(t) == word || t.Kind()+".*" == word {
				f.named = append(f.named, t)
			}
		}
		if len(f.named) == before {
			return EventFilter{}, noEventType(word)
		}
	}
	return f, nil
}

// noEventType returns an error that suggests the type that was probably meant.
func noEventType(word string) error {
	kind, change, _ := strings.Cut(word, ".")
	var names, ofKind, changes []string
	for _, t := range EventTypes {
		names = append(names, string(t))
		if t.Kind() == kind {
			ofKind, changes = append(ofKind, string(t)), append(changes, string(t)[len(kind)+1:])
		}
	}
	nearest := ""
	if ofKind == nil {
		nearest = Nearest(word, names)
	} else if nearest = Nearest(change, changes); nearest != "" {
		nearest = kind + "." + nearest
	}
	hint := "use *, a kind such as contact.*, or a type such as contact.created"
	if nearest != "" {
		hint = "did you mean " + nearest + "?"
	} else if ofKind != nil {
		hint = "use " + strings.Join(ofKind, ", ") + ", or " + kind + ".* for all of them"
	}
	return fmt.Errorf("%s is no type of event: %s", Quote(word), hint)
}

// For returns the types that a reader gets. allow checks a permission of the reader. For
// returns Forbidden if the filter names a type that the reader may not read. Under *, such
// types are left out.
func (f EventFilter) For(allow func(Permission) error) (types []EventType, err error) {
	all := f.all || len(f.named) == 0
	for _, t := range EventTypes {
		named := slices.Contains(f.named, t)
		if !all && !named {
			continue
		}
		if needs := t.Needs(); needs != "" {
			if err := allow(needs); err != nil && named {
				return nil, err
			} else if err != nil {
				continue
			}
		}
		types = append(types, t)
	}
	return types, nil
}

// An ActorKind says what kind of caller did something.
type ActorKind string

// The kinds of actors, as the events store them.
const (
	ByKey      ActorKind = "key"      // an API key
	ByMember   ActorKind = "member"   // a teammate, in the console
	ByProvider ActorKind = "provider" // a channel's provider; the id is the channel's
	ByCLI      ActorKind = "cli"      // the command line; it has no id
	BySystem   ActorKind = "system"   // parley itself; it has no id
)

// An Actor is the author of a change. Events of the first release do not say the kind of
// the actor.
type Actor struct {
	Kind ActorKind
	ID   ID
}

// An Event is one accepted change. It names fields, never their values, so no data of a
// person remains after the contact is erased.
type Event struct {
	Type         EventType
	Subject      ID     // the record's id; zero for one without a UUID
	Key          string // the id of a record without a UUID: an attribute's or a segment's key, a snippet's shortcut, CHANNEL/NAME/LANGUAGE of a template
	Conversation ID     // of a message, a note or a send; otherwise zero
	Contact      ID     // of a message, a note, a send or a conversation; otherwise zero
	TS           Time   // the time of a message, needed to look it up, or of a provider's notice that a person opted out or in; otherwise 0
	Actor        Actor
	At           Time
	Changed      []string // of an update: names of fields, sorted
}

// Of returns the conversation and the contact that the event is about, zero for none.
func (e *Event) Of() (conversation, contact ID) {
	switch e.Type.Kind() {
	case "contact":
		return ID{}, e.Subject
	case "conversation":
		return e.Subject, e.Contact
	}
	return e.Conversation, e.Contact
}

// An EventPlace is the position of an event in its workspace. The zero EventPlace is
// before the first one.
type EventPlace struct {
	Seq int64 // its number, in the order of commits
	Tag int64 // tells the event from another one that got this number after a restore, see Event.Tag
}

// An ExpiredCursor is the details of CursorExpired: why the feed can't go on, and from
// which cursors it can.
type ExpiredCursor struct{ Reason, Oldest, Newest string }

// A FeedEvent is an event with its position.
type FeedEvent struct {
	Event
	Place EventPlace
	ID    string // as readers see it; App fills it in
}

// Placed returns the event with its number.
func (e Event) Placed(seq int64) FeedEvent {
	return FeedEvent{Event: e, Place: EventPlace{seq, e.Tag()}}
}

// An Expired says which events have expired.
type Expired struct {
	Before Time // events older than this have expired
	Now    Time
}

// Count returns how many of the oldest events have expired. An event with a time in the
// future got this time from a wrong clock: it expires together with the event after it.
func (x Expired) Count(oldest []FeedEvent) (n int) {
	for i := range oldest {
		switch at := oldest[i].At; {
		case at < x.Before:
			n = i + 1
		case at <= x.Now:
			return n
		}
	}
	return n
}

// TemplateKey is the channel, the name and the language of the template that an event is
// about.
func (e *Event) TemplateKey() (channel ID, name, language string) {
	id, rest, _ := strings.Cut(e.Key, "/")
	name, language, _ = strings.Cut(rest, "/")
	channel, _ = ParseID(id)
	return channel, name, language
}

// EventBytes returns an upper limit for the size of an event in a page, without the event's
// data.
func (e *FeedEvent) EventBytes() int {
	n := recordRoom + 2*len(e.Key)
	for _, name := range e.Changed {
		n += jsonBytes(name) + 1
	}
	return n
}

// tagBits is the length of a tag.
const tagBits = 48

// Tag is a short value made of the event's time and its subject. It tells the event from
// another one with the same number.
func (e *Event) Tag() int64 {
	subject := binary.BigEndian.Uint64(e.Subject[len(e.Subject)-8:])
	return int64((uint64(e.At) ^ subject) & (1<<tagBits - 1))
}

// A fields is a list of the names of changed fields.
type fields []string

func (f *fields) add(name string, changed bool) {
	if changed {
		*f = append(*f, name)
	}
}
