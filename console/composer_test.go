package console

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"parley/app"
	"parley/desk"
	"parley/store"
)

// sendFile sends a form with a file. The file is the last field, as in browsers.
func (b *browser) sendFile(path, name, kind string, content []byte, pairs ...string) got {
	b.w.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	pairs = append([]string{"member", b.member.ID.String()}, pairs...)
	for i := 0; i+1 < len(pairs); i += 2 {
		if err := form.WriteField(pairs[i], pairs[i+1]); err != nil {
			b.w.t.Fatal(err)
		}
	}
	part, err := form.CreatePart(textproto.MIMEHeader{"Content-Disposition": {fmt.Sprintf(`form-data; name="file"; filename="%s"`, name)}, "Content-Type": {kind}})
	if err == nil {
		_, err = part.Write(content)
	}
	if err == nil {
		err = form.Close()
	}
	if err != nil {
		b.w.t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, path, &body)
	r.Header.Set("Content-Type", form.FormDataContentType())
	return b.do(r)
}

// A replying is a member's browser with an open conversation.
type replying struct {
	*browser
	path string
	page got
}

// looks is called when a member opens a conversation. It returns the page.
func (b *browser) looks(c *desk.Conversation, query string) replying {
	b.w.t.Helper()
	path := "/inbox/" + c.ID.String()
	return replying{b, path, b.get(path + query).want(200)}
}

// fields returns the fields of the reply form, and then the given ones, as pairs.
func (r replying) fields(t *testing.T, pairs ...string) []string {
	t.Helper()
	_, form, ok := strings.Cut(r.page.body, `id="reply"`)
	if !ok {
		t.Fatalf("no form in %s", r.page.body)
	}
	form, _, _ = strings.Cut(form, "</form>")
	var list []string
	for _, name := range []string{"key", "seen_message", "seen_assignee", "seen_status", "next"} {
		list = append(list, name, value(t, form, name))
	}
	for _, name := range []string{"reply_to", "media"} {
		if strings.Contains(form, `name="`+name+`"`) {
			list = append(list, name, value(t, form, name))
		}
	}
	return append(list, pairs...)
}

func (w *world) messages(c *desk.Conversation) []*desk.Message {
	w.t.Helper()
	list, _, err := w.app.Messages(w.t.Context(), w.operator(), c.ID, "", 50)
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

func (w *world) asStored(c *desk.Conversation) *desk.Conversation {
	w.t.Helper()
	v, err := w.app.Conversation(w.t.Context(), w.operator(), c.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

func TestReply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.writes("+34 612 34 56 78", "Lucía Fernández", "Could it be Monday?")
	mei, nora := w.as(w.mei), w.as(w.nora)
	m := mei.looks(c, "")
	m.page.want(200, "Fri 09:25</time>", "23 h left", "Reply to Lucía Fernández", "Mark as read", "data-read")
	first := m.fields(t, "reply", "Yes, Monday.\r\n\r\n  At ten? <b>&")
	mei.post(m.path+"/reply", first...).sends(m.path + "?done=sent")
	mei.get(m.path+"?done=sent").want(200, "Sent.", "yours", "autofocus").lacks("Mark as read").golden("composer/replied")
	// Sending the same form again sends nothing more. Another text with the same key is
	// refused.
	mei.post(m.path+"/reply", first...).sends(m.path + "?done=sent")
	mei.post(m.path+"/reply", append(first[:len(first)-1:len(first)-1], "No.")...).want(409, "Nothing was sent.", ">\nNo.</textarea>")
	list := w.messages(c)
	if len(list) != 2 || list[0].Text != "Yes, Monday.\n\n  At ten? <b>&" || list[0].Author.ID != w.mei.ID {
		t.Errorf("messages: %+v", list[0])
	}
	if v := w.asStored(c); v.AssignedMember != w.mei.ID || v.Talk.Unread != 0 {
		t.Errorf("the conversation: %+v", v)
	}

	// The customer writes after Nora opened the page and before she sends.
	n := nora.looks(c, "")
	fields := n.fields(t, "reply", "Nora here", "button", "Yes", "button", "")
	w.writes("+34 612 34 56 78", "", "Or Tuesday?")
	news := nora.post(n.path+"/reply", fields...).want(409, "Nothing was sent: \u2068Lucía Fernández\u2069 wrote meanwhile", "Or Tuesday?", "Send anyway", ">\nNora here</textarea>", `name="button" value="Yes"`).golden("composer/news")
	if got := w.messages(c); len(got) != 3 {
		t.Errorf("%d messages", len(got))
	}
	_, anyway, _ := strings.Cut(news.body, `id="news"`)
	fields[3] = value(t, anyway, "seen_message")
	nora.post(n.path+"/reply", fields...).sends(n.path + "?done=sent")
	if v := w.asStored(c); v.AssignedMember != w.mei.ID || w.messages(c)[0].Extra.Buttons[0] != (desk.Button{ID: "Yes", Title: "Yes"}) {
		t.Errorf("a reply of another took the conversation of %s", v.AssignedMember)
	}

	// The error of an invalid reply is shown beside the text, and the text stays.
	m = mei.looks(c, "")
	mei.post(m.path+"/reply", m.fields(t, "reply", " ")...).want(422, "Nothing was sent. It is empty", "#f-reply")
	mei.post(m.path+"/reply", m.fields(t, "reply", strings.Repeat("ü", 4097))...).want(422, "It has 4097 characters, and may have 4096", "ü</textarea>")
	mei.post(m.path+"/reply", m.fields(t, "reply", "Hi", "button", "a", "button", "a")...).want(422, "Two buttons are the same", `value="a"`)
	mei.post(m.path+"/reply", m.fields(t, "reply", "Hi", "button", strings.Repeat("a", 21))...).want(422, "up to 20 characters", `value="aaa`)
	mei.post(m.path+"/reply", m.fields(t, "reply", "Hi", "key", "")[2:]...).want(409, "send it again")
	mei.post(m.path+"/reply", append([]string{"key", "order-1"}, m.fields(t, "reply", "Hi")[2:]...)...).want(409)

	// Send and close.
	m = mei.looks(c, "?view=open")
	fields = m.fields(t, "reply", "Bye", "close", "yes")
	for range 2 { // a double click
		mei.post(m.path+"/reply?view=open", fields...).sends("/inbox?view=open&of=" + c.ID.String() + "&done=sent-and-closed")
	}
	if v := w.asStored(c); v.Status != desk.StatusClosed {
		t.Errorf("%+v", v)
	}
	mei.get("/inbox?of="+c.ID.String()+"&done=sent-and-closed").want(200, "Sent and closed. <a")
	mei.get(m.path).want(200, "This conversation is closed", `class="reply shut"`, "Send a template").lacks(">Send</button>").golden("composer/closed")
	// A member replies who has not seen that the conversation is closed now.
	mei.post(m.path+"/reply", append(fields[2:len(fields)-4], "key", fields[1]+"0", "reply", "More")...).
		want(409, "Nothing was sent: it is closed now", "More</textarea>").lacks("anyway")
}

// TestReply_closing: a conversation that changed after the reply stays open.
func TestReply_closing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.writes("+34 612 34 56 78", "Lucía Fernández", "Could it be Monday?")
	mei := w.as(w.mei)
	m := mei.looks(c, "")
	fields := m.fields(t, "reply", "Yes", "close", "yes")
	mei.post(m.path+"/reply", fields[:len(fields)-2]...).sends(m.path + "?done=sent")
	w.writes("+34 612 34 56 78", "", "Great, and one more thing")
	mei.post(m.path+"/reply", fields...).sends(m.path + "?done=sent-only")
	if v := w.asStored(c); v.Status != desk.StatusOpen {
		t.Errorf("%+v", v)
	}
}

// TestReply_closing_taken: a conversation that a colleague takes after the reply stays open.
func TestReply_closing_taken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.writes("+34 612 34 56 78", "Lucía Fernández", "Could it be Monday?")
	mei, tomas := w.as(w.mei), w.as(w.tomas)
	m := mei.looks(c, "")
	fields := m.fields(t, "reply", "Yes", "close", "yes")
	mei.post(m.path+"/reply", fields[:len(fields)-2]...).sends(m.path + "?done=sent")
	his := tomas.looks(c, "")
	tomas.post(m.path+"/assign", his.fields(t, "to", w.tomas.ID.String())...).sends(m.path + "?done=taken")
	mei.post(m.path+"/reply", fields...).sends(m.path + "?done=sent-only")
	if v := w.asStored(c); v.Status != desk.StatusOpen || v.AssignedMember != w.tomas.ID {
		t.Errorf("%+v", v)
	}
}

// TestReply_closing_fails: if the conversation can't be closed now, the page says that the reply
// was sent.
func TestReply_closing_fails(t *testing.T) {
	t.Parallel()
	s := &interrupted{}
	w := newWorldWith(t, func(d *app.Deps) { s.Store, d.Store = d.Store, s })
	c := w.writes("+34 612 34 56 78", "Lucía Fernández", "Could it be Monday?")
	mei := w.as(w.mei)
	m := mei.looks(c, "")
	s.meanwhile = func() { s.fails = errBusy }
	mei.post(m.path+"/reply", m.fields(t, "reply", "Yes", "close", "yes")...).sends(m.path + "?done=sent-only")
	s.fails = nil
	mei.get(m.path+"?done=sent-only").want(200, "Yes")
}

// An interrupted store calls meanwhile, once, after two messages of a conversation were read.
type interrupted struct {
	store.Store
	meanwhile func()
	fails     error // returned with the messages
}

func (s *interrupted) Messages(ctx context.Context, ws, conversation desk.ID, after *desk.MessagePlace, limit int) ([]*desk.Message, *desk.MessagePlace, error) {
	list, next, err := s.Store.Messages(ctx, ws, conversation, after, limit)
	if do := s.meanwhile; limit == 2 && do != nil {
		s.meanwhile = nil
		do()
	}
	return list, next, cmp.Or(s.fails, err)
}

// TestReply_closing_meanwhile: a message that comes between the reply and the closing keeps
// the conversation open.
func TestReply_closing_meanwhile(t *testing.T) {
	t.Parallel()
	s := &interrupted{}
	w := newWorldWith(t, func(d *app.Deps) { s.Store, d.Store = d.Store, s })
	c := w.writes("+34 612 34 56 78", "Lucía Fernández", "Could it be Monday?")
	mei := w.as(w.mei)
	m := mei.looks(c, "")
	s.meanwhile = func() { w.writes("+34 612 34 56 78", "", "Great, and one more thing") }
	mei.post(m.path+"/reply", m.fields(t, "reply", "Yes", "close", "yes")...).sends(m.path + "?done=sent-only")
	if s.meanwhile != nil {
		t.Error("nothing came meanwhile")
	}
	if v := w.asStored(c); v.Status != desk.StatusOpen {
		t.Errorf("%+v", v)
	}
}

func TestReply_window(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.template(pickup)
	c := w.writes("+34 612 34 56 78", "Lucía Fernández", "Hello")
	mei := w.as(w.mei)
	m := mei.looks(c, "")
	fields := m.fields(t, "reply", "I typed this for long")
	w.clock.Add((23 * time.Hour).Milliseconds())
	mei.get(m.path).want(200, "50 min left")
	w.clock.Add((53 * time.Minute).Milliseconds())
	mei.get(m.path).want(200, "less than 5 min left")
	w.clock.Add((5 * time.Minute).Milliseconds())
	mei.get(m.path).want(200, "could be answered freely for 24 hours, until 09:25 (UTC).", "Send a template").lacks(">Send</button>", ">Quote</button>").golden("composer/expired")
	mei.post(m.path+"/reply", fields...).want(422, "Nothing was sent.", "I typed this for long</textarea>").golden("composer/too-late")
	if n := len(w.messages(c)); n != 1 {
		t.Errorf("%d messages", n)
	}
	for reason, want := range map[desk.WindowReason]string{desk.NeverWrote: "never wrote", desk.ByTheProvider: "lets nobody write", desk.NumberChanged: "new number since"} {
		if text := (&call{zone: time.UTC, now: w.server.now()}).shut(desk.WindowState{Reason: reason, ClosesAt: 1}, "Lucía"); !strings.Contains(text, want) {
			t.Errorf("%s: %s", reason, text)
		}
	}
	off := false
	if _, err := w.app.EditChannel(t.Context(), w.operator(), w.channel, app.ChannelEdit{Enabled: &off}); err != nil {
		t.Fatal(err)
	}
	mei.get(m.path).want(200, "This channel is turned off")
}

var png = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89")

func TestReply_file(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, func(d *app.Deps) { d.MaxMedia = 6e6 })
	c := w.writes("+34 612 34 56 78", "Lucía Fernández", "How does it look?")
	mei := w.as(w.mei)
	m := mei.looks(c, "")
	fields := m.fields(t, "reply", "Our shop")
	for range 2 { // a double click: the file arrives twice
		mei.sendFile(m.path+"/reply", `..\shop.png`, "image/png", png, fields...).sends(m.path + "?done=sent")
	}
	list := w.messages(c)
	if len(list) != 2 || list[0].Kind != desk.KindImage || list[0].Text != "[image] Our shop" || list[0].Attachment.Name != "shop.png" {
		t.Errorf("%+v", list[0])
	}
	mei.sendFile(m.path+"/reply", "shop.png", "image/png", append(png, 1), fields...).want(409) // another file with the same key

	// After a refusal, the file is kept.
	fields = mei.looks(c, "").fields(t, "reply", "Look")
	w.writes("+34 612 34 56 78", "", "Hurry")
	news := mei.sendFile(m.path+"/reply", "shop.png", "image/png", png, fields...).want(409, "Send anyway", "shop.png", "33 bytes")
	_, anyway, _ := strings.Cut(news.body, `id="news"`)
	fields[3] = value(t, anyway, "seen_message")
	mei.post(m.path+"/reply", append(fields, "media", value(t, anyway, "media"))...).sends(m.path + "?done=sent")
	if got := w.messages(c)[0]; got.Text != "[image] Look" {
		t.Errorf("%+v", got)
	}
	// The file can be left out.
	m = mei.looks(c, "")
	mei.post(m.path+"/reply", m.fields(t, "reply", "Only text", "media", value(t, anyway, "media"), "without", "yes")...).sends(m.path + "?done=sent")
	if got := w.messages(c)[0]; got.Kind != desk.KindText {
		t.Errorf("%+v", got)
	}

	m = mei.looks(c, "")
	for name, content := range map[string][]byte{"page.html": []byte("<html>"), "x.svg": []byte("<svg xmlns='http://www.w3.org/2000/svg'/>")} {
		mei.sendFile(m.path+"/reply", name, "image/png", content, m.fields(t, "reply", "Look")...).want(422, "take files of this type", ">\nLook</textarea>").lacks(`name="media"`)
	}
	// A file whose name promises another type can still be sent. Both the refusal and the
	// thread mention the real type.
	mei.sendFile(m.path+"/reply", "holiday.JPG", "image/jpeg", []byte("MZ\x90\x00\x03\x00"), m.fields(t, "reply", "Look")...).want(422, "Nothing was sent. The file is not a photo as its name says: it may be a program. The provider does not take")
	sent := m.fields(t, "reply", "Our prices")
	mei.sendFile(m.path+"/reply", "photo.jpg", "image/jpeg", []byte("%PDF-1.7\n"), sent...).sends(m.path + "?done=sent")
	// Its answer may have been lost, and at the second try its file is not stored.
	mei.sendFile(m.path+"/reply", "huge.png", "image/png", append(png, make([]byte, 6e6)...), sent...).want(409, "It is not known whether this was sent", ">\nOur prices</textarea>").lacks("Nothing was sent", ">Send</button>")
	m = mei.looks(c, "")
	m.page.want(200, "photo.jpg</bdi>", "<b>not a photo, but a PDF</b>")
	mei.sendFile(m.path+"/reply", "big.png", "image/png", append(png, make([]byte, 5e6)...), m.fields(t, "reply", "Look")...).want(422, "The file has 5 MB, and the provider takes up to 5 MB", ">\nLook</textarea>")
	mei.sendFile(m.path+"/reply", "huge.png", "image/png", append(png, make([]byte, 6e6)...), m.fields(t, "reply", "Look")...).want(413, "larger than 6 MB", ">\nLook</textarea>")
	mei.sendFile(m.path+"/reply", "empty.png", "image/png", nil, m.fields(t, "reply", "Look")...).want(422, "The file is empty")
	mei.sendFile(m.path+"/reply", "a.png", "image/png", png, m.fields(t, "reply", "Look", "button", "Yes")...).want(422, "Buttons come with a text", "a.png")
	mei.post(m.path+"/reply", m.fields(t, "reply", "Look", "media", w.newID().String())...).want(422, "choose it again")
	mei.sendFile(m.path+"/reply", "", "application/octet-stream", nil, m.fields(t, "reply", "No file")...).sends(m.path + "?done=sent")
	mei.sendFile("/inbox/"+w.newID().String()+"/reply", "nowhere.png", "image/png", png, m.fields(t, "reply", "Look")...).want(404)

	// A refused file is not kept, unless the form refers to it.
	files, err := w.app.Media.List(t.Context(), w.operator(), false, desk.ID{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]bool{}
	for _, f := range files {
		kept[f.Name] = true
	}
	for _, name := range []string{"page.html", "x.svg", "holiday.JPG", "big.png", "huge.png", "empty.png", "nowhere.png"} {
		if kept[name] {
			t.Errorf("%s is kept", name)
		}
	}
	if !kept["a.png"] || !kept["photo.jpg"] {
		t.Errorf("of what the form keeps, or was sent, %v is there", kept)
	}

	// Files of another member's form are not used, and a form without an end is refused.
	other := w.as(w.mei)
	other.member = w.tomas
	before := len(w.messages(c))
	r := httptest.NewRequest(http.MethodPost, m.path+"/reply", strings.NewReader("--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.png\"\r\n\r\n"+string(png)+"\r\n--x--\r\n"))
	r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
	mei.do(r).want(409, "signed in as somebody else")
	for _, body := range []string{"--x\r\nContent-Disposition: form-data; name=\"member\"\r\n\r\n" + w.mei.ID.String(), "", "--x\r\nContent-Disposition: form-data; name=\"member\"\r\n\r\n" + w.mei.ID.String() + "\r\n--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.png\"\r\n\r\nabc"} {
		r := httptest.NewRequest(http.MethodPost, m.path+"/reply", strings.NewReader(body))
		r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
		if g := mei.do(r); g.status != 422 && g.status != 409 {
			t.Errorf("%d: %s", g.status, g.body)
		}
	}
	mei.sendFile(m.path+"/reply", "a.png", "image/png", png, "reply", strings.Repeat("x", maxFields)).want(413, "more text")
	if n := len(w.messages(c)); n != before {
		t.Errorf("%d messages, want %d", n, before)
	}
}

func TestReply_quote(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.writes("+34 612 34 56 78", "Lucía Fernández", "Could it be *Monday*? "+strings.Repeat("long ", 40))
	asked := w.messages(c)[0]
	mei := w.as(w.mei)
	m := mei.looks(c, "?quote="+asked.ID.String())
	m.page.want(200, "Answering", "Could it be Monday? long", "…</bdi>").golden("composer/quote")
	mei.post(m.path+"/reply", m.fields(t, "reply", "Yes")...).sends(m.path + "?done=sent")
	if got := w.messages(c)[0]; got.ReplyTo != asked.ID {
		t.Errorf("%+v", got)
	}
	for _, id := range []string{w.newID().String(), "nonsense", w.messages(w.writes("+34 612 34 56 79", "Otto", "Secret words"))[0].ID.String()} {
		mei.get(m.path+"?quote="+id).want(200).lacks("Answering", "Secret words")
	}
	mei.post(m.path+"/reply", mei.looks(c, "").fields(t, "reply", "Yes", "reply_to", w.newID().String())...).want(422, "Nothing was sent.", "Yes</textarea>")
}

func TestComposer_snippets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.writes("+34 612 34 56 78", "Lucía Fernández", "Hello")
	mei := w.as(w.mei)
	mei.looks(c, "").page.want(200, "There are none yet. Ask an admin")
	w.as(w.nora).looks(c, "").page.want(200, `There are none yet. <a href="/settings/snippets/new">Add one</a>`)
	for shortcut, text := range map[string]string{"hi": "Hi {{customer_first_name}}, this is {{agent_first_name}}.", "bye": "Bye", "away": "We are closed until the hour of nine"} {
		if _, _, err := w.app.PutSnippet(t.Context(), w.operator(), shortcut, text); err != nil {
			t.Fatal(err)
		}
	}
	m := mei.looks(c, "?view=open")
	m.page.want(200, "Hi Lucía, this is Mei.", "/inbox/"+c.ID.String()+"?view=open&amp;snippet=hi").golden("composer/saved")
	mei.get(m.path+"?snippet=hi").want(200, ">\nHi Lucía, this is Mei.</textarea>")
	mei.get(m.path+"?snippet=none").want(200, ">\n</textarea>")
	mei.get(m.path+"?snippets=/BY").want(200, "<b>bye</b>", `value="/BY"`).lacks("<b>hi</b>")
	list := mei.get(m.path+"?snippets=h").want(200, "<b>hi</b>", "<b>away</b>").body
	if strings.Index(list, "<b>hi</b>") > strings.Index(list, "<b>away</b>") { // a match in the name comes before a match in the text
		t.Error("h finds away before hi")
	}
	mei.get(m.path+"?snippets=zz").want(200, "None has that")
	for i := range 30 {
		if _, _, err := w.app.PutSnippet(t.Context(), w.operator(), fmt.Sprintf("more-%d", i), strings.Repeat("語", 4096)); err != nil {
			t.Fatal(err)
		}
	}
	if g := mei.get(m.path).want(200, "There are more: type to find them"); len(g.body) > maxPageBytes {
		t.Errorf("%d bytes", len(g.body))
	}
}

func TestMarkRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.writes("+34 612 34 56 78", "Lucía", "One")
	w.writes("+34 612 34 56 78", "", "Two")
	mei, nora := w.as(w.mei), w.as(w.nora)
	m := mei.looks(c, "")
	message := value(t, m.page.body, "message")
	w.writes("+34 612 34 56 78", "", "Three")
	mei.post(m.path+"/read", "message", message).sends(m.path)
	if n := w.asStored(c).Talk.Unread; n != 1 {
		t.Errorf("%d unread, want the one that came later", n)
	}
	// In a conversation of another member, messages are marked as read only with the
	// button.
	if _, err := w.app.Assign(t.Context(), w.operator(), c.ID, w.nora.ID.String(), nil); err != nil {
		t.Fatal(err)
	}
	mei.get(m.path).want(200, "Mark as read").lacks("data-read")
	nora.get(m.path).want(200, "data-read")
	for _, message := range []string{w.newID().String(), "", "x", desk.ID{}.String()} {
		mei.post(m.path+"/read", "message", message).want(404)
	}

	// Give the conversation back to the pool.
	n := nora.looks(c, "")
	n.page.want(200, "Back to the pool")
	seen := []string{"seen_message", value(t, n.page.body, "seen_message"), "seen_assignee", value(t, n.page.body, "seen_assignee"), "seen_status", "open", "to", "pool"}
	w.writes("+34 612 34 56 78", "", "Four")
	news := nora.post(n.path+"/assign", seen...).want(409, "Give it back anyway", `name="to" value="pool"`)
	_, anyway, _ := strings.Cut(news.body, `id="news"`)
	seen[1] = value(t, anyway, "seen_message")
	nora.post(n.path+"/assign", seen...).sends(n.path + "?done=given-back")
	if v := w.asStored(c); !v.AssignedMember.IsZero() {
		t.Errorf("%+v", v)
	}
	nora.get(n.path).want(200, "unassigned").lacks("Back to the pool")

	// A member on a page of earlier messages has not seen the newest.
	for range threadRows {
		w.writes("+34 612 34 56 78", "", "More")
	}
	_, earlier, _ := strings.Cut(nora.get(n.path).want(200, "data-read").body, `?before=`)
	earlier, _, _ = strings.Cut(earlier, `"`)
	nora.get(n.path+"?before="+earlier).want(200, "Newest messages", "Mark as read").lacks("data-read")
}

func TestWriteAsCustomer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.writes("+34 612 34 56 78", "Lucía", "Hello")
	mei := w.as(w.mei)
	m := mei.looks(c, "")
	mei.post(m.path+"/reply", m.fields(t, "reply", "Two left. Shall I keep one?", "button", "Keep one", "button", "No, thanks")...).sends(m.path + "?done=sent")
	asked := w.messages(c)[0]
	mei.get(m.path).want(200, `<option value="`+asked.ID.String()+`/Keep one">Keep one</option>`).golden("composer/customer")
	at := m.path + "/customer"
	mei.post(at, "text", "", "tap", asked.ID.String()+"/Keep one").sends(m.path)
	if got := w.messages(c)[0]; got.Kind != desk.KindChoice || got.Text != "Keep one" || got.ReplyTo != asked.ID {
		t.Errorf("%+v", got)
	}
	mei.post(at, "text", "Thanks", "to", asked.ID.String()).sends(m.path)
	if got := w.messages(c)[0]; got.Text != "Thanks" || got.ReplyTo != asked.ID {
		t.Errorf("%+v", got)
	}
	mei.post(at, "text", "", "to", asked.ID.String(), "reaction", "👍").sends(m.path)
	if got := w.messages(c)[0]; got.Kind != desk.KindReaction || got.Extra.Reaction.Emoji != "👍" {
		t.Errorf("%+v", got)
	}
	mei.post(at, "text", "", "to", asked.ID.String(), "reaction", "none").sends(m.path)
	mei.post(at, "text", "", "reaction", "👍").want(422, "Choose the message")
	mei.sendFile(at, "shop.png", "image/png", png, "text", "Like this", "tap", "", "to", "", "reaction", "").sends(m.path)
	if got := w.messages(c)[0]; got.Kind != desk.KindImage || got.Text != "[image] Like this" || got.Direction != desk.Inbound {
		t.Errorf("%+v", got)
	}
	mei.sendFile(at, "empty", "image/png", nil, "text", "Like this").want(422, "The file is empty", "Like this</textarea>")
}

// TestReply_outcomes: if the provider refuses a reply, the reason is shown. A reply that
// may have been sent is not sent again.
func TestReply_outcomes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mei := w.as(w.mei)
	for phone, want := range map[string]struct {
		status int
		texts  []string
	}{
		"+34612340001": {422, []string{"Nothing was sent. Message undeliverable. Check the number", ">Send</button>"}},
		"+34612340002": {503, []string{"Nothing was sent. Rate limit hit.", ">Send</button>"}},
		"+34612340003": {409, []string{"It is not known whether this was sent", "Do not send it again", "See how it ends", " readonly"}},
	} {
		c := w.writes(phone, "Lucía", "Hello")
		m := mei.looks(c, "")
		fields := m.fields(t, "reply", "Typed for long")
		for range 2 {
			g := mei.post(m.path+"/reply", fields...).want(want.status, append(want.texts, ">\nTyped for long</textarea>")...)
			_, form, _ := strings.Cut(g.body, `id="reply"`)
			if key := value(t, form, "key"); key != fields[1] {
				t.Errorf("%s: another key", phone)
			}
			if want.status == 409 {
				g.lacks("try again later", ">Send</button>", "data-draft")
			}
		}
		if n := len(w.messages(c)); n != 1 {
			t.Errorf("%s: %d messages", phone, n)
		}
	}

	// A saved reply with an unfilled name is not sent.
	c := w.writes("+34612340009", "", "Hello")
	m := mei.looks(c, "")
	mei.post(m.path+"/reply", m.fields(t, "reply", "Thank you, {{customer_first_name}}!")...).want(422, "Nothing was sent. {{customer_first_name}} is not filled in", ">\nThank you, {{customer_first_name}}!</textarea>")
	if n := len(w.messages(c)); n != 1 {
		t.Errorf("%d messages after a placeholder", n)
	}
}
