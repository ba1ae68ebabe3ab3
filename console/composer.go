package console

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"parley/app"
	"parley/desk"
)

// A composer is the form that answers a conversation, or why it can't be answered now.
type composer struct {
	Key     string
	Text    string
	Titles  []choice // of the buttons
	More    bool     // whether the fields of buttons and file are shown
	Quote   *quote
	File    *keptFile
	Doubt   bool   // whether the message was sent is unknown: no second one
	Blocked string // why nothing can be sent on the channel
	Shut    string // why no reply can be sent, but a template can
	Window  *windowBar
	Focus   bool
	Unread  int
	Reads   bool // whether what is seen counts as read
	Saved   savedReplies

	Customer customerForm
}

// A quote is a message that a reply answers.
type quote struct {
	ID   desk.ID
	Text string
}

// A keptFile is a file that was uploaded with a form which was then refused.
type keptFile struct {
	ID         desk.ID
	Name, Size string
}

// A windowBar is how long the person can still be answered freely.
type windowBar struct {
	Until moment
	Left  string // in words
	Width int    // of what is left, of windowWidth
	Renew int64  // when the bar is another, in milliseconds
}

// windowWidth is the length of the bar that stands for the whole window.
const windowWidth = 96

// savedReplies are those that a search finds.
type savedReplies struct {
	Find   string
	Asked  bool
	Fields []hiddenField
	List   []savedReply
	More   bool // there are others
	None   bool // the team has none
}

// A savedReply is a link that fills the reply.
type savedReply struct{ Shortcut, Text, Href string }

// customerForm is what the form has that writes as the customer.
type customerForm struct {
	Open, More bool
	Text       string
	Taps, To   []choice
	Reactions  []choice
}

// readComposer reads what the foot of a conversation shows.
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

// MayWrite tells whether there is a form for a reply. If it can't be sent, the form still
// keeps what was typed.
func (t *thread) MayWrite() bool { return t.MaySend && t.Person.Known }

// shut says why a window is closed.
func (c *call) shut(w desk.WindowState, name string) string {
	at := c.when(w.ClosesAt).Text
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

// windowBar is the bar of a window that closes at some time. In its last hour it counts
// minutes.
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

// fillComposer fills the form: as it was sent, or from a saved reply.
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
	if c.wholePage() { // a part must not depend on anything but what it shows
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
		m, err := c.s.app.Media(c.r.Context(), c.p, id)
		if err != nil && !desk.IsType(err, desk.NotFound) {
			return err
		}
		if err == nil {
			f.File = &keptFile{ID: id, Name: cmp.Or(m.Name, "A file without a name"), Size: bytesOf(m.Size)}
		}
	}
	if f.Blocked == "" && f.Shut == "" {
		return c.savedReplies(t, f)
	}
	return nil
}

// wholePage tells whether the answer has the whole of a page, or all but what surrounds it.
func (c *call) wholePage() bool {
	part := c.r.Header.Get("Parley-Part")
	return part == "" || part == "main"
}

func (c *call) newKey() string { return c.ownKeys() + c.s.app.NewID().String() }

// ownKey tells whether an Idempotency-Key is one of the member's forms.
func (c *call) ownKey(key string) bool {
	return strings.HasPrefix(key, c.ownKeys()) && desk.CheckIdempotencyKey(key) == nil
}

// excerpt is the beginning of a text, on one line.
func excerpt(text string) string {
	return beginning(strings.Join(strings.Fields(text), " "), excerptLength)
}

const excerptLength = 80

// bytesOf writes a size: 48 KB, 7.2 MB, 21.5 GB.
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

// savedRows is how many saved replies a page lists.
const savedRows = 20

// savedReplies lists the saved replies that a search finds, and fills the one that was
// chosen into an empty reply.
func (c *call) savedReplies(t *thread, f *composer) error {
	agent := c.p.Actor.ID.String()
	list, values, err := c.s.app.Snippets(c.r.Context(), c.p, app.SnippetQuery{Contact: &t.Person.ID, Agent: &agent})
	if err != nil {
		return err
	}
	chosen, q := c.query("snippet"), c.r.URL.Query()
	f.Saved.Find, f.Saved.Asked, f.Saved.None = c.query("snippets"), q.Has("snippets"), len(list) == 0
	f.Saved.Fields = t.List.Query
	find := strings.ToLower(strings.TrimPrefix(strings.TrimSpace(f.Saved.Find), "/"))
	var named, others []*desk.Snippet // found by the shortcut, or by the text
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
		f.Saved.List = append(f.Saved.List, savedReply{s.Shortcut, excerpt(s.Fill(values)), "/inbox/" + t.ID.String() + with(t.Query, "snippet", s.Shortcut)})
	}
	return nil
}

// reply sends a free message.
func (s *Server) reply(c *call) error {
	id := c.id("id")
	r, err := c.replyRequest(id)
	if err != nil {
		return c.notReplied(err)
	}
	request, _ := desk.ParseID(c.w.RequestID())
	seen := c.seen()
	if _, err := s.app.Reply(c.r.Context(), c.p, r, request, seen); err != nil {
		return c.notReplied(err)
	}
	if !c.form.has("close") {
		return c.backTo(id, "sent")
	}
	return c.closeAfter(id, seen.Message)
}

// replyRequest reads the form, and stores its file.
func (c *call) replyRequest(id desk.ID) (*desk.ReplyRequest, error) {
	r := &desk.ReplyRequest{Key: c.form.text("key"), Conversation: id, Text: c.form.raw("reply")}
	file, err := c.replyFile()
	if err != nil {
		return nil, err
	}
	if !c.ownKey(r.Key) {
		return nil, desk.Errorf(desk.IdempotencyKeyReused, "this form could not be sent: send it again")
	}
	if name := unfilled(r.Text); name != "" {
		return nil, desk.InvalidAt("/text", "%s is not filled in: write what belongs there, or leave it out", name)
	}
	asked := url.Values{"conversation": {id.String()}, "text": {r.Text}}
	if file != nil {
		if r.Attachment = (&desk.SentAttachment{Media: file.ID, Caption: r.Text}); strings.TrimSpace(r.Text) == "" {
			r.Attachment.Caption = ""
		}
		r.Text = ""
		// The same file may come twice, as two records.
		asked["file"] = []string{hex.EncodeToString(file.SHA256), file.Name}
	}
	for _, title := range titles(c.form.list("button")) {
		r.Buttons = append(r.Buttons, desk.Button{ID: title, Title: title})
		asked.Add("button", title)
	}
	if quoted, ok := desk.ParseID(c.form.text("reply_to")); ok {
		r.ReplyTo = desk.Field[desk.ID]{Set: true, Value: quoted}
		asked.Set("reply_to", quoted.String())
	}
	r.Hash = c.s.app.BodyHash([]byte(asked.Encode()))
	err = r.Check()
	if at := desk.AsError(err).At; err != nil && strings.HasPrefix(at, "/buttons/") {
		err = desk.Invalidf("a button may have up to %d characters, on one line", desk.MaxButtonTitle)
		if strings.HasSuffix(at, "/id") {
			err = desk.Invalidf("two buttons are the same")
		}
	}
	return r, err
}

// unfilled is a placeholder of saved replies that a text still has, "" if it has none.
func unfilled(text string) string {
	for _, b := range desk.Bindings {
		if name := "{{" + string(b) + "}}"; b != desk.Free && strings.Contains(text, name) {
			return name
		}
	}
	return ""
}

// titles are those of the buttons that were filled in.
func titles(fields []string) (list []string) {
	for _, title := range fields {
		if title = strings.TrimSpace(title); title != "" {
			list = append(list, title)
		}
	}
	return list
}

// replyFile stores the form's file, or finds the one that was kept of a refused form; nil:
// there is none.
func (c *call) replyFile() (m *desk.Media, err error) {
	switch f := c.form.file; {
	case f != nil:
		m, err = c.s.app.Upload(c.r.Context(), c.p, f.Name, f.Type, f.Content)
		err = c.uploaded(err)
	case c.form.text("media") != "" && !c.form.has("without"):
		id, _ := desk.ParseID(c.form.text("media"))
		m, err = c.s.app.Media(c.r.Context(), c.p, id)
		if desk.IsType(err, desk.NotFound) {
			err = desk.Invalidf("the file is not there any more: choose it again")
		}
	}
	c.form.values.Del("media")
	if m != nil && err == nil {
		c.form.values.Set("media", m.ID.String())
	}
	return m, err
}

// notReplied answers a reply that was not sent. Its file goes, unless the form that is shown
// keeps it.
func (c *call) notReplied(err error) error {
	file, sent := desk.ParseID(c.form.text("media"))
	shown := c.refusedReply(err)
	if sent && (shown != nil || c.form.text("media") == "") {
		// A message may have it by now. If this fails otherwise, the file goes after a day, as
		// all uploads that are in no message.
		_ = c.s.app.DeleteMedia(context.WithoutCancel(c.r.Context()), c.p, file)
	}
	return shown
}

// refusedReply shows the conversation with the reason why a reply was not sent, and with
// what was typed.
func (c *call) refusedReply(err error) error {
	e := *desk.AsError(err)
	id := c.id("id")
	switch e.Type {
	case desk.NotFound, desk.Unauthorized, desk.Forbidden:
		return err
	case desk.Changed:
		return c.changed(func(t *thread) { c.askToSend(t) })
	case desk.ConversationNotOpen:
		if c.seen().Status == desk.StatusOpen {
			return c.changed(func(t *thread) { t.News.Heading = "Nothing was sent: it is " + string(t.Status) + " now" })
		}
	case desk.IdempotencyKeyReused:
		c.form.values.Del("key")
	case desk.PayloadTooLarge:
		e.Message = "the file is larger than " + bytesOf(c.s.app.MaxMedia()) + ", the most that this server takes"
	case desk.MediaNotSendable, desk.MediaUnavailable:
		file, _ := desk.ParseID(c.form.text("media"))
		c.form.values.Del("media")
		if why, ok := e.Details.(desk.UnsendableMedia); ok {
			e.Message = unsendable(why)
			if m, readErr := c.s.app.Media(c.r.Context(), c.p, file); readErr == nil && belied(m) != "" {
				e.Message = "the file is " + belied(m) + ". " + sentence(e.Message)
			}
		}
	case desk.SendOutcomeUnknown:
		e.Message = answerLost
	}
	if f, ok := e.Details.(desk.Failure); ok {
		e.Message = sentence(f.Title) + " " + sentence(f.Fix)
	}
	doubt := e.Type == desk.SendOutcomeUnknown || e.Type == desk.SendInProgress
	if !doubt {
		e.Message = "Nothing was sent. " + sentence(e.Message)
	}
	e.At = map[string]string{"/text": "/reply", "/attachment/caption": "/reply"}[e.At]
	t, readErr := c.readThread(id)
	if desk.IsType(readErr, desk.NotFound) {
		return readErr
	}
	if readErr != nil {
		return err
	}
	t.Composer.Doubt = doubt
	return c.again("conversation", t.view(), &e)
}

// askToSend shows what has changed, and asks whether the reply is to be sent all the same.
func (c *call) askToSend(t *thread) {
	t.News.Action, t.News.Button, t.News.Sends = "/inbox/"+t.ID.String()+"/reply"+t.Query, "Send anyway", true
	t.News.Heading = strings.Replace(t.News.Heading, "Nothing was done", "Nothing was sent", 1)
	for _, name := range []string{"key", "reply", "button", "reply_to", "media", "next", "close"} {
		for _, v := range c.form.list(name) {
			t.News.Fields = append(t.News.Fields, hiddenField{name, v})
		}
	}
	if c.form.has("close") {
		t.News.Button = "Send and close anyway"
	}
}

// unsendable says why the provider does not take a file.
func unsendable(why desk.UnsendableMedia) string {
	switch why.Reason {
	case "size":
		return "the file has " + bytesOf(why.Size) + ", and the provider takes up to " + bytesOf(why.Max) + " of this type"
	case "caption":
		return "a file of this type has no text with it: send the file without the text, and the text after it"
	}
	return "the provider does not take files of this type: send pictures as JPEG or PNG, videos as MP4, sounds as MP3, M4A, AAC, AMR or Ogg, and documents as PDF, text or Office files"
}

// closeAfter closes a conversation after a reply, unless something came between what the
// member saw and the reply.
func (c *call) closeAfter(id, seen desk.ID) error {
	ctx, a := c.r.Context(), c.s.app
	conv, err := a.Conversation(ctx, c.p, id)
	if err != nil {
		return err
	}
	list, _, err := a.Messages(ctx, c.p, id, "", 2)
	if err != nil {
		return err
	}
	var newest, before desk.ID
	if len(list) > 0 {
		newest = list[0].ID
	}
	if len(list) > 1 {
		before = list[1].ID
	}
	if before == seen {
		_, err = a.SetStatus(ctx, c.p, id, desk.StatusClosed, &app.Seen{Message: newest, Assignee: conv.AssignedMember})
	}
	if before != seen || desk.IsType(err, desk.Changed) {
		return c.backTo(id, "sent-only")
	}
	if err != nil {
		return err
	}
	return c.goOn(id, "sent-and-closed")
}

// markRead marks what the member has seen of a conversation.
func (s *Server) markRead(c *call) error {
	id := c.id("id")
	message, _ := desk.ParseID(c.form.text("message"))
	if _, err := s.app.MarkRead(c.r.Context(), c.p, id, message, true); err != nil {
		return err
	}
	return c.backTo(id, "")
}

// mostQuoted is how many messages are offered for the customer to answer.
const mostQuoted = 10

// customerForm fills the form that writes as the customer. messages are the newest first.
func (c *call) customerForm(f *customerForm, messages []*desk.Message) {
	if c.form.has("text") {
		f.Open, f.Text = true, c.form.raw("text")
	}
	pick := func(name string, list []choice) []choice {
		for i := range list {
			list[i].Selected = list[i].Value == c.form.text(name)
			f.More = f.More || list[i].Selected && list[i].Value != ""
		}
		return list
	}
	f.Taps, f.To = []choice{{Label: "No button"}}, []choice{{Label: "No message"}}
	for _, m := range messages {
		if m.ExternalID == "" || m.Kind == desk.KindReaction {
			continue
		}
		f.To = append(f.To, choice{Value: m.ID.String(), Label: excerpt(plain(m.Text))})
		if m.Content == nil {
			continue
		}
		for _, b := range m.Content.Buttons {
			f.Taps = append(f.Taps, choice{Value: m.ID.String() + "/" + b.ID, Label: b.Title})
		}
	}
	f.Taps, f.To = pick("tap", f.Taps), pick("to", f.To)
	f.Reactions = pick("reaction", []choice{{Label: "None"}, {Value: "👍", Label: "👍"}, {Value: "❤️", Label: "❤️"}, {Value: "😂", Label: "😂"}, {Value: "🙏", Label: "🙏"}, {Value: noReaction, Label: "Take it back"}})
}

// noReaction takes a reaction back.
const noReaction = "none"

// writeAsCustomer puts a message of the customer into a sandbox.
func (s *Server) writeAsCustomer(c *call) error {
	m := app.Simulated{Text: c.form.raw("text"), ReplyTo: c.form.text("to")}
	if tapped, button, ok := strings.Cut(c.form.text("tap"), "/"); ok {
		m.ReplyTo, m.Choice = tapped, button
	}
	if emoji := c.form.text("reaction"); emoji != "" {
		if emoji == noReaction {
			emoji = ""
		}
		m.Reaction = &emoji
	}
	f := c.form.file
	if f != nil {
		m.File = &app.SimulatedFile{Name: f.Name, Type: f.Type, Content: f.Content}
	}
	v, err := s.app.WriteAsCustomer(c.r.Context(), c.p, c.id("id"), m)
	if f != nil {
		err = c.uploaded(err)
	}
	if desk.IsType(err, desk.InvalidRequest) && desk.AsError(err).At == "/reply_to" {
		err = desk.Invalidf("choose the message to which the customer reacts")
	}
	if err != nil {
		return c.refused(err)
	}
	return c.backTo(v.ID, "")
}
