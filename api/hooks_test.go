package api_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"parley/api"
	"parley/app"
	"parley/desk"
	"parley/sandbox"
)

// A hooked provider reports by webhooks, which its secret signs by standing before them.
type hooked struct{ *sandbox.Sandbox }

func (hooked) Signed(at app.Access, header string, body []byte) bool {
	return header == at.Secrets.AppSecret.Reveal()+" "+fmt.Sprint(len(body))
}

func (hooked) People([]byte) []string { return nil }

// A lostStore can't be written to while it is down.
type lostStore struct {
	app.Store
	down *atomic.Bool
}

func (s lostStore) InTx(ctx context.Context, ws desk.ID, f func(app.Tx) error) error {
	if s.down.Load() {
		return desk.Errorf(desk.Unavailable, "the database is away")
	}
	return s.Store.InTx(ctx, ws, f)
}

// A hookServer has a channel that reports by webhooks.
type hookServer struct {
	*server
	channel desk.ID
	down    *atomic.Bool
}

const hookSecret, hookToken = "s3cret-app", "s3cret-verify"

func newHookServer(t *testing.T) *hookServer {
	t.Helper()
	down := new(atomic.Bool)
	s := newServerWith(t, api.Config{}, func(d *app.Deps) {
		d.Store = lostStore{d.Store, down}
		d.Providers[desk.WhatsAppChannel] = hooked{d.Providers[desk.SandboxChannel].(*sandbox.Sandbox)}
	})
	c, _, _, err := s.app.AddWhatsApp(t.Context(), s.ws, app.WhatsAppAccount{
		PhoneNumberID: "200300400500600", Account: desk.Account{BusinessID: "100200300400500"},
		Secrets: app.Secrets{Token: app.NewSecret("s3cret-token"), AppSecret: app.NewSecret(hookSecret), VerifyToken: app.NewSecret(hookToken)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &hookServer{s, c.ID, down}
}

func (s *hookServer) post(channel, signature, body string) reply {
	s.t.Helper()
	return s.send("POST", "/hooks/whatsapp/"+channel, http.Header{"X-Hub-Signature-256": {signature}}, body)
}

func signed(body string) string { return hookSecret + " " + fmt.Sprint(len(body)) }

func (s *hookServer) newest() desk.Time {
	s.t.Helper()
	at, err := s.store.NewestWebhook(s.t.Context(), s.ws, s.channel)
	if err != nil {
		s.t.Fatal(err)
	}
	return at
}

// bare fails unless an answer is a status and no body.
func bare(t *testing.T, what string, r reply, status int) {
	t.Helper()
	if r.status != status || len(r.body) != 0 || r.header.Get("X-Request-Id") == "" || (r.header.Get("Retry-After") != "") != (status >= 500) {
		t.Errorf("%s: %d %v %q, want %d and no body", what, r.status, r.header, r.body, status)
	}
}

// TestHooks: a webhook is admitted by its signature alone. Answers have no body.
func TestHooks(t *testing.T) {
	t.Parallel()
	s := newHookServer(t)
	id, sandboxed := s.channel.String(), desk.ID{}
	c, err := s.app.AddSandbox(t.Context(), s.ws, "")
	if err != nil {
		t.Fatal(err)
	}
	sandboxed = c.ID
	largest := strings.Repeat("x", app.MaxWebhook)
	for _, c := range []struct {
		what, channel, signature, body string
		status                         int
	}{
		{"no signature", id, "", "{}", 401},
		{"a wrong one", id, "x", "{}", 401},
		{"of another body", id, signed("{}"), "{ }", 401},
		{"an unknown channel", s.members[0].ID.String(), signed("{}"), "{}", 401},
		{"no id", "nonsense", signed("{}"), "{}", 401},
		{"a sandbox", sandboxed.String(), signed("{}"), "{}", 401},
		{"too large", id, signed(largest + "x"), largest + "x", 413},
		{"too large, and not signed", id, "", largest + "x", 413},
	} {
		bare(t, c.what, s.post(c.channel, c.signature, c.body), c.status)
	}
	s.down.Store(true)
	bare(t, "while the database is away", s.post(id, signed("{}"), "{}"), 503)
	if at := s.newest(); at != 0 {
		t.Errorf("a webhook of %s is stored", at)
	}
	s.down.Store(false)
	bare(t, "a webhook", s.post(id, signed("{}"), "{}"), 200)
	first := s.newest()
	bare(t, "the largest", s.post(id, signed(largest), largest), 200)
	if first == 0 || s.newest() <= first {
		t.Errorf("stored of %s and %s", first, s.newest())
	}

	for method, status := range map[string]int{"PUT": 405, "DELETE": 405, "PATCH": 405, "OPTIONS": 405} {
		r := s.send(method, "/hooks/whatsapp/"+id, http.Header{}, "")
		if r.status != status || r.header.Get("Allow") != "GET, HEAD, POST" {
			t.Errorf("%s: %d, Allow %q", method, r.status, r.header.Get("Allow"))
		}
	}
	for _, path := range []string{"/hooks", "/hooks/whatsapp", "/hooks/whatsapp/", "/hooks/whatsapp/" + id + "/", "/hooks/telegram/" + id, "/v1/hooks/whatsapp/" + id} {
		if r := s.as(s.key, "GET "+path, ""); r.status != 404 {
			t.Errorf("%s: %d", path, r.status)
		}
	}

	// They are counted by route, and nothing is logged of what they hold.
	metrics := string(s.as("", "GET /metrics", "").body)
	for status, n := range map[int]int{200: 2, 401: 6, 413: 2, 503: 1} {
		line := fmt.Sprintf(`parley_http_requests_total{route="POST /hooks/whatsapp/{channel}",status="%d"} %d`, status, n)
		if !strings.Contains(metrics, line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
	if strings.Contains(metrics, id) || strings.Contains(metrics, "s3cret") {
		t.Error("the metrics name records")
	}
	log := s.log.String()
	if n := strings.Count(log, "a webhook can't be stored"); n != 1 || !regexp.MustCompile(`level=ERROR msg="a webhook can't be stored" channel_id=`+id).MatchString(log) {
		t.Errorf("logged:\n%s", log)
	}
	if strings.Contains(log, "s3cret") {
		t.Errorf("the log holds secrets:\n%s", log)
	}
}

// TestHookHandshake: the challenge is answered as it came, as plain text, to whoever has
// the verify token.
func TestHookHandshake(t *testing.T) {
	t.Parallel()
	s := newHookServer(t)
	ask := func(channel, mode, token, challenge string) reply {
		t.Helper()
		q := url.Values{"hub.mode": {mode}, "hub.verify_token": {token}, "hub.challenge": {challenge}}
		return s.send("GET", "/hooks/whatsapp/"+channel+"?"+q.Encode(), http.Header{}, "")
	}
	id := s.channel.String()
	for _, challenge := range []string{"1158201444", "<script>é&amp;%3C", strings.Repeat("x", 256), ""} {
		r := ask(id, "subscribe", hookToken, challenge)
		if r.status != 200 || string(r.body) != challenge || r.header.Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("the challenge %q: %d %v %q", challenge, r.status, r.header, r.body)
		}
	}
	for what, r := range map[string]reply{
		"a wrong token":      ask(id, "subscribe", "x", "1"),
		"no token":           ask(id, "subscribe", "", "1"),
		"the app secret":     ask(id, "subscribe", hookSecret, "1"),
		"another mode":       ask(id, "unsubscribe", hookToken, "1"),
		"no mode":            ask(id, "", hookToken, "1"),
		"too long":           ask(id, "subscribe", hookToken, strings.Repeat("x", 257)),
		"an unknown channel": ask(s.members[0].ID.String(), "subscribe", hookToken, "1"),
		"no id":              ask("nonsense", "subscribe", "", "1"),
		"nothing":            s.send("GET", "/hooks/whatsapp/"+id, http.Header{}, ""),
	} {
		bare(t, what, r, 403)
	}
	metrics := string(s.as("", "GET /metrics", "").body)
	for _, line := range []string{`{route="GET /hooks/whatsapp/{channel}",status="200"} 4`, `{route="GET /hooks/whatsapp/{channel}",status="403"} 9`} {
		if !strings.Contains(metrics, "parley_http_requests_total"+line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
	if log := s.log.String(); log != "" {
		t.Errorf("logged:\n%s", log)
	}
}

// TestHookOfALeaver: that a provider leaves before the answer is no fault of ours.
func TestHookOfALeaver(t *testing.T) {
	t.Parallel()
	s := newHookServer(t)
	s.down.Store(true)
	ctx, leave := context.WithCancel(t.Context())
	leave()
	r := httptest.NewRequest("POST", "/hooks/whatsapp/"+s.channel.String(), strings.NewReader("{}")).WithContext(ctx)
	r.Header.Set("X-Hub-Signature-256", signed("{}"))
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	if log := s.log.String(); w.Code == 200 || s.newest() != 0 || log != "" {
		t.Errorf("answered %d, logged:\n%s", w.Code, log)
	}
}

// An unread body fails the test when it is read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body is read")
	return 0, io.EOF
}

// TestHookOfNoChannel: who does not even know a channel is not listened to.
func TestHookOfNoChannel(t *testing.T) {
	t.Parallel()
	s := newHookServer(t)
	r := httptest.NewRequest("POST", "/hooks/whatsapp/"+s.app.NewID().String(), unread{t})
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	if w.Code != http.StatusUnauthorized || w.Body.Len() != 0 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
