package e2e_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestServe(t *testing.T) {
	t.Parallel()
	dir := newDir(t)

	// The directory does not exist yet: serve makes it, and no other command is needed.
	s := serve(t, dir)
	for path, want := range map[string]int{
		"/healthz": 200, "/readyz": 200, "/openapi.json": 200, "/docs": 200, "/metrics": 200, "/": 200, "/v1/contacts": 401,
	} {
		if got := s.status(t, path); got != want {
			t.Errorf("GET %s: status %d, want %d", path, got, want)
		}
	}
	if out := s.stdout.String(); out != "" {
		t.Errorf("serve printed on standard output: %s", out)
	}

	// Commands work while the server runs.
	_, key := newWorkspace(t, dir)
	s.want(t, 201, key, "POST", "/contacts", `{"external_id":"1","name":"Ada"}`)

	// Acknowledged data is kept after a stop, and after a power cut.
	s.stop(t)
	s = serve(t, dir)
	s.want(t, 201, key, "POST", "/contacts", `{"external_id":"2","name":"Grace"}`)
	s.kill()
	s = serve(t, dir)
	if list := s.want(t, 200, key, "GET", "/contacts", ""); !strings.Contains(list, "Ada") || !strings.Contains(list, "Grace") {
		t.Errorf("a contact is lost: %s", list)
	}
}

// TestServePublicPath: the paths of the console always begin at the root of the host.
func TestServePublicPath(t *testing.T) {
	t.Parallel()
	s := serve(t, newDir(t), "--public-url", "https://example.com/parley")
	waitFor(t, "a warning", func() bool { return strings.Contains(s.stderr.String(), "the console works at the root") })
	s.stop(t)
}

func TestServeJSON(t *testing.T) {
	t.Parallel()
	s := serve(t, newDir(t), "--json", "--public-url", "https://parley.example/")
	var answer struct {
		BaseURL string `json:"base_url"`
	}
	if err := json.Unmarshal([]byte(s.stdout.String()), &answer); err != nil || answer.BaseURL != "https://parley.example/v1" {
		t.Errorf("standard output: %v: %s", err, s.stdout.String())
	}
	s.stop(t)
}

func TestSecondServeIsRefused(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	first := serve(t, dir)
	for _, command := range []string{"serve", "demo"} {
		r := parley(t, nil, command, "--data", dir, "--listen", "127.0.0.1:0")
		if r.code != 1 || strings.Count(r.stderr, "\n") != 1 || !strings.Contains(r.stderr, dir) {
			t.Errorf("a second %s on the directory: exit %d: %s", command, r.code, r.stderr)
		}
	}
	if got := first.status(t, "/healthz"); got != 200 {
		t.Errorf("the first one's /healthz: status %d", got)
	}
	first.kill()
	serve(t, dir).stop(t) // a killed server leaves its lock free
}

func TestListenOnATakenPort(t *testing.T) {
	t.Parallel()
	s := serve(t, newDir(t))
	address := strings.TrimPrefix(s.url, "http://")
	r := parley(t, []string{"PARLEY_LISTEN=" + address}, "serve", "--data", newDir(t))
	if r.code != 1 || strings.Count(r.stderr, "\n") != 1 || !strings.Contains(r.stderr, address) {
		t.Errorf("serve on a taken port: exit %d: %s", r.code, r.stderr)
	}
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	_, key := newWorkspace(t, dir)
	s := serve(t, dir, "--rate-limit", "1")
	waitFor(t, "429", func() bool {
		status, _ := s.call(t, key, "GET", "/contacts", "")
		return status == http.StatusTooManyRequests
	})
}

// TestRateLimitOfAssistants: each request to /mcp counts once. This does not depend on
// what it asks for, or on whether it is refused.
func TestRateLimitOfAssistants(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	_, key := newWorkspace(t, dir)
	s := serve(t, dir, "--rate-limit", "1")
	ask := func(method, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, s.url+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+key)
		r.Header.Set("Accept", "application/json, text/event-stream")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		b, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(b)
	}
	call := func(method, params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`
	}
	for name, c := range map[string]struct{ method, body, answer string }{
		"ping":       {"POST", call("ping", `{}`), `"result":{}`},
		"initialize": {"POST", call("initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`), `"serverInfo"`},
		"list":       {"POST", call("tools/list", `{}`), `"find_contact"`},
		"tool":       {"POST", call("tools/call", `{"name":"list_members","arguments":{}}`), `"structuredContent"`},
		"unknown":    {"POST", call("nothing", `{}`), `"error"`},
		"method":     {"GET", "", "method_not_allowed"},
		"several":    {"POST", "[]", "invalid_request"},
	} {
		waitFor(t, name+" is answered", func() bool {
			_, body := ask(c.method, c.body)
			return strings.Contains(body, c.answer) && !strings.Contains(body, `"isError":true`)
		})
		waitFor(t, name+" is limited", func() bool {
			status, body := ask(c.method, c.body)
			return status == http.StatusTooManyRequests && strings.Contains(body, `"rate_limited"`)
		})
	}
}

func TestDrain(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	_, key := newWorkspace(t, dir)
	s := serve(t, dir, "--drain-wait", "4s")
	s.terminate(t)

	// Load balancers learn that they must use another server. A request that still
	// arrives is served.
	waitFor(t, "/readyz to answer 503", func() bool { return s.status(t, "/readyz") == http.StatusServiceUnavailable })
	if got := s.status(t, "/healthz"); got != http.StatusOK {
		t.Errorf("/healthz while draining: status %d", got)
	}
	s.want(t, 201, key, "POST", "/contacts", `{"external_id":"late"}`)
	if code := s.wait(t); code != 0 {
		t.Errorf("exit code %d; its log:\n%s", code, s.stderr.String())
	}

	s = serve(t, dir)
	if got := s.want(t, 200, key, "GET", "/contacts?external_id=late", ""); !strings.Contains(got, "late") {
		t.Errorf("the contact written while draining is lost: %s", got)
	}
}

// TestHangUp: SIGHUP drains the server, as SIGTERM does. If SIGHUP was ignored when the
// server was started, it has no effect.
func TestHangUp(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		return // this system has no such signal
	}
	// If this process ignores the signal, its children ignore it as well. If this process
	// handles the signal, a child has the default.
	hangUps := make(chan os.Signal, 1)
	signal.Notify(hangUps, syscall.SIGHUP)
	defer signal.Stop(hangUps)
	s := serve(t, newDir(t))
	s.signal(t, syscall.SIGHUP)
	if code := s.wait(t); code != 0 {
		t.Errorf("exit code %d after SIGHUP; its log:\n%s", code, s.stderr.String())
	}

	dir := newDir(t)
	p := launchProgram(t, "sh", nil, "-c", `trap '' HUP; exec "$0" serve --data "$1" --listen 127.0.0.1:0 --drain-wait 1ms`, binary, dir)
	s = &server{process: p, url: p.address(t)}
	s.signal(t, syscall.SIGHUP)
	if got := s.status(t, "/readyz"); got != http.StatusOK {
		t.Errorf("/readyz after an ignored SIGHUP: status %d", got)
	}
	s.stop(t)
}

func TestDrainFinishesWhatIsInFlight(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	_, key := newWorkspace(t, dir)
	s := serve(t, dir)

	// The server has asked for the body, so the request is running.
	const body = `{"external_id":"slow"}`
	c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(c, "POST /v1/contacts HTTP/1.1\r\nHost: parley\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", key, len(body))
	if err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(c)
	if line, err := answers.ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 100 ") {
		t.Fatalf("no 100 Continue: %q, %v", line, err)
	}
	if _, err := answers.ReadString('\n'); err != nil {
		t.Fatal(err)
	}

	s.terminate(t)
	waitFor(t, "the port to be closed", func() bool { return s.status(t, "/healthz") == 0 })
	if s.ended() {
		t.Fatal("it ended with a request in flight")
	}
	if _, err := io.WriteString(c, body); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		t.Errorf("the request in flight: status %d", response.StatusCode)
	}
	if code := s.wait(t); code != 0 {
		t.Errorf("exit code %d; its log:\n%s", code, s.stderr.String())
	}
}

func TestLogsHoldNothingOfPeople(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	_, key := newWorkspace(t, dir)
	s := serve(t, dir, "--log-level", "debug")
	s.want(t, 201, key, "POST", "/contacts", `{"email":"ada@private.example","phone":"+12025550143","name":"Ada Private","note":"hush"}`)
	s.want(t, 200, key, "GET", "/contacts?email=ada@private.example", "")
	s.want(t, 400, key, "POST", "/contacts", `{"email":"ada@private.example","phone":"hush"}`)
	s.stop(t)
	log := s.stderr.String()
	for _, secret := range []string{key, key[len("prl_live_"):], "ada@private", "2025550143", "Private", "hush"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log holds %q:\n%s", secret, log)
		}
	}
}

// TestAstray: a client has a base URL without /v1. The response says so, and does not
// redirect the client to the sign-in page of the console. Other paths get the same
// response as before.
func TestAstray(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	_, key := newWorkspace(t, dir)
	s := serve(t, dir)
	ask := func(method, path string, header ...string) reply {
		t.Helper()
		v := newVisitor(t, s.url)
		r, err := v.request(path, nil, header...)
		if err != nil {
			t.Fatal(err)
		}
		r.Method = method
		answer, err := v.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return reply{answer.StatusCode, answer.Header, body}
	}
	const others = "somebody-else's-token"
	for _, c := range []struct {
		method, path, key string
		more              []string
		astray            bool
	}{
		{"GET", "/contacts", key, nil, true},
		{"POST", "/contacts", key, nil, true},
		{"PATCH", "/contacts/01900000-0000-7000-8000-000000000000", key, nil, true},
		{"GET", "/conversations", key, nil, true},
		{"GET", "/", key, nil, true},
		{"GET", "/inbox", key, []string{"Accept", "text/html"}, true},
		{"GET", "/live", key, []string{"Cookie", "tz=UTC"}, true},
		{"GET", "/contacts", others, nil, true},
		{"GET", "/contacts", others, []string{"Accept", "text/html,*/*"}, false},
		{"GET", "/contacts", others, []string{"Cookie", "tz=UTC"}, false},
		{"GET", "/contacts", "", nil, false},
		{"GET", "/v1/nothing", key, nil, false},
		{"GET", "/v1", key, nil, false},
		{"GET", "/healthz", key, nil, false},
		{"GET", "/readyz", key, nil, false},
		{"GET", "/metrics", key, nil, false},
		{"GET", "/openapi.json", key, nil, false},
		{"GET", "/docs", key, nil, false},
		{"GET", "/docs/parley.js", key, nil, false},
		{"GET", "/mcp", key, nil, false},
		{"POST", "/hooks/whatsapp/01900000-0000-7000-8000-000000000000", key, nil, false},
	} {
		header := c.more
		if c.key != "" {
			header = append(header, "Authorization", "bearer "+c.key)
		}
		r := ask(c.method, c.path, header...)
		told := r.status == 404 && strings.HasPrefix(r.header.Get("Content-Type"), "application/json") &&
			strings.HasPrefix(string(r.body), `{"error":{"type":"not_found","message":"no such route: the API is under /v1`)
		if told != c.astray || r.header.Get("X-Request-Id") == "" {
			t.Errorf("%s %s with %q and %v: %d %v %.200s", c.method, c.path, c.key, c.more, r.status, r.header, r.body)
		}
	}
}
