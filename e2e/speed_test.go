package e2e_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

var speed = flag.Duration("speed", 200*time.Millisecond, "how long TestSpeed (three times), TestFeedSpeed and TestAudience measure each thing")

// TestSpeed compares the speed of sends with the speed of contact creates. It compares
// GET /templates with a bare server that sends the same bytes. It only checks that all
// requests succeed, because machines differ.
func TestSpeed(t *testing.T) {
	const senders, readers, templates = 64, 16, 500
	dir := newDir(t)
	workspace, key := newWorkspace(t, dir, "--country=US")
	channel := must(t, dir, "channel", "add", "sandbox", "--workspace", workspace)["channel_id"].(string)
	file := filepath.Join(t.TempDir(), "hello.json")
	if err := os.WriteFile(file, []byte(templateJSON("hello")), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, dir, "template", "put", "--channel", channel, "--file", file)
	s := serve(t, dir)
	c := s.client(t, key, senders)

	var created, sent, again []float64
	var next atomic.Int64
	for range 3 {
		created = append(created, rate(t, senders, func() error {
			n := next.Add(1)
			_, err := c.expect("POST", "/contacts", fmt.Sprintf(`{"external_id":"s-%d","email":"s.%d@example.com","phone":"+1212%07d","name":"Speed %d"}`, n, n, n, n), 201)
			return err
		}))
		sent = append(sent, rate(t, senders, func() error {
			n := next.Add(1)
			return sendTo(c, n, fmt.Sprintf(`"phone":"+1313%06d9"`, n))
		}))
		again = append(again, rate(t, senders, func() error { // sends to contacts that exist
			n := next.Add(1)
			return sendTo(c, n, fmt.Sprintf(`"phone":"+1515%06d9"`, n%50))
		}))
	}
	t.Logf("%d clients: creates %.0f/s, sends to new numbers %.0f/s, to 50 known ones %.0f/s", senders, created, sent, again)
	t.Logf("ratio of sends to creates: %.2f (new), %.2f (known)", median(sent)/median(created), median(again)/median(created))
	s.stop(t)

	for n := range templates {
		if err := os.WriteFile(file, []byte(templateJSON(fmt.Sprintf("template_%03d", n))), 0o600); err != nil {
			t.Fatal(err)
		}
		if *speed < time.Second && n == 20 {
			break // this is enough to see that it works
		}
		must(t, dir, "template", "put", "--channel", channel, "--file", file)
	}
	s = serve(t, dir)
	c = s.client(t, key, readers)
	body := c.must(t, 200, "GET", "/templates", "")
	bare := startBare(t, body)
	b := &client{c.http, bare, key}
	var full, filled, floor []float64
	for range 3 {
		floor = append(floor, rate(t, readers, func() error { _, err := b.expect("GET", "/", "", 200); return err }))
		full = append(full, rate(t, readers, func() error { _, err := c.expect("GET", "/templates", "", 200); return err }))
		filled = append(filled, rate(t, readers, func() error {
			_, err := c.expect("GET", "/templates?contact_name=Ada&phone=%2B13139999999", "", 200)
			return err
		}))
	}
	t.Logf("%d clients, %d bytes: bare server %.0f/s, GET /templates %.0f/s, with hints %.0f/s", readers, len(body), floor, full, filled)
	t.Logf("ratio to the bare server: %.2f, with hints %.2f", median(full)/median(floor), median(filled)/median(floor))
}

func templateJSON(name string) string {
	return `{"name":"` + name + `","language":"en_US","status":"APPROVED","category":"UTILITY","components":[
		{"type":"HEADER","format":"TEXT","text":"Order {{1}}"},
		{"type":"BODY","text":"Thank you, {{1}}! We pack {{2}} today, and it leaves the house tomorrow morning. Ask {{3}} if anything about it should change."}]}`
}

func sendTo(c *client, n int64, to string) error {
	request, err := http.NewRequestWithContext(context.Background(), "POST", c.url+"/conversations/outbound", strings.NewReader(fmt.Sprintf(
		`{"to":{%s},"template":{"name":"hello","language":"en_US","variables":["A-%d","Ada","it","Grace"]},"opt_in_confirmed":true}`, to, n)))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+c.key)
	request.Header.Set("Idempotency-Key", fmt.Sprintf("speed-%d", n))
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusCreated {
		err = fmt.Errorf("a send answers %d: %s", response.StatusCode, answer)
	}
	return err
}

// rate calls do in this many clients for a while. It returns the number of calls per
// second.
func rate(t *testing.T, clients int, do func() error) float64 {
	t.Helper()
	var calls atomic.Int64
	began := time.Now()
	together(clients, func(int) {
		for time.Since(began) < *speed && !t.Failed() {
			if err := do(); err != nil {
				t.Error(err)
			}
			calls.Add(1)
		}
	})
	return float64(calls.Load()) / time.Since(began).Seconds()
}

// median returns the middle value of a list.
func median(list []float64) float64 { return slices.Sorted(slices.Values(list))[len(list)/2] }

// wantRatio logs a ratio. A short run is too short to tell whether it is good enough.
func wantRatio(t *testing.T, long bool, what string, is float64, above bool, goal float64) {
	t.Helper()
	t.Logf("%s: %.2f (goal %.2f)", what, is, goal)
	if long && is < goal == above && is != goal {
		t.Errorf("%s misses its goal", what)
	}
}

const bareEnv = "BARE_SERVER"

// startBare starts a process that answers every request with body. It returns the URL of
// the process. The path /posts has the number of POST requests that the process has
// answered.
func startBare(t *testing.T, body []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(file, body, 0o600); err != nil {
		t.Fatal(err)
	}
	p := launchProgram(t, os.Args[0], []string{bareEnv + "=" + file})
	waitFor(t, "the bare server", func() bool { return strings.Contains(p.stdout.String(), "\n") })
	return strings.TrimSpace(p.stdout.String())
}

// bareMain is the main function of the bare process.
func bareMain(file string) int {
	body, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("http://%s\n", listener.Addr())
	var posts atomic.Int64
	err = http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/posts" {
			_, _ = fmt.Fprint(w, posts.Load())
			return
		}
		if r.Method == http.MethodPost {
			_, _ = io.Copy(io.Discard, r.Body)
			defer posts.Add(1)
		}
		w.Header()["Content-Type"] = []string{"application/json; charset=utf-8"}
		w.Header()["Content-Length"] = []string{fmt.Sprint(len(body))}
		_, _ = w.Write(body)
	}))
	if !errors.Is(err, http.ErrServerClosed) {
		panic(err)
	}
	return 0
}
