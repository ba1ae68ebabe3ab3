package e2e_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

var streamCuts = flag.Int("stream-cuts", 8, "how often TestEventSource cuts its stream. Long run: -stream-cuts 50")

// A cutter forwards connections to a server, and cuts some of them: the first connection
// before its first event, the others after any byte.
type cutter struct {
	address string
	server  atomic.Pointer[string] // HOST:PORT
	cuts    atomic.Int64           // how many cuts were made
	most    int64
	mu      sync.Mutex
	random  *rand.Rand
}

func newCutter(t *testing.T, server string, most int) *cutter {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	c := &cutter{address: l.Addr().String(), most: int64(most), random: random(newSeed(t), 0)}
	c.server.Store(&server)
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go c.pass(t, client)
		}
	}()
	return c
}

func (c *cutter) pass(t *testing.T, client net.Conn) {
	defer client.Close()
	server, err := new(net.Dialer).DialContext(t.Context(), "tcp", *c.server.Load())
	if err != nil {
		return // the server is just being restarted
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	c.mu.Lock()
	left := 1000 + c.random.IntN(20_000) // bytes before the cut
	c.mu.Unlock()
	b := make([]byte, 4096)
	for {
		n, err := server.Read(b)
		part := bytes.Replace(b[:n], []byte("retry: 2000"), []byte("retry: 0020"), 1) // for this test, the client pauses for a shorter time
		cut := false
		if first := bytes.Index(part, []byte("\"}\n\nid: ")); c.cuts.Load() == 0 && first > 0 {
			part, cut = part[:first+4], true // cut after the block with the cursor
		} else if left -= n; left < 0 && c.cuts.Load() < c.most {
			part, cut = part[:max(0, n+left)], true
		}
		if _, wrong := client.Write(part); wrong != nil || err != nil {
			return
		}
		if cut {
			c.cuts.Add(1)
			return
		}
	}
}

// TestEventSource follows a stream with the independent npm package eventsource. The
// connection of the package is cut again and again, and the server restarts. Each event
// arrives once, and in order.
func TestEventSource(t *testing.T) {
	t.Parallel()
	work := nodeProgram(t, "testdata/clients/eventsource")
	dir := newDir(t)
	_, key := newWorkspace(t, dir)
	s := serve(t, dir)
	write := func(n int) {
		t.Helper()
		s.want(t, 201, key, "POST", "/contacts", fmt.Sprintf(`{"external_id":"%d"}`, n))
	}
	write(0)
	proxy := newCutter(t, strings.TrimPrefix(s.url, "http://"), *streamCuts)
	var printed, failed buffer
	client := exec.CommandContext(t.Context(), "node", "main.js")
	client.Dir, client.Stdout, client.Stderr = work, &printed, &failed
	client.Env = environment("URL=http://"+proxy.address+"/v1/events", "KEY="+key)
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Process.Kill()
		_ = client.Wait()
	})
	wrote := 1
	for ; proxy.cuts.Load() < int64(*streamCuts); wrote++ {
		write(wrote)
		if wrote == 50 { // the proxy now forwards to the next server
			s.stop(t)
			s = serve(t, dir)
			address := strings.TrimPrefix(s.url, "http://")
			proxy.server.Store(&address)
		}
		if wrote%20 == 0 { // otherwise the client would not read before the last cut
			waitFor(t, "the client to read on", func() bool { return strings.Count(printed.String(), "\n") > wrote-20 })
		}
	}
	var want []string
	for _, e := range s.events(t, key, "oldest") {
		want = append(want, e.ID)
	}
	waitFor(t, "the last event", func() bool { return strings.Contains(printed.String(), want[len(want)-1]) })
	got := strings.Fields(printed.String())
	if !slices.Equal(got, want) {
		t.Errorf("%d events, want %d; %d different ones; %s", len(got), len(want), len(slices.Compact(slices.Sorted(slices.Values(got)))), failed.String())
	}
	t.Logf("%d events over %d cuts and a restart", len(got), proxy.cuts.Load())
}
