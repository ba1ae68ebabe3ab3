package e2e_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/poster"
)

// programs returns the code blocks of docs/receivers.md that are in a language.
func programs(t *testing.T, language string) (list []string) {
	t.Helper()
	text, err := os.ReadFile("../docs/receivers.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range fence.FindAllStringSubmatch(string(text), -1) {
		if block[1] == language {
			list = append(list, block[2])
		}
	}
	if len(list) == 0 {
		t.Fatalf("docs/receivers.md has no program in %s", language)
	}
	return list
}

// A program is a program of docs/receivers.md with the directory in which it runs. The
// directory has the program's inbox.
type program struct {
	dir     string
	command []string
	env     []string
	printed buffer
	stop    func() // kills the program; start sets it
}

// newProgram writes a program to a file and prepares its dependencies.
func newProgram(t *testing.T, name, text string, env ...string) *program {
	t.Helper()
	s := &program{dir: t.TempDir(), env: env}
	if err := os.Mkdir(filepath.Join(s.dir, "inbox"), 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(s.dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	switch filepath.Ext(name) {
	case ".py":
		s.command = []string{"python3", file}
	case ".mjs":
		s.command = []string{"node", file}
		if err := os.CopyFS(s.dir, os.DirFS("testdata/receivers")); err != nil {
			t.Fatal(err)
		}
		addPackages(t, s.dir)
	case ".go":
		s.command = []string{filepath.Join(s.dir, "receiver")}
		s.prepare(t, "..", "go", "build", "-o", s.command[0], file)
	}
	return s
}

func (s *program) prepare(t *testing.T, dir string, command ...string) {
	t.Helper()
	if _, err := exec.LookPath(command[0]); err != nil {
		t.Skip(err)
	}
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", command, err, out)
	}
}

// start runs the program until stop is called or the test ends.
func (s *program) start(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath(s.command[0]); err != nil {
		t.Skip(err)
	}
	var errors buffer
	cmd := exec.Command(s.command[0], s.command[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.dir, environment(s.env...), &s.printed, &errors
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.stop = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%v: %s%s", s.command, s.printed.String(), errors.String())
		}
	})
	t.Cleanup(s.stop)
}

// freePort returns a port on which no process is listening now.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return port
}

// receive starts a receiver on its own port, and waits until it listens.
func (s *program) receive(t *testing.T, secret string) (url string) {
	t.Helper()
	port := freePort(t)
	at := "127.0.0.1:" + port
	s.env = append(s.env, "WEBHOOK_SECRET="+secret, "PORT="+port)
	s.start(t)
	waitFor(t, "a receiver that listens", func() bool {
		conn, err := net.Dial("tcp", at)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return "http://" + at + "/in"
}

// inbox returns the events that the program has stored, by their ids.
func (s *program) inbox(t *testing.T) map[string]string {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(s.dir, "inbox"))
	if err != nil {
		t.Fatal(err)
	}
	events := map[string]string{}
	for _, file := range files {
		if text, err := os.ReadFile(filepath.Join(s.dir, "inbox", file.Name())); err == nil && filepath.Ext(file.Name()) == "" {
			events[file.Name()] = string(text)
		}
	}
	return events
}

// lines returns the lines that the program has printed.
func (s *program) lines() []string {
	return strings.FieldsFunc(s.printed.String(), func(r rune) bool { return r == '\n' })
}

var receivers = []struct{ language, file string }{{"python", "receiver.py"}, {"js", "receiver.mjs"}, {"go", "main.go"}}

// TestReceivers: the receivers of docs/receivers.md accept each event once if the request
// is signed. They refuse other requests. This also shows that the libraries that they use
// accept our signatures.
func TestReceivers(t *testing.T) {
	t.Parallel()
	for _, receiver := range receivers {
		t.Run(receiver.language, func(t *testing.T) {
			t.Parallel()
			text := programs(t, receiver.language)[0]
			if n := codeLines(text); n > 20 {
				t.Errorf("it has %d lines besides imports, want at most 20", n)
			}
			key, other := []byte("a secret of 24 bytes or so"), []byte("another secret, of 24 bytes")
			s := newProgram(t, receiver.file, text)
			url := s.receive(t, "whsec_"+base64.StdEncoding.EncodeToString(key))
			p, err := poster.New(poster.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			sent := map[string]string{}
			post := func(id, body string, late time.Duration, secrets ...[]byte) poster.Result {
				return p.Post(t.Context(), poster.Request{URL: url, ID: id, Body: []byte(body), Secrets: secrets, At: time.Now().Add(-late)})
			}
			accepted := func(id, body string, secrets ...[]byte) {
				t.Helper()
				sent[id] = body
				if r := post(id, body, 0, secrets...); r.Error != "" {
					t.Errorf("%s is refused: %+v", id, r)
				}
			}
			event := func(id, text string) string {
				return fmt.Sprintf(`{"id":%q,"type":"message.received","data":{"text":%s}}`, id, text)
			}
			for i, text := range []string{`"On my way"`, `""`, `"é 🙂 \u2028   \u0000 \" \\ \n"`, `"` + strings.Repeat("日本", 300_000) + `"`, "null"} {
				id := fmt.Sprintf("evt_%d", i)
				accepted(id, event(id, text), key)
				accepted(id, event(id, text), key)
			}
			accepted("evt_new", event("evt_new", "1"), key, other) // with signatures by two keys, as during a rotation
			accepted("evt_old", event("evt_old", "1"), other, key)
			for name, r := range map[string]poster.Result{
				"another secret": post("evt_a", event("evt_a", "1"), 0, other),
				"no secret":      post("evt_b", event("evt_b", "1"), 0),
				"an empty one":   post("evt_c", event("evt_c", "1"), 0, nil),
				"an old time":    post("evt_d", event("evt_d", "1"), 10*time.Minute, key),
				"a future time":  post("evt_e", event("evt_e", "1"), -10*time.Minute, key),
			} {
				if r.StatusCode < 400 || r.StatusCode > 499 {
					t.Errorf("what is signed by %s is not refused: %+v", name, r)
				}
			}
			if r, err := http.Post(url, "application/json", strings.NewReader(event("evt_f", "1"))); err != nil || r.StatusCode < 400 || r.StatusCode > 499 {
				t.Errorf("what is not signed is not refused: %v, %v", r, err)
			}
			if got := s.inbox(t); fmt.Sprint(got) != fmt.Sprint(sent) {
				t.Errorf("the inbox holds %v", got)
			}
			if got := s.lines(); len(got) != len(sent) {
				t.Errorf("%d events came, it printed\n%s", len(sent), strings.Join(got, "\n"))
			}
		})
	}
}

// codeLines counts the lines of a program. Imports and empty lines do not count.
func codeLines(text string) (n int) {
	block := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "import (":
			block = true
		case block:
			block = line != ")"
		case line == "", strings.HasPrefix(line, "import "), strings.HasPrefix(line, "from "), strings.HasPrefix(line, "package "):
		default:
			n++
		}
	}
	return n
}

// TestCatchUp: the reader of the feed in docs/receivers.md gets every event once. It also
// gets the events of a time when it was not running.
func TestCatchUp(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	_, key := newWorkspace(t, dir)
	server := serve(t, dir)
	s := newProgram(t, "catch_up.py", programs(t, "python")[1], "PARLEY_URL="+server.url, "PARLEY_API_KEY="+key)
	n := 0
	write := func() {
		t.Helper()
		for range 3 {
			n++
			server.want(t, http.StatusCreated, key, "POST", "/contacts", fmt.Sprintf(`{"external_id":"c-%d"}`, n))
		}
	}
	created := func() (ids []string) {
		for id, text := range s.inbox(t) {
			var e struct{ Type string }
			if err := json.Unmarshal([]byte(text), &e); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if e.Type == "contact.created" {
				ids = append(ids, id)
			}
		}
		return ids
	}
	for range 3 {
		write()
		s.start(t)
		write()
		waitFor(t, "every contact's event in the inbox", func() bool { return len(created()) == n })
		s.stop()
	}
	lines := s.lines()
	slices.Sort(lines)
	if unique := slices.Compact(slices.Clone(lines)); len(unique) != len(lines) {
		t.Errorf("it printed an event twice:\n%s", strings.Join(lines, "\n"))
	}
}

// TestCatchUp_failures: whatever a server or a proxy answers, the reader goes on. It
// stops only if its key is refused.
func TestCatchUp_failures(t *testing.T) {
	t.Parallel()
	var cursors buffer
	answers := []string{
		`HTTP/1.1 410 Gone|{"error":{"type":"cursor_expired","details":{"reason":"retention","oldest":"evt_1","newest":"evt_9"}}}`,
		"HTTP/1.1 502 Bad Gateway|<html>",
		"HTTP/1.1 200 OK|", // the response is cut off
		`HTTP/1.1 200 OK|{"data":[{"id":"evt_2","type":"key.created"}],"cursor":"evt_3","more":false}`,
		`HTTP/1.1 401 No|{"error":{"message":"send a valid API key"}}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintln(&cursors, r.URL.Query().Get("cursor"))
		status, body, _ := strings.Cut(answers[0], "|")
		answers = answers[1:]
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = fmt.Fprintf(conn, "%s\r\nContent-Length: %d\r\n\r\n%s", status, max(len(body), 1), body)
	}))
	defer server.Close()
	s := newProgram(t, "catch_up.py", programs(t, "python")[1], "PARLEY_URL="+server.URL, "PARLEY_API_KEY=x")
	s.start(t)
	const want = "oldest\nevt_1\nevt_1\nevt_1\nevt_3\n"
	waitFor(t, "all answers", func() bool { return cursors.String() == want })
	if got := s.inbox(t); len(got) != 1 {
		t.Errorf("the inbox holds %v", got)
	}
}

// TestReceiversOfAServer: each receiver of docs/receivers.md gets the events of a server,
// with the same bytes as in the feed. If a receiver was down, it gets the events of this
// time later.
func TestReceiversOfAServer(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	workspace, key := newWorkspace(t, dir, "--country", "US")
	channel := must(t, dir, "channel", "add", "sandbox", "--workspace", workspace)["channel_id"].(string)
	// This server answers every request. After the response, it sends the body of the
	// request back, although nobody has asked for it.
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	var agents buffer
	go func() {
		for {
			conn, err := echo.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for reader := bufio.NewReader(conn); ; {
					req, err := http.ReadRequest(reader)
					if err != nil {
						return
					}
					_, _ = fmt.Fprintln(&agents, req.UserAgent())
					body, _ := io.ReadAll(req.Body)
					_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n%s", body)
				}
			}()
		}
	}()

	server := serve(t, dir, "--webhook-allow", "127.0.0.0/8", "--webhook-schedule", "100ms,100ms,100ms,100ms,1s,1s,1s,1s,1s,1s")
	add := func(url, secret string) {
		t.Helper()
		r := parley(t, []string{"SECRET=" + secret}, "webhook", "add", "--workspace", workspace, "--url", url,
			"--types", "message.*", "--secret-env", "SECRET", "--webhook-allow", "127.0.0.0/8", "--data", dir, "--json")
		if r.code != 0 {
			t.Fatalf("exit %d: %s", r.code, r.stderr)
		}
	}
	secret := "whsec_" + base64.StdEncoding.EncodeToString([]byte("a secret of 24 bytes or so"))
	add("http://"+echo.Addr().String(), secret)
	started := make([]*program, len(receivers))
	for i, receiver := range receivers {
		started[i] = newProgram(t, receiver.file, programs(t, receiver.language)[0])
		add(started[i].receive(t, secret), secret)
	}

	texts := []string{"Is Friday free?", "Or Saturday?", "Good."}
	received := func() {
		t.Helper()
		for i, p := range started {
			waitFor(t, "what the feed has, in the inbox of the receiver in "+receivers[i].language, func() bool {
				var feed struct{ Data []json.RawMessage }
				answer := server.want(t, http.StatusOK, key, "GET", "/events?types=message.*", "")
				if err := json.Unmarshal([]byte(answer), &feed); err != nil {
					t.Fatal(err)
				}
				inbox := p.inbox(t)
				for _, event := range feed.Data {
					var id struct{ ID string }
					if err := json.Unmarshal(event, &id); err != nil {
						t.Fatal(err)
					}
					if inbox[id.ID] != string(event) {
						return false
					}
				}
				return len(feed.Data) == len(inbox) && len(inbox) > 0
			})
		}
	}
	for i, text := range texts {
		if i == 1 {
			started[0].stop()
		}
		must(t, dir, "sandbox", "inbound", "--channel", channel, "--from", "+1 202 555 0143", "--text", text)
		if i == 1 {
			continue
		}
		if i == 2 {
			started[0].start(t)
		}
		received()
	}
	for i, p := range started {
		waitFor(t, "what the receiver in "+receivers[i].language+" prints", func() bool { return len(p.lines()) >= len(texts) }) // the receiver stores an event before it prints the event
		if lines := p.lines(); len(lines) != len(texts) {
			t.Errorf("the receiver in %s printed\n%s", receivers[i].language, strings.Join(lines, "\n"))
		}
	}
	if version := must(t, dir, "version")["version"]; !strings.HasPrefix(agents.String(), fmt.Sprintf("parley/%s\n", version)) {
		t.Errorf("the User-Agent of the version %s is %q", version, agents.String())
	}
	server.stop(t)
	for _, text := range texts {
		if log := server.stderr.String(); strings.Contains(log, text) {
			t.Errorf("the log holds a message:\n%s", log)
		}
	}
}
