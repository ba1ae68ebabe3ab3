package console

import (
	"net/http"
	"time"

	"parley/desk"
)

// A dayOfMessages are the messages of one day.
type dayOfMessages struct {
	ID, Label string
	Messages  []bubble
}

// A bubble is one message.
type bubble struct {
	ID      desk.ID
	Ours    bool
	Text    []run
	At      moment
	Track   *track
	Failure *failure
}

// A failure is why a message did not arrive.
type failure struct{ Title, Fix, Again string }

// A track shows how far a message got: joined dots, always with the word.
type track struct {
	Word   string
	Length int // of the line so far
	Dots   []dot
}

type dot struct {
	X  int
	On bool
}

// threadRows is how many messages a conversation's page shows: with the list beside them,
// it stays small.
const threadRows = 40

func (c *call) readMessages(t *thread) error {
	before := c.query("before")
	if c.r.Method == http.MethodPost { // what it answers is about the newest
		before = ""
	}
	page, next, err := c.s.app.Messages(c.r.Context(), c.p, t.ID, before, threadRows)
	if err != nil {
		return err
	}
	newest := page
	if before != "" {
		t.Later = t.Path
		if newest, _, err = c.s.app.Messages(c.r.Context(), c.p, t.ID, "", 1); err != nil {
			return err
		}
	}
	if len(newest) > 0 {
		t.SeenMessage = newest[0].ID.String()
	}
	if next != "" {
		t.Earlier = "/inbox/" + t.ID.String() + with(t.Query, "before", next)
	}
	for i := len(page) - 1; i >= 0; i-- {
		m := page[i]
		label := c.day(m.TS)
		if n := len(t.Days); n == 0 || t.Days[n-1].Label != label {
			t.Days = append(t.Days, dayOfMessages{ID: time.UnixMilli(int64(m.TS)).In(c.zone).Format(time.DateOnly), Label: label})
		}
		day := &t.Days[len(t.Days)-1]
		day.Messages = append(day.Messages, c.bubble(m, t.Person.ID))
	}
	return nil
}

func (c *call) bubble(m *desk.Message, contact desk.ID) bubble {
	b := bubble{ID: m.ID, Ours: m.Direction == desk.Outbound, Text: runs(m.Text), At: c.clock(m.TS)}
	if b.Ours {
		b.Track = trackOf(m.Delivery)
		if m.Failure != nil && m.Delivery == desk.Failed {
			b.Failure = &failure{Title: sentence(m.Failure.Title), Fix: sentence(m.Failure.Fix), Again: "/send?contact=" + contact.String() + "&channel=" + m.ChannelID.String()}
		}
	}
	return b
}

// trackWords are the deliveries in the order in which a message reaches them.
var trackWords = []struct {
	at   desk.Delivery
	word string
}{{desk.Queued, "Queued"}, {desk.Sent, "Sent"}, {desk.Delivered, "Delivered"}, {desk.Read, "Read"}}

// trackStep is the distance between two dots of a track.
const trackStep = 12

func trackOf(d desk.Delivery) *track {
	if d == desk.Failed {
		return &track{Word: "Failed"}
	}
	t := &track{}
	for i, step := range trackWords {
		t.Dots = append(t.Dots, dot{X: 4 + trackStep*i, On: t.Word == ""})
		if step.at == d {
			t.Word, t.Length = step.word, trackStep*i
		}
	}
	return t
}
