package e2e_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"parley/store/postgres/pgtest"
)

// TestEventsTail: while the command runs, a server stores events, and the command prints
// them. An interrupt ends the command cleanly.
func TestEventsTail(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(testing.TB) string{"sqlite": func(testing.TB) string { return "" }, "postgres": pgtest.Database} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := newDir(t)
			env := []string{"PARLEY_DATABASE_URL=" + database(t), "PARLEY_DATA=" + dir}
			run := func(args ...string) map[string]any {
				t.Helper()
				var answer map[string]any
				if r := parley(t, env, append(args, "--json")...); json.Unmarshal([]byte(r.stdout), &answer) != nil {
					t.Fatalf("%v: %s", args, r.stderr)
				}
				return answer
			}
			ws := run("workspace", "create", "--name", "Acme")["workspace_id"].(string)
			key := run("key", "create", "--workspace", ws, "--name", "test", "--permissions", "all")["key"].(string)
			s := serveWith(t, env)
			all := launch(t, env, "events", "tail", "--workspace", ws, "--cursor", "oldest", "--json")
			some := launch(t, env, "events", "tail", "--workspace", ws, "--cursor", "oldest", "--types", "contact.*,key.*")
			waitFor(t, "the first event", func() bool {
				return strings.Contains(all.stdout.String(), "key.created") && strings.Contains(some.stdout.String(), "key.created")
			})
			s.want(t, 201, key, "POST", "/attributes", `{"key":"plan","type":"text"}`)
			s.want(t, 201, key, "POST", "/contacts", `{"external_id":"x"}`)
			waitFor(t, "the contact", func() bool {
				return strings.Contains(all.stdout.String(), "contact.created") && strings.Contains(some.stdout.String(), "contact.created")
			})
			for _, p := range []*process{all, some} {
				p.signal(t, syscall.SIGINT)
				if code := p.wait(t); code != 0 || p.stderr.String() != "" {
					t.Errorf("exit code %d: %s", code, p.stderr.String())
				}
			}
			if lines := strings.Count(all.stdout.String(), "\n"); lines != 3 {
				t.Errorf("%d lines: %s", lines, all.stdout.String())
			}
			if strings.Contains(some.stdout.String(), "attribute") {
				t.Error(some.stdout.String())
			}
		})
	}
}

// A feedEvent is an event as a client reads it.
type feedEvent struct {
	ID      string
	Type    string
	Subject struct{ ID string }
	Data    json.RawMessage
}

// A feedPage is a response of GET /v1/events.
type feedPage struct {
	Data   []feedEvent
	Cursor string
	More   bool
}

// events reads the feed from a cursor to its end.
func (s *server) events(t testing.TB, key, cursor string) (all []feedEvent) {
	t.Helper()
	for more := true; more; {
		var page feedPage
		if err := json.Unmarshal([]byte(s.want(t, 200, key, "GET", "/events?limit=200&cursor="+cursor, "")), &page); err != nil {
			t.Fatal(err)
		}
		all, cursor, more = append(all, page.Data...), page.Cursor, page.More
	}
	return all
}

var (
	eventWrites = flag.Int("event-writes", 2000, "how many writes TestFeedUnderLoad makes. Long run: -event-writes 200000 -event-kills 20")
	eventKills  = flag.Int("event-kills", 2, "how often TestFeedUnderLoad kills a server; see -event-writes")
)

// A loadedFeed is the feed of TestFeedUnderLoad, with its servers, writers and followers.
type loadedFeed struct {
	t     *testing.T
	key   string
	mu    sync.Mutex
	nodes []*server
}

// url returns the address of one of the servers. With each n, it is another server.
func (l *loadedFeed) url(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.nodes[n%len(l.nodes)].url
}

// call makes a request to one server. If it gets no response, it tries the next server.
func (l *loadedFeed) call(n int, method, path, body string) (status int, answer []byte) {
	for try := n; ; try++ {
		r, err := http.NewRequestWithContext(l.t.Context(), method, l.url(try)+"/v1"+path, strings.NewReader(body))
		if err != nil {
			l.t.Error(err)
			return 0, nil
		}
		r.Header.Set("Authorization", "Bearer "+l.key)
		response, err := http.DefaultClient.Do(r)
		if err == nil {
			answer, err = io.ReadAll(response.Body)
			_ = response.Body.Close()
		}
		if err == nil && response.StatusCode < 500 {
			return response.StatusCode, answer
		}
		if l.t.Context().Err() != nil {
			return 0, nil
		}
		time.Sleep(10 * time.Millisecond) // the server is just being restarted
	}
}

// write makes the writes of one writer.
func (l *loadedFeed) write(writer, writes int) {
	rng := random(uint64(writer), 0)
	for n := range writes {
		name := fmt.Sprintf("%d-%d", writer, rng.IntN(1+writes/4))
		switch rng.IntN(6) {
		case 0:
			_, answer := l.call(n, "GET", "/contacts?external_id="+name, "")
			if _, id, found := strings.Cut(string(answer), `"id":"`); found {
				l.call(n, "DELETE", "/contacts/"+id[:36], "")
			}
		case 1:
			l.call(n, "POST", "/contacts/batch", fmt.Sprintf(`{"operations":[{"op":"upsert","data":{"external_id":"%s","note":"%d"}},{"op":"upsert","data":{"external_id":"%[1]sb","note":"%[2]d"}},{"op":"delete","external_id":"none"}]}`, name, n))
		default:
			l.call(n, "POST", "/contacts", fmt.Sprintf(`{"external_id":"%s","name":"%d"}`, name, n))
		}
	}
}

// A follower follows the feed, and makes its own copy of the contacts from the events.
type follower struct {
	ids      []string
	contacts map[string]string
}

func (f *follower) take(e feedEvent) {
	f.ids = append(f.ids, e.ID)
	if !strings.HasPrefix(e.Type, "contact.") {
		return
	}
	if f.contacts[e.Subject.ID] = string(e.Data); string(e.Data) == "null" {
		delete(f.contacts, e.Subject.ID)
	}
}

// follow reads the feed up to the event with the id last: as pages, or as a stream.
func (l *loadedFeed) follow(n int, last string) *follower {
	f, cursor := &follower{contacts: map[string]string{}}, "oldest"
	if n%2 == 0 {
		for {
			_, answer := l.call(n, "GET", "/events?limit=200&wait=2&cursor="+cursor, "")
			var page feedPage
			if err := json.Unmarshal(answer, &page); err != nil {
				l.t.Errorf("%v: %s", err, answer)
				return f
			}
			for _, e := range page.Data {
				if f.take(e); strings.Contains(string(e.Data), last) {
					return f
				}
			}
			cursor = page.Cursor
		}
	}
	for try := n; l.t.Context().Err() == nil; try++ {
		r, err := http.NewRequestWithContext(l.t.Context(), http.MethodGet, l.url(try)+"/v1/events?cursor="+cursor, http.NoBody)
		if err != nil {
			l.t.Error(err)
			return f
		}
		r.Header.Set("Authorization", "Bearer "+l.key)
		r.Header.Set("Accept", "text/event-stream")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		lines := bufio.NewScanner(answer.Body)
		lines.Buffer(nil, 8<<20)
		named := false
		for lines.Scan() {
			named = named && lines.Text() != "" || lines.Text() == "event: cursor"
			data, found := strings.CutPrefix(lines.Text(), "data: ")
			if !found || named {
				continue
			}
			var e feedEvent
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				break // the stream was cut off
			}
			cursor = e.ID
			if f.take(e); strings.Contains(data, last) {
				_ = answer.Body.Close()
				return f
			}
		}
		_ = answer.Body.Close()
	}
	return f
}

// TestFeedUnderLoad: 64 writers write, and servers are killed. Meanwhile 8 followers get
// each change once and in order. In the end, each follower's copy of the contacts is
// right.
func TestFeedUnderLoad(t *testing.T) {
	t.Parallel()
	const writers, followers = 64, 8
	load := func(t *testing.T, l *loadedFeed, restart func(n int) *server) {
		t.Helper()
		var following, writing sync.WaitGroup
		done := make([]*follower, followers)
		const last = "the last contact"
		for n := range followers {
			following.Go(func() { done[n] = l.follow(n, last) })
		}
		for w := range writers {
			writing.Go(func() { l.write(w, *eventWrites/writers) })
		}
		written := make(chan struct{})
		go func() {
			writing.Wait()
			close(written)
		}()
		for kill := range *eventKills {
			select {
			case <-written:
			case <-time.After(time.Duration(300+100*(kill%5)) * time.Millisecond):
			}
			n := kill % len(l.nodes)
			l.nodes[n].kill()
			s := restart(n)
			l.mu.Lock()
			l.nodes[n] = s
			l.mu.Unlock()
		}
		<-written
		l.call(0, "POST", "/contacts", `{"external_id":"last","name":"`+last+`"}`)
		following.Wait()
		want := map[string]string{}
		for _, c := range l.nodes[0].client(t, l.key, 1).contacts(t) {
			want[c.ID] = ""
		}
		var ids []string
		for _, e := range l.nodes[0].events(t, l.key, "oldest") {
			ids = append(ids, e.ID)
		}
		if !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(ids) {
			t.Error("the ids do not ascend")
		}
		for n, f := range done {
			if !slices.Equal(f.ids, ids) {
				t.Errorf("follower %d has %d events, want %d", n, len(f.ids), len(ids))
			}
			for id, data := range f.contacts {
				if answer := l.nodes[0].want(t, 200, l.key, "GET", "/contacts/"+id, ""); answer != `{"data":`+data+`}` {
					t.Errorf("follower %d has the contact %s, the list %s", n, data, answer)
				}
				if n > 0 { // only the first follower is compared completely, the others by the number of events
					break
				}
			}
			if len(f.contacts) != len(want) {
				t.Errorf("follower %d has %d contacts, want %d", n, len(f.contacts), len(want))
			}
		}
		t.Logf("%d events, %d contacts, %d kills", len(ids), len(want), *eventKills)
	}
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		dir := newDir(t)
		_, key := newWorkspace(t, dir)
		load(t, &loadedFeed{t: t, key: key, nodes: []*server{serve(t, dir)}}, func(int) *server { return serve(t, dir) })
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		d := newDeployment(t)
		_, key := d.workspace(t)
		start := func(int) *server { return serve(t, d.dir, "--database", d.database) }
		load(t, &loadedFeed{t: t, key: key, nodes: []*server{start(0), start(1), start(2)}}, start)
	})
}

// TestEventRetention: events expire. Numbers go on after a restart. A restored database
// refuses cursors that are newer than its data. A cursor stays valid after a migration.
func TestEventRetention(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	_, key := newWorkspace(t, dir)
	s := serve(t, dir, "--event-retention", "0s")
	write := func(name string) {
		t.Helper()
		s.want(t, 201, key, "POST", "/contacts", `{"external_id":"`+name+`"}`)
	}
	reason := func(cursor string) string {
		t.Helper()
		var e struct {
			Error struct{ Details struct{ Reason string } }
		}
		if err := json.Unmarshal([]byte(s.want(t, 410, key, "GET", "/events?cursor="+cursor, "")), &e); err != nil {
			t.Fatal(err)
		}
		return e.Error.Details.Reason
	}
	write("a")
	early := s.events(t, key, "oldest")
	// The present state is copied. Further changes follow, and then the copy is restored.
	s.stop(t)
	backup := t.TempDir()
	if err := os.CopyFS(filepath.Join(backup, "data"), os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	s = serve(t, dir)
	write("b")
	future := s.events(t, key, early[len(early)-1].ID)
	s.stop(t)
	if err := errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(filepath.Join(backup, "data"))), os.Chmod(filepath.Join(dir, "secret.key"), 0o600)); err != nil {
		t.Fatal(err)
	}
	s = serve(t, dir)
	if got := reason(future[0].ID); got != "history" {
		t.Errorf("a cursor of the future: %s", got)
	}
	write("c") // its event gets a number that was used before the restore
	if got := reason(future[0].ID); got != "history" {
		t.Errorf("a cursor whose number was given again: %s", got)
	}
	if again := s.events(t, key, early[0].ID); len(again) != len(early) {
		t.Errorf("%d events after the restore", len(again))
	}
	s.stop(t)

	// All events expire.
	s = serve(t, dir, "--event-retention", "1s")
	waitFor(t, "all events to expire", func() bool { return len(s.events(t, key, "oldest")) == 0 })
	if got := reason(early[0].ID); got != "retention" {
		t.Errorf("an expired cursor: %s", got)
	}
	s.stop(t)
	s = serve(t, dir)
	write("d")
	after := s.events(t, key, "oldest")
	if len(after) != 1 || after[0].ID <= future[0].ID {
		t.Errorf("after all have expired: %+v, before it %s", after, future[0].ID)
	}
	s.stop(t)

	// The migrated database accepts the cursors, and its numbers go on.
	database := pgtest.Database(t)
	if r := parley(t, nil, "migrate", "--from", "sqlite:"+dir, "--to", database, "--data", dir); r.code != 0 {
		t.Fatal(r.stderr)
	}
	s = serve(t, dir, "--database", database)
	if moved := s.events(t, key, "oldest"); len(moved) != 1 || moved[0].ID != after[0].ID {
		t.Errorf("the copy has %+v", moved)
	}
	if got := reason(early[0].ID); got != "retention" {
		t.Errorf("an expired cursor in the copy: %s", got)
	}
	write("e")
	if next := s.events(t, key, after[0].ID); len(next) != 1 || next[0].ID <= after[0].ID {
		t.Errorf("in the copy follows %+v", next)
	}
}

var (
	eventStreams = flag.Int("event-streams", 48, "how many streams TestIdleStreams opens, and measures what they cost. Long run: -event-streams 1000 -event-idle 2m")
	eventIdle    = flag.Duration("event-idle", 0, "how long the streams of TestIdleStreams have no events; see -event-streams")
)

// TestIdleStreams: streams use little memory, even a stream whose client hardly reads.
// When the server is told to stop, all streams end within a second.
func TestIdleStreams(t *testing.T) {
	t.Parallel()
	const ofKey = 16
	dir := newDir(t)
	workspace, key := newWorkspace(t, dir)
	s := serve(t, dir)
	note := strings.Repeat("n", 10_000)
	for n := range 500 { // more than fits into the buffers of a connection
		s.want(t, 201, key, "POST", "/contacts", fmt.Sprintf(`{"external_id":"%d","note":"%s"}`, n, note))
	}
	before := s.metric(t, "process_resident_memory_bytes")
	s.stream(t, key, "") // the client of this stream does not read
	var idle []*http.Response
	for n := range *eventStreams {
		if n%ofKey == 0 {
			key = newKey(t, dir, workspace)
		}
		idle = append(idle, s.stream(t, key, "?cursor=latest"))
	}
	if got := s.metric(t, "parley_event_streams"); got != float64(1+*eventStreams) {
		t.Errorf("parley_event_streams is %v", got)
	}
	if *eventIdle > 0 {
		select {
		case <-time.After(*eventIdle):
		case <-t.Context().Done():
		}
	}
	if each := (s.metric(t, "process_resident_memory_bytes") - before - 32<<20) / float64(*eventStreams); each > 100_000 {
		t.Errorf("a stream takes %.0f bytes", each)
	} else {
		t.Logf("%d streams; a stream takes %.0f bytes beyond 32 MiB; %d MB in all, %d before", *eventStreams, each,
			int(s.metric(t, "process_resident_memory_bytes"))>>20, int(before)>>20)
	}
	s.want(t, 201, key, "POST", "/contacts", `{"external_id":"last"}`)
	for _, answer := range idle {
		lines, comments, last := bufio.NewScanner(answer.Body), 0, false
		for !last && lines.Scan() {
			if last = strings.Contains(lines.Text(), `"external_id":"last"`); lines.Text() == ":" {
				comments++
			}
		}
		if want := int(*eventIdle / (20 * time.Second)); !last || comments < want {
			t.Fatalf("a stream had %d comments, want %d; the last event: %v, %v", comments, want, last, lines.Err())
		}
	}
	begun := time.Now()
	s.stop(t)
	if took := time.Since(begun); took > 8*time.Second { // one second for the streams, the rest for the checkpoint and for a busy machine
		t.Errorf("the server stopped after %v", took)
	}
}

// metric returns the value of a metric without labels.
func (s *server) metric(t testing.TB, name string) float64 {
	t.Helper()
	answer, err := http.Get(s.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if text, found := strings.CutPrefix(lines.Text(), name+" "); found {
			value, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			return value
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}
