package e2e_test

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/store/postgres/pgtest"
)

// eachStore runs a test with SQLite and with PostgreSQL. flags are the flags for commands
// and servers.
func eachStore(t *testing.T, test func(t *testing.T, dir string, flags []string)) {
	t.Run("sqlite", func(t *testing.T) { test(t, newDir(t), nil) })
	t.Run("postgres", func(t *testing.T) { test(t, newDir(t), []string{"--database", pgtest.Database(t)}) })
}

// stream opens a stream of events. It returns the stream when its header has arrived.
func (s *server) stream(t testing.TB, key, query string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/v1/events"+query, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Accept", "text/event-stream")
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%v %+v", err, answer)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

var (
	slowReaders = flag.Int("slow-readers", 24, "how many streams TestSlowReaders reads at 100 bytes a second, and then not at all. Long run: -slow-readers 200 -slow-for 1m")
	slowFor     = flag.Duration("slow-for", time.Second, "how long TestSlowReaders reads slowly; from 30s on it also waits until the streams end; see -slow-readers")
)

// TestSlowReaders: streams have megabytes to send, but their clients read only 100 bytes
// a second. This uses up neither the server's memory nor the turns of another workspace.
// When the clients stop reading, the streams end.
func TestSlowReaders(t *testing.T) {
	const ofKey, contacts = 16, 500
	dir := newDir(t)
	workspace, key := newWorkspace(t, dir)
	_, other := newWorkspace(t, dir)
	s := serve(t, dir)
	v := &victim{server: s, attacker: s.client(t, key, 1), user: s.client(t, other, 2)}
	var rows []string
	for n := range contacts {
		rows = append(rows, fmt.Sprintf(`{"external_id":"%d","note":"%s"}`, n, strings.Repeat("n", 9000)))
	}
	v.attacker.mustBatch(t, rows)

	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	for n := range *slowReaders {
		if n%ofKey == 0 {
			key = newKey(t, dir, workspace)
		}
		c, err := net.DialTimeout("tcp", strings.TrimPrefix(s.url, "http://"), patience)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
		// With a large buffer, the server would not notice how slowly the client reads.
		if err := c.(*net.TCPConn).SetReadBuffer(4096); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(c, "GET /v1/events HTTP/1.1\r\nHost: parley\r\nAccept: text/event-stream\r\nAuthorization: Bearer %s\r\n\r\n", key); err != nil {
			t.Fatal(err)
		}
	}
	v.beside(t, 0, 0, func() {
		together(len(conns), func(n int) {
			second, tick := make([]byte, 100), time.NewTicker(time.Second)
			defer tick.Stop()
			for end := time.Now().Add(*slowFor); time.Now().Before(end); <-tick.C {
				if err := conns[n].SetReadDeadline(time.Now().Add(patience)); err != nil {
					t.Error(err)
				}
				if _, err := io.ReadFull(conns[n], second); err != nil {
					return // the server has ended the stream, because others needed its memory
				}
			}
		})
	})
	open := s.metric(t, "parley_event_streams")
	t.Logf("of %d slow readers, %.0f are left after %v", len(conns), open, *slowFor)
	if *slowFor < 30*time.Second {
		return
	}
	begun := time.Now()
	for s.metric(t, "parley_event_streams") > 0 {
		if time.Since(begun) > time.Minute {
			t.Fatal("streams that nobody reads do not end")
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Logf("%.0f streams that nobody reads ended within %v", open, time.Since(begun).Round(time.Millisecond))
}

var streamRevocations = flag.Int("stream-revocations", 3, "how many keys TestRevokedStreams revokes on each store; from 100 on it judges how soon their streams end. Long run: -stream-revocations 100")

// TestRevokedStreams: a key is revoked. After the response to this, the key's streams
// send nothing that was committed later, and they end. In half of the runs, other clients
// write meanwhile.
func TestRevokedStreams(t *testing.T) {
	t.Parallel()
	const writers = 4
	eachStore(t, func(t *testing.T, dir string, flags []string) {
		command := func(args ...string) map[string]any {
			t.Helper()
			return must(t, dir, append(args, flags...)...)
		}
		workspace := command("workspace", "create", "--name", "Test")["workspace_id"].(string)
		key := command("key", "create", "--workspace", workspace, "--name", "writer", "--permissions", "all")["key"].(string)
		nodes := []*server{serve(t, dir, flags...)}
		if flags != nil {
			nodes = append(nodes, serve(t, dir, flags...))
		}
		c := nodes[0].client(t, key, writers)
		revoke := func(round int) (took []time.Duration) {
			node, busy := nodes[round/2%len(nodes)], round%2 == 0
			made := command("key", "create", "--workspace", workspace, "--name", "reader", "--permissions", "all")
			id, secret := made["key_id"].(string), made["key"].(string)
			start := decode[feedPage](t, c.must(t, 200, "GET", "/events?cursor=latest", "")).Cursor
			streams := []*http.Response{node.stream(t, secret, "?cursor=latest"), node.stream(t, secret, "?cursor=latest&types=webhook.*")}

			var over atomic.Bool
			var sent atomic.Int64
			var writing, reading sync.WaitGroup
			defer writing.Wait()
			defer over.Store(true)
			for w := range writers {
				writing.Go(func() {
					for n := 0; busy && !over.Load(); n++ {
						if _, err := c.expect("POST", "/contacts", fmt.Sprintf(`{"external_id":"%d","name":"%d-%d"}`, w, round, n), 200, 201); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			last, ended := make([]string, len(streams)), make([]time.Time, len(streams))
			for n, stream := range streams {
				reading.Go(func() { last[n], ended[n] = lastOf(t, stream, &sent) })
			}
			if busy {
				waitFor(t, "events beside writers", func() bool { return sent.Load() > 5*writers || t.Failed() })
			}
			command("key", "revoke", id)
			answered := time.Now()
			all := make(chan struct{})
			go func() {
				defer close(all)
				reading.Wait()
			}()
			select {
			case <-all:
			case <-time.After(patience):
				t.Fatal("the streams of a revoked key do not end")
			}
			// The revocation is an event of the feed. Later commits have later events.
			revoked := ""
			for _, e := range nodes[0].events(t, key, start) {
				if e.Type == "key.updated" && e.Subject.ID == id {
					revoked = e.ID
				}
			}
			for n := range streams {
				if last[n] >= revoked {
					t.Errorf("round %d: the last event is %q, the revocation %q", round, last[n], revoked)
				}
				took = append(took, ended[n].Sub(answered))
			}
			return took
		}
		var took []time.Duration
		for round := range *streamRevocations {
			took = append(took, revoke(round)...)
		}
		t.Logf("%d revocations: the streams ended p50 %v, max %v after the answer", *streamRevocations, percentile(took, 50), percentile(took, 100))
		if *streamRevocations >= 100 && percentile(took, 100) > 2*time.Second {
			t.Error("want at most 2 s")
		}
	})
}

// lastOf reads a stream to its end. It returns the id of the last event, and the time at
// which the stream ended. It adds the number of events to sent.
func lastOf(t *testing.T, stream *http.Response, sent *atomic.Int64) (last string, ended time.Time) {
	lines := bufio.NewScanner(stream.Body)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		var e feedEvent // the id is missing in a block that has only a cursor
		data, found := strings.CutPrefix(lines.Text(), "data: ")
		if found && json.Unmarshal([]byte(data), &e) == nil && e.ID != "" {
			if e.ID <= last {
				t.Errorf("after %s comes %s", last, e.ID)
			}
			last = e.ID
			sent.Add(1)
		}
	}
	return last, time.Now()
}
