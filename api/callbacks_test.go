package api_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/api"
	"parley/app"
	"parley/desk"
	"parley/provider"
	"parley/store"
	"parley/web"
	"parley/whatsapp"
)

// A hooked is a provider that reports by callbacks. The signature of a callback is the
// secret and the length of the body.
type hooked struct {
	provider.Provider
	provider.CallbackProvider
}

func (hooked) Signed(at provider.Access, header func(string) string, body []byte) bool {
	return header("X-Hub-Signature-256") == at.Secrets.AppSecret.Reveal()+" "+fmt.Sprint(len(body))
}

func (hooked) CheckAccount(*desk.Channel, *provider.Secrets) error { return nil }

func (hooked) People([]byte) []desk.Identity { return nil }

// A lostStore is a store that can't be written to while it is down.
type lostStore struct {
	store.Store
	down *atomic.Bool
}

func (s lostStore) InTx(ctx context.Context, ws desk.ID, f func(store.Tx) error) error {
	if s.down.Load() {
		return desk.Errorf(desk.Unavailable, "the database is away")
	}
	return s.Store.InTx(ctx, ws, f)
}

// A callbackServer is a server with a channel that reports by callbacks.
type callbackServer struct {
	*server
	channel desk.ID
	down    *atomic.Bool
}

const hookSecret, hookToken = "s3cret-app", "s3cret-verify"

func newCallbackServer(t *testing.T) *callbackServer {
	t.Helper()
	down := new(atomic.Bool)
	s := newServerWith(t, api.Config{}, func(d *app.Deps) {
		d.Store = lostStore{d.Store, down}
		d.Providers[desk.WhatsAppChannel] = hooked{d.Providers[desk.SandboxChannel], whatsapp.New(whatsapp.Config{Now: d.Now})}
	})
	at, _, err := s.app.AddChannel(t.Context(), s.operator(s.ws), app.NewChannel{
		Kind: desk.WhatsAppChannel, ExternalID: "200300400500600", Account: desk.Account{BusinessID: "100200300400500"},
		Secrets: provider.Secrets{Token: provider.NewSecret("s3cret-token"), AppSecret: provider.NewSecret(hookSecret), VerifyToken: provider.NewSecret(hookToken)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &callbackServer{s, at.Channel.ID, down}
}

func (s *callbackServer) post(channel, signature, body string) reply {
	s.t.Helper()
	return s.send("POST", "/hooks/whatsapp/"+channel, http.Header{"X-Hub-Signature-256": {signature}}, body)
}

func signed(body string) string { return hookSecret + " " + fmt.Sprint(len(body)) }

func (s *callbackServer) newest() desk.Time {
	s.t.Helper()
	at, err := s.store.NewestCallback(s.t.Context(), s.ws, s.channel)
	if err != nil {
		s.t.Fatal(err)
	}
	return at
}

// bare checks that an answer has a status and no body.
func bare(t *testing.T, what string, r reply, status int) {
	t.Helper()
	if r.status != status || len(r.body) != 0 || r.header.Get("X-Request-Id") == "" || (r.header.Get("Retry-After") != "") != (status >= 500) {
		t.Errorf("%s: %d %v %q, want %d and no body", what, r.status, r.header, r.body, status)
	}
}

// TestCallbacks: only the signature decides whether a callback is accepted. Answers have no
// body.
func TestCallbacks(t *testing.T) {
	t.Parallel()
	s := newCallbackServer(t)
	id, sandboxed := s.channel.String(), s.addSandbox("")
	largest := strings.Repeat("x", app.MaxCallback)
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
		t.Errorf("a callback of %s is stored", at)
	}
	s.down.Store(false)
	bare(t, "a callback", s.post(id, signed("{}"), "{}"), 200)
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

	// Callbacks are counted by route, and the log has nothing of their content.
	metrics := string(s.as("", "GET /metrics", "").body)
	for status, n := range map[int]int{200: 2, 401: 6, 413: 2, 503: 1} {
		line := fmt.Sprintf(`parley_http_requests_total{route="POST /hooks/whatsapp/{channel}",status="%d"} %d`, status, n)
		if !strings.Contains(metrics, line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
	if regexp.MustCompile(`(?m)^parley_http_.*`+id).MatchString(metrics) || strings.Contains(metrics, "s3cret") {
		t.Error("the metrics of requests name records, or hold secrets")
	}
	log := s.log.String()
	if n := strings.Count(log, "\n"); n != 1 || !regexp.MustCompile(`level=WARN msg="request failed" route="POST /hooks/whatsapp/{channel}" request_id=\S+ channel_id=`+id+` err="[^"]*away"`).MatchString(log) {
		t.Errorf("logged:\n%s", log)
	}
	if strings.Contains(log, "s3cret") {
		t.Errorf("the log holds secrets:\n%s", log)
	}
}

// TestCallbackHandshake: a client that has the verify token gets the challenge back,
// unchanged, as plain text.
func TestCallbackHandshake(t *testing.T) {
	t.Parallel()
	s := newCallbackServer(t)
	ask := func(channel, mode, token, challenge string) reply {
		t.Helper()
		q := url.Values{"hub.mode": {mode}, "hub.verify_token": {token}, "hub.challenge": {challenge}}
		return s.send("GET", "/hooks/whatsapp/"+channel+"?"+q.Encode(), http.Header{}, "")
	}
	id := s.channel.String()
	for _, challenge := range []string{"1158201444", "<script>é&amp;%3C", strings.Repeat("x", 256), ""} {
		r := ask(id, "subscribe", hookToken, challenge)
		if r.status != 200 || string(r.body) != challenge || r.header.Get("Content-Type") != "text/plain; charset=utf-8" ||
			r.header.Get("X-Content-Type-Options") != "nosniff" {
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

// TestCallbackDebugLine: callbacks have a line at debug level, as all requests have, without
// the token that a handshake's URL holds.
func TestCallbackDebugLine(t *testing.T) {
	t.Parallel()
	s := newCallbackServer(t)
	log := new(bytes.Buffer)
	edge := web.New(web.Config{Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})), NewID: s.newID, Ready: s.app.Ready, Drain: s.app.Drain})
	api.New(api.Config{App: s.app, Web: edge})
	handler := edge.Handler()
	path := "/hooks/whatsapp/" + s.channel.String()
	for _, c := range []struct{ method, path, body, want string }{
		{"POST", path, "{}", `level=DEBUG msg=http route="POST /hooks/whatsapp/{channel}" method=POST status=401 request_id=`},
		{"GET", path + "?hub.mode=subscribe&hub.verify_token=" + hookToken, "", `level=DEBUG msg=http route="GET /hooks/whatsapp/{channel}" method=GET status=200 request_id=`},
	} {
		log.Reset()
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(c.method, c.path, strings.NewReader(c.body)))
		if line := log.String(); strings.Count(line, "\n") != 1 || !strings.Contains(line, c.want) || !strings.Contains(line, " took=") || strings.Contains(line, hookToken) {
			t.Errorf("%s: logged\n%s", c.method, line)
		}
	}
}

// TestCallbackOfALeaver: if a provider leaves before the answer, this is not logged as an
// error of the server.
func TestCallbackOfALeaver(t *testing.T) {
	t.Parallel()
	s := newCallbackServer(t)
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

// TestCallbacksTellNoChannelsApart: without a signature by a channel's secret, nobody can
// see whether a channel exists, and of what kind it is. Neither the answer nor the reading
// of the body shows it.
func TestCallbacksTellNoChannelsApart(t *testing.T) {
	t.Parallel()
	s := newCallbackServer(t)
	sandboxed := s.addSandbox("")
	real := httptest.NewServer(s.handler)
	t.Cleanup(real.Close)
	const tooMuch = app.MaxCallback + 1
	for name, c := range map[string]struct{ header, body string }{
		"small":                {"Content-Length: 2\r\n", "{}"},
		"waits to be asked":    {"Content-Length: 2\r\nExpect: 100-continue\r\n", "{}"},
		"no body":              {"Content-Length: 0\r\n", ""},
		"large":                {fmt.Sprintf("Content-Length: %d\r\n", app.MaxCallback), strings.Repeat("x", app.MaxCallback)},
		"announces too much":   {fmt.Sprintf("Content-Length: %d\r\nExpect: 100-continue\r\n", tooMuch), strings.Repeat("x", tooMuch)},
		"chunked":              {"Transfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"},
		"chunked and too much": {"Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", tooMuch, strings.Repeat("x", tooMuch))},
		"wrongly signed":       {"Content-Length: 2\r\nX-Hub-Signature-256: sha256=00\r\n", "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var first string
			for _, channel := range []string{s.channel.String(), sandboxed.String(), s.app.NewID().String(), "nonsense"} {
				got := exchange(t, real.Listener.Addr().String(), "POST /hooks/whatsapp/"+channel, c.header, c.body)
				if first == "" {
					first = got
				}
				if got != first || !strings.Contains(got, "HTTP/1.1 4") {
					t.Errorf("%s is answered\n%s\nand not\n%s", channel, got, first)
				}
			}
		})
	}
}

// exchange makes a request over a connection of its own. It returns everything that comes
// back, without ids and dates. If the client waits for 100 Continue, this shows whether the
// server asked for the body.
func exchange(t *testing.T, address, request, header, body string) string {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: parley\r\nConnection: close\r\n%s\r\n", request, header); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	answer := bufio.NewReader(c)
	if strings.Contains(header, "Expect") {
		line, err := answer.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(line)
		if !strings.Contains(line, " 100 ") {
			body = ""
		}
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.WriteString(c, body) // the server cuts a body off if it is too large
	}()
	for {
		line, err := answer.ReadString('\n')
		if !strings.HasPrefix(line, "X-Request-Id: ") && !strings.HasPrefix(line, "Date: ") {
			all.WriteString(line)
		}
		if err != nil {
			break // the end, or a reset after a body that was not read whole
		}
	}
	c.Close()
	<-sent
	return all.String()
}

// An endless is a body that counts how many bytes are read of it.
type endless struct{ read, end int }

func (e *endless) Read(b []byte) (int, error) {
	if e.read >= e.end {
		return 0, io.EOF
	}
	e.read += len(b)
	return len(b), nil
}

// TestCallbackReadsNoMore: of a body without an announced length, no more is read than a
// callback may have.
func TestCallbackReadsNoMore(t *testing.T) {
	t.Parallel()
	s := newCallbackServer(t)
	body := &endless{end: 4 * app.MaxCallback}
	r := httptest.NewRequest("POST", "/hooks/whatsapp/"+s.channel.String(), body)
	r.ContentLength = -1
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	if w.Code != http.StatusRequestEntityTooLarge || body.read > app.MaxCallback+1 {
		t.Errorf("%d after %d bytes", w.Code, body.read)
	}
}
