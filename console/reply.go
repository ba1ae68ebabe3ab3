package console

import (
	"cmp"
	"context"
	"encoding/hex"
	"net/url"
	"strings"

	"parley/app"
	"parley/desk"
)

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
	return c.closeAfter(id, seen)
}

// replyRequest reads the form, and stores its file.
func (c *call) replyRequest(id desk.ID) (*desk.ReplyRequest, error) {
	r := &desk.ReplyRequest{Key: c.form.text("key"), Conversation: id, Text: c.form.raw("reply")}
	file, err := c.sentFileOf()
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
		// If the form is sent twice, its file is stored as two records, so the hash and the
		// name identify the file.
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

// sentFileOf is formFile for a form that sends something. If the file is not stored, but the form was
// sent before, the error is that its outcome is not known.
func (c *call) sentFileOf() (*desk.Media, error) {
	m, err := c.formFile()
	if key := c.form.text("key"); err != nil && c.ownKey(key) {
		if tried, lookErr := c.s.app.Tried(c.r.Context(), c.p, key); tried && lookErr == nil {
			return nil, desk.Errorf(desk.SendOutcomeUnknown, "%s", answerLost)
		}
	}
	return m, err
}

// unfilled returns a placeholder of saved replies that a text still has, or "".
func unfilled(text string) string {
	for _, b := range desk.Bindings {
		if name := "{{" + string(b) + "}}"; b != desk.Free && strings.Contains(text, name) {
			return name
		}
	}
	return ""
}

// titles returns the titles of the buttons that are filled in.
func titles(fields []string) (list []string) {
	for _, title := range fields {
		if title = strings.TrimSpace(title); title != "" {
			list = append(list, title)
		}
	}
	return list
}

// notReplied responds to a reply that was not sent. It deletes the reply's file, unless
// the page that it shows still needs the file.
func (c *call) notReplied(err error) error {
	file, sent := desk.ParseID(c.form.text("media"))
	shown := c.refusedReply(err)
	if sent && (shown != nil || c.form.text("media") == "") {
		// Deleting fails if a message uses the file by now. After any other failure, the
		// file is deleted a day later, like all uploads that no message uses.
		_ = c.s.app.Media.Delete(context.WithoutCancel(c.r.Context()), c.p, file)
	}
	return shown
}

// refusedReply shows the conversation with the reason why a reply was not sent, and with
// the typed text.
func (c *call) refusedReply(err error) error {
	if turn := c.takeTurn(); turn != nil { // before the thread is read
		return cmp.Or(doubtOf(err), turn)
	}
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
		e.Message = "the file is larger than " + bytesOf(c.s.app.Media.MaxSize) + ", the most that this server takes"
	case desk.MediaNotSendable, desk.MediaUnavailable:
		file, _ := desk.ParseID(c.form.text("media"))
		c.form.values.Del("media")
		if why, ok := e.Details.(desk.UnsendableMedia); ok {
			e.Message = unsendable(why)
			if m, readErr := c.s.app.Media.Record(c.r.Context(), c.p, file); readErr == nil && belied(m) != "" {
				e.Message = "the file is " + belied(m) + ". " + sentence(e.Message)
			}
		}
	case desk.SendOutcomeUnknown:
		e.Message = answerLost
	}
	if f, ok := e.Details.(desk.Failure); ok {
		e.Message = sentence(f.Title) + " " + sentence(f.Fix)
	}
	doubt := doubtOf(&e) != nil
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

// askToSend shows what has changed, and asks whether to send the reply anyway.
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

// unsendable says why the provider does not accept a file.
func unsendable(why desk.UnsendableMedia) string {
	switch why.Reason {
	case "size":
		return "the file has " + bytesOf(why.Size) + ", and the provider takes up to " + bytesOf(why.Max) + " of this type"
	case "caption":
		return "a file of this type has no text with it: send the file without the text, and the text after it"
	}
	return "the provider does not take files of this type: send pictures as JPEG or PNG, videos as MP4, sounds as MP3, M4A, AAC, AMR or Ogg, and documents as PDF, text or Office files"
}

// closeAfter closes a conversation after a reply. It stays open if a message came, or somebody
// else took it, after the member had opened the page; and if it can't be closed now: the reply
// was sent.
func (c *call) closeAfter(id desk.ID, seen *app.Seen) error {
	err := c.closeReplied(id, seen)
	if err == nil {
		return c.goOn(id, "sent-and-closed")
	}
	if !desk.IsType(err, desk.Changed) {
		c.w.Explain(desk.AsError(err))
	}
	return c.backTo(id, "sent-only")
}

// closeReplied closes a conversation if nothing but the reply came after what the member saw. It
// returns Changed if something else did.
func (c *call) closeReplied(id desk.ID, seen *app.Seen) error {
	ctx, a := c.r.Context(), c.s.app
	list, _, err := a.Messages(ctx, c.p, id, "", 2)
	if err != nil {
		return err
	}
	after := app.Seen{Assignee: seen.Assignee}
	if after.Assignee.IsZero() {
		after.Assignee = c.p.Actor.ID // a reply takes a conversation that nobody holds
	}
	var before desk.ID
	if len(list) > 0 {
		after.Message = list[0].ID
	}
	if len(list) > 1 {
		before = list[1].ID
	}
	if before != seen.Message {
		return desk.Errorf(desk.Changed, "somebody wrote meanwhile")
	}
	_, err = a.SetStatus(ctx, c.p, id, desk.StatusClosed, &after)
	return err
}

// markRead marks the messages that the member has seen as read.
func (s *Server) markRead(c *call) error {
	id := c.id("id")
	message, ok := desk.ParseID(c.form.text("message"))
	if !ok || message.IsZero() { // to MarkRead, the zero id means all messages
		return errNotHere
	}
	if _, err := s.app.MarkRead(c.r.Context(), c.p, id, message, true); err != nil {
		return err
	}
	return c.backTo(id, "")
}
