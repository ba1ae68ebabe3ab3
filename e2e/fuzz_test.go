package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/api/apitest"
)

var fuzzRequests = flag.Int("fuzz-requests", 3000, "how many requests TestFuzz makes from the API description, then damages and sends. Long run: -fuzz-requests 100000")

// TestFuzz makes requests from the API description, and sends them to a running server.
// Most of them are damaged. The description must allow every response.
func TestFuzz(t *testing.T) {
	t.Parallel()
	const connections = 8
	text, err := os.ReadFile("../api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	document, err := apitest.Load(text)
	if err != nil {
		t.Fatal(err)
	}
	dir := newDir(t)
	workspace, key := newWorkspace(t, dir, "--country", "US")
	for _, name := range []string{"ada", "grace"} {
		must(t, dir, "member", "add", "--workspace", workspace, "--name", name, "--email", name+"@example.com")
	}
	channel := must(t, dir, "channel", "add", "sandbox", "--workspace", workspace)["channel_id"].(string)
	file := filepath.Join(t.TempDir(), "hello.json")
	if err := os.WriteFile(file, []byte(templateJSON("hello")), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, dir, "template", "put", "--channel", channel, "--file", file)
	s := serve(t, dir)
	seed := newSeed(t)

	const enough = 5             // failures
	var answered [6]atomic.Int64 // by the first digit of the status
	var failures atomic.Int64
	together(connections, func(i int) {
		m := document.NewMutator(seed + uint64(i)<<32)
		line := &line{address: strings.TrimPrefix(s.url, "http://")}
		defer line.close()
		for n := i; n < *fuzzRequests && failures.Load() < enough; n += connections {
			method, target, header, body := m.Next()
			if _, damaged := header["Authorization"]; !damaged {
				header.Set("Authorization", "Bearer "+key)
			}
			operation, mutations := m.Last()
			fail := func(err error, answer string) {
				failures.Add(1)
				t.Errorf("-seed %d, connection %d, request %d: %s %s, with %q\n%s\n%.4000q\nanswers\n%.2000s",
					seed, i, n/connections, operation.Method, operation.Path, mutations, tail(err.Error(), 500), requestText(method, target, header, body), answer)
			}
			request, response, answer, err := line.ask(method, target, header, body)
			if err != nil && sendable(header) { // net/http refuses such a header and closes, with the body unread
				fail(err, "")
			}
			if err != nil {
				line.close()
				continue
			}
			if response.StatusCode == http.StatusRequestHeaderFieldsTooLarge && len(requestText(method, target, header, nil)) > 32<<10 {
				continue // the response comes from net/http itself, which closes the connection
			}
			if response.StatusCode == http.StatusBadRequest && !sendable(header) {
				continue // this response also comes from net/http
			}
			if err := document.Check(request, body, response.StatusCode, response.Header, answer); err != nil {
				fail(err, fmt.Sprintf("%s %v\n%s", response.Status, response.Header, answer))
			} else if response.StatusCode >= 500 && !providerFailed(answer) { // the description allows such a status, but here it is always wrong
				fail(errors.New("the server failed"), fmt.Sprintf("%s %v\n%s", response.Status, response.Header, answer))
			} else if response.StatusCode < 300 {
				learn(m, answer)
			}
			answered[response.StatusCode/100].Add(1)
		}
	})
	t.Logf("%d answers of 2xx, %d of 4xx", answered[2].Load(), answered[4].Load())
	s.stop(t)
	wantSound(t, dir)
}

// providerFailed reports whether a response is about a failure of the simulated provider:
// the provider refuses some numbers temporarily, and loses its answers for others.
func providerFailed(answer []byte) bool {
	return bytes.Contains(answer, []byte(`"type":"provider_unavailable"`)) || bytes.Contains(answer, []byte(`"type":"send_outcome_unknown"`))
}

// tail returns the last n bytes of a text.
func tail(text string, n int) string { return text[max(0, len(text)-n):] }

// learn passes the values in a response to the Mutator. These values exist on the server.
func learn(m *apitest.Mutator, answer []byte) {
	var value any
	if json.Unmarshal(answer, &value) == nil {
		learnValue(m, value)
	}
}

// learned has the names of JSON members whose values the Mutator may use again.
var learned = []string{"id", "key", "external_id", "email", "phone", "value", "channel_id", "contact_id"}

func learnValue(m *apitest.Mutator, value any) {
	switch v := value.(type) {
	case []any:
		for _, e := range v {
			learnValue(m, e)
		}
	case map[string]any:
		_, isMember := v["member_id"].(string)
		_, isTemplate := v["sendable"].(bool)
		for name, e := range v {
			text, isText := e.(string)
			switch {
			case name == "next_cursor":
				m.Learn("cursor", text)
			case name == "member_id", name == "email" && isMember:
				for _, as := range []string{"owner", "assignee", "member", "agent"} {
					m.Learn(as, text)
				}
			case isTemplate && (name == "name" || name == "language"):
				m.Learn(name, text)
			case isText && slices.Contains(learned, name):
				m.Learn(name, text)
			case name != "attributes": // the members of attributes can have any name
				learnValue(m, e)
			}
		}
	}
}

// A line is a connection without a client. It sends a request byte for byte, even if the
// client of net/http would refuse or change it.
type line struct {
	address string
	conn    net.Conn
	answers *bufio.Reader
}

func (l *line) close() {
	if l.conn != nil {
		l.conn.Close()
		l.conn = nil
	}
}

// ask sends a request and reads the response.
func (l *line) ask(method, target string, header http.Header, body []byte) (request *http.Request, response *http.Response, answer []byte, err error) {
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return nil, nil, nil, err
	}
	request = &http.Request{Method: method, URL: u, Header: header}
	if l.conn == nil {
		if l.conn, err = net.DialTimeout("tcp", l.address, patience); err != nil {
			return nil, nil, nil, err
		}
		l.answers = bufio.NewReader(l.conn)
	}
	if err := l.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, nil, nil, err
	}
	// The server may answer before it has read the whole of a large body. Then it closes
	// the connection.
	_, writeErr := l.conn.Write(requestText(method, target, header, body))
	response, err = http.ReadResponse(l.answers, request)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("no answer: %w", errors.Join(err, writeErr))
	}
	defer response.Body.Close()
	if answer, err = io.ReadAll(response.Body); err != nil {
		return nil, nil, nil, fmt.Errorf("half an answer: %w", err)
	}
	if response.Close || writeErr != nil {
		l.close()
	}
	return request, response, answer, nil
}

// requestText returns the bytes of a request.
func requestText(method, target string, header http.Header, body []byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: parley\r\n", method, target)
	for name, values := range header {
		for _, v := range values {
			fmt.Fprintf(&b, "%s: %s\r\n", name, v)
		}
	}
	if body != nil {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n")
	b.Write(body)
	return b.Bytes()
}

// sendable reports whether HTTP allows the values of a header: the only control character
// that a value may have is the tab.
func sendable(header http.Header) bool {
	for _, values := range header {
		for _, v := range values {
			if strings.IndexFunc(v, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) >= 0 {
				return false
			}
		}
	}
	return true
}
