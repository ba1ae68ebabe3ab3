package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/api"
	"parley/app"
	"parley/desk"
	"parley/web"
)

// An event is an event as a client reads it.
type event struct {
	ID        string
	Type      string
	Timestamp string
	Actor     struct{ Kind, ID, Name string }
	Subject   struct {
		Kind, ID       string
		ConversationID string `json:"conversation_id"`
		ContactID      string `json:"contact_id"`
	}
	Changed []string
	Data    json.RawMessage
}

// A feedPage is an answer of GET /v1/events.
type feedPage struct {
	Data   []event
	Cursor string
	More   bool
}

func (s *server) events(query string) (page feedPage) {
	s.t.Helper()
	if err := json.Unmarshal(s.want(200, "GET /v1/events"+query, ""), &page); err != nil {
		s.t.Fatal(err)
	}
	return page
}

func types(list []event) (names []string) {
	for _, e := range list {
		names = append(names, e.Type)
	}
	return names
}

func TestMe(t *testing.T) {
	s := newServer(t)
	key := s.newKey(s.ws, "contacts:read")
	r := s.as(key, "GET /v1/me?ignored=1", "")
	want := fmt.Sprintf(`{"data":{"workspace":{"id":"%s","name":"Acme","country":"US"},"key":{"id":"`, s.ws)
	if r.status != 200 || !strings.HasPrefix(string(r.body), want) || !strings.Contains(string(r.body), `"permissions":["contacts:read"]`) || !strings.HasSuffix(string(r.body), `"expires_at":null}}}`) {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// TestFeed: pages of any size together contain the whole feed. Filters and cursors work as
// the contract says.
func TestFeed(t *testing.T) {
	s := newServer(t)
	start := s.events("?cursor=latest")
	if len(start.Data) != 0 || start.More {
		t.Fatalf("latest: %+v", start)
	}
	id := contact(t, s.want(201, "POST /v1/contacts", `{"external_id":"x"}`)).ID
	s.want(200, "PATCH /v1/contacts/"+id, `{"name":"Ada","note":"n"}`)
	s.want(201, "POST /v1/attributes", `{"key":"plan","type":"text"}`)
	page := s.events("?cursor=" + start.Cursor)
	if got := types(page.Data); !slices.Equal(got, []string{"contact.created", "contact.updated", "attribute.created"}) || page.More || page.Cursor != page.Data[2].ID {
		t.Fatalf("%v, more %v", got, page.More)
	}
	if e := page.Data[1]; e.Actor.Kind != "key" || e.Actor.Name != "test" || e.Subject.ID != id || e.Subject.ContactID != id ||
		!slices.Equal(e.Changed, []string{"name", "note"}) || string(e.Data)+"}" != strings.TrimPrefix(string(s.want(200, "GET /v1/contacts/"+id, "")), `{"data":`) {
		t.Errorf("%+v %s", e, e.Data)
	}
	one := s.events("?limit=1&cursor=" + start.Cursor)
	two := s.events("?limit=1&cursor=" + one.Cursor)
	if len(one.Data) != 1 || !one.More || one.Data[0].ID != page.Data[0].ID || two.Data[0].ID != page.Data[1].ID {
		t.Errorf("%+v %+v", one, two)
	}
	for query, want := range map[string][]string{
		"types=attribute.*":                 {"attribute.created"},
		"types=contact.updated,attribute.*": {"contact.updated", "attribute.created"},
		"types=*":                           types(page.Data),
		"types=*,contact.created":           types(page.Data),
		"types=webhook.*&wait=1":            nil,
	} {
		if got := s.events("?" + query + "&cursor=" + start.Cursor); !slices.Equal(types(got.Data), want) || got.More {
			t.Errorf("%s: %v", query, types(got.Data))
		}
	}
	all := s.events("")
	if oldest := s.events("?cursor=oldest"); len(all.Data) < 5 || oldest.Data[0].ID != all.Data[0].ID {
		t.Errorf("oldest begins with %+v", oldest.Data[0])
	}
	// A key without contacts:read.
	narrow := s.newKey(s.ws, "events:read,attributes:read")
	var left feedPage
	if err := json.Unmarshal(s.as(narrow, "GET /v1/events?cursor="+start.Cursor, "").body, &left); err != nil || !slices.Equal(types(left.Data), []string{"attribute.created", "key.created"}) {
		t.Errorf("%v %+v", err, left)
	}
}

// TestFeedRefuses: the refusals, in their order.
func TestFeedRefuses(t *testing.T) {
	s := newServer(t)
	_, other := s.workspace("Other", "US")
	foreign := s.events("").Cursor
	newest := s.events("?cursor=latest").Cursor
	narrow, none := s.newKey(s.ws, "events:read"), s.newKey(s.ws, "contacts:read")
	for _, c := range []struct {
		key, query string
		status     int
		message    string
	}{
		{none, "?limit=x", 403, "events:read"},
		{narrow, "?types=contact.*&limit=x", 400, "limit"},
		{narrow, "?types=contact.created&cursor=evt_x", 400, "cursor"},
		{narrow, "?types=contact.*", 403, "contacts:read"},
		{narrow, "?types=*,member.deleted", 403, "members:read"},
		{narrow, "?types=key.*,workspace.updated", 200, ""},
		{s.key, "?types=", 400, "types"},
		{s.key, "?types=contact.created,", 400, "types"},
		{s.key, "?types=contact", 400, "types"},
		{s.key, "?types=Contact.*", 400, "types"},
		{s.key, "?types=send.gone", 400, "types"},
		{s.key, "?types=" + strings.Repeat("contact.created,", 50) + "*", 400, "1 to 50"},
		{s.key, "?types=" + strings.Repeat("contact.created,", 49) + "*", 200, ""},
		{s.key, "?cursor=", 400, "cursor"},
		{s.key, "?cursor=Latest", 400, "cursor"},
		{s.key, "?cursor=" + newest[:len(newest)-1], 400, "cursor"},
		{s.key, "?cursor=" + strings.ToUpper(newest), 400, "cursor"},
		{s.key, "?cursor=" + newest + "%0A", 400, "cursor"},
		{other, "?cursor=" + foreign, 400, "cursor"},
		{s.key, "?limit=0", 400, "limit"},
		{s.key, "?limit=201", 400, "limit"},
		{s.key, "?wait=61", 400, "wait"},
		{s.key, "?wait=-1", 400, "wait"},
		{s.key, "?wait=1.5", 400, "wait"},
		{s.key, "?type=contact.*", 400, "types"},
	} {
		r := s.as(c.key, "GET /v1/events"+c.query, "")
		if r.status != c.status || !strings.Contains(string(r.body), c.message) {
			t.Errorf("%s: %d %s, want %d %s", c.query, r.status, r.body, c.status, c.message)
		}
	}
	if r := s.do("POST /v1/events", ""); r.status != 405 || r.header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d %s", r.status, r.body)
	}
	if r := s.do("HEAD /v1/events", ""); r.status != 200 || r.header.Get("Content-Type") != "application/json; charset=utf-8" {
		t.Errorf("HEAD: %d %v", r.status, r.header)
	}
	// A stream takes no limit and no wait.
	for _, query := range []string{"?limit=1", "?wait=1"} {
		header := http.Header{"Authorization": {"Bearer " + s.key}, "Accept": {"text/event-stream"}}
		if r := s.send("GET", "/v1/events"+query, header, ""); r.status != 400 {
			t.Errorf("a stream with %s: %d", query, r.status)
		}
	}
}

// TestFeedExpires: a cursor that is too old, or of another database, is answered with 410.
func TestFeedExpires(t *testing.T) {
	s := newServer(t)
	oldest := s.events("?limit=1")
	newest := s.events("?cursor=latest").Cursor
	s.clock.Add(time.Hour.Milliseconds())
	if err := s.app.Feed.Forget(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	r := s.do("GET /v1/events?cursor="+oldest.Cursor, "")
	var e struct {
		Error struct {
			Type    string
			Details struct{ Reason, Oldest, Newest string }
		}
	}
	if err := json.Unmarshal(r.body, &e); err != nil || r.status != 410 || e.Error.Type != "cursor_expired" || e.Error.Details.Reason != "retention" ||
		e.Error.Details.Oldest != newest || e.Error.Details.Newest != newest {
		t.Errorf("%d %s", r.status, r.body)
	}
	if page := s.events(""); len(page.Data) != 0 || page.Cursor != newest {
		t.Errorf("an emptied feed: %+v", page)
	}
	s.want(201, "POST /v1/attributes", `{"key":"plan","type":"text"}`)
	if page := s.events("?cursor=" + newest); len(page.Data) != 1 || page.Data[0].ID <= newest {
		t.Errorf("after all have expired: %+v", page)
	}
	// Another event has the number of the cursor now.
	place, _ := s.app.Feed.EventPlace(s.ws, newest)
	for _, p := range []desk.EventPlace{{Seq: place.Seq, Tag: place.Tag ^ 1}, {Seq: place.Seq + 1, Tag: 1}, {Seq: place.Seq + 9, Tag: 1}} {
		r := s.do("GET /v1/events?cursor="+s.app.Feed.EventID(s.ws, p), "")
		if r.status != 410 || !strings.Contains(string(r.body), `"reason":"history"`) {
			t.Errorf("%v: %d %s", p, r.status, r.body)
		}
	}
}

// TestFeedPageBytes: a page ends before 4 MiB, whatever the records are.
func TestFeedPageBytes(t *testing.T) {
	s := newServer(t)
	options := make([]string, 500)
	for i := range options {
		options[i] = fmt.Sprintf("%0254d", i)
	}
	text, _ := json.Marshal(options)
	start := s.events("?cursor=latest").Cursor
	s.want(201, "POST /v1/attributes", `{"key":"plan","type":"select","options":`+string(text)+`}`)
	const edits = 60
	for i := range edits {
		s.want(200, "POST /v1/attributes", fmt.Sprintf(`{"key":"plan","label":"L%d"}`, i))
	}
	count, pages := 0, 0
	for more := true; more; pages++ {
		body := s.want(200, "GET /v1/events?limit=200&cursor="+start, "")
		if len(body) > desk.MaxPage {
			t.Errorf("a page of %d bytes", len(body))
		}
		var page feedPage
		if err := json.Unmarshal(body, &page); err != nil {
			t.Fatal(err)
		}
		count, start, more = count+len(page.Data), page.Cursor, page.More
	}
	if count != edits+1 || pages < 2 {
		t.Errorf("%d events in %d pages", count, pages)
	}
}

// listen serves on loopback until the test ends, or stop is called. stop returns how long
// the server took to stop.
func (s *server) listen(t *testing.T) (url string, stop func() time.Duration) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.web.Serve(ctx, narrow{l}, 0) }()
	stopped := false
	stop = func() time.Duration {
		if stopped {
			return 0
		}
		stopped = true
		begun := time.Now()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		return time.Since(begun)
	}
	t.Cleanup(func() { stop() })
	return "http://" + l.Addr().String(), stop
}

// A narrow is a listener whose connections buffer little of the data that their clients do
// not read.
type narrow struct{ net.Listener }

func (l narrow) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		err = c.(*net.TCPConn).SetWriteBuffer(64 << 10)
	}
	return c, err
}

// bound sets other time limits for clients.
func (s *server) bound(b web.Bounds) {
	s.web = web.New(web.Config{Log: slog.New(slog.DiscardHandler), NewID: s.newID, Ready: s.app.Ready, Drain: s.app.Drain, Bounds: b})
	api.New(api.Config{App: s.app, Web: s.web})
}

// A stream is an open stream of events, block by block.
type stream struct {
	t      testing.TB
	answer *http.Response
	lines  *bufio.Scanner
}

// stream opens a stream with a key.
func (s *server) stream(url, key, query string, header ...string) *stream {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second) // a lost event must not block the test
	s.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/v1/events"+query, http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Accept", "text/event-stream")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = answer.Body.Close() })
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 8<<20)
	return &stream{s.t, answer, lines}
}

// block returns the lines of the next block; nil at the end.
func (s *stream) block() (list []string) {
	for s.lines.Scan() {
		if s.lines.Text() == "" {
			return list
		}
		list = append(list, s.lines.Text())
	}
	return nil
}

// next returns the next event; false at the end.
func (s *stream) next() (e event, ok bool) {
	s.t.Helper()
	for {
		block := s.block()
		if block == nil {
			return e, false
		}
		if len(block) != 2 || !strings.HasPrefix(block[0], "id: ") {
			continue
		}
		if err := json.Unmarshal([]byte(strings.TrimPrefix(block[1], "data: ")), &e); err != nil || "id: "+e.ID != block[0] {
			s.t.Fatal(err, block)
		}
		return e, true
	}
}

// head reads the first blocks, and returns the place where the stream begins.
func (s *stream) head() string {
	s.t.Helper()
	retry, cursor := s.block(), s.block()
	if len(retry) != 1 || retry[0] != "retry: 2000" || len(cursor) != 3 || cursor[0] != "event: cursor" {
		s.t.Fatalf("%q %q", retry, cursor)
	}
	id := strings.TrimPrefix(cursor[1], "id: ")
	if cursor[2] != `data: {"cursor":"`+id+`"}` {
		s.t.Errorf("%q", cursor)
	}
	return id
}

// TestStream: a stream begins at its place, and events come as they are committed.
func TestStream(t *testing.T) {
	s := newServer(t)
	url, _ := s.listen(t)
	all := s.events("")
	old := s.stream(url, s.key, "", "Last-Event-ID", "")
	h := old.answer.Header
	if old.answer.StatusCode != 200 || h.Get("Content-Type") != "text/event-stream" || h.Get("Cache-Control") != "no-store" || h.Get("X-Accel-Buffering") != "no" {
		t.Errorf("%d %v", old.answer.StatusCode, h)
	}
	begin := old.head()
	if begin >= all.Data[0].ID {
		t.Errorf("the stream begins at %s, after its first event %s: a cut would lose it", begin, all.Data[0].ID)
	}
	for _, want := range all.Data {
		if e, ok := old.next(); !ok || e.ID != want.ID {
			t.Fatalf("%+v, want %+v", e, want)
		}
	}
	// One stream begins again from the first block, another one from an event. Last-Event-ID
	// has priority over the cursor.
	again := s.stream(url, s.key, "?cursor=latest", "Last-Event-ID", begin)
	if again.head() != begin {
		t.Error("another place")
	}
	if e, _ := again.next(); e.ID != all.Data[0].ID {
		t.Errorf("%+v", e)
	}
	fresh := s.stream(url, s.key, "?cursor=latest&types=contact.*")
	if fresh.head() != all.Cursor {
		t.Error("latest is another place")
	}
	s.want(201, "POST /v1/attributes", `{"key":"plan","type":"text"}`)
	s.want(201, "POST /v1/contacts", `{"external_id":"x"}`)
	if e, _ := fresh.next(); e.Type != "contact.created" {
		t.Errorf("%+v", e)
	}
	if e, _ := old.next(); e.Type != "attribute.created" {
		t.Errorf("%+v", e)
	}
	if e, _ := old.next(); e.Type != "contact.created" {
		t.Errorf("%+v", e)
	}
	for accept, want := range map[string]bool{
		"text/event-stream": true, "application/json, Text/Event-Stream;q=0.5": true, "text/event-stream; q=1.0": true,
		"text/event-stream;q=0": false, "*/*": false, "text/*": false, "application/json": false, "text/event-streams": false, "": false, ";": false,
	} {
		r := s.send("HEAD", "/v1/events", http.Header{"Authorization": {"Bearer " + s.key}, "Accept": {accept}}, "")
		if got := r.header.Get("Content-Type") == "text/event-stream"; r.status != 200 || got != want {
			t.Errorf("Accept %q: %d, stream %v", accept, r.status, got)
		}
	}
}

// TestStreamEnds: a stream does not send events that its key may no longer read, and ends.
func TestStreamEnds(t *testing.T) {
	s := newServer(t)
	url, _ := s.listen(t)
	contacts, narrower := "contacts:read,events:read", "events:read"
	soon := 300 * time.Millisecond
	for name, change := range map[string]func(desk.Principal, desk.ID) error{
		"revoked": func(p desk.Principal, id desk.ID) error { _, err := s.app.RevokeKey(t.Context(), p, id); return err },
		"edited": func(p desk.Principal, id desk.ID) error {
			_, err := s.app.EditKey(t.Context(), p, id, app.KeyEdit{Permissions: &narrower})
			return err
		},
		"expired": func(p desk.Principal, id desk.ID) error {
			_, err := s.app.EditKey(t.Context(), p, id, app.KeyEdit{Expires: &soon})
			s.clock.Add(1000)
			return err
		},
	} {
		key := s.newKey(s.ws, contacts)
		p := s.operator(s.ws)
		keys := p.Settings.Keys()
		stream := s.stream(url, key, "?cursor=latest")
		stream.head()
		if err := change(p, keys[len(keys)-1].ID); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		s.want(201, "POST /v1/contacts", `{"external_id":"`+name+`"}`)
		for {
			e, ok := stream.next()
			if !ok {
				break
			}
			if e.Type == "contact.created" {
				t.Errorf("%s: the stream goes on with %+v", name, e)
			}
		}
		if took := time.Since(begun); took > 10*time.Second { // 2 s, on a machine with nothing else to do
			t.Errorf("%s: the stream ended after %v", name, took)
		}
	}
	_, other := s.workspace("Gone", "US")
	gone, err := s.app.Access.Authenticate(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	stream := s.stream(url, other, "")
	stream.head()
	if _, err := s.app.DeleteWorkspace(t.Context(), gone.Workspace(), "Gone", func(int) {}); err != nil {
		t.Fatal(err)
	}
	for ok := true; ok; {
		_, ok = stream.next()
	}
}

// TestStreamEnds_slow_reader: the stream of a revoked key ends even if its client does not
// read.
func TestStreamEnds_slow_reader(t *testing.T) {
	s := newServer(t)
	url, _ := s.listen(t)
	key := s.newKey(s.ws, "contacts:read,events:read")
	p, err := s.app.Access.Authenticate(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	note := strings.Repeat("n", 9000)
	for i := range 400 {
		s.want(201, "POST /v1/contacts", fmt.Sprintf(`{"external_id":"%d","note":"%s"}`, i, note))
	}
	s.stream(url, key, "") // more than fits into the buffers of a connection
	if _, err := s.app.RevokeKey(t.Context(), s.operator(s.ws), p.Key.ID); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the stream to end", func() bool { return s.app.Feed.Followers() == 0 })
}

// TestDrain: when the server stops, waiting reads are answered and streams end within a
// second, even a stream whose client does not read.
func TestDrain(t *testing.T) {
	s := newServer(t)
	url, stop := s.listen(t)
	idle := s.stream(url, s.key, "?cursor=latest")
	idle.head()
	note := strings.Repeat("n", 9000)
	for i := range 400 {
		s.want(201, "POST /v1/contacts", fmt.Sprintf(`{"external_id":"%d","note":"%s"}`, i, note))
	}
	stuck := s.stream(url, s.key, "") // more than fits into the buffers of a connection
	waiting := make(chan int, 1)
	go func() {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v1/events?types=webhook.*&wait=60&cursor=latest", http.NoBody)
		if err != nil {
			t.Error(err)
		}
		r.Header.Set("Authorization", "Bearer "+s.key)
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Error(err)
			waiting <- 0
			return
		}
		_ = answer.Body.Close()
		waiting <- answer.StatusCode
	}()
	waitUntil(t, "three followers", func() bool { return s.app.Feed.Followers() == 3 })
	if took := stop(); took > 5*time.Second { // 1 s, on a machine with nothing else to do
		t.Errorf("the server stopped after %v", took)
	}
	if status := <-waiting; status != 200 {
		t.Errorf("the waiting read: %d", status)
	}
	_ = stuck.answer.Body.Close()
}

// TestStuckStream: a stream whose client does not read ends, and the others go on.
func TestStuckStream(t *testing.T) {
	s := newServer(t)
	s.bound(web.Bounds{Write: 200 * time.Millisecond})
	url, _ := s.listen(t)
	idle := s.stream(url, s.newKey(s.ws, "events:read"), "?cursor=latest&types=key.*")
	idle.head()
	s.want(201, "POST /v1/contacts", `{"external_id":"x"}`)
	s.stream(url, s.key, "") // nobody reads it
	note := strings.Repeat("n", 9000)
	waitUntil(t, "the stream to end", func() bool {
		for n := range 20 { // until the buffers of the connection are full
			s.want(200, "POST /v1/contacts", fmt.Sprintf(`{"external_id":"x","name":"%d","note":"%s"}`, n, note))
		}
		return s.app.Feed.Followers() == 1
	})
	if metrics := s.send("GET", "/metrics", nil, "").body; !strings.Contains(string(metrics), `parley_http_body_bytes{caller="authenticated"} 0`) {
		t.Errorf("%s", metrics)
	}
	s.newKey(s.ws, "events:read")
	if e, ok := idle.next(); !ok || e.Type != "key.created" {
		t.Errorf("the other stream has %+v", e)
	}
}

// TestStreamForgetsPages: a stream that waits does not keep the events that it has sent.
func TestStreamForgetsPages(t *testing.T) {
	const streams, contacts, note = 10, 100, 9000
	s := newServer(t)
	url, _ := s.listen(t)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for i := range contacts {
		s.want(201, "POST /v1/contacts", fmt.Sprintf(`{"external_id":"%d","note":"%s"}`, i, strings.Repeat("n", note)))
	}
	before := heap()
	for range streams {
		stream := s.stream(url, s.key, "?types=contact.*")
		for range contacts {
			if _, ok := stream.next(); !ok {
				t.Fatal("the stream ended")
			}
		}
		stream.lines = nil
	}
	waitUntil(t, "the pages to be forgotten", func() bool { return heap() < before+streams*contacts*note/2 })
}

// TestWait: a read may wait for longer than the time limit for reading a request. The first
// event is its answer.
func TestWait(t *testing.T) {
	s := newServer(t)
	s.bound(web.Bounds{Read: 300 * time.Millisecond})
	url, _ := s.listen(t)
	begun := time.Now()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v1/events?cursor=latest&wait=1", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.key)
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var page feedPage
	if err := json.NewDecoder(answer.Body).Decode(&page); err != nil || answer.StatusCode != 200 || len(page.Data) != 0 || time.Since(begun) < time.Second {
		t.Errorf("%d %v after %v", answer.StatusCode, err, time.Since(begun))
	}
}

func waitUntil(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for stop := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(stop) {
			t.Fatalf("still waiting for: %s", what)
		}
	}
}

// TestFollowerLimits: a key may have 16 followers on a server.
func TestFollowerLimits(t *testing.T) {
	s := newServer(t)
	url, _ := s.listen(t)
	for range 16 {
		s.stream(url, s.key, "").head()
	}
	header := http.Header{"Authorization": {"Bearer " + s.key}, "Accept": {"text/event-stream"}}
	if r := s.send("GET", "/v1/events?cursor=evt_x", header, ""); r.status != 400 {
		t.Errorf("400 comes before 429: %d", r.status)
	}
	if r := s.send("GET", "/v1/events?wait=1", http.Header{"Authorization": header["Authorization"]}, ""); r.status != 429 || errorType(r.body) != "rate_limited" || r.header.Get("Retry-After") != "5" {
		t.Errorf("a read that waits: %d %v %s", r.status, r.header, r.body)
	}
	if one := s.stream(url, s.key, "").answer; one.StatusCode != 429 || one.Header.Get("Retry-After") != "5" { // a stream that was accepted has no end
		t.Errorf("one more stream: %d %v", one.StatusCode, one.Header)
	}
	s.stream(url, s.newKey(s.ws, "events:read"), "").head()
}

// TestEventPermissions: some types have a record that the key may not read. A filter that
// names such a type or its kind is refused, and * leaves the type out.
func TestEventPermissions(t *testing.T) {
	s := newDesk(t)
	s.want(201, "POST /v1/attributes", `{"key":"plan","type":"text"}`)
	s.hear(s.channel, "12022243450", "STOP")
	if _, _, err := s.app.SyncChannel(t.Context(), s.operator(s.ws), s.channel); err != nil {
		t.Fatal(err)
	}
	made := map[string]bool{}
	for _, e := range s.events("?limit=200").Data {
		made[e.Type] = true
	}
	for _, needs := range []desk.Permission{desk.ContactsRead, desk.ConversationsRead, desk.TemplatesRead, desk.AttributesRead, desk.ChannelsRead, desk.MembersRead, desk.WebhooksRead} {
		others := slices.DeleteFunc(slices.Clone(desk.Permissions), func(p desk.Permission) bool { return p == needs })
		key := s.newKey(s.ws, desk.JoinPermissions(others))
		var page feedPage
		if err := json.Unmarshal(s.as(key, "GET /v1/events?limit=200&types=*", "").body, &page); err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for _, e := range page.Data {
			got[e.Type] = true
		}
		for _, e := range desk.EventTypes {
			want := 200
			if e.Needs() == needs {
				want = 403
			}
			if got[string(e)] && want == 403 || made[string(e)] && want == 200 && !got[string(e)] {
				t.Errorf("without %s, * has %s: %v", needs, e, got[string(e)])
			}
			for _, types := range []string{string(e), e.Kind() + ".*", "*," + string(e)} {
				for accept, method := range map[string]string{"application/json": "GET", "text/event-stream": "HEAD"} {
					r := s.send(method, "/v1/events?types="+types, http.Header{"Authorization": {"Bearer " + key}, "Accept": {accept}}, "")
					if r.status != want || method == "GET" && want == 403 && !strings.Contains(string(r.body), string(needs)) {
						t.Errorf("%s %s without %s: %d %s", accept, types, needs, r.status, r.body)
					}
				}
			}
		}
	}
}
