package api_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/app"
	"parley/desk"
	"parley/provider"
	"parley/sandbox"
	"parley/store"
)

var (
	lateReplies   = flag.Int("late-replies", 48, "how many replies TestReplyAtTheEnd sends around the end of the window")
	erasureRaces  = flag.Int("erasure-races", 8, "how many people TestErasureRaces deletes while much happens to them")
	repliedPeople = flag.Int("replied-people", 24, "how many people with several addresses TestReplyAddress answers")
)

// replyTo sends a reply under a key.
func (s *server) replyTo(conversation desk.ID, key, body string) reply {
	s.t.Helper()
	header := http.Header{"Authorization": {"Bearer " + s.key}, "Idempotency-Key": {key}}
	return s.send("POST", "/v1/conversations/"+conversation.String()+"/messages", header, body)
}

// inTx runs a transaction of the store, for changes that the API can't make.
func (s *server) inTx(do func(store.Tx) error) {
	s.t.Helper()
	if err := s.store.InTx(s.t.Context(), s.ws, do); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) uploads(ws desk.ID, content string) *desk.Media {
	s.t.Helper()
	m, err := s.app.Media.Upload(s.t.Context(), s.operator(ws), desk.FileHead{Name: "a"}, strings.NewReader(content))
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

// TestReplyRefused: each refusal leaves all tables as they were, and its key free; if two
// checks fail, the earlier one answers.
func TestReplyRefused(t *testing.T) {
	s, _ := newListener(t)
	channel := s.channel
	elsewhere, _ := s.workspace("Other", "US")
	now := func() desk.Time { return desk.TimeOf(time.Now()) }
	type request struct {
		to, conversation, contact desk.ID
		members                   map[string]string
	}
	people := 0
	open := func() *request { // somebody who can be answered
		t.Helper()
		people++
		c, err := s.app.Receive(t.Context(), s.ws, channel, provider.InboundMessage{
			ExternalID: fmt.Sprint("wamid.", people), Number: fmt.Sprintf("1202224%04d", people+1000), Text: "Hello", At: now(),
		})
		if err != nil {
			t.Fatal(err)
		}
		return &request{c.ID, c.ID, c.ContactID, map[string]string{"text": `"Hi"`}}
	}
	another := open()
	theirs, _, err := s.app.Messages(t.Context(), s.operator(s.ws), another.conversation, "", 1)
	if err != nil {
		t.Fatal(err)
	}
	attach := func(q *request, id desk.ID, more string) {
		delete(q.members, "text")
		q.members["attachment"] = `{"media_id":"` + id.String() + `"` + more + `}`
	}
	stored := func(m desk.Media) func(*request) {
		return func(q *request) {
			m := m
			m.ID, m.CreatedAt, m.ContactID = s.newID(), now(), q.contact
			s.inTx(func(tx store.Tx) error { return tx.PutMedia(&m) })
			attach(q, m.ID, "")
		}
	}
	uploaded := func(ws desk.ID, content, more string) func(*request) {
		return func(q *request) { attach(q, s.uploads(ws, content).ID, more) }
	}
	const jpegHead, webpHead = "\xff\xd8\xff\xe0", "RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00"
	window := func(w desk.Window) func(*request) {
		return func(q *request) {
			s.inTx(func(tx store.Tx) error { return tx.PutWindow(channel, q.contact, w) })
		}
	}
	status := func(status string) func(*request) {
		return func(q *request) {
			s.want(200, "PUT /v1/conversations/"+q.conversation.String()+"/status", `{"status":"`+status+`"}`)
		}
	}
	type check struct {
		name   string
		breaks func(*request)
		status int
		want   desk.ErrorType
		part   string // of the answer
	}
	checks := [][]check{ // in the order of the contract, each with its variants
		{{"shape", func(q *request) { q.members["to"] = "7" }, 400, desk.InvalidRequest, "/to"}},
		{{"conversation", func(q *request) { q.to = desk.ID{9} }, 404, desk.NotFound, ""}},
		{
			{"closed", status("closed"), 409, desk.ConversationNotOpen, `"status":"closed","open_conversation_id":null`},
			{"archived", status("archived"), 409, desk.ConversationNotOpen, `"status":"archived"`},
		},
		{{"member", func(q *request) { q.members["member"] = `"nobody@example.com"` }, 400, desk.InvalidRequest, "/member"}},
		{
			{"reply_to", func(q *request) { q.members["reply_to"] = `"` + theirs[0].ID.String() + `"` }, 400, desk.InvalidRequest, "/reply_to"},
		},
		{
			{"media pending", stored(desk.Media{Kind: desk.KindImage, Status: desk.MediaPending}), 409, desk.MediaUnavailable, `{"status":"pending","reason":null}`},
			{"media failed", stored(desk.Media{Kind: desk.KindImage, Status: desk.MediaFailed, Reason: desk.MediaGone}), 409, desk.MediaUnavailable, `{"status":"failed","reason":"gone"}`},
			{"media deleted", stored(desk.Media{Kind: desk.KindImage, MIME: "image/jpeg", Size: 3, Status: desk.MediaDeleted}), 409, desk.MediaUnavailable, `"deleted"`},
			{"media unknown", func(q *request) { attach(q, desk.ID{9}, "") }, 404, desk.NotFound, ""},
			{"media of another workspace", uploaded(elsewhere, jpegHead, ""), 404, desk.NotFound, ""},
			{"media of another contact", func(q *request) {
				m := s.uploads(s.ws, jpegHead+"theirs")
				m.ContactID = another.contact
				s.inTx(func(tx store.Tx) error { return tx.PutMedia(m) })
				attach(q, m.ID, "")
			}, 404, desk.NotFound, ""},
			{"media type", uploaded(s.ws, "<html>", ""), 422, desk.MediaNotSendable, `"reason":"type"`},
			{"media size", uploaded(s.ws, jpegHead+strings.Repeat("x", 5e6-3), ""), 422, desk.MediaNotSendable, `"reason":"size","mime_type":"image/jpeg","size":5000001,"max":5000000`},
			{"media caption", uploaded(s.ws, webpHead, `,"caption":"x"`), 422, desk.MediaNotSendable, `"reason":"caption"`},
		},
		{{"channel", func(*request) { s.enable(channel, false) }, 422, desk.ChannelNotUsable, ""}},
		{{"recipient", func(q *request) {
			s.want(200, "PATCH /v1/contacts/"+q.contact.String(), `{"external_id":"`+q.contact.String()+`"}`)
			for _, kind := range []string{"whatsapp", "phone"} {
				c := contact(t, s.want(200, "GET /v1/contacts/"+q.contact.String(), ""))
				number := strings.TrimPrefix(*cmpOr(c.Phone, new(string)), "+")
				if kind == "phone" && number != "" {
					s.want(200, "PATCH /v1/contacts/"+q.contact.String(), `{"phone":null}`)
				}
				s.do("DELETE /v1/contacts/"+q.contact.String()+"/identities?kind="+kind+"&value="+number, "")
			}
			window(desk.Window{OpenedAt: now()})(q)
		}, 422, desk.RecipientUnreachable, ""}},
		{
			{"window", func(q *request) {
				w := desk.Window{OpenedAt: now() - 2*desk.WindowLength}
				if contact(t, s.want(200, "GET /v1/contacts/"+q.contact.String(), "")).Phone != nil {
					w.Number = "12022249999"
				}
				window(w)(q)
			}, 422, desk.WindowClosed, `"reason":"expired"`},
			{"never wrote", func(q *request) { window(desk.Window{Number: "12022249999"})(q) }, 422, desk.WindowClosed, `"closed_at":null,"reason":"never_wrote"`},
			{"number changed", func(q *request) {
				window(desk.Window{OpenedAt: now(), Number: "12022249999", ShutAt: now() + 9, ShutBy: desk.NumberChanged})(q)
			}, 422, desk.WindowClosed, `"reason":"number_changed"`},
			{"by the provider", func(q *request) {
				window(desk.Window{OpenedAt: now(), Number: "12022249999", ShutAt: now() + 9, ShutBy: desk.ByTheProvider})(q)
			}, 422, desk.WindowClosed, `"reason":"provider"`},
		},
	}
	try := func(name string, want check, broken ...check) {
		t.Helper()
		q := open()
		for _, c := range broken {
			c.breaks(q)
		}
		var members []string
		for _, m := range slices.Sorted(maps.Keys(q.members)) {
			members = append(members, fmt.Sprintf("%q:%s", m, q.members[m]))
		}
		before := s.dump()
		r := s.replyTo(q.to, "k", "{"+strings.Join(members, ",")+"}")
		if r.status != want.status || errorType(r.body) != string(want.want) || !bytes.Contains(r.body, []byte(want.part)) {
			t.Errorf("%s: %d %s, want %d %s %s", name, r.status, r.body, want.status, want.want, want.part)
		}
		if (r.header.Get("Retry-After") != "") != (name == "media pending" || strings.HasPrefix(name, "media pending,")) {
			t.Errorf("%s: Retry-After %q", name, r.header.Get("Retry-After"))
		}
		if after := s.dump(); after != before {
			t.Errorf("%s: something was stored:\n%s\nwas\n%s", name, after, before)
		}
		s.enable(channel, true)
	}
	for i, variants := range checks {
		for _, c := range variants {
			try(c.name, c, c)
		}
		if i+1 < len(checks) {
			next := checks[i+1][0]
			try(variants[0].name+", "+next.name, variants[0], variants[0], next)
		}
	}
	q := open()
	before := s.dump()
	if r := s.replyTo(q.to, "k\x7f", `{"to":7}`); r.status != 400 || !bytes.Contains(r.body, []byte("Idempotency-Key")) {
		t.Errorf("a bad key and a bad shape: %d %s", r.status, r.body)
	}
	if after := s.dump(); after != before {
		t.Error("something was stored")
	}
	sent := s.replyTo(q.to, "k", `{"text":"Hi"}`)
	if sent.status != 201 {
		t.Errorf("the key is not free: %d %s", sent.status, sent.body)
	}
	// The stored answer is returned before anything is looked up.
	status("closed")(q)
	s.enable(channel, false)
	if r := s.replyTo(q.to, "k", `{"text":"Hi"}`); r.status != 201 || !bytes.Equal(r.body, sent.body) {
		t.Errorf("again: %d %s", r.status, r.body)
	}
	if r := s.replyTo(q.to, "k", `{"text":"Ho"}`); r.status != 409 || errorType(r.body) != "idempotency_key_reused" {
		t.Errorf("another text: %d %s", r.status, r.body)
	}
}

func cmpOr(a, b *string) *string {
	if a != nil {
		return a
	}
	return b
}

// TestReplyRefusedByProvider: a refusal by the provider changes only the list of attempts,
// and the window if the refusal is about it. The key is free afterwards. If the provider
// does not take the file, nothing is stored at all.
func TestReplyRefusedByProvider(t *testing.T) {
	s, l := newListener(t)
	talk := s.hear(s.channel, "+12022243441", "Hello")
	picture := `{"attachment":{"media_id":"` + s.uploads(s.ws, jpeg).ID.String() + `"}}`
	before, tables := s.state(), s.dump()
	for name, loses := range map[string]error{
		"refused": &desk.Refusal{Type: desk.ProviderUnavailable, Message: "not now", RetryAfter: 1}, "lost": io.ErrUnexpectedEOF,
	} {
		l.loses = loses
		r := s.replyTo(talk.ID, "k", picture)
		if r.status != 502 || errorType(r.body) != "provider_unavailable" || r.header.Get("Retry-After") == "" && name == "refused" {
			t.Errorf("a file that is %s: %d %v %s", name, r.status, r.header, r.body)
		}
		if after := s.dump(); after != tables {
			t.Errorf("a file that is %s: stored\n%s\nwas\n%s", name, after, tables)
		}
	}
	l.loses = nil
	for i, tc := range []struct {
		refusal desk.Refusal
		status  int
		part    string
	}{
		{desk.Refusal{Type: desk.ProviderRejected, Message: "no", Failure: &desk.Failure{Code: 131026, Title: "Message undeliverable"}}, 422, `"code":131026`},
		{desk.Refusal{Type: desk.ProviderUnavailable, Message: "not now", RetryAfter: 1, Failure: &desk.Failure{Code: 130429, Title: "Rate limit hit"}}, 502, `"code":130429`},
		{desk.Refusal{Type: desk.ProviderRejected, Message: "no", StaleMedia: true, Failure: &desk.Failure{Code: 131053, Title: "Media upload error"}}, 422, `"code":131053`},
		{desk.Refusal{Type: desk.WindowClosed, Message: "no", Failure: &desk.Failure{Code: 131047, Title: "Re-engagement message"}}, 422, `"reason":"provider"`},
	} {
		l.refuses = &tc.refusal
		r := s.replyTo(talk.ID, "k", picture)
		if r.status != tc.status || errorType(r.body) != string(tc.refusal.Type) || !bytes.Contains(r.body, []byte(tc.part)) {
			t.Errorf("%+v: %d %s", tc.refusal, r.status, r.body)
		}
		if after := s.state(); after != before {
			t.Errorf("%+v: stored\n%s\nwas\n%s", tc.refusal, after, before)
		}
		if len(l.sent) != i+1 || len(s.attempts("&phase=refused")) != i+1 {
			t.Errorf("%d were sent", len(l.sent))
		}
	}
	l.refuses = nil
	if r := s.replyTo(talk.ID, "k", picture); r.status != 422 || errorType(r.body) != "window_closed" {
		t.Errorf("in a window that the provider has closed: %d %s", r.status, r.body)
	}
	s.hear(s.channel, "+12022243441", "Hello?")
	if r := s.replyTo(talk.ID, "k", picture); r.status != 201 || r.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("once the person has written: %d %s", r.status, r.body)
	}
	if len(l.uploaded) != 4 { // two that failed, the first one, and the one after it was stale
		t.Errorf("%d files were handed over", len(l.uploaded))
	}
}

// TestReplyKeys: replies and template messages share the space of keys, and a key belongs
// to one conversation.
func TestReplyKeys(t *testing.T) {
	s := newDesk(t, func(d *app.Deps) { d.Now = time.Now })
	first, second := s.hear(s.channel, "+12022243441", "Hello"), s.hear(s.channel, "+12022243442", "Hello")
	reused := func(what string, r reply) {
		t.Helper()
		if r.status != 409 || errorType(r.body) != "idempotency_key_reused" {
			t.Errorf("%s: %d %s", what, r.status, r.body)
		}
	}
	if r := s.outbound("template", message()); r.status != 201 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	if r := s.replyTo(first.ID, "reply", `{"text":"Hi"}`); r.status != 201 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	before := s.dump()
	reused("a reply with the key of a template message", s.replyTo(first.ID, "template", `{"text":"Hi"}`))
	reused("a template message with the key of a reply", s.outbound("reply", message()))
	reused("a reply in another conversation", s.replyTo(second.ID, "reply", `{"text":"Hi"}`))
	reused("a reply in one that does not exist", s.replyTo(desk.ID{9}, "reply", `{"text":"Hi"}`))
	if after := s.dump(); after != before {
		t.Errorf("stored\n%s\nwas\n%s", after, before)
	}
	for _, same := range []string{`{"text":"Hi"}`, ` { "text" : "H\u0069" } `} {
		if r := s.replyTo(first.ID, "reply", same); r.status != 201 || r.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: %d %s", same, r.status, r.body)
		}
	}
}

// A listener is a sandbox that remembers what it was asked to send, and knows people by
// ids of its own.
type listener struct {
	*sandbox.Sandbox
	mu       sync.Mutex
	sent     []provider.Dispatch
	uploaded []string
	refuses  error // if set, the answer to each message
	loses    error // if set, the answer to each file
}

func (l *listener) Send(ctx context.Context, d provider.Dispatch) (provider.Receipt, error) {
	l.mu.Lock()
	l.sent = append(l.sent, d)
	refuses := l.refuses
	l.mu.Unlock()
	if refuses != nil {
		return provider.Receipt{}, refuses
	}
	return l.Sandbox.Send(ctx, d)
}

func (l *listener) Upload(ctx context.Context, at provider.Access, kind, name string, size int64, content io.Reader) (string, error) {
	b, err := io.ReadAll(content)
	if err != nil {
		return "", err
	}
	l.mu.Lock()
	l.uploaded = append(l.uploaded, kind+" "+name+" "+string(b))
	loses := l.loses
	l.mu.Unlock()
	if loses != nil {
		return "", loses
	}
	return l.Sandbox.Upload(ctx, at, kind, name, size, bytes.NewReader(b))
}

func (l *listener) Identities(number, userID string) []desk.Identity {
	list := l.Sandbox.Identities(number, "")
	if userID != "" {
		list = append(list, desk.Identity{Kind: desk.KindWhatsAppUser, Value: userID})
	}
	return list
}

// newListener returns a server with the machine's clock, and with a channel whose provider
// is a listener.
func newListener(t *testing.T) (*deskServer, *listener) {
	t.Helper()
	l := &listener{}
	s := newDesk(t, func(d *app.Deps) {
		d.Now = time.Now
		library, _ := d.Store.(sandbox.Library)
		l.Sandbox = sandbox.New(sandbox.Config{Library: library, Now: d.Now, NewID: d.NewID, Pace: time.Hour})
		d.Providers[desk.SandboxChannel] = l
	})
	return s, l
}

func (s *deskServer) receive(in provider.InboundMessage) *desk.Conversation {
	s.t.Helper()
	c, err := s.app.Receive(s.t.Context(), s.ws, s.channel, in)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// TestReplyAtTheEnd: a reply that is answered before the window closes was accepted. A
// reply that is sent after it closes is refused. On PostgreSQL, the database's clock
// decides.
func TestReplyAtTheEnd(t *testing.T) {
	s, l := newListener(t)
	n := *lateReplies
	conversations, ends := make([]*desk.Conversation, n), make([]time.Time, n)
	opens := func(i int, end time.Time) {
		conversations[i] = s.receive(provider.InboundMessage{
			ExternalID: fmt.Sprint("wamid.", i), Number: fmt.Sprintf("1202225%04d", 10*i+9), Text: "Hello", At: desk.TimeOf(end) - desk.WindowLength,
		})
		ends[i] = end
	}
	began := time.Now()
	for i := range n / 4 { // long before
		opens(i, began.Add(time.Hour))
	}
	for i := n / 4; i < n/2; i++ { // long after
		opens(i, began.Add(-time.Minute))
	}
	// The others close one after the other, once all are open.
	from := time.Now().Add(3*time.Since(began) + 50*time.Millisecond)
	for i := n / 2; i < n; i++ {
		opens(i, from.Add(time.Duration(i-n/2)*10*time.Millisecond).Truncate(time.Millisecond))
	}
	var taken, refused, between atomic.Int64
	var all sync.WaitGroup
	for i := range n {
		at := time.Now()
		if i >= n/2 {
			at = ends[i].Add(time.Duration(rand.Int64N(int64(80*time.Millisecond))) - 50*time.Millisecond)
		}
		all.Go(func() {
			<-time.After(time.Until(at))
			began := time.Now()
			r := s.replyTo(conversations[i].ID, fmt.Sprint("late ", i), `{"text":"Hi"}`)
			ended := time.Now()
			switch before, after := ended.Before(ends[i]), !began.Before(ends[i]); {
			case r.status == 201:
				taken.Add(1)
				if after {
					t.Errorf("a reply that was sent %v after the end was taken", began.Sub(ends[i]))
				}
			case r.status == 422 && errorType(r.body) == "window_closed":
				refused.Add(1)
				if before {
					t.Errorf("a reply that was answered %v before the end was refused", ends[i].Sub(ended))
				}
			default:
				t.Errorf("%d %s", r.status, r.body)
			}
			if began.Before(ends[i]) && !ended.Before(ends[i]) {
				between.Add(1)
			}
		})
	}
	all.Wait()
	if taken.Load() < int64(n/4) || refused.Load() < int64(n/4) || len(l.sent) != int(taken.Load()) {
		t.Errorf("%d were taken and %d refused; the provider got %d", taken.Load(), refused.Load(), len(l.sent))
	}
	t.Logf("%d were taken, %d refused; during %d the window closed", taken.Load(), refused.Load(), between.Load())
}

// TestReplyAddress: a reply goes to where the newest message came from, whatever other
// addresses the person has, and in whatever order their messages came.
func TestReplyAddress(t *testing.T) {
	s, l := newListener(t)
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	var want []string
	for i := range *repliedPeople {
		phone, second, user := fmt.Sprintf("1202226%04d", 10*i+9), fmt.Sprintf("1202227%04d", 10*i+9), fmt.Sprintf("US.%d", i)
		s.want(201, "POST /v1/contacts", fmt.Sprintf(`{"phone":"+%s","identities":[{"kind":"phone","value":"+%s"},{"kind":"whatsapp_user","value":%q}]}`, phone, second, user))
		from := [][2]string{{phone, ""}, {second, ""}, {"", user}, {phone, user}, {second, user}}
		var c *desk.Conversation
		newest, to := desk.Time(0), [2]string{}
		for n, ago := range rng.Perm(1000)[:1+rng.IntN(6)] {
			at := desk.TimeOf(time.Now()) - desk.Time(1000*(1+ago))
			who := from[rng.IntN(len(from))]
			c = s.receive(provider.InboundMessage{ExternalID: fmt.Sprint(i, ".", n), Number: who[0], UserID: who[1], Text: "Hello", At: at})
			if at > newest {
				newest, to = at, who
			}
		}
		if to[0] != "" {
			to[1] = ""
		}
		want = append(want, to[0]+to[1])
		if r := s.replyTo(c.ID, fmt.Sprint("to ", i), `{"text":"Hi"}`); r.status != 201 {
			t.Fatalf("seed %d, person %d: %d %s", seed, i, r.status, r.body)
		}
		if list := ids(t, s.want(200, "GET /v1/contacts?phone=%2B"+phone, "")); len(list) != 1 || list[0] != c.ContactID.String() {
			t.Fatalf("seed %d, person %d is %v, not %s", seed, i, list, c.ContactID)
		}
	}
	for i, d := range l.sent {
		if d.Number+d.UserID != want[i] || d.Number != "" && d.UserID != "" {
			t.Errorf("seed %d: the reply to person %d went to %q %q, want %q", seed, i, d.Number, d.UserID, want[i])
		}
	}
	if len(l.sent) != *repliedPeople {
		t.Errorf("%d replies were sent", len(l.sent))
	}
}

// TestErasureRaces: people are deleted while they write and send files, while members
// answer them and write notes, and while messages are marked. Once all are deleted, no row
// of any of them is left.
func TestErasureRaces(t *testing.T) {
	s, _ := newListener(t)
	shared := s.uploads(s.ws, jpeg+" shared").ID.String()
	var all sync.WaitGroup
	var people, talks []desk.ID
	do := func(call, key, body string) {
		all.Go(func() {
			method, target, _ := strings.Cut(call, " ")
			header := http.Header{"Authorization": {"Bearer " + s.key}}
			if key != "" {
				header.Set("Idempotency-Key", key)
			}
			if r := s.send(method, target, header, body); r.status >= 500 {
				t.Errorf("%s: %d %s", call, r.status, r.body)
			}
		})
	}
	for i := range *erasureRaces {
		number := fmt.Sprintf("1202228%04d", 10*i+9)
		said := 0
		receives := func(in provider.InboundMessage) *desk.Conversation {
			said++
			in.ExternalID, in.Number, in.UserID, in.At = fmt.Sprint(i, ".", said), number, fmt.Sprint("US.", i), desk.TimeOf(time.Now())
			return s.receive(in)
		}
		c := receives(provider.InboundMessage{Text: "Hello"})
		people, talks = append(people, c.ContactID), append(talks, c.ID)
		path := "/v1/conversations/" + c.ID.String()
		own := s.uploads(s.ws, fmt.Sprint(jpeg, i)).ID.String()
		do("POST "+path+"/messages", fmt.Sprint("text ", i), `{"text":"Hi"}`)
		do("POST "+path+"/messages", fmt.Sprint("own ", i), `{"attachment":{"media_id":"`+own+`"}}`)
		do("POST "+path+"/messages", fmt.Sprint("shared ", i), `{"attachment":{"media_id":"`+shared+`"}}`)
		do("POST "+path+"/notes", "", `{"text":"A note"}`)
		do("PUT "+path+"/read", "", `{"receipt":false}`)
		do("PUT "+path+"/assignee", "", `{"member":"ada@example.com"}`)
		do("DELETE /v1/contacts/"+c.ContactID.String(), "", "")
		do("POST /v1/conversations/outbound", fmt.Sprint("template ", i), message(`"to":{"phone":"+`+number+`"}`))
		for _, in := range []provider.InboundMessage{
			{Text: "Are you there?"},
			{Text: "[image]", Kind: desk.KindImage, Media: &provider.InboundMedia{Ref: "1"}},
			{Text: "[reaction]", Kind: desk.KindReaction, ReplyTo: fmt.Sprint(i, ".1"), Extra: &desk.Extra{Reaction: &desk.Reaction{Emoji: "+"}}},
			{Text: "Typed", Echo: true},
		} {
			said++
			in.ExternalID, in.Number, in.UserID, in.At = fmt.Sprint(i, ".", said), number, fmt.Sprint("US.", i), desk.TimeOf(time.Now())
			all.Go(func() {
				if _, err := s.app.Receive(context.WithoutCancel(t.Context()), s.ws, s.channel, in); err != nil {
					t.Error(err)
				}
			})
		}
		if i%4 == 3 {
			all.Wait()
		}
	}
	all.Wait()
	for left := ids(t, s.want(200, "GET /v1/contacts?limit=200", "")); len(left) > 0; left = ids(t, s.want(200, "GET /v1/contacts?limit=200", "")) {
		for _, id := range left {
			s.want(204, "DELETE /v1/contacts/"+id, "")
		}
	}
	// Tables that may still have the ids of these people.
	keeps := []string{"events", "attempts", "send_answers", "erasures"}
	for table, rows := range s.tables() {
		for _, id := range slices.Concat(people, talks) {
			if !slices.Contains(keeps, table) && (strings.Contains(rows, id.String()) || strings.Contains(rows, fmt.Sprintf("%d", id[:]))) {
				t.Errorf("the table %s still names %s", table, id)
			}
		}
		if empty := []string{"", "[]"}; slices.Contains([]string{"contacts", "claims", "conversations", "messages", "windows", "notes", "media_jobs"}, table) && !slices.Contains(empty, rows) {
			t.Errorf("rows are left in %s: %s", table, rows)
		}
	}
	list, err := s.store.MediaList(t.Context(), s.ws, false, desk.ID{}, 200)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		if !m.ContactID.IsZero() {
			t.Errorf("a file is left: %+v", m)
		}
	}
}
