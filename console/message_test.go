package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/app"
	"parley/desk"
	"parley/store"
)

const lucia = "34612345678"

// picture is the smallest PNG.
const picture = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"

// simulates sends a message as a customer on the sandbox channel.
func (w *world) simulates(s app.Simulated) *desk.Message {
	w.t.Helper()
	if s.From == "" {
		s.From = "+" + lucia
	}
	_, m, err := w.app.Simulate(context.Background(), w.operator(), w.channel, s)
	if err != nil || m == nil {
		w.t.Fatal(m, err)
	}
	return m
}

// stores changes the database directly, not through the app.
func (w *world) stores(change func(store.Tx) error) {
	w.t.Helper()
	if err := w.store.InTx(context.Background(), w.ws, change); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) uploads(name, claimed, content string) *desk.Media {
	w.t.Helper()
	m, err := w.app.Media.Upload(context.Background(), w.operator(), desk.FileHead{Name: name, Type: claimed}, strings.NewReader(content))
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

// TestThread: a page shows messages of every kind.
func TestThread(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nora, mei := w.as(w.nora), w.as(w.mei)
	first := w.simulates(app.Simulated{Name: "Lucía Fernández", Text: "Is *the atlas* there?"})
	path := "/inbox/" + first.ConversationID.String()
	photo := w.simulates(app.Simulated{Text: "The one I mean", File: &app.SimulatedFile{Name: "atlas.png", Content: strings.NewReader(picture)}})
	w.simulates(app.Simulated{File: &app.SimulatedFile{Name: "terms [draft].txt", Type: "text/plain", Content: strings.NewReader("Terms")}})
	heart, none := "❤️", ""
	w.simulates(app.Simulated{Reaction: &heart, ReplyTo: first.ID.String()})
	offer := desk.Message{
		ID: w.newID(), ConversationID: first.ConversationID, ChannelID: w.channel, ContactID: first.ContactID, TS: desk.TimeOf(w.server.now()), Direction: desk.Outbound, ExternalID: "offer", Delivery: desk.Delivered,
		Kind: desk.KindButtons, Text: "Two are left. Shall I keep one?", Extra: &desk.Extra{Buttons: []desk.Button{{ID: "keep", Title: "Keep one"}, {ID: "no", Title: "No, thanks"}}},
		Author: desk.Author{Type: desk.AuthorMember, ID: w.nora.ID, Name: w.nora.Name}, ReplyTo: photo.ID,
	}
	w.stores(func(tx store.Tx) error { return tx.PutMessage(&offer) })
	w.simulates(app.Simulated{Reaction: &heart, ReplyTo: offer.ID.String()})
	w.simulates(app.Simulated{Reaction: &none, ReplyTo: offer.ID.String()})
	w.simulates(app.Simulated{Choice: "keep", ReplyTo: offer.ID.String()})
	w.simulates(app.Simulated{Echo: true, Text: "From my phone"})
	list := map[string]desk.Media{
		"pending": {Status: desk.MediaPending, Kind: desk.KindVideo}, "failed": {Status: desk.MediaFailed, Kind: desk.KindAudio, Reason: desk.MediaGone}, "deleted": {Status: desk.MediaDeleted, Kind: desk.KindDocument, Name: "old.pdf"},
	}
	for _, name := range []string{"pending", "failed", "deleted"} {
		record := list[name]
		record.ID, record.CreatedAt, record.ContactID = w.newID(), first.TS, desk.ID{}
		m := w.simulates(app.Simulated{Text: "x"})
		w.stores(func(tx store.Tx) error {
			m.Kind, m.Media, m.Text = record.Kind, record.ID, "["+string(record.Kind)+"]"
			return errors.Join(tx.PutMedia(&record), tx.PutMessage(m))
		})
	}
	w.stores(func(tx store.Tx) error {
		base := desk.Message{ConversationID: first.ConversationID, ChannelID: w.channel, ContactID: first.ContactID, TS: first.TS + 1000, Direction: desk.Inbound}
		for i, change := range []func(*desk.Message){
			func(m *desk.Message) {
				m.Kind, m.Text, m.Extra = desk.KindLocation, "[location] Harbour", &desk.Extra{Location: &desk.Location{Latitude: 43.3, Longitude: -1.98, Name: "Harbour", Address: "Quay 1"}}
			},
			func(m *desk.Message) { m.Kind, m.Text = desk.KindContacts, "[contact] Ann" },
			func(m *desk.Message) {
				m.Kind, m.Extra, m.Text = desk.KindReaction, &desk.Extra{Reaction: &desk.Reaction{Emoji: "👍"}}, "[reaction] 👍"
				m.ReplyTo = desk.ID{9}
			},
			func(m *desk.Message) {
				m.Direction, m.Kind, m.Text, m.Delivery = desk.Outbound, desk.KindText, "We are back at nine.", desk.Delivered
				m.Author = desk.Author{Type: desk.AuthorRule, Name: "away"}
			},
			func(m *desk.Message) {
				m.Direction, m.Kind, m.Text, m.Delivery = desk.Outbound, desk.KindText, "Too late", desk.Failed
				m.Author, m.Failure = desk.Author{Type: desk.AuthorKey, ID: desk.ID{8}, Name: "CRM"}, &desk.Failure{Code: 131047, Title: "re-engagement message"}
			},
			func(m *desk.Message) {
				m.Direction, m.Kind, m.Text, m.Delivery = desk.Outbound, desk.KindText, "Gone", desk.Failed
				m.Author, m.Failure = desk.Author{Type: desk.AuthorMember, ID: desk.ID{7}}, &desk.Failure{Code: 131026, Title: "undeliverable", Fix: "ask for another number"}
			},
		} {
			m := base
			m.ID, m.TS, m.ExternalID = w.newID(), base.TS+desk.Time(i), fmt.Sprint("made-", i)
			change(&m)
			if err := tx.PutMessage(&m); err != nil {
				return err
			}
		}
		return nil
	})
	g := nora.get(path)
	g.want(200, `<img src="/media/`+photo.Media.String()+`" alt="The one I mean" loading="lazy">`, `terms [draft].txt`, "5 bytes", `❤️<span class="hidden"> by <bdi>Lucía Fernández`,
		`<a href="#m-`+photo.ID.String()+`"><b><bdi>Lucía Fernández`, "Keep one</bdi></li>", "Chose</span> Keep one", "<bdi>You</bdi>", "From the phone app", "Video on its way", "Audio could not be fetched: the provider has it no more", "Document deleted",
		"https://www.openstreetmap.org/?mlat=43.3&amp;mlon=-1.98", "Quay 1", "[contact] Ann", "reacted 👍 to</span> an earlier message", "Automatic reply, away", "CRM (key)", "window to answer freely was closed", "Send a template", "A former member", "Ask for another number.",
		`name="quote" value="`+photo.ID.String())
	if strings.Count(g.body, "❤️<span") != 1 {
		t.Error("a reaction that was taken back is shown")
	}
	g.golden("inbox/kinds")
	mei.get(path).want(200, "<bdi>Nora Lindqvist</bdi></p>")
}

// TestThread_long: pages of a long conversation stay small. If a message quotes a message
// of the previous page, the quote is shown. Notes are shown among the messages of their
// time.
func TestThread_long(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nora := w.as(w.nora)
	note := func(c desk.ID, text string) {
		p, err := w.app.Access.Member(t.Context(), w.ws, w.nora.ID)
		if err == nil {
			_, err = w.app.AddNote(t.Context(), p, c, text, desk.Field[desk.Reference]{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var list []*desk.Message
	for n := range 2*threadRows + 5 {
		list = append(list, w.simulates(app.Simulated{Name: "Lucía", Text: fmt.Sprintf("message %d.", n)}))
		if n%20 == 0 {
			note(list[0].ConversationID, fmt.Sprintf("note after %d.", n))
		}
	}
	late := w.simulates(app.Simulated{Text: "as I said", ReplyTo: list[threadRows].ID.String()})
	later := w.simulates(app.Simulated{Text: "at the start", ReplyTo: list[0].ID.String()})
	path := "/inbox/" + late.ConversationID.String()
	newest := nora.get(path).want(200, "message 64.", "message 37.", "note after 60.", "note after 40.", "<bdi>message 30.</bdi>", "An earlier message", "#m-"+list[threadRows].ID.String())
	newest.lacks("message 36.", "note after 20.", later.ExternalID)
	_, link, _ := strings.Cut(newest.body, `<a class="btn plain" href="`)
	link, _, _ = strings.Cut(link, `"`)
	middle := nora.get(strings.ReplaceAll(link, "&amp;", "&")).want(200, "message 36.", "message 7.", "note after 20.", "Newest messages")
	middle.lacks("message 37.", "note after 40.", "note after 0.", "message 6.")

	// Long texts make a page shorter.
	for range 10 {
		w.simulates(app.Simulated{Text: strings.Repeat("<ü>", 1300)})
	}
	for range 8 {
		note(late.ConversationID, strings.Repeat("é", desk.MaxNoteText))
	}
	if n := len(nora.get(path).want(200, "All notes", "Earlier messages").body); n > maxPageBytes {
		t.Errorf("%d bytes", n)
	}
}

func TestNotes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nora, mei := w.as(w.nora), w.as(w.mei)
	c := w.writes("+"+lucia, "Lucía Fernández", "Hello")
	path := "/inbox/" + c.ID.String()
	nora.get(path+"/notes?view=open").want(200, "There is none yet", "Only the team sees them").golden("inbox/notes-first")
	nora.post(path+"/notes", "note", " ").want(422, "Error: ", "f-note").golden("inbox/notes-wrong")
	nora.post(path+"/notes?view=open", "note", "Wants a *refund*").sends(path + "?view=open&done=noted")
	nora.get(path+"?done=noted").want(200, "The note is added.", "<b>Note</b> · <bdi>You</bdi>", "<strong>refund</strong>").golden("inbox/note")
	page := mei.get(path+"/notes").want(200, "<bdi>Nora Lindqvist</bdi>").golden("inbox/notes").body
	_, at, _ := strings.Cut(page, `href="`+path+`/notes/`)
	at, _, _ = strings.Cut(at, `"`)
	mei.get(path+"/notes/"+at).want(200, "Delete this note?", "Wants a *refund*").golden("inbox/note-delete")
	mei.get(path + "/notes/" + w.newID().String() + "/delete").want(404)
	mei.post(path + "/notes/" + at).sends(path + "?done=note-deleted")
	mei.post(path + "/notes/" + at).want(404)
	mei.get(path).lacks("refund")
	list, err := w.app.Conversation(t.Context(), w.operator(), c.ID)
	if err != nil || list.Preview != "Hello" {
		t.Errorf("a note became a message: %+v, %v", list, err)
	}
	for n := range noteRows + 1 {
		nora.post(path+"/notes", "note", fmt.Sprintf("note %d.", n)).sends(path + "?done=noted")
	}
	page = nora.get(path+"/notes").want(200, "note 20.", "Earlier notes").lacks("note 0.").body
	_, at, _ = strings.Cut(page, `href="`+path+`/notes?older=`)
	at, _, _ = strings.Cut(at, `"`)
	nora.get(path+"/notes?older="+at).want(200, "note 0.")
	nora.get(path).want(200, "All notes")
}

// TestMedia: the pages serve the bytes of files in the same way as the API.
func TestMedia(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nora := w.as(w.nora)
	m := w.uploads("../über \"sea\".png", "", picture)
	path := "/media/" + m.ID.String()
	g := nora.get(path).want(200, picture)
	for name, want := range map[string]string{
		"Content-Type": "image/png", "X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox", "Cross-Origin-Resource-Policy": "same-origin",
		"Cache-Control": "private, no-cache", "Etag": fmt.Sprintf(`"%x"`, m.SHA256), "Accept-Ranges": "bytes", "Content-Disposition": `inline; filename*=utf-8''%C3%BCber%20%22sea%22.png`,
	} {
		if got := g.header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	ask := func(method, name, value string) got {
		r := httptest.NewRequest(method, path, http.NoBody)
		r.Header.Set(name, value)
		return nora.do(r)
	}
	if g := ask("GET", "Range", "bytes=1-3"); g.status != 206 || g.body != "PNG" {
		t.Errorf("a range: %d, %q", g.status, g.body)
	}
	if g := ask("GET", "Range", "bytes=999-"); g.status != 416 || g.body != "" {
		t.Errorf("a range that is not there: %d, %q", g.status, g.body)
	}
	if g := ask("GET", "If-None-Match", g.header.Get("Etag")); g.status != 304 || g.body != "" {
		t.Errorf("known already: %d, %q", g.status, g.body)
	}
	if g := ask("HEAD", "Accept", "*/*"); g.status != 200 || g.body != "" || g.header.Get("Content-Length") != fmt.Sprint(len(picture)) {
		t.Errorf("HEAD: %d, %v", g.status, g.header)
	}
	page := w.uploads("page.html", "text/html", "<script>evil()</script>")
	if g := nora.get("/media/" + page.ID.String()); g.header.Get("Content-Type") != "application/octet-stream" || !strings.HasPrefix(g.header.Get("Content-Disposition"), "attachment") {
		t.Errorf("HTML: %v", g.header)
	}
	pending := desk.Media{ID: w.newID(), Status: desk.MediaPending, Kind: desk.KindImage, CreatedAt: 1}
	w.stores(func(tx store.Tx) error { return tx.PutMedia(&pending) })
	nora.get("/media/"+pending.ID.String()).want(409, "still being fetched")
	nora.get("/media/"+w.newID().String()).want(404, "Not here")
	w.as(desk.Member{}).get(path).sends("/sign-in?next=" + strings.ReplaceAll(path, "/", "%2F"))
}
