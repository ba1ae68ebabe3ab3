package console

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"

	"parley/app"
	"parley/desk"
)

const pickup = `{"name":"pickup_ready","language":"en","status":"APPROVED","category":"UTILITY","components":[
	{"type":"HEADER","format":"TEXT","text":"Order {{1}}","example":{"header_text":["A-17"]}},
	{"type":"BODY","text":"Hi {{1}}, your order is ready. Ask for {{2}} at https://harbour.example/shop","example":{"body_text":[["Ann","Nora"]]}},
	{"type":"FOOTER","text":"Harbour Books"},{"type":"BUTTONS","buttons":[{"type":"QUICK_REPLY","text":"On my way"}]}]}`

func (w *world) template(source string) *desk.Template {
	w.t.Helper()
	t, err := w.app.PutTemplate(w.t.Context(), w.operator(), w.channel, []byte(source))
	if err != nil {
		w.t.Fatal(err)
	}
	return t
}

// contact stores a person with a name and a phone number.
func (w *world) contact(name, digits string) *desk.Contact {
	w.t.Helper()
	out, err := w.app.Write(w.t.Context(), w.operator(), &desk.Op{Write: desk.ContactWrite{
		Name: desk.Field[string]{Set: true, Value: name}, Phone: desk.Field[string]{Set: true, Value: digits}, Sent: []desk.Identity{{Kind: desk.KindPhone, Value: digits}},
	}})
	if err != nil {
		w.t.Fatal(err)
	}
	return out.Contact
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nora, mei := w.as(w.nora), w.as(w.mei)
	nora.get("/templates").want(200, "No templates yet", "New template")
	mei.get("/templates").want(200, "No templates yet").lacks("New template")
	path := "/templates/" + w.channel.String()
	nora.get(path + "/new").want(200)
	nora.post(path+"/new", "source", "{").want(422, "not JSON")
	nora.post(path+"/new", "source", pickup).sends(path + "/pickup_ready/en?done=saved")
	w.template(`{"name":"held","language":"de","status":"PENDING","category":"MARKETING","components":[{"type":"BODY","text":"Hallo"}]}`)
	w.template(`{"name":"rated","language":"en","status":"REJECTED","rejected_reason":"INVALID_FORMAT","quality_score":{"score":"RED"},"category":"MARKETING","components":[{"type":"BODY","text":"Hi"}]}`)
	mei.get(path+"/rated/en").want(200, "The review says: Invalid format.", "quality <span class=\"pill bad\">Low</span>")
	nora.get("/templates").want(200, "pickup_ready", "Can be sent", "Pending").golden("templates/list")
	nora.get(path+"/pickup_ready/en").want(200, "<mark title=\"Value 1\">Ann</mark>", "Harbour Books", "On my way", "Send it").golden("templates/admin")
	mei.get(path+"/pickup_ready/en").want(200, "Value 2").lacks("<select").golden("templates/agent")
	nora.get(path+"/held/de").want(200, "The provider has not approved it").lacks("Send it")
	nora.post(path+"/pickup_ready/en", "bind.1", "customer_first_name", "bind.2", "agent_name", "bind.header.1", "guess").sends(path + "/pickup_ready/en?done=saved")
	mei.get(path+"/pickup_ready/en").want(200, "The contact&#39;s first name", "The sender&#39;s name")
	mei.post(path+"/pickup_ready/en", "bind.1", "free").want(403, "An admin can do it", "Nora Lindqvist")
	nora.post(path+"/pickup_ready/en", "bind.1", "nonsense").want(422)
	mei.post(path+"/new", "source", pickup).want(403)
	nora.get(path + "/gone/en").want(404)
}

// TestTemplates_pages: a large library is shown in pages.
func TestTemplates_pages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range templateRows + 1 {
		w.template(fmt.Sprintf(`{"name":"notice_%03d","language":"en","status":"APPROVED","category":"UTILITY","components":[{"type":"BODY","text":%q}]}`, i, strings.Repeat("Your order is ready. ", 10)))
	}
	mei := w.as(w.mei)
	page := mei.get("/templates").want(200, "notice_000", "notice_099", "Next 100").lacks("notice_100", "From the first")
	if len(page.body) > maxPageBytes {
		t.Errorf("%d bytes", len(page.body))
	}
	next := "/templates?channel=" + w.channel.String() + "&after=notice_099%2Fen"
	page.want(200, html.EscapeString(next))
	mei.get(next).want(200, "notice_100", "From the first").lacks("notice_099<", "Next 100")
	mei.get("/templates?after=zzz").want(200, "From the first")
}

func TestSend(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.template(pickup)
	lucia := w.contact("Lucía Fernández", "34612345678")
	mei := w.as(w.mei)
	mei.get("/send").want(200, "To whom?")
	w.indexed()
	mei.get("/send?find=lucia").want(200, "Lucía Fernández")
	mei.get("/send?find=612+34+56+78").want(200, "Lucía Fernández", "/send?contact="+lucia.ID.String())
	mei.get("/send?find=nobody@example.com").want(200, "Nobody fits")
	path := "/send?contact=" + lucia.ID.String()
	mei.get(path).want(200, "Find a template", "<b>pickup_ready</b>", "English (en)", "your order is ready").golden("send/choose")
	page := mei.get(path+"&template=pickup_ready/en").want(200, "For example: A-17", "agreed to get messages", "pickup_ready · English (en)", `Hi </span><mark>Value 1</mark><span class="soft">, your order is ready. Ask for …</span>`, `Order </span><mark>Value 1 (title)</mark>`).golden("send/form")
	key := value(t, page.body, "key")
	fields := []string{"contact", lucia.ID.String(), "channel", w.channel.String(), "template", "pickup_ready/en", "key", key, "value.header.1", "A-99", "value.1", "Lucía", "value.2", ""}
	mei.post("/send", append(fields, "preview", "yes")...).want(200, "A-99")
	mei.post("/send", fields...).want(422, "Nothing was sent yet", "Tick this if it is so", "Fill this in", `<a href="#f-value-2">…, your order is ready. Ask for [Value 2] at`).golden("send/refused")
	fields = append(fields, "opt_in", "yes")
	mei.post("/send", fields...).want(422, "Fill this in")
	fields[13] = "Mei"
	at := mei.post("/send", fields...).header.Get("Location")
	if !strings.HasPrefix(at, "/inbox/") || !strings.HasSuffix(at, "?view=open&done=sent") {
		t.Fatalf("sent to %q", at)
	}
	mei.get(at).want(200, "Order A-99", "Ask for Mei")
	// Sending the same form again, as with a double click, sends nothing more.
	if again := mei.post("/send", fields...).header.Get("Location"); again != at {
		t.Errorf("again: %q, want %q", again, at)
	}
	attempts, _, err := w.app.Attempts(t.Context(), w.operator(), app.AttemptFilter{}, "", 10)
	if err != nil || len(attempts) != 1 || attempts[0].Actor != (desk.Actor{Kind: desk.ByMember, ID: w.mei.ID}) {
		t.Errorf("attempts: %v, %v", attempts, err)
	}
	// A form can't use the key of a program or of another member.
	fields[7] = "order-1234"
	mei.post("/send", fields...).want(409)
	fields[7] = key
	// A key that is used for another text is refused.
	fields[11] = "Lucy"
	mei.post("/send", fields...).want(409)
	// The channel is turned off while the form is open: the message must not go to another
	// channel.
	other, _, err := w.app.AddChannel(t.Context(), w.operator(), app.NewChannel{Kind: desk.SandboxChannel, ExternalID: "returns"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.app.PutTemplate(t.Context(), w.operator(), other.Channel.ID, []byte(pickup)); err != nil {
		t.Fatal(err)
	}
	off := false
	if _, err := w.app.EditChannel(t.Context(), w.operator(), w.channel, app.ChannelEdit{Enabled: &off}); err != nil {
		t.Fatal(err)
	}
	fields[11] = "Lucía"
	if again := mei.post("/send", fields...).header.Get("Location"); again != at { // it was sent before
		t.Errorf("again, on a channel that is turned off: %q, want %q", again, at)
	}
	fields[11] = "Lucy"
	mei.post("/send", fields...).want(422, "turned off meanwhile")
	fresh := mei.get(path + "&template=pickup_ready/en").want(200)
	fields[7] = value(t, fresh.body, "key")
	mei.post("/send", fields...).want(422, "Error: To Luc", "turned off meanwhile", `value="A-99"`)
	if attempts, _, err := w.app.Attempts(t.Context(), w.operator(), app.AttemptFilter{}, "", 10); err != nil || len(attempts) != 1 {
		t.Errorf("attempts: %v, %v", attempts, err)
	}
	if _, err := w.app.EditChannel(t.Context(), w.operator(), other.Channel.ID, app.ChannelEdit{Enabled: &off}); err != nil {
		t.Fatal(err)
	}
	mei.get(path).want(200, "There is no channel that is turned on", "An admin can turn one on")
	mei.post("/send", fields...).want(422, "All channels were turned off meanwhile. Nothing was sent.")
	w.as(w.nora).get(path).want(200, `<a href="/settings/channels">Channels</a>`)
}

// TestSend_paused: a template that can't be sent any more leaves what was typed, with the reason.
func TestSend_paused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.template(pickup)
	lucia := w.contact("Lucía Fernández", "34612345678")
	mei := w.as(w.mei)
	page := mei.get("/send?contact=" + lucia.ID.String() + "&template=pickup_ready/en").want(200)
	fields := []string{"contact", lucia.ID.String(), "channel", w.channel.String(), "template", "pickup_ready/en", "key", value(t, page.body, "key"), "value.header.1", "A-99", "value.1", "Lucía", "value.2", "Mei", "opt_in", "yes"}
	at, sent := mei.post("/send", fields...).header.Get("Location"), fields[7]
	if !strings.HasPrefix(at, "/inbox/") {
		t.Fatalf("sent to %q", at)
	}
	fields[7] = value(t, mei.get("/send?contact="+lucia.ID.String()+"&template=pickup_ready/en").body, "key")
	w.template(strings.Replace(pickup, "APPROVED", "PAUSED", 1))
	fresh := fields[7]
	fields[7] = sent
	if again := mei.post("/send", fields...).header.Get("Location"); again != at { // the first answer was lost
		t.Errorf("again: %q, want %q", again, at)
	}
	fields[7] = fresh
	mei.post("/send", fields...).want(422, "Error: To Luc", `id="summary"`, "This template can&#39;t be sent on this channel now. Nothing was sent.", `value="A-99"`, `name="opt_in" type="checkbox" value="yes" checked`).golden("send/paused")
	mei.post("/send", append(fields, "preview", "yes")...).want(200, "A-99")
	fields[5] = "gone/en"
	mei.post("/send", fields...).want(422, "Error: To Luc", "This template can&#39;t be sent on this channel now. Nothing was sent.", "Find a template")
	fields[5] = ""
	mei.post("/send", fields...).want(422, "Error: To Luc", "Choose a template")
	if attempts, _, err := w.app.Attempts(t.Context(), w.operator(), app.AttemptFilter{}, "", 10); err != nil || len(attempts) != 1 {
		t.Errorf("attempts: %v, %v", attempts, err)
	}
}

// TestSend_file: a template with a file in its title and a link. The file is kept while other
// fields are mended, and goes with a refusal of its own.
func TestSend_file(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.template(`{"name":"poster","language":"en","status":"APPROVED","category":"UTILITY","components":[{"type":"HEADER","format":"IMAGE"},{"type":"BODY","text":"[New] Look, {{1}}!"},
		{"type":"BUTTONS","buttons":[{"type":"QUICK_REPLY","text":"Stop"},{"type":"URL","text":"Track it","url":"https://shop.example/o/{{1}}","example":["https://shop.example/o/A1"]},{"type":"PHONE_NUMBER","text":"Call","phone_number":"+34612345670"}]}]}`)
	lucia := w.contact("Lucía Fernández", "34612345678")
	mei := w.as(w.mei)
	mei.get("/templates").want(200, "poster", "Can be sent")
	mei.get("/templates/"+w.channel.String()+"/poster/en").want(200, "Each send also needs", "A file for its title: A JPEG or PNG", "The end of the link of", "Send it", "https://shop.example/o/", "A1", "&#43;34612345670").lacks("Why it can&#39;t be sent")
	path := "/send?contact=" + lucia.ID.String()
	mei.get(path).want(200, "<b>poster</b>")
	page := mei.get(path+"&template=poster/en").want(200, `enctype="multipart/form-data"`, "Track it: https://shop.example/o/", "For example: A1", "Picture in the title", `accept="image/jpeg,image/png"`).golden("send/file")
	values := func(link string, more ...string) []string {
		return append([]string{"contact", lucia.ID.String(), "channel", w.channel.String(), "template", "poster/en", "key", value(t, page.body, "key"), "value.1", "Lucía", "value.button.1", link}, more...)
	}
	files := func() int {
		list, err := w.app.Media.List(t.Context(), w.operator(), false, desk.ID{}, 10)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	mei.post("/send", values("A-17", "opt_in", "yes")...).want(422, "Choose a file", `<a href="#f-title">`)
	for name, content := range map[string]string{"a.mp4": "\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom", "page.png": "<html>", "a.gif": "GIF89a\x01\x00\x01\x00"} {
		mei.sendFile("/send", name, "image/png", []byte(content), values("A-17", "opt_in", "yes")...).want(422, "Nothing was sent: the file is not right", "takes a JPEG or PNG picture").lacks(`name="media"`)
	}
	mei.sendFile("/send", "a.png", "image/png", nil, values("A-17", "opt_in", "yes")...).want(422, "Nothing was sent")
	if n := files(); n != 0 {
		t.Errorf("%d files of refused forms are left", n)
	}
	kept := mei.sendFile("/send", "a.png", "image/png", png, values("A 17", "opt_in", "yes")...).want(422, "some values are not right", "no white space", "a.png", "33 bytes", `<a href="#f-value-button-1">`).golden("send/file-kept")
	media := value(t, kept.body, "media")
	kept.want(422, `<img src="/media/`+media+`" alt="a.png">`)
	mei.sendFile("/send?preview=yes", "b.png", "image/png", append(png, 1), values("A-17")...).want(200, "b.png", "34 bytes", `<mark title="End of the link">A-17</mark>`)
	mei.post("/send", values("A-17", "preview", "yes", "named", `C:\c.png`)...).want(200, "<bdi>c.png</bdi>").lacks("<img src")
	at := mei.post("/send", values("A-17", "opt_in", "yes", "media", media)...).header.Get("Location")
	if !strings.HasPrefix(at, "/inbox/") {
		t.Fatalf("sent to %q", at)
	}
	mei.get(at).want(200, "[New] Look, Lucía!", `<img src="/media/`+media+`"`, `<a href="https://shop.example/o/A-17" title="https://shop.example/o/A-17"`)
	// The same form again, with the same bytes: it was sent once. With others it is refused.
	if again := mei.sendFile("/send", "a.png", "image/png", png, values("A-17", "opt_in", "yes")...).header.Get("Location"); again != at {
		t.Errorf("again: %q, want %q", again, at)
	}
	mei.sendFile("/send", "a.png", "image/png", append(png, 1), values("A-17", "opt_in", "yes")...).want(409)
	mei.post("/send", values("A-17", "opt_in", "yes", "media", desk.ID{9}.String())...).want(409, "It is not known whether this was sent").lacks("Nothing was sent", ">Send</button>")
	another := values("A-17", "opt_in", "yes", "media", desk.ID{9}.String())
	another[7] = value(t, mei.get(path+"&template=poster/en").body, "key")
	mei.post("/send", another...).want(422, "choose it again")
	if attempts, _, err := w.app.Attempts(t.Context(), w.operator(), app.AttemptFilter{}, "", 10); err != nil || len(attempts) != 1 {
		t.Errorf("attempts: %v, %v", attempts, err)
	}
}

// TestSend_search: a search finds templates by words of their names and texts. The length
// of a list is limited.
func TestSend_search(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.template(pickup)
	for i := range foundRows + 1 {
		w.template(fmt.Sprintf(`{"name":"notice_%02d","language":"de","status":"APPROVED","category":"MARKETING","components":[{"type":"BODY","text":"Ihre Lieferung https://harbour.example/%d kommt."}]}`, i, i))
	}
	lucia := w.contact("Lucía Fernández", "34612345678")
	mei := w.as(w.mei)
	path := "/send?contact=" + lucia.ID.String()
	rows := func(g got) int { return strings.Count(g.body, `<li><a id="found-`) }
	if g := mei.get(path).want(200, "There are more: type to find them", "marketing"); rows(g) != foundRows {
		t.Errorf("%d templates", rows(g))
	}
	if g := mei.get(path+"&words=YOUR+order").want(200, "<b>pickup_ready</b>", `value="YOUR order"`).lacks("There are more"); rows(g) != 1 {
		t.Errorf("%d templates", rows(g))
	}
	if g := mei.get(path+"&words=notice_07").want(200, "<b>notice_07</b>").lacks(`<a href="https://harbour.example`); rows(g) != 1 {
		t.Errorf("%d templates", rows(g))
	}
	mei.get(path+"&words=%3Cb%3E").want(200, "No template has that in its name or its text", `value="&lt;b&gt;"`)
	mei.header.Set("Parley-Part", "found")
	mei.get(path+"&words=lieferung").want(200, `<div id="found">`, "<b>notice_00</b>").lacks("pickup_ready", "<html")
}

// TestSend_panel: a member sends a template from a conversation. The page then leads back
// to this conversation.
func TestSend_panel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.template(pickup)
	c := w.writes("+34 612 34 56 78", "Lucía Fernández", "Is it there?")
	mei := w.as(w.mei)
	here := "/inbox/" + c.ID.String()
	page := mei.get(here+"?view=open").want(200, "data-panel", `id="panel"`)
	link := html.UnescapeString(regexp.MustCompile(`href="(/send\?[^"]*)"`).FindStringSubmatch(page.body)[1])
	mei.header.Set("Parley-Part", "sending")
	list := mei.get(link).want(200, `<div id="sending">`, "Send a template", `href="`+here+`?view=open" data-close`, `name="conversation"`).lacks("<html").golden("send/panel")
	form := mei.get(html.UnescapeString(regexp.MustCompile(`<a id="found-0" href="([^"]*)"`).FindStringSubmatch(list.body)[1])).want(200, "Another template", "Who gets the answer")
	var fields []string
	for _, name := range []string{"contact", "conversation", "list", "channel", "template", "key"} {
		fields = append(fields, name, value(t, form.body, name))
	}
	fields = append(fields, "value.header.1", "A-99", "value.1", "Lucía", "value.2", "Mei")
	mei.post("/send", fields...).want(422, `<div id="sending">`, "Tick this if it is so", `value="A-99"`).lacks("<html")
	fields = append(fields, "opt_in", "yes")
	mei.post("/send", fields...).sends(here + "?view=open&done=sent")
	mei.post("/send", fields...).sends(here + "?view=open&done=sent")
	mei.header.Del("Parley-Part")
	mei.get(here).want(200, "Order A-99", "Ask for Mei")
	if n := len(w.messages(c)); n != 2 {
		t.Errorf("%d messages", n)
	}
	// The parameter only has the inbox list.
	for i, name := range fields {
		if name == "list" {
			fields[i+1] = "?view=closed&done=deleted&next=https://evil.example"
		}
	}
	mei.post("/send", fields...).sends(here + "?view=closed&done=sent")
}
