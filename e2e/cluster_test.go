package e2e_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/store/postgres/pgtest"

	"github.com/jackc/pgx/v5"
)

var (
	clusterWorkspaces = flag.Int("cluster-workspaces", 3, "how many workspaces TestServerKilled and TestShardsMoved have. Long run, on Citus: -cluster-workspaces 30")
	serverKills       = flag.Int("server-kills", 1, "how often TestServerKilled kills a database server. Long run, on Citus: -server-kills 10 -cluster-workspaces 30")
	shardMoves        = flag.Int("shard-moves", 2, "how often TestShardsMoved moves shards. Long run, on Citus: -shard-moves 10 -cluster-workspaces 30")
)

// A cluster is an installation on several database servers, or on one, under load: each
// workspace has a writer, a sender, a webhook and a policy.
type cluster struct {
	deployment
	t          *testing.T
	databases  []*pgtest.Server // with Citus, the first is the coordinator
	nodes      []*server        // the first enters by the first database server, the others by the last
	workspaces []*shop
	sink       *sink
	load       sync.WaitGroup
}

// A shop is a workspace of a cluster.
type shop struct {
	n                        int
	ws, key, channel, member string
	clients                  []*client    // by node
	server                   int          // the index of the database server with its rows
	wrote                    atomic.Int64 // when a write was last acknowledged, in nanoseconds

	mu     sync.Mutex
	acked  map[string]string // the last acknowledged note of each contact, by external id
	unsure map[string]bool   // the external ids of writes that were answered 503
	sent   []string          // phones of the sends that were answered
	calls  []clusterCall

	strangers map[string]bool // the phones of people who have written first
}

// A clusterCall is a request of a shop.
type clusterCall struct {
	node   int
	at     time.Time
	took   time.Duration
	status int
	body   string // of an error
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	database, servers := pgtest.Group(t)
	c := &cluster{deployment: deployment{newDir(t), database}, t: t, databases: servers, sink: newSink(t)}
	for n := range *clusterWorkspaces {
		s := &shop{n: n, acked: map[string]string{}, unsure: map[string]bool{}, strangers: map[string]bool{}}
		s.ws, s.key = c.workspace(t)
		s.channel = c.sandbox(t, s.ws)
		s.member = c.must(t, "member", "add", "--workspace", s.ws, "--name", "Ada", "--email", fmt.Sprintf("ada%d@example.com", n))["member_id"].(string)
		c.workspaces = append(c.workspaces, s)
	}
	for i := range 2 {
		entrance := c.database
		if i > 0 && pgtest.Citus() { // and if that one is down, by the coordinator
			entrance = hostsOf(t, servers[len(servers)-1].URL, c.database)
		}
		c.nodes = append(c.nodes, serve(t, c.dir, append([]string{"--database", entrance}, delivers...)...))
	}
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for i, node := range c.nodes {
			lines := slices.DeleteFunc(strings.Split(node.stderr.String(), "\n"), func(line string) bool { return !strings.Contains(line, "level=ERROR") })
			t.Logf("errors of server %d: %.4000s", i, strings.Join(lines, "\n"))
		}
	})
	for _, s := range c.workspaces {
		for _, node := range c.nodes {
			s.clients = append(s.clients, node.client(t, s.key, 4))
		}
		c.nodes[0].webhook(t, s.key, c.sink.url+s.query())
		s.clients[0].must(t, 200, "PUT", "/policy", `{"assign":{"mode":"round_robin","members":["`+s.member+`"]}}`)
		s.server = c.serverOf(s.ws)
	}
	return c
}

// hostsOf returns the URL of a database with the hosts of several servers.
func hostsOf(t *testing.T, first, database string) string {
	t.Helper()
	one, err := url.Parse(first)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = one.Host + "," + u.Host
	return u.String()
}

// ask asks the first database server.
func (c *cluster) ask(sql string, args ...any) (answer string) {
	c.t.Helper()
	return askDatabase[string](c.t, c.database, sql, args...)
}

// askDatabase asks a database, by a connection of its own, for one value.
func askDatabase[T any](t testing.TB, database, sql string, args ...any) (answer T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if err := conn.QueryRow(ctx, sql, args...).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return answer
}

// shardOf is the shard with the contacts of a workspace.
func (c *cluster) shardOf(ws string) string {
	return c.ask(`SELECT get_shard_id_for_distribution_column('contacts', $1::uuid)::text`, ws)
}

// serverOf returns the index of the database server that has the rows of a workspace.
func (c *cluster) serverOf(ws string) int {
	c.t.Helper()
	if !pgtest.Citus() {
		return 0
	}
	port := c.ask(`SELECT nodeport::text FROM pg_dist_shard_placement WHERE shardid = $1::bigint`, c.shardOf(ws))
	for i, s := range c.databases {
		if strings.Contains(s.URL, ":"+port+"/") {
			return i
		}
	}
	c.t.Fatalf("no server has the port %s", port)
	return 0
}

// query is how the URL of the shop's webhook ends.
func (s *shop) query() string { return fmt.Sprintf("?shop=%d", s.n) }

// work starts the load. The function that it returns ends it, and checks that nothing is
// lost or doubled.
func (c *cluster) work() (end func()) {
	ctx, stop := context.WithCancel(c.t.Context())
	for _, s := range c.workspaces {
		c.load.Go(func() { s.write(ctx, c.t) })
		c.load.Go(func() { s.sends(ctx, c.t) })
	}
	wait := func() {
		stop()
		c.load.Wait()
	}
	c.t.Cleanup(wait) // also after a failure, while the servers still run
	return func() {
		wait()
		c.check()
	}
}

// call makes a request at a node and records it.
func (s *shop) call(node int, method, path, body string, header ...string) (reply, error) {
	began := time.Now()
	r, err := s.clients[node].send(method, path, body, header...)
	call := clusterCall{node: node, at: began, took: time.Since(began), status: r.status}
	if r.status >= 400 {
		call.body = string(r.body)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call)
	return r, err
}

// pause returns the pause of a shop after a call. However many shops there are, together they
// call as often as one without others would, because they share the processors with the
// servers: the effects of a failure are only seen if the load leaves room.
func pause(ofOne time.Duration) time.Duration { return ofOne * time.Duration(*clusterWorkspaces) }

// soon is the pause of a shop after a 503.
const soon = 200 * time.Millisecond

func (s *shop) write(ctx context.Context, t *testing.T) {
	for n := 0; ctx.Err() == nil; n++ {
		wait := pause(50 * time.Millisecond)
		person, note := fmt.Sprintf("p%d", n%50), strconv.Itoa(n) // written again and again, by both nodes
		r, err := s.call(n%2, "POST", "/contacts", fmt.Sprintf(`{"external_id":"%s","note":"%s"}`, person, note))
		switch {
		case err != nil:
			t.Errorf("a write is not answered: %v", err)
		case r.status == http.StatusServiceUnavailable:
			wait = soon
			s.mu.Lock()
			s.unsure[person] = true
			s.mu.Unlock()
			if r.header.Get("Retry-After") == "" {
				t.Errorf("503 without Retry-After: %s", r.body)
			}
		case r.status >= 300:
			t.Errorf("a write is answered %d: %s", r.status, r.body)
		default:
			s.wrote.Store(time.Now().UnixNano())
			s.mu.Lock()
			s.acked[person] = note
			s.mu.Unlock()
		}
		time.Sleep(wait)
	}
}

func (s *shop) sends(ctx context.Context, t *testing.T) {
	for n := 0; ctx.Err() == nil; n++ {
		phone := phoneOf(1000*s.n + n)
		body := fmt.Sprintf(`{"to":{"phone":"%s"},"template":{"name":"hello","language":"en_US"},"opt_in_confirmed":true}`, phone)
		for try := 0; ; try++ { // until it is answered, also after the load has ended
			if ctx.Err() != nil && t.Failed() {
				return // a server may be away for good
			}
			r, err := s.call((n+try)%2, "POST", "/conversations/outbound", body, "Idempotency-Key", phone)
			if err == nil && r.status == http.StatusCreated {
				break
			}
			if err != nil || r.status != http.StatusServiceUnavailable {
				t.Errorf("a send is answered %d: %s%v", r.status, r.body, err)
				return
			}
			time.Sleep(soon)
		}
		s.mu.Lock()
		s.sent = append(s.sent, phone)
		s.mu.Unlock()
		time.Sleep(pause(200 * time.Millisecond))
	}
}

// check waits for the deliveries, and checks what the load has left.
func (c *cluster) check() {
	t := c.t
	t.Helper()
	for _, s := range c.workspaces {
		notes := map[string]string{}
		for _, one := range s.clients[0].contacts(t) {
			notes[one.ExternalID] = one.Note
		}
		for person, note := range s.acked {
			// A later write without an answer may be stored as well.
			stored, err := strconv.Atoi(notes[person])
			acked, _ := strconv.Atoi(note)
			if err != nil || stored < acked {
				t.Errorf("workspace %d: the note of %s is %q, and %q was acknowledged", s.n, person, notes[person], note)
			}
		}
		for _, phone := range s.sent {
			if n := s.clients[1].messagesTo(t, phone); n != 1 {
				t.Errorf("workspace %d: %s has %d messages", s.n, phone, n)
			}
		}
		people := len(s.acked) + len(s.sent) + len(s.strangers)
		for person := range s.unsure { // a person may be stored by a write without an answer
			if _, acked := s.acked[person]; !acked && notes[person] != "" {
				people++
			}
		}
		want := c.nodes[0].created(t, s.key)
		if len(want) != people {
			t.Errorf("workspace %d: %d events of new contacts, want %d", s.n, len(want), people)
		}
		waitFor(t, "all deliveries", func() bool { return c.sink.has(want) })
	}
}

// has reports whether all the events are accepted.
func (s *sink) has(events []string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range events {
		if len(s.accepted[id]) == 0 {
			return false
		}
	}
	return true
}

// delivered tells when an event of a shop was last accepted by its webhook.
func (c *cluster) delivered(s *shop) time.Time {
	c.sink.mu.Lock()
	defer c.sink.mu.Unlock()
	return c.sink.last["/in"+s.query()]
}

// since waits until a shop writes and its webhook gets events after a time, and returns how
// long each took.
func (c *cluster) since(s *shop, at time.Time) (write, delivery time.Duration) {
	c.t.Helper()
	for began := time.Now(); write <= 0; time.Sleep(5 * time.Millisecond) {
		write = time.Duration(s.wrote.Load() - at.UnixNano())
		if time.Since(began) > patience {
			_, failed := c.callsOf(began, time.Now(), func(of *shop, _ clusterCall) bool { return of == s })
			c.t.Fatalf("workspace %d, on server %d, does not write; its last calls: %+v", s.n, s.server, failed[max(0, len(failed)-4):])
		}
	}
	waitFor(c.t, "a delivery", func() bool {
		delivery = c.delivered(s).Sub(at)
		return delivery > 0
	})
	return write, delivery
}

// callsOf returns the times of the successful calls of some shops between two times, and
// the calls that failed.
func (c *cluster) callsOf(from, to time.Time, which func(*shop, clusterCall) bool) (took []time.Duration, failed []clusterCall) {
	for _, s := range c.workspaces {
		s.mu.Lock()
		for _, call := range s.calls {
			switch {
			case call.at.Before(from) || call.at.After(to) || !which(s, call):
			case call.status < 300:
				took = append(took, call.took)
			default:
				failed = append(failed, call)
			}
		}
		s.mu.Unlock()
	}
	return took, failed
}

// The limits of a failure of a database server, and of a move of shards.
const (
	backWithin  = 5 * time.Second  // after the server is back
	answerAfter = 10 * time.Second // the longest wait for an answer
)

// TestServerKilled kills a database server under load and starts it again. On Citus, this is
// a worker, and only its workspaces answer 503. Everything of them comes back by itself soon
// after the server: writes, sends, webhooks, files, and the policy.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	end := c.work()
	for round := range *serverKills {
		victim := len(c.databases) - 1 - round%max(1, len(c.databases)-1)
		var hit []*shop
		for _, s := range c.workspaces {
			if s.server == victim {
				hit = append(hit, s)
			}
		}
		if len(hit) == 0 {
			continue
		}
		const quiet, down = 3 * time.Second, 3 * time.Second
		one := hit[round%len(hit)]
		one.clients[0].must(t, 200, "PUT", "/members/"+one.member+"/availability", `{"available":false}`)
		from := phoneOf(999_000 + round)
		waiting := c.inbound(one, from)
		began := time.Now()
		time.Sleep(quiet)
		before, failed := c.callsOf(began, time.Now(), func(*shop, clusterCall) bool { return true })
		if len(failed) > 0 {
			t.Errorf("round %d: before anything is killed, %d calls fail: %+v", round, len(failed), failed[0])
		}
		killed := time.Now()
		if err := c.databases[victim].Stop("immediate"); err != nil {
			t.Fatal(err)
		}
		stopped := time.Now()
		time.Sleep(down)
		// The second node enters by the last server. While that one is down, it finds the other.
		others, failed := c.callsOf(stopped, time.Now(), func(s *shop, call clusterCall) bool { return s.server != victim && call.node == 0 })
		if len(failed) > 0 {
			t.Errorf("round %d: %d calls of workspaces on other servers fail: %+v", round, len(failed), failed[0])
		}
		if err := c.databases[victim].Start(); err != nil {
			t.Fatal(err)
		}
		back := time.Now()
		var write, delivery time.Duration
		for _, s := range c.workspaces {
			w, d := c.since(s, back)
			write, delivery = max(write, w), max(delivery, d)
		}
		waitFor(t, "the member to be available", func() bool {
			r, err := one.clients[0].send("PUT", "/members/"+one.member+"/availability", `{"available":true}`)
			return err == nil && r.status == 200
		})
		policy := c.until("the waiting conversation to be assigned", func() bool { return c.assignee(one, waiting) == one.member })
		file := c.fetched(one, from)
		_, failed = c.callsOf(killed, time.Now(), func(s *shop, _ clusterCall) bool { return s.server == victim })
		slowest := time.Duration(0)
		for _, call := range failed {
			slowest = max(slowest, call.took)
		}
		t.Logf("round %d: server %d with %d of %d workspaces was away for %v: %d calls failed, the slowest answer after %v; after it was back: writes %v, webhooks %v; the policy took %v, a file %v; others' p99 %v, before %v",
			round, victim, len(hit), len(c.workspaces), back.Sub(killed).Round(time.Millisecond), len(failed), slowest.Round(time.Millisecond),
			write.Round(time.Millisecond), delivery.Round(time.Millisecond), policy.Round(time.Millisecond), file.Round(time.Millisecond), percentile(others, 99), percentile(before, 99))
		if slowest > answerAfter {
			t.Errorf("an answer came after %v", slowest)
		}
		if *serverKills > 3 && max(write, delivery, policy, file) > backWithin { // times prove nothing beside other tests
			t.Errorf("round %d: back only after %v, %v, %v and %v", round, write, delivery, policy, file)
		}
	}
	end()
}

// until waits until something is so, and returns how long that took.
func (c *cluster) until(what string, is func() bool) time.Duration {
	c.t.Helper()
	from := time.Now()
	waitFor(c.t, what, is)
	return time.Since(from)
}

// inbound simulates a message of a person, and returns its conversation.
func (c *cluster) inbound(s *shop, from string, more ...string) (conversation string) {
	c.t.Helper()
	s.strangers[from] = true
	return c.must(c.t, append([]string{"sandbox", "inbound", "--channel", s.channel, "--from", from, "--text", "Hello"}, more...)...)["conversation_id"].(string)
}

// assignee returns the member who holds a conversation, or "".
func (c *cluster) assignee(s *shop, conversation string) string {
	c.t.Helper()
	r, err := s.clients[0].send("GET", "/conversations/"+conversation, "")
	if err != nil || r.status != 200 {
		return ""
	}
	return decode[struct {
		Data struct {
			Member string `json:"assigned_member_id"`
		}
	}](c.t, r.body).Data.Member
}

// fetched lets a person send a file, and returns how long after that it was fetched.
func (c *cluster) fetched(s *shop, from string) time.Duration {
	c.t.Helper()
	path := filepath.Join(c.t.TempDir(), "note.txt")
	if err := os.WriteFile(path, []byte("Hello"), 0o600); err != nil {
		c.t.Fatal(err)
	}
	conversation := c.inbound(s, from, "--file", path, "--type", "text/plain", "--fault", "slow:100ms")
	return c.until("a file to be fetched", func() bool {
		r, err := s.clients[0].send("GET", "/conversations/"+conversation+"/messages", "")
		return err == nil && r.status == 200 && bytes.Contains(r.body, []byte(`"status":"ready"`))
	})
}

// TestShardsMoved moves shards with the rows of workspaces to another server, under load.
// Nothing is lost or doubled. For a moment, calls of the workspaces in these shards may
// answer 503. Without Citus nothing moves; then it sees that the load alone fails nowhere.
func TestShardsMoved(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	end := c.work()
	for round := range *shardMoves {
		time.Sleep(time.Second)
		one := c.workspaces[round%len(c.workspaces)]
		began := time.Now()
		moved := map[int]bool{}
		if pgtest.Citus() {
			shard := c.shardOf(one.ws)
			to := len(c.databases) - 1
			if one.server == to {
				to-- // back to the other worker
			}
			fromHost, fromPort := hostOf(t, c.databases[one.server])
			toHost, toPort := hostOf(t, c.databases[to])
			for _, s := range c.workspaces {
				if c.shardOf(s.ws) == shard {
					moved[s.n] = true
				}
			}
			began = time.Now()
			c.ask(`SELECT citus_move_shard_placement($1::bigint, $2, $3, $4, $5, shard_transfer_mode := 'force_logical')::text`, shard, fromHost, fromPort, toHost, toPort)
			for _, s := range c.workspaces {
				if moved[s.n] {
					s.server = to
				}
			}
		}
		took := time.Since(began)
		write, delivery := time.Duration(0), time.Duration(0)
		for _, s := range c.workspaces {
			w, d := c.since(s, began.Add(took))
			write, delivery = max(write, w), max(delivery, d)
		}
		_, failed := c.callsOf(began, time.Now(), func(s *shop, _ clusterCall) bool { return moved[s.n] })
		_, others := c.callsOf(began, time.Now(), func(s *shop, _ clusterCall) bool { return !moved[s.n] })
		if len(others) > 0 {
			t.Errorf("round %d: %d calls of other workspaces fail: %+v", round, len(others), others[0])
		}
		var first, last time.Time
		for _, call := range failed {
			if end := call.at.Add(call.took); first.IsZero() || call.at.Before(first) {
				first = call.at
			} else if end.After(last) {
				last = end
			}
		}
		gap := last.Sub(first)
		t.Logf("round %d: moved %d of %d workspaces in %v: %d calls failed, within %v; then writes went on after %v, webhooks after %v",
			round, len(moved), len(c.workspaces), took.Round(time.Millisecond), len(failed), max(0, gap).Round(time.Millisecond), write.Round(time.Millisecond), delivery.Round(time.Millisecond))
		if gap > backWithin {
			t.Errorf("round %d: calls failed for %v", round, gap)
		}
	}
	end()
}

// hostOf returns the address of a server.
func hostOf(t *testing.T, s *pgtest.Server) (host string, port int) {
	t.Helper()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	if port, err = strconv.Atoi(u.Port()); err != nil {
		t.Fatal(err)
	}
	return u.Hostname(), port
}
