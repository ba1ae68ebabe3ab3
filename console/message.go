package console

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"

	"parley/desk"
)

// A bubble is a message, a note, or a line about a reaction. Such a line stands for a
// reaction whose message is on another page.
type bubble struct {
	ID        desk.ID
	Note      *note
	Line      string // the text about a reaction
	Ours      bool
	Author    string
	Broadcast string // the page of the broadcast that wrote it; ""
	Again     bool   // the bubble before has the same author, so this one does not show the name
	Quote     *quotation
	File      *file
	Place     *place
	Chosen    bool // the message is a tap on a button
	Text      []run
	Buttons   []string
	Links     []linkButton
	Reactions []reaction
	At        moment
	Track     *track
	Failure   *failure
	OptIn     *optIn
	Quotable  bool
}

// A note was written by the team. It is not a message, and is shown differently.
type note struct {
	ID     desk.ID
	Author string
	Text   []run
	At     moment
	Delete string // "": the member may not delete it
}

// A quotation is the beginning of the message that another one answers.
type quotation struct {
	Author, Text string
	Href         string // "": the message is neither on this page nor on the one before
}

// A reaction is an emoji on a message.
type reaction struct{ Emoji, By string }

// A linkButton is a button of a template that opens a link. Href is "" if the link can't be
// opened in a browser.
type linkButton struct{ Title, Target, Href string }

// A place is a location in a message.
type place struct{ Name, Address, Coordinates, Href string }

// A failure says why a message did not arrive.
type failure struct{ Title, Fix, Again, Button string }

// A track is a picture of the delivery of a message: joined dots, always with a word.
type track struct {
	Word   string
	Length int // the length of the line so far
	Dots   []dot
}

type dot struct {
	X  int
	On bool
}

const (
	// threadRows is the number of messages on a conversation's page. threadText is the
	// greatest number of bytes of their texts together. So the page stays small, although
	// it also has the list.
	threadRows = 30
	threadText = 12 << 10

	// threadNotes is the number of notes on the page, from the same time as the messages.
	// threadNoteText is the greatest number of bytes of their texts together. A separate
	// page has all notes.
	threadNotes    = 20
	threadNoteText = 6 << 10
)

func (c *call) readMessages(t *thread) error {
	before := c.query("before")
	if c.r.Method == http.MethodPost { // the page that is shown after a form has the newest messages
		before = ""
	}
	page, next, err := c.messages(t.ID, before)
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
		t.Newest = latest{Ours: newest[0].Direction == desk.Outbound, Text: glimpse(newest[0].Text)}
	}
	if next != "" {
		t.Earlier = "/inbox/" + t.ID.String() + with(t.Query, "before", next)
	}
	earlier, err := c.quotedEarlier(t.ID, page, next)
	if err != nil {
		return err
	}
	notes, missing, err := c.s.app.NotesBeside(c.r.Context(), c.p, t.ID, before, page, next != "", threadNotes)
	if err != nil {
		return err
	}
	for i, size := 0, 0; i < len(notes); i++ {
		if size += len(notes[i].Text); size > threadNoteText && i > 0 {
			notes, missing = notes[:i], true
		}
	}
	t.MoreNotes = missing
	c.line(t, page, earlier, notes)
	return nil
}

// messages reads a page of messages. If the messages are long, the page has fewer of
// them.
func (c *call) messages(id desk.ID, before string) ([]*desk.Message, string, error) {
	page, next, err := c.s.app.Messages(c.r.Context(), c.p, id, before, threadRows)
	size := 0
	for i, m := range page {
		size += len(m.Text)
		if m.Extra != nil {
			for _, l := range m.Extra.Links {
				size += len(l.Title) + 2*len(l.URL) // the link is there twice
			}
		}
		if size > threadText && i > 0 {
			return c.s.app.Messages(c.r.Context(), c.p, id, before, i)
		}
	}
	return page, next, err
}

// quotedEarlier reads the next older page, if a message of this page quotes a message
// that is not on this page.
func (c *call) quotedEarlier(id desk.ID, page []*desk.Message, next string) (earlier []*desk.Message, err error) {
	here := map[desk.ID]bool{}
	for _, m := range page {
		here[m.ID] = true
	}
	if next != "" && slices.ContainsFunc(page, func(m *desk.Message) bool { return !m.ReplyTo.IsZero() && !here[m.ReplyTo] }) {
		earlier, _, err = c.messages(id, next)
	}
	return earlier, err
}

// line sorts messages and notes into one list by time. Both parameters begin with the
// newest.
func (c *call) line(t *thread, page, earlier []*desk.Message, notes []*desk.Note) {
	known := map[desk.ID]quotation{}
	for _, m := range earlier {
		known[m.ID] = c.quote(t, m, t.Earlier+"#m-"+m.ID.String())
	}
	on := map[desk.ID]bool{}
	for _, m := range page {
		known[m.ID] = c.quote(t, m, "#m-"+m.ID.String())
		on[m.ID] = m.Kind != desk.KindReaction
	}
	reactions := map[desk.ID][]reaction{}
	for _, m := range slices.Backward(page) {
		if m.Kind == desk.KindReaction && on[m.ReplyTo] {
			reactions[m.ReplyTo] = reacted(reactions[m.ReplyTo], reaction{emojiOf(m), c.authorOf(t, m)})
		}
	}
	add := func(at desk.Time, b bubble) {
		label := c.day(at)
		if n := len(t.Days); n == 0 || t.Days[n-1].Label != label {
			t.Days = append(t.Days, dayOfMessages{ID: time.UnixMilli(int64(at)).In(c.zone).Format(time.DateOnly), Label: label})
		}
		day := &t.Days[len(t.Days)-1]
		if n := len(day.Messages); n > 0 {
			last := day.Messages[n-1]
			b.Again = last.Note == nil && last.Line == "" && b.Author == last.Author && b.Ours == last.Ours
		}
		day.Messages = append(day.Messages, b)
	}
	addNotes := func(until desk.Time) {
		for n := len(notes); n > 0 && notes[n-1].CreatedAt < until; n-- {
			add(notes[n-1].CreatedAt, c.noteOf(t, notes[n-1]))
			notes = notes[:n-1]
		}
	}
	for _, m := range slices.Backward(page) {
		if m.Kind == desk.KindReaction && on[m.ReplyTo] {
			continue
		}
		addNotes(m.TS)
		b := c.bubble(t, m)
		b.Reactions = reactions[m.ID]
		if q, ok := known[m.ReplyTo]; ok {
			b.Quote = &q
		} else if !m.ReplyTo.IsZero() {
			b.Quote = &quotation{Text: "An earlier message"}
		}
		if m.Kind == desk.KindReaction {
			if b.Quote != nil && b.Quote.Href == "" {
				b.Quote.Text = "an earlier message"
			}
			b = bubble{ID: m.ID, At: b.At, Line: c.reactionLine(t, m), Quote: b.Quote}
		}
		add(m.TS, b)
	}
	addNotes(endOfTime)
}

// endOfTime is later than all other times.
const endOfTime = desk.Time(1<<63 - 1)

// reacted returns a list with one more reaction. It replaces the earlier reaction of the
// same person. An empty reaction only removes the earlier one.
func reacted(list []reaction, r reaction) []reaction {
	list = slices.DeleteFunc(list, func(other reaction) bool { return other.By == r.By })
	if r.Emoji != "" {
		list = append(list, r)
	}
	return list
}

func emojiOf(m *desk.Message) string {
	if m.Extra == nil || m.Extra.Reaction == nil {
		return ""
	}
	return m.Extra.Reaction.Emoji
}

// reactionLine describes a reaction to a message of another page.
func (c *call) reactionLine(t *thread, m *desk.Message) string {
	who := apart(c.authorOf(t, m))
	if emoji := emojiOf(m); emoji != "" {
		return who + " reacted " + emoji + " to"
	}
	return who + " took back a reaction to"
}

func (c *call) quote(t *thread, m *desk.Message, href string) quotation {
	return quotation{Author: c.authorOf(t, m), Text: beginning(glimpse(m.Text), excerptLength), Href: href}
}

func (c *call) noteOf(t *thread, n *desk.Note) bubble {
	b := bubble{Note: &note{ID: n.ID, Author: c.author(n.Author), Text: runs(n.Text), At: c.clock(n.CreatedAt)}}
	if t.MayChange {
		b.Note.Delete = notePath(t.ID, n.ID, t.Query)
	}
	return b
}

func (c *call) bubble(t *thread, m *desk.Message) bubble {
	b := bubble{ID: m.ID, Ours: m.Direction == desk.Outbound, Author: c.authorOf(t, m), At: c.clock(m.TS), Chosen: m.Kind == desk.KindChoice, OptIn: c.optIn(m.OptIn)}
	if m.Author.Type == desk.AuthorBroadcast && c.may(desk.BroadcastsRead) {
		b.Broadcast = broadcastPath(m.Author.ID)
	}
	text := m.Text
	if !m.Media.IsZero() {
		b.File = fileOf(m)
		if m.Kind != desk.KindTemplate { // the text of a template does not name its file
			text = caption(m)
		}
		if b.File.Show == "image" && text != "" {
			b.File.Name = plain(text)
		}
	}
	if v := m.Extra; v != nil {
		for _, button := range v.Buttons {
			b.Buttons = append(b.Buttons, button.Title)
		}
		for _, l := range v.Links {
			b.Links = append(b.Links, linkButton{cmp.Or(l.Title, "Link"), undirected(l.URL), webLink(l.URL)})
		}
		if v.Location != nil {
			b.Place, text = placeOf(v.Location), ""
		}
	}
	b.Text = runs(text)
	b.Quotable = m.ExternalID != "" && m.Delivery != desk.Failed && t.MaySend && t.Status == desk.StatusOpen
	if b.Ours {
		b.Track = trackOf(m.Delivery)
		if m.Failure != nil && m.Delivery == desk.Failed {
			b.Failure = failureOf(t, m)
		}
	}
	return b
}

// webLink returns a link if a browser can open it: it begins with http:// or https://.
func webLink(link string) string {
	if at := links.FindStringIndex(link); at == nil || at[0] != 0 {
		return ""
	}
	return link
}

func failureOf(t *thread, m *desk.Message) *failure {
	f := &failure{Title: sentence(m.Failure.Title), Fix: sentence(m.Failure.Fix)}
	switch {
	case t.Closes(m.Failure):
		f.Title = "The window to answer freely was closed."
		f.Fix = "It is open for a day after the person wrote. Send a template, or wait until they write again."
		f.Button = "Send a template"
	case m.Kind == desk.KindTemplate:
		f.Button = "Send again"
	}
	if f.Button != "" && t.MaySend {
		f.Again = t.Send
	}
	return f
}

// authorOf names the author of a message.
func (c *call) authorOf(t *thread, m *desk.Message) string {
	switch {
	case m.Direction == desk.Inbound:
		return t.Person.Name
	case !m.Author.IsZero():
		return c.author(m.Author)
	case m.Kind == desk.KindTemplate: // stored by an older release
		return t.Team
	}
	return "From the phone app"
}

// ruleNames are the names of automatic replies as authors.
var ruleNames = map[string]string{"away": "Automatic reply, away", "queued": "Automatic reply, in the queue"}

// author names the author of a note, or of a message of the team.
func (c *call) author(a desk.Author) string {
	if a.ID == c.p.Actor.ID {
		return "You"
	}
	switch a = c.p.Settings.Named(a); a.Type {
	case desk.AuthorRule:
		return cmp.Or(ruleNames[a.Name], "Automatic reply")
	case desk.AuthorBroadcast:
		return a.Name + " (broadcast)"
	case desk.AuthorKey:
		return cmp.Or(a.Name, "a key that is gone") + " (key)"
	}
	return cmp.Or(a.Name, "A former member")
}

func placeOf(l *desk.Location) *place {
	at := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	lat, long := at(l.Latitude), at(l.Longitude)
	return &place{
		Name: l.Name, Address: l.Address, Coordinates: lat + ", " + long,
		Href: "https://www.openstreetmap.org/?mlat=" + lat + "&mlon=" + long + "#map=16/" + lat + "/" + long,
	}
}

// trackWords are the delivery statuses in the order in which a message reaches them.
var trackWords = []struct {
	at   desk.DeliveryStatus
	word string
}{{desk.Queued, "Queued"}, {desk.Sent, "Sent"}, {desk.Delivered, "Delivered"}, {desk.Read, "Read"}}

// trackStep is the distance between two dots of a track.
const trackStep = 12

func trackOf(d desk.DeliveryStatus) *track {
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
