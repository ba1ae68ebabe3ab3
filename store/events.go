package store

import (
	"context"
	"time"

	"parley/desk"
)

// Events keeps the events of workspaces.
type Events interface {
	// Events returns a page of the feed, all from one snapshot. It first reads the
	// settings, and passes them to the callback which. If the callback returns an error,
	// Events returns it unchanged. Otherwise the callback returns types, and the page has
	// the events of these types, with their records as they are now. Events returns
	// NotFound if there is no such workspace.
	Events(ctx context.Context, ws desk.ID, q EventQuery, which func(*desk.Settings) ([]desk.EventType, error)) (*EventPage, error)

	// EventLog returns a page of the events of these types, newest first: up to limit
	// events whose numbers are smaller than before (0: the page begins with the newest). It
	// also returns the value of before for the next page, 0 if this page is the last. It
	// looks at up to desk.MaxEventsLooked events, so a page may be short, or even empty,
	// although the list continues. Types of the settings (desk.EventType.OfSettings) have
	// an index: if only these are asked for, all events are looked at.
	EventLog(ctx context.Context, ws desk.ID, types []desk.EventType, before int64, limit int) ([]desk.FeedEvent, int64, error)

	// Heads returns the head of each of the workspaces. It leaves out deleted workspaces.
	Heads(ctx context.Context, list []desk.ID) (map[desk.ID]Head, error)

	// NewestEvents returns the number of the newest event of each workspace that may have new
	// events since the mark, and the mark for the next call. The mark 0 asks for all
	// workspaces. A workspace may be missing until a few seconds after the commit of an older
	// release, or of a transaction that took long: ask for all from time to time.
	NewestEvents(ctx context.Context, since Mark) (map[desk.ID]int64, Mark, error)

	// WebhookStates returns the states of a workspace's webhooks.
	WebhookStates(ctx context.Context, ws desk.ID) (map[desk.ID]desk.WebhookState, error)

	// DropEvents drops up to limit of the oldest events from the feed, as far as they have
	// expired, and as far as search and history have had them (SearchPlace.Had). It returns
	// how many it dropped.
	DropEvents(ctx context.Context, ws desk.ID, expired desk.Expired, limit int) (int, error)
}

// A Mark is a moment in the life of a database. Its value has a meaning only for the Store
// that returned it.
type Mark int64

// A Head identifies the newest state of a workspace. It changes with every event and with
// every change of the settings.
type Head struct {
	Event    int64 // number of the newest event
	Settings int64 // version
}

// An EventQuery says where a page of the feed begins, and how many events it may have.
type EventQuery struct {
	From  EventStart
	After desk.EventPlace // for FromPlace
	Limit int             // 0: only the positions are asked for
	Bare  bool            // without the records

	// AtOnce asks for one round trip. It is possible for FromPlace and AtPlace with
	// records. The store then also reads records that the page may not need. Without
	// AtOnce, the store reads the events first, and then only the records of the page. On a
	// Citus cluster, where each statement costs more than a round trip, it always does so.
	AtOnce bool
}

// An EventStart says where a page of the feed begins.
type EventStart uint8

// The starts.
const (
	FromOldest EventStart = iota
	FromNewest
	FromPlace
	AtPlace // only the event at After, of any type; no event if that one is gone
)

// An EventPage is a page of the feed.
type EventPage struct {
	ReadAt   time.Time // when the read had a connection and began: the data is not older
	Settings *desk.Settings
	Oldest   desk.EventPlace // the place before the oldest event
	Newest   desk.EventPlace
	Expired  string // why the events after the given place are not available; "": they are available
	Events   []desk.FeedEvent
	Start    desk.EventPlace // the page begins after this place
	Next     desk.EventPlace // the place of the last event that was looked at
	More     bool            // there are events after Next

	// The records of the events by id. A record that is gone is nil or missing. Templates,
	// snippets and states of webhooks are not included.
	Contacts      map[desk.ID]*desk.Contact
	Conversations map[desk.ID]*desk.Conversation
	Messages      map[desk.ID]*desk.Message
	Notes         map[desk.ID]*desk.Note
	Attempts      map[desk.ID]*desk.Attempt // without stored answers and profiles
}

// Cut ends the page before the event at i, which must not be the first.
func (p *EventPage) Cut(i int) { p.Events, p.Next, p.More = p.Events[:i], p.Events[i-1].Place, true }

// Trim cuts the page to the largest size of a page. dataBytes returns the approximate
// size of an event's record.
func (p *EventPage) Trim(dataBytes func(*desk.FeedEvent) int) {
	size := desk.NewPageSize(len(p.Events))
	for i := range p.Events {
		if e := &p.Events[i]; !size.Add(e.EventBytes() + dataBytes(e)) {
			p.Cut(i)
			return
		}
	}
}

// DataBytes returns the approximate size of an event's record as JSON, never less than
// its real size. The record must be in the page or in the settings.
func (p *EventPage) DataBytes(e *desk.FeedEvent) int {
	conversation, contact := e.Of()
	switch e.Type.Kind() {
	case "contact":
		if c := p.Contacts[contact]; c != nil {
			return c.ListBytes()
		}
	case "conversation":
		if c := p.Conversations[conversation]; c != nil {
			return c.ListBytes()
		}
	case "message":
		if m := p.Messages[e.Subject]; m != nil {
			return m.ListBytes()
		}
	case "send":
		if at := p.Attempts[e.Subject]; at != nil {
			return at.ListBytes()
		}
	case "note":
		if n := p.Notes[e.Subject]; n != nil {
			return n.ListBytes()
		}
	case "attribute":
		if a := p.Settings.Attributes[e.Key]; a != nil {
			return a.ListBytes()
		}
	case "policy":
		channel := e.Subject
		if channel == p.Settings.ID {
			channel = desk.ID{}
		}
		if policy := p.Settings.Policy(channel); policy != nil {
			return policy.ListBytes()
		}
	case "member":
		if m := p.Settings.Member(e.Subject); m != nil {
			return m.ListBytes()
		}
	case "webhook":
		if w := p.Settings.Webhook(e.Subject); w != nil {
			return w.ListBytes()
		}
	}
	return 0
}
