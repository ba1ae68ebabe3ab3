package console

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"parley/app"
	"parley/app/feed"
	"parley/desk"
	"parley/store"
)

// serve starts a server for streams. The header As has the member's id.
func (w *world) serve() string {
	w.t.Helper()
	w.server.signedIn = func(c *call) (desk.Principal, error) {
		id, _ := desk.ParseID(c.r.Header.Get("As"))
		return w.app.Access.Member(c.r.Context(), w.ws, id)
	}
	s := httptest.NewServer(w.handler)
	w.t.Cleanup(s.Close)
	w.t.Cleanup(s.CloseClientConnections)
	return s.URL
}

// A listener reads a stream.
type listener struct {
	t     testing.TB
	got   *http.Response
	lines *bufio.Scanner
}

func (w *world) listen(url string, m desk.Member, last string) *listener {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, url+"/live", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("As", m.ID.String())
	r.Header.Set("Last-Event-ID", last)
	r.Header.Set("Parley-Part", "stream") // otherwise a refusal would be a redirect
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = answer.Body.Close() })
	return &listener{t: w.t, got: answer, lines: bufio.NewScanner(answer.Body)}
}

// next returns the next part: its event, id and data. ok is false at the end of the
// stream.
func (l *listener) next() (event, id, data string, ok bool) {
	l.t.Helper()
	timer := time.AfterFunc(30*time.Second, func() { _ = l.got.Body.Close() })
	defer timer.Stop()
	for l.lines.Scan() {
		name, value, _ := strings.Cut(l.lines.Text(), ": ")
		switch name {
		case "event":
			event = value
		case "id":
			id = value
		case "data":
			data = value
		case "":
			if event != "" {
				return event, id, data, true
			}
		}
	}
	return "", "", "", false
}

// until reads parts until one names a record. It returns the cursor and the data of this
// part.
func (l *listener) until(name string) (id, data string) {
	l.t.Helper()
	for {
		_, id, data, ok := l.next()
		if !ok {
			l.t.Fatalf("the stream ended before %s", name)
		}
		if strings.Contains(data, name) {
			return id, data
		}
	}
}

// ends reads up to the end of the stream. The test fails if a second beat comes first.
func (l *listener) ends() {
	l.t.Helper()
	for beats := 0; ; {
		event, _, _, ok := l.next()
		if !ok {
			return
		}
		if event == "at" {
			beats++
		}
		if beats > 1 {
			l.t.Fatal("the stream goes on")
		}
	}
}

func TestLiveNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := w.serve()
	l := w.listen(url, w.mei, "")
	event, start, data, _ := l.next()
	if l.got.StatusCode != 200 || l.got.Header.Get("Content-Type") != "text/event-stream" || event != "at" || data != "." {
		t.Fatalf("%d %s %s", l.got.StatusCode, event, data)
	}
	c := w.writes("+34612000001", "Lucía", "Hola")
	id, data := l.until("message:")
	if !strings.Contains(data, "conversation:"+c.ID.String()) || !strings.Contains(data, "contact:"+c.ContactID.String()) || strings.Contains(data, "Hola") {
		t.Errorf("%s", data)
	}
	if got := w.server.hubs.cursor(w.ws); got != id {
		t.Errorf("pages go on at %s, not %s", got, id)
	}
	// A stream that was interrupted continues at its cursor.
	_, data = w.listen(url, w.tomas, start).until("message:")
	if !strings.Contains(data, "conversation:"+c.ID.String()) {
		t.Errorf("after a cut: %s", data)
	}
	if event, _, _, _ := w.listen(url, w.tomas, id).next(); event != "at" {
		t.Errorf("a stream at the end begins with %s", event)
	}
	for _, unknown := range []string{"evt_0", "x", "zzz"} {
		if event, _, _, _ := w.listen(url, w.tomas, unknown).next(); event != "reset" {
			t.Errorf("after %s it begins with %s", unknown, event)
		}
	}
}

// TestLiveBehind: a stream that is too far behind renews everything.
func TestLiveBehind(t *testing.T) {
	t.Parallel()
	h := &hub{woken: make(chan struct{}), before: "evt_000000"}
	all := func(desk.Permission) bool { return true }
	page := &feed.Page{EventPage: &store.EventPage{}}
	for i := range 100 {
		page.Events = append(page.Events, desk.FeedEvent{Event: desk.Event{Type: desk.ContactUpdated, Subject: desk.ID{15: byte(i)}}})
	}
	add := func(n int) {
		for i := range page.Events {
			page.Events[i].ID = fmt.Sprintf("evt_%06d", n*100+i+1)
		}
		h.add(page)
	}
	add(0)
	place := h.place("evt_000050")
	part, _, _ := h.part(place, desk.RoleAgent, all)
	if names := strings.Count(string(part), "contact:"); names != 50 || !strings.Contains(string(part), "id: evt_000100\n") {
		t.Errorf("%d names: %s", names, part)
	}
	for n := range 10 {
		add(n + 1)
	}
	if part, next, _ := h.part(place, desk.RoleAgent, all); !strings.HasPrefix(string(part), "event: reset\nid: evt_001100\n") || next != 1100 {
		t.Errorf("%d %s", next, part)
	}
	if h.place("evt_000050") != -1 || h.place("evt_000100") != 100 || len(h.changes) != hubChanges {
		t.Errorf("%d %d %d", h.place("evt_000050"), h.place("evt_000100"), len(h.changes))
	}
}

// TestLiveFlood: an import makes very many changes. The stream goes on, and is told to
// renew everything.
func TestLiveFlood(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := w.listen(w.serve(), w.mei, "")
	l.next()
	var ops []*desk.Op
	for i := range 3000 {
		digits := fmt.Sprint(34600000000 + i)
		ops = append(ops, &desk.Op{Brief: true, Write: desk.ContactWrite{Phone: desk.Field[string]{Set: true, Value: digits}, Sent: []desk.Identity{{Kind: desk.KindPhone, Value: digits}}}})
	}
	if _, _, err := w.app.WriteAll(t.Context(), w.operator(), ops); err != nil {
		t.Fatal(err)
	}
	for event := ""; event != "reset"; {
		var ok bool
		if event, _, _, ok = l.next(); !ok {
			t.Fatal("the stream ended")
		}
	}
	c := w.writes("+34612000001", "Lucía", "Hola")
	for {
		event, _, data, ok := l.next()
		if !ok {
			t.Fatal("the stream ended")
		}
		if event == "reset" || strings.Contains(data, c.ID.String()) {
			break // a stream that is still behind is told again to renew everything
		}
	}
}

// TestLiveShows: an agent's stream does not name records that only admins can see.
func TestLiveShows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := w.serve()
	agent, admin := w.listen(url, w.mei, ""), w.listen(url, w.nora, "")
	agent.next()
	admin.next()
	name, permissions := "CRM", "contacts:read"
	if _, _, err := w.app.CreateKey(t.Context(), w.operator(), app.KeyEdit{Name: &name, Permissions: &permissions}); err != nil {
		t.Fatal(err)
	}
	admin.until("key:")
	w.writes("+34612000001", "Lucía", "Hola")
	for {
		_, _, data, ok := agent.next()
		if !ok || strings.Contains(data, "key:") {
			t.Fatalf("the agent gets %q, %v", data, ok)
		}
		if strings.Contains(data, "message:") {
			break
		}
	}
}

// TestLiveEnds: a stream ends soon after its member was removed or got another role.
func TestLiveEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := w.serve()
	mei, tomas, nora := w.listen(url, w.mei, ""), w.listen(url, w.tomas, ""), w.listen(url, w.nora, "")
	for _, l := range []*listener{mei, tomas, nora} {
		l.next()
	}
	role := "admin"
	if _, err := w.app.EditMember(t.Context(), w.operator(), w.mei.ID, app.MemberEdit{Role: &role}); err != nil {
		t.Fatal(err)
	}
	mei.ends()
	if err := w.app.RemoveMember(t.Context(), w.operator(), w.tomas.ID); err != nil {
		t.Fatal(err)
	}
	tomas.ends()
	if l := w.listen(url, w.tomas, ""); l.got.StatusCode != http.StatusUnauthorized {
		t.Errorf("a removed member: %d", l.got.StatusCode)
	}
	w.writes("+34612000001", "Lucía", "Hola")
	nora.until("message:")
}

// TestLiveBounds: the streams of a member and of a workspace are limited.
func TestLiveBounds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := w.serve()
	var last *listener
	for range maxMemberStreams {
		if last = w.listen(url, w.mei, ""); last.got.StatusCode != 200 {
			t.Fatal(last.got.StatusCode)
		}
	}
	if l := w.listen(url, w.mei, ""); l.got.StatusCode != http.StatusTooManyRequests || l.got.Header.Get("Retry-After") == "" {
		t.Errorf("one too many: %d", l.got.StatusCode)
	}
	if l := w.listen(url, w.tomas, ""); l.got.StatusCode != 200 {
		t.Errorf("another member: %d", l.got.StatusCode)
	}
	_ = last.got.Body.Close()
	for stop := time.Now().Add(30 * time.Second); w.listen(url, w.mei, "").got.StatusCode != 200; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(stop) {
			t.Fatal("a stream that has ended still counts")
		}
	}
	l := &hubs{app: w.app}
	for i := range maxWorkspaceStreams {
		if _, err := l.enter(w.ws, desk.ID{14: byte(i / 16)}); err != nil {
			t.Fatal(i, err)
		}
	}
	if _, err := l.enter(w.ws, desk.ID{1: 1}); !desk.IsType(err, desk.Unavailable) {
		t.Errorf("a workspace has more than half: %v", err)
	}
	if _, err := l.enter(desk.ID{1: 1}, desk.ID{1: 1}); err != nil {
		t.Errorf("another workspace: %v", err)
	}
}

// TestParts: several parts of a page are fetched at once. A page that is the response to
// a form has the URL of its parts.
func TestParts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.writes("+34612000001", "Lucía", "Hola")
	b := w.as(w.nora)
	b.header.Set("Parley-Part", "list views")
	g := b.get("/inbox?view=open").want(200, `<div id="list">`, `<div id="views">`, "Lucía").lacks("<html", "<main")
	b.header.Set("If-None-Match", g.header.Get("ETag"))
	if g := b.get("/inbox?view=open").want(304); g.body != "" {
		t.Errorf("%s", g.body)
	}
	w.writes("+34612000001", "Lucía", "Otra vez")
	b.get("/inbox?view=open").want(200, "Otra vez")
	for _, parts := range []string{"nonsense", "list nonsense", strings.Repeat("list ", maxParts+1)} {
		b.header.Set("Parley-Part", parts)
		b.get("/inbox").want(404)
	}
	b.header = http.Header{}
	b.get("/inbox?view=open").want(200).lacks("data-at")
	path := "/inbox/" + c.ID.String()
	b.post(path+"/customer?view=open", "text", " ").want(422, `data-at="`+path+`?view=open"`)
	b.post("/settings", "name", " ", "country", "ES").want(422, `data-at="/settings"`)
}
