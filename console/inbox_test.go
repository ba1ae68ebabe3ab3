package console

import (
	"fmt"
	"html"
	"strings"
	"testing"

	"parley/desk"
)

func TestInbox(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nora, mei := w.as(w.nora), w.as(w.mei)
	nora.get("/inbox").want(200, "No conversation is open", "Nothing is yours").golden("inbox/empty")
	c := w.writes("+34 612 34 56 78", "Lucía Fernández", "Could it be Monday?")
	w.writes("+34 612 34 56 79", "سارة الخطيب", "هل أنتم مفتوحون يوم الجمعة؟")
	nora.get("/inbox").want(200, "2 are unassigned")
	nora.get("/inbox?view=unassigned").want(200, "Lucía Fernández", "سارة").golden("inbox/unassigned")
	path := "/inbox/" + c.ID.String()
	nora.get(path+"?view=unassigned").want(200, "Take it", `<option dir="auto" value="`+w.mei.ID.String()+`">Mei Tanaka</option>`).golden("inbox/conversation")

	page := nora.get(path).body
	seen := func(page string) (message, assignee string) {
		return value(t, page, "seen_message"), value(t, page, "seen_assignee")
	}
	message, assignee := seen(page)
	nora.post(path+"/assign", "to", w.nora.ID.String(), "seen_message", message, "seen_assignee", assignee).sends(path + "?done=taken")
	nora.get(path+"?done=taken").want(200, "yours", "It is yours.", ">(1) Lucía Fernández · ").lacks("Take it</button>")
	nora.get("/inbox").want(200, `<title id="title" data-live="conversation">(1) Inbox · `, `data-status="of yours waiting">1<`, "waiting 1 min", `<ol class="rows" data-until="`, `1<span class="hidden"> unread`, "23 h left").golden("inbox/mine")
	nora.get("/inbox?order=waiting&unread=true").want(200, "Lucía Fernández", `href="/inbox/`+c.ID.String()+`?order=waiting&amp;unread=true#c-`+c.ID.String()+`"`).golden("inbox/waiting")
	nora.header.Set("Parley-Part", "title")
	nora.get("/inbox").want(200, `<div id="title">(1) Inbox · Harbour Books · parley</div>`)
	nora.header.Del("Parley-Part")
	mei.get("/inbox?unread=true").want(200, "Nothing unread")
	mei.get("/inbox?order=waiting").want(200, "Nobody waits").lacks("<title>(")
	if _, err := w.app.MarkRead(t.Context(), w.operator(), c.ID, desk.ID{}, false); err != nil {
		t.Fatal(err)
	}
	nora.get("/inbox?unread=true").want(200, "Nothing unread")

	mei.post(path+"/assign", "to", "", "seen_message", message, "seen_assignee", assignee).want(422, "Choose who gets it")

	// Mei opened the page while the conversation was unassigned. Now she learns that Nora
	// has it, and may take over.
	mei.post(path+"/assign", "to", w.mei.ID.String(), "seen_message", message, "seen_assignee", assignee).
		want(409, "Nora Lindqvist holds it now", "Take over from Nora Lindqvist").golden("inbox/taken")
	// The customer writes before Nora closes the conversation.
	w.writes("+34 612 34 56 78", "", "Or Tuesday?")
	nora.post(path+"/status", "status", "closed", "seen_message", message, "seen_assignee", w.nora.ID.String()).
		want(409, "wrote meanwhile", "Or Tuesday?", "Close anyway").golden("inbox/wrote")
	message, assignee = seen(nora.get(path).body)
	nora.post(path+"/status", "status", "closed", "seen_message", message, "seen_assignee", assignee, "next", "").sends("/inbox?of=" + c.ID.String() + "&done=closed")
	nora.get("/inbox?of="+c.ID.String()+"&done=closed").want(200, "Closed. <a href=\"/inbox/"+c.ID.String())
	nora.get("/inbox?view=closed").want(200, "Or Tuesday?").lacks(`class="count"`, "row unread") // the message is unread, but a closed conversation does not show this
	if v := w.asStored(c); v.Talk.Unread == 0 {
		t.Error("nothing is unread in the closed one")
	}
	nora.get(path).want(200, "Open again", "Archive").lacks(`data-shortcut="e"`)
	mei.post(path+"/assign", "to", w.mei.ID.String(), "seen_message", message, "seen_assignee", assignee, "seen_status", "open").
		want(409, "Nothing was done: it is closed now")
	nora.post(path+"/status", "status", "open", "seen_message", message, "seen_assignee", assignee).sends(path + "?done=opened")

	// In a sandbox, members can write as the customer.
	mei.post(path+"/customer", "text", "Thank you!").sends(path)
	mei.get(path).want(200, "Thank you!")
	mei.post(path+"/customer", "text", " ").want(422, "Error: ")
}

// TestInbox_laterPage: a member opens a conversation from a later page of the list. Each
// action in the conversation leads back to this page.
func TestInbox_laterPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.template(pickup)
	for i := range pageRows + 5 {
		w.writes(fmt.Sprintf("+34 612 34 56 %02d", i), "Somebody", "Hello")
	}
	mei := w.as(w.mei)
	cut := func(body, before string) string {
		t.Helper()
		_, at, found := strings.Cut(body, before)
		if at, _, _ = strings.Cut(at, `"`); !found {
			t.Fatalf("%q is missing\n%s", before, body)
		}
		return html.UnescapeString(at)
	}
	later := cut(mei.get("/inbox?view=open").body, `<a class="btn plain" href="/inbox?`)
	id := cut(mei.get("/inbox?"+later).want(200, "Newest").body, `<li id="c-`)
	here := "/inbox/" + id
	page := mei.get(here+"?"+later).want(200, `aria-current="true"`).body

	// Notes have their own pages.
	notes := cut(page, `href="`+here+"/notes?")
	for n := range noteRows + 1 {
		mei.post(here+"/notes?"+notes, "note", fmt.Sprintf("note %d.", n)).sends(here + "?" + later + "&done=noted")
	}
	older := mei.get(here+"/notes?"+notes).want(200, "note 20.", "Earlier notes", `href="`+here+"?"+html.EscapeString(later)+`"`).lacks("note 0.").body
	mei.get(here+"/notes?"+cut(older, `<a class="btn plain" href="`+here+"/notes?")).want(200, "note 0.", `href="`+here+"?"+html.EscapeString(later)+`"`)

	// Send a template, in the panel and without script.
	form := mei.get("/send?"+cut(page, `href="/send?`)).want(200, html.EscapeString(later)).body
	form = mei.get(cut(form, `<a id="found-0" href="`)).want(200, "Another template").body
	var fields []string
	for _, name := range []string{"contact", "conversation", "list", "channel", "template", "key"} {
		fields = append(fields, name, html.UnescapeString(value(t, form, name)))
	}
	mei.post("/send", append(fields, "value.header.1", "A-99", "value.1", "Lucía", "value.2", "Mei", "opt_in", "yes")...).sends(here + "?" + later + "&done=sent")
}

// TestSpanLasts: a list is fetched again when one of its times gets another text.
// Otherwise "waiting 6 min" would stay for as long as nothing else happens.
func TestSpanLasts(t *testing.T) {
	t.Parallel()
	for _, d := range []desk.Time{60_000, 119_999, 6*60_000 + 17, 3_599_999, 3_600_000, 5*3_600_000 + 1, 47*3_600_000 + 12, 48 * 3_600_000, 80*3_600_000 + 9} {
		longer, shorter := spanLasts(d)
		if span(d+longer-1) != span(d) || span(d+longer) == span(d) {
			t.Errorf("%d, %s: becomes longer after %d", d, span(d), longer)
		}
		if span(d-shorter+1) != span(d) || d >= 2*60_000 && span(d-shorter) == span(d) {
			t.Errorf("%d, %s: becomes shorter after %d", d, span(d), shorter)
		}
	}
}

func TestInbox_refuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.writes("+34 612 34 56 78", "Lucía", "Hello")
	path := "/inbox/" + c.ID.String()
	nora := w.as(w.nora)
	nora.get("/inbox/"+w.newID().String()).want(404, "Not here")
	nora.get("/inbox/nonsense").want(404, "Not here")
	nora.post(path+"/status", "status", "gone").want(422, "Error: ")
	mei := w.as(w.mei)
	mei.member.ID = w.nora.ID // the form of a page that was made for Nora
	form := mei
	if g := form.post(path + "/assign"); g.status == 303 {
		t.Error("no member is assigned by an empty form")
	}
	b := w.as(w.mei)
	if g := b.post(path+"/assign", "member", w.nora.ID.String()); g.status == 303 {
		t.Errorf("%d", g.status)
	}
}

func TestTrackOf(t *testing.T) {
	t.Parallel()
	for d, want := range map[desk.DeliveryStatus]int{desk.Queued: 1, desk.Sent: 2, desk.Delivered: 3, desk.Read: 4} {
		on := 0
		for _, dot := range trackOf(d).Dots {
			if dot.On {
				on++
			}
		}
		if on != want {
			t.Errorf("%s: %d dots, want %d", d, on, want)
		}
	}
}

// value returns the value of a hidden field of a page.
func value(t *testing.T, page, name string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, `name="`+name+`" value="`)
	if !ok {
		t.Fatalf("no field %s in %s", name, page)
	}
	v, _, _ := strings.Cut(rest, `"`)
	return v
}
