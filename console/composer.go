package console

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"parley/app"
	"parley/desk"
)

// A quote is a message that a reply answers.
type quote struct {
	ID   desk.ID
	Text string
}

// A windowBar shows the time that is left for free replies to the person.
type windowBar struct {
	Until moment
	Left  string // in words
	Width int    // of the remaining part, out of windowWidth
	Renew int64  // the time at which the bar changes, in milliseconds
}

// windowWidth is the length of the bar when the whole window is left.
const windowWidth = 96

// A snippetList has the snippets that a search has found.
type snippetList struct {
	Find   string
	Asked  bool
	Fields []hiddenField
	List   []snippetLink
	More   bool // the search has found more
	None   bool // the team has no snippets
}

// A snippetLink is a link that fills the reply.
type snippetLink struct{ Shortcut, Text, Href string }

// readComposer reads the data for the foot of a conversation.
func (c *call) readComposer(t *thread, conv *desk.Conversation) error {
	state, err := c.s.app.State(c.r.Context(), c.p, t.ID)
	if err != nil {
		return err
	}
	t.OptedOut = c.when(state.OptedOutSince)
	f := &t.Composer
	f.Unread, f.Reads = state.Talk.Unread, t.Later == "" && (conv.AssignedMember.IsZero() || t.Mine)
	channel := c.p.Settings.Channel(conv.ChannelID)
	now := desk.TimeOf(c.now)
	switch {
	case channel == nil:
	case !channel.Enabled:
		f.Blocked = "This channel is turned off. Nothing can be sent on it."
	case channel.Status.RepliesBlockedAt(now) != "":
		f.Blocked = "Nothing can be sent on this channel now: " + sentence(channel.Status.BlockedAt(now))
	case conv.Status != desk.StatusOpen:
		f.Shut = "This conversation is " + string(conv.Status) + ". Open it again to write here, or send a template."
	case !state.Window.Open:
		f.Shut = c.shut(state.Window, t.Person.Name)
	default:
		f.Window = c.windowBar(state.Window.ClosesAt, now)
	}
	if t.MayWrite() {
		if err := c.fillComposer(t, f); err != nil {
			return err
		}
	}
	if channel != nil && channel.Kind == desk.SandboxChannel && c.may(desk.Simulate) {
		t.Sandbox = true
		list, _, err := c.s.app.Messages(c.r.Context(), c.p, t.ID, "", mostQuoted)
		if err != nil {
			return err
		}
		c.customerForm(&f.Customer, list)
	}
	return nil
}

// MayWrite tells whether there is a form for a reply. The form is there even if nothing
// can be sent, so that it keeps the typed text.
func (t *thread) MayWrite() bool { return t.MaySend && t.Person.Known }

// shut returns a text with the reason why a window is closed.
func (c *call) shut(w desk.WindowState, name string) string {
	at := c.named(w.ClosesAt)
	switch w.Reason {
	case desk.NeverWrote:
		return apart(name) + " never wrote on this channel, so only a template can be sent. Once they answer, you can write freely."
	case desk.ByTheProvider:
		return "The provider lets nobody write to " + apart(name) + " freely now. Send a template, or wait until they write again."
	case desk.NumberChanged:
		return apart(name) + " has a new number since " + at + " and did not write from it yet, so only a template can be sent."
	}
	return apart(name) + " could be answered freely for 24 hours, until " + at + ". Send a template: once they answer, you can write again."
}

const (
	hour       = desk.Time(60 * 60 * 1000)
	fiveMinute = hour / 12
)

// windowBar returns the bar of a window that closes at a given time. In the last hour,
// the bar shows minutes.
func (c *call) windowBar(closes, now desk.Time) *windowBar {
	left := closes - now
	b := &windowBar{Until: c.when(closes), Width: max(1, int(left*windowWidth/desk.WindowLength))}
	step := hour
	b.Left = fmt.Sprintf("%d h left", left/hour)
	if left < hour {
		step = fiveMinute
		b.Left = fmt.Sprintf("%d min left", left/fiveMinute*5)
		if left < fiveMinute {
			b.Left = "less than 5 min left"
		}
	}
	b.Renew = int64(closes - (left-1)/step*step)
	return b
}

// fillComposer fills the form with the values that were sent with it, or with a saved
// reply.
func (c *call) fillComposer(t *thread, f *composer) error {
	sent := c.form.has("reply")
	buttons := c.form.list("button")
	f.Text, f.More = c.form.raw("reply"), len(titles(buttons)) > 0
	for i := range max(len(buttons), desk.MaxButtons) {
		f.Titles = append(f.Titles, choice{Label: fmt.Sprintf("Button %d", i+1)})
		if i < len(buttons) {
			f.Titles[i].Value = buttons[i]
		}
	}
	if c.wholePage() { // a part of a page must not have other data than the part shows
		f.Key = c.form.text("key")
		if !c.ownKey(f.Key) {
			f.Key = c.newKey()
		}
	}
	f.Focus = c.query("done") == "sent"
	quoted := c.query("quote")
	if sent {
		quoted = c.form.text("reply_to")
	}
	if id, ok := desk.ParseID(quoted); ok {
		m, err := c.s.app.Message(c.r.Context(), c.p, t.ID, id)
		if err != nil && !desk.IsType(err, desk.NotFound) {
			return err
		}
		if err == nil && m.ExternalID != "" && m.Kind != desk.KindReaction {
			f.Quote, f.Focus = &quote{ID: id, Text: excerpt(plain(m.Text))}, true
		}
	}
	if id, ok := desk.ParseID(c.form.text("media")); ok && sent {
		m, err := c.s.app.Media.Record(c.r.Context(), c.p, id)
		if err != nil && !desk.IsType(err, desk.NotFound) {
			return err
		}
		if err == nil {
			f.File = &keptFile{ID: id, Name: cmp.Or(m.Name, "A file without a name"), Size: bytesOf(m.Size)}
		}
	}
	if f.Blocked == "" && f.Shut == "" {
		return c.listSnippets(t, f)
	}
	return nil
}

// wholePage reports whether the response has the whole page, or at least its main part.
func (c *call) wholePage() bool {
	part := c.r.Header.Get("Parley-Part")
	return part == "" || part == "main"
}

func (c *call) newKey() string { return c.ownKeys() + c.s.app.NewID().String() }

// ownKeys is the prefix of the Idempotency-Keys of the member's forms. So a form can't
// use the key of a program or of another member.
func (c *call) ownKeys() string { return "console-" + c.p.Actor.ID.String() + "-" }

// ownKey reports whether an Idempotency-Key belongs to one of the member's forms.
func (c *call) ownKey(key string) bool {
	return strings.HasPrefix(key, c.ownKeys()) && desk.CheckIdempotencyKey(key) == nil
}

// excerpt returns the beginning of a text, on one line.
func excerpt(text string) string {
	return beginning(strings.Join(strings.Fields(text), " "), excerptLength)
}

const excerptLength = 80

// bytesOf returns a size as text: 48 KB, 7.2 MB, 21.5 GB.
func bytesOf(n int64) string {
	switch {
	case n < 1000:
		return several(int(n), "byte")
	case n < 999_500:
		return fmt.Sprintf("%d KB", (n+500)/1000)
	}
	unit, one := "MB", 1e6
	if n >= 999_950_000 {
		unit, one = "GB", 1e9
	}
	return strings.Replace(fmt.Sprintf("%.1f %s", float64(n)/one, unit), ".0 ", " ", 1)
}

// savedRows is the number of saved replies that a page lists.
const savedRows = 20

// listSnippets lists the snippets that a search finds. If a snippet was chosen and the
// reply is empty, it fills the reply.
func (c *call) listSnippets(t *thread, f *composer) error {
	agent := c.p.Actor.ID.String()
	list, values, err := c.s.app.Snippets(c.r.Context(), c.p, app.SnippetQuery{Contact: &t.Person.ID, Agent: &agent})
	if err != nil {
		return err
	}
	chosen, q := c.query("snippet"), c.r.URL.Query()
	f.Saved.Find, f.Saved.Asked, f.Saved.None = c.query("snippets"), q.Has("snippets"), len(list) == 0
	f.Saved.Fields = t.List.Query
	find := strings.ToLower(strings.TrimPrefix(strings.TrimSpace(f.Saved.Find), "/"))
	var named, others []*desk.Snippet // matches in the shortcut, and matches in the text
	for i := range list {
		s := &list[i]
		if s.Shortcut == chosen && f.Text == "" {
			f.Text, f.Focus = s.Fill(values), true
		}
		switch {
		case strings.HasPrefix(s.Shortcut, find):
			named = append(named, s)
		case strings.Contains(strings.ToLower(s.Text), find):
			others = append(others, s)
		}
	}
	found := slices.Concat(named, others)
	f.Saved.More = len(found) > savedRows
	for _, s := range found[:min(len(found), savedRows)] {
		f.Saved.List = append(f.Saved.List, snippetLink{s.Shortcut, excerpt(s.Fill(values)), "/inbox/" + t.ID.String() + with(t.Query, "snippet", s.Shortcut)})
	}
	return nil
}
