//go:build unix

package e2e_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"parley/desk"
	"parley/provider"
	"parley/whatsapp/whatsapptest"
	"parley/work"
)

var (
	policyPersons = flag.Int("policy-persons", 50, "how many people write in each part of TestPolicyOfNodes; a multiple of 5. Long run: -policy-persons 1000 -timeout 30m")
	leftWaiting   = flag.Int("left-waiting", 20, "how many people are left waiting for each cause in TestLeftWaiting; from 200 on it also judges how soon they are assigned, and waits for an opening. Long run: -left-waiting 200 -timeout 30m")
	policyKills   = flag.Int("policy-kills", 1, "how often TestAutoReplyOnce kills a process at each point. Long run: -policy-kills 50 -timeout 30m")
)

// policyOf makes an installation with five members. With PostgreSQL it has two servers,
// with SQLite one. The messages of people go to the servers in turn.
func policyOf(t *testing.T, database string) (w *whatsApp, c *client, members []string) {
	w = newWhatsApp(t, database, templatesOf(1))
	servers := []*server{w.server}
	if database != "" {
		servers = append(servers, w.serve(t))
	}
	var targets []*url.URL
	for _, s := range servers {
		target, err := url.Parse(s.url)
		if err != nil {
			t.Fatal(err)
		}
		targets = append(targets, target)
	}
	w.connect(t, w.server, "--per-second", "1000")
	for i := range 5 {
		id := w.command(t, 0, "member", "add", "--workspace", w.ws, "--name", fmt.Sprint("Member ", i), "--email", fmt.Sprintf("m%d@example.com", i))["member_id"].(string)
		members = append(members, id)
	}
	var turn atomic.Int64
	between := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(targets[turn.Add(1)%int64(len(targets))])
	}})
	t.Cleanup(between.Close)
	w.sim.SetWebhook(between.URL+w.callbacks, waVerify)
	return w, w.server.client(t, w.key, 16), members
}

// write simulates people who write, 16 at a time. It waits until all messages are stored.
func (w *whatsApp) write(t *testing.T, c *client, people int, from func(int) string, times int) {
	t.Helper()
	want := c.unread(t) + people*times
	var next atomic.Int64
	together(16, func(int) {
		for {
			n := int(next.Add(1)) - 1
			if n >= people {
				return
			}
			var posted []*whatsapptest.Delivery
			for k := range times {
				posted = append(posted, w.sim.Inbound(whatsapptest.Inbound{From: from(n), Text: fmt.Sprint("Hello ", k)}))
			}
			for _, d := range posted {
				if d.Wait() != http.StatusOK {
					t.Errorf("a callback was answered %v", d.Answers())
				}
			}
		}
	})
	for most, n := -1, 0; n < want; { // go on waiting while the number grows
		waitFor(t, "more messages to be stored", func() bool {
			n = c.unread(t)
			return n > most
		})
		most = n
	}
}

// inboxRow is an item of GET /inbox.
type inboxRow struct {
	Conversation struct {
		ID          string
		AssignedTo  *string `json:"assigned_member_id"`
		AssignedVia *string `json:"assigned_via"`
	}
	Contact struct{ ID string }
	State   struct {
		Unread       int
		WaitingSince *string `json:"waiting_since"`
	}
}

// inbox lists the open conversations.
func (c *client) inbox(t testing.TB, query string) (all []inboxRow) {
	t.Helper()
	for cursor := ""; ; {
		page := decode[struct {
			Data []inboxRow
			Next *string `json:"next_cursor"`
		}](t, c.must(t, 200, "GET", "/inbox?limit=100"+query+cursor, ""))
		all = append(all, page.Data...)
		if page.Next == nil {
			return all
		}
		cursor = "&cursor=" + *page.Next
	}
}

// unread counts the unread messages of open conversations.
func (c *client) unread(t testing.TB) (n int) {
	for _, row := range c.inbox(t, "") {
		n += row.State.Unread
	}
	return n
}

// closeAll closes all open conversations.
func closeAll(t testing.TB, c *client) {
	t.Helper()
	for _, row := range c.inbox(t, "") {
		c.must(t, 200, "PUT", "/conversations/"+row.Conversation.ID+"/status", `{"status":"closed"}`)
	}
}

// TestPolicyOfNodes: many people write at the same time, to all nodes. The policy assigns
// the conversations evenly, keeps its limits, and sends each person one automatic reply.
func TestPolicyOfNodes(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, d deployment) { policyOfNodes(t, d.database) })
}

func policyOfNodes(t *testing.T, database string) {
	w, c, members := policyOf(t, database)
	people := *policyPersons
	list := `["` + strings.Join(members, `","`) + `"]`
	loads := func() (per []int, unassigned int) {
		by := map[string]int{}
		for _, row := range c.inbox(t, "") {
			switch via := row.Conversation.AssignedVia; {
			case row.Conversation.AssignedTo == nil:
				unassigned++
			case *via != "rule":
				t.Errorf("assigned via %s", *via)
			default:
				by[*row.Conversation.AssignedTo]++
			}
		}
		for _, m := range members {
			per = append(per, by[m])
		}
		return per, unassigned
	}

	// Round robin: each member gets the same number.
	c.must(t, 200, "PUT", "/policy", `{"assign":{"mode":"round_robin","members":`+list+`}}`)
	w.write(t, c, people, func(n int) string { return fmt.Sprintf("90531%07d", n) }, 1)
	if per, free := loads(); free != 0 || slices.Max(per) != people/5 || slices.Min(per) != people/5 {
		t.Errorf("in turn: %v, and %d that nobody holds", per, free)
	}
	closeAll(t, c)

	// Fewest open: a member who already has open conversations gets fewer new ones.
	c.must(t, 200, "PUT", "/policy", `{"assign":{"mode":"least_open","members":["`+members[0]+`"]}}`)
	w.write(t, c, people/10, func(n int) string { return fmt.Sprintf("90532%07d", n) }, 1)
	c.must(t, 200, "PUT", "/policy", `{"assign":{"mode":"least_open","members":`+list+`}}`)
	w.write(t, c, people, func(n int) string { return fmt.Sprintf("90533%07d", n) }, 1)
	if per, free := loads(); free != 0 || slices.Max(per)-slices.Min(per) > 1 {
		t.Errorf("fewest open: %v, and %d that nobody holds", per, free)
	}
	closeAll(t, c)

	// With a limit, the other conversations wait. A person who writes four messages at
	// once gets one automatic reply.
	limit := people / 10
	c.must(t, 200, "PUT", "/policy", fmt.Sprintf(`{"assign":{"mode":"least_open","members":%s,"max_open":%d},"auto_reply":{"queued":"One moment."}}`, list, limit))
	w.write(t, c, people, func(n int) string { return fmt.Sprintf("90534%07d", n) }, 4)
	var per []int
	var free int
	waitFor(t, "all to be listed", func() bool { // while the list is read, an automatic reply may move a conversation to the top
		per, free = loads()
		return free+per[0]+per[1]+per[2]+per[3]+per[4] >= people
	})
	if free != people-5*limit || slices.Max(per) != limit || slices.Min(per) != limit {
		t.Errorf("at most %d: %v, and %d that nobody holds", limit, per, free)
	}
	replies := func() map[string]int {
		to := map[string]int{}
		for _, s := range w.sim.Sends() {
			if s.Text == "One moment." {
				to[s.To]++
			}
		}
		return to
	}
	waitFor(t, "the automatic replies", func() bool { return len(replies()) >= free })
	if to := replies(); len(to) != free {
		t.Errorf("%d people got a reply, %d wait", len(to), free)
	} else {
		for who, n := range to {
			if n != 1 {
				t.Errorf("%s got %d replies", who, n)
			}
		}
	}

	// Members get room again. Within 10 seconds, waiting conversations are assigned, up
	// to the limit.
	started := time.Now()
	first := c.inbox(t, "&order=waiting&assignee=none")
	for _, row := range c.inbox(t, "&assignee="+members[0]) {
		c.must(t, 200, "PUT", "/conversations/"+row.Conversation.ID+"/status", `{"status":"closed"}`)
	}
	waitFor(t, "somebody who waits to be assigned", func() bool { _, left := loads(); return left == free-limit })
	t.Logf("%d were assigned %.1f s after there was room", limit, time.Since(started).Seconds())
	for i, row := range first {
		got := decode[struct {
			Data struct {
				AssignedTo *string `json:"assigned_member_id"`
			}
		}](t, c.must(t, 200, "GET", "/conversations/"+row.Conversation.ID, "")).Data.AssignedTo
		if (got != nil) != (i < limit) {
			t.Errorf("the one that waited %d. longest is assigned: %t", i+1, got != nil)
		}
	}
	if per, _ := loads(); slices.Max(per) > limit {
		t.Errorf("at most %d: %v", limit, per)
	}
}

// TestLeftWaiting: conversations wait because no member can get them. For each cause that
// changes this, all of them are assigned soon, the longest wait first.
func TestLeftWaiting(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, d deployment) { leaveWaiting(t, d.database) })
}

func leaveWaiting(t *testing.T, database string) {
	w, c, members := policyOf(t, database)
	people, list := *leftWaiting, `["`+strings.Join(members, `","`)+`"]`
	all := `{"assign":{"mode":"round_robin","members":` + list + `}}`
	available := func(is bool) {
		for _, m := range members {
			c.must(t, 200, "PUT", "/members/"+m+"/availability", fmt.Sprintf(`{"available":%t}`, is))
		}
	}
	set := func(policy string) { c.must(t, 200, "PUT", "/policy", policy) }
	busy := map[string]bool{} // open conversations, so that the members can't get more
	causes := []struct {
		name          string
		before, cause func()
	}{
		{"policy changed", func() { set(`{}`) }, func() { set(all) }},
		{"members back", func() { set(all); available(false) }, func() { available(true) }},
		{"capacity", func() {
			set(fmt.Sprintf(`{"assign":{"mode":"least_open","members":%s,"max_open":%d}}`, list, people/5))
			w.write(t, c, people/5*5, func(n int) string { return fmt.Sprintf("90535%07d", n) }, 1)
			for _, row := range c.inbox(t, "") {
				busy[row.Conversation.ID] = true
			}
		}, func() {
			for id := range busy {
				c.must(t, 200, "PUT", "/conversations/"+id+"/status", `{"status":"closed"}`)
			}
		}},
	}
	if people >= 200 {
		var opens time.Time
		causes = append(causes, struct {
			name          string
			before, cause func()
		}{"opening", func() {
			opens = time.Now().UTC().Truncate(time.Minute).Add(2 * time.Minute)
			week := map[string][][2]string{}
			for _, day := range desk.Weekdays {
				week[day] = [][2]string{{opens.Format("15:04"), "24:00"}}
			}
			hours, err := json.Marshal(week)
			if err != nil {
				t.Fatal(err)
			}
			set(`{"assign":{"mode":"round_robin","members":` + list + `},"hours":{"time_zone":"UTC","week":` + string(hours) + `}}`)
		}, func() { <-time.After(time.Until(opens)) }})
	}
	for k, cause := range causes {
		closeAll(t, c)
		cause.before()
		w.write(t, c, people, func(n int) string { return fmt.Sprintf("9053%d%07d", 6+k, n) }, 1)
		var waiting []string
		for _, row := range c.inbox(t, "&order=waiting") {
			if !busy[row.Conversation.ID] {
				waiting = append(waiting, row.Conversation.ID)
			}
		}
		if len(waiting) != people {
			t.Fatalf("%s: %d wait, want %d", cause.name, len(waiting), people)
		}
		from := decode[struct{ Cursor string }](t, c.must(t, 200, "GET", "/events?cursor=latest", "")).Cursor
		cause.cause()
		started := time.Now()
		var assigned []string
		waitFor(t, cause.name+": all to be assigned", func() bool {
			page := decode[struct {
				Cursor string
				Data   []struct {
					Subject struct{ ID string }
					Actor   struct{ Kind string }
				}
			}](t, c.must(t, 200, "GET", "/events?types=conversation.updated&limit=200&cursor="+from, ""))
			for _, e := range page.Data {
				if e.Actor.Kind == "system" {
					assigned = append(assigned, e.Subject.ID)
				}
			}
			from = page.Cursor
			return len(assigned) >= people
		})
		took := time.Since(started)
		t.Logf("%s: %d were assigned within %.1f s", cause.name, people, took.Seconds())
		if people >= 200 && took > 10*time.Second {
			t.Errorf("%s: it took %s", cause.name, took)
		}
		if !slices.Equal(assigned, waiting) {
			t.Errorf("%s: they were not assigned in the order in which they waited", cause.name)
		}
		clear(busy)
	}
}

// autoReplyFaults are the steps at which a process that sends an automatic reply is
// killed, with the number of replies that the customer gets. After the claim and before
// the provider has the reply, nobody knows the outcome. So no process sends the reply
// again.
var autoReplyFaults = []struct {
	point string
	sent  int
}{
	{"in-job", 0}, {"after-job", 1}, {"in-claim", 1}, {"after-claim", 0}, {"calling", 0}, {"taken", 1}, {"in-done", 1}, {"after-done", 1},
}

// TestAutoReplyOnce kills processes that send an automatic reply, at each step. Another
// process continues, and the customer never gets two replies.
func TestAutoReplyOnce(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, in deployment) {
		in.leave(t)
		repliesOnce(t, in)
	})
}

func repliesOnce(t *testing.T, in deployment) {
	dir := in.dir
	var ws, channel desk.ID
	withNode(t, dir, func(n *node) {
		ws, channel = n.workspace(t)
		utc, away := "UTC", "We are closed."
		_, err := n.app.SetPolicy(t.Context(), n.operator(t, ws), desk.ID{}, desk.PolicyInput{
			Hours: &desk.HoursInput{TimeZone: &utc}, AutoReply: &desk.AutoReplyInput{Away: &away},
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	for round := range *policyKills {
		for i, f := range autoReplyFaults {
			if in.database != "" && *policyKills == 1 && !strings.HasPrefix(f.point, "in-") { // with one round, PostgreSQL is killed only within transactions: the other steps are the same as with SQLite
				continue
			}
			number := fmt.Sprintf("90533%03d%02d77", round, i)
			child := startFault(t, faultCall{Dir: dir, Number: number, Key: channel.String(), Hears: f.point})
			child.wait(t)
			if s, _ := child.cmd.ProcessState.Sys().(syscall.WaitStatus); !s.Signaled() || s.Signal() != syscall.SIGKILL {
				t.Fatalf("%s: it was not killed: %s\n%s%s", f.point, child.cmd.ProcessState, child.stdout.String(), child.stderr.String())
			}
			withNode(t, dir, func(n *node) { n.goOn(t, ws) })
			if got := takenOf(t, dir, number); got != f.sent {
				t.Errorf("%s: the customer got %d replies, want %d", f.point, got, f.sent)
			}
		}
	}
}

// withNode runs a node with its background work for as long as do runs.
func withNode(t *testing.T, dir string, do func(*node)) {
	t.Helper()
	n, err := newNode(dir, sendFault{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { work.Run(ctx, work.Of(n.app), work.Keep{}, slog.New(slog.DiscardHandler)) })
	defer func() {
		stop()
		all.Wait()
		n.app.Close()
		if err := n.store.Close(); err != nil {
			t.Error(err)
		}
	}()
	do(n)
}

// goOn ends the leases of dead processes. It waits until all replies that these processes
// left behind are sent.
func (n *node) goOn(t *testing.T, ws desk.ID) {
	t.Helper()
	waitFor(t, "the automatic replies to be sent", func() bool {
		attempts, _, err := n.store.Attempts(t.Context(), ws, desk.Dispatching, nil, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range attempts {
			n.lapse(t, desk.Principal{Settings: &desk.Settings{Workspace: desk.Workspace{ID: ws}}}, at.Key)
		}
		// With a longest wait of zero, a job with a lease is too far in the future. So it
		// is due.
		if _, err := n.store.TakeAutoReply(t.Context(), ws, 0, 0); err != nil {
			t.Fatal(err)
		}
		due, err := n.store.AutoRepliesDue(t.Context(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return len(due) == 0
	})
}

// hearMain is the main function of a process that receives a message, answers
// automatically, and is killed.
func hearMain(call faultCall) int {
	n, err := newNode(call.Dir, sendFault{point: call.Hears, how: "kill"})
	if err != nil {
		panic(err)
	}
	p, err := n.authenticate()
	if err != nil {
		panic(err)
	}
	channel, _ := desk.ParseID(call.Key)
	ctx := context.Background()
	_, _ = n.app.Receive(ctx, p.Workspace(), channel, provider.InboundMessage{ExternalID: call.Number, Number: call.Number, Text: "Hello", At: desk.TimeOf(time.Now())})
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	work.Run(ctx, work.Of(n.app), work.Keep{}, slog.New(slog.DiscardHandler))
	return 0
}
