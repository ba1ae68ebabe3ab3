//go:build unix

package e2e_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/store/postgres/pgtest"
	"parley/whatsapp/whatsapptest"
)

var (
	releaseBefore = flag.String("release-before", "", "the binary from which TestRollingUpgrade starts; by default it is built from the history, which a shallow clone lacks")
	upgradeWrites = flag.Int("upgrade-writes", 200, "how many writes TestRollingUpgrade waits for between two replacements of its servers. Long run: -upgrade-writes 3000 -timeout 30m")
)

// beforeCommit is the commit of the previous release. Its servers are replaced one by
// one.
const beforeCommit = "fd77ae3"

// binaryBefore returns the binary of the previous release. A shallow clone may lack the
// commit of that release. Then it returns the binary under test, so that servers are
// replaced by the same release.
func binaryBefore(t *testing.T) string {
	t.Helper()
	if *releaseBefore != "" {
		return *releaseBefore
	}
	dir := t.TempDir()
	archive, source := filepath.Join(dir, "source.tar"), filepath.Join(dir, "source")
	if out, err := exec.Command("git", "-C", "..", "archive", "--output", archive, beforeCommit).CombinedOutput(); err != nil {
		t.Logf("the history has no %s, so servers are replaced by servers of the same release; -release-before names a binary: %s", beforeCommit, out)
		return binary
	}
	built := filepath.Join(dir, "parley-before")
	if err := os.Mkdir(source, 0o700); err != nil {
		t.Fatal(err)
	}
	// With -trimpath, the build cache serves another directory, too.
	for _, args := range [][]string{{"tar", "-xf", archive, "-C", source}, {"go", "build", "-C", source, "-trimpath", "-o", built, "./cmd/parley"}} {
		c := exec.Command(args[0], args[1:]...)
		c.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	return built
}

// An upgrade is an installation with PostgreSQL whose servers are replaced.
type upgrade struct {
	t         *testing.T
	d         deployment
	program   string // the binary that runs commands
	ws, key   string
	sim       *whatsapptest.Simulator
	callbacks string // the path of the callbacks

	nodes   atomic.Pointer[[]*server] // the servers that a load balancer would use
	clients atomic.Pointer[[]*client] // a client for each of these servers
	acked   atomic.Int64
	over    atomic.Bool
	retried atomic.Int64
	gone    int         // contacts that were deleted or merged
	erased  func() bool // tells whether nothing is left of them
}

func (u *upgrade) command(args ...string) (answer map[string]any) {
	u.t.Helper()
	r := runProgram(u.t, u.program, []string{"WA_TOKEN=" + waToken, "WA_SECRET=" + waAppSecret, "WA_VERIFY=" + waVerify},
		append(args, "--data", u.d.dir, "--database", u.d.database, "--json")...)
	if err := json.Unmarshal([]byte(r.stdout), &answer); r.code != 0 || err != nil {
		u.t.Fatalf("parley %s: exit %d, %v\n%s%s", strings.Join(args, " "), r.code, err, r.stdout, r.stderr)
	}
	return answer
}

// serve starts a server in place of another one. The other server stops while it still
// gets requests. If place is -1, the new server replaces none.
func (u *upgrade) serve(program string, place int) *server {
	u.t.Helper()
	s := serveProgram(u.t, program, nil, "--data", u.d.dir, "--database", u.d.database)
	var nodes []*server
	if list := u.nodes.Load(); list != nil {
		nodes = slices.Clone(*list)
	}
	var out *server
	if place < 0 {
		nodes = append(nodes, s)
	} else {
		out, nodes[place] = nodes[place], s
	}
	var clients []*client
	for _, n := range nodes {
		clients = append(clients, n.client(u.t, u.key, 16))
	}
	u.sim.SetWebhook(s.url+u.callbacks, waVerify)
	if out != nil {
		u.stop(out)
	}
	u.nodes.Store(&nodes)
	u.clients.Store(&clients)
	return s
}

// stop stops a server. The log of the server must have no error.
func (u *upgrade) stop(s *server) {
	u.t.Helper()
	s.stop(u.t)
	for line := range strings.Lines(s.stderr.String()) {
		if strings.Contains(line, "level=ERROR") {
			u.t.Errorf("logged: %s", line)
		}
	}
}

// until makes a request to any server. It repeats the request until it gets a final
// response: a server that is stopping does not answer, or answers 503.
func (u *upgrade) until(rng *rand.Rand, method, path, body string, header ...string) (reply, error) {
	last := ""
	for start := time.Now(); time.Since(start) < 3*patience; <-time.After(5 * time.Millisecond) {
		list := *u.clients.Load()
		r, err := list[rng.IntN(len(list))].send(method, path, body, header...)
		switch {
		case err != nil:
			last = err.Error()
		case r.status == http.StatusServiceUnavailable || r.status == http.StatusTooManyRequests:
			last = string(r.body)
		case r.status >= 300:
			return r, fmt.Errorf("%s %s answers %d: %.500s", method, path, r.status, r.body)
		default:
			u.acked.Add(1)
			return r, nil
		}
		u.retried.Add(1)
	}
	return reply{}, fmt.Errorf("%s %s has no answer but %s", method, path, last)
}

// written waits until a certain number of further requests are answered.
func (u *upgrade) written() {
	u.t.Helper()
	from, seen, at := u.acked.Load(), u.acked.Load(), time.Now()
	for u.acked.Load() < from+int64(*upgradeWrites) && !u.t.Failed() {
		if n := u.acked.Load(); n != seen {
			seen, at = n, time.Now()
		} else if time.Since(at) > patience {
			u.t.Fatal("nothing is answered any more")
		}
		<-time.After(5 * time.Millisecond)
	}
}

func (u *upgrade) number(kind, w, n int) string { return fmt.Sprintf("90532%d%02d%05d", kind, w, n) }

// TestRollingUpgrade replaces two servers of the previous release, one after the other.
// Meanwhile clients write, send and repeat calls, people send messages, and the first new
// server sends a broadcast. No acknowledged write is lost. No contact or message exists
// twice. Passwords and sessions work at servers of both releases.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	const writers, senders, people = 6, 4, 2
	before, began := binaryBefore(t), time.Now()
	u := &upgrade{t: t, d: deployment{newDir(t), pgtest.Database(t)}, program: before}
	u.sim = whatsapptest.New(whatsapptest.Config{Token: waToken, AppSecret: waAppSecret, VerifyToken: waVerify, StatusDelay: 10 * time.Millisecond, Templates: templatesOf(1)})
	graph := httptest.NewServer(u.sim)
	t.Cleanup(func() {
		u.sim.Close()
		graph.Close()
	})
	u.ws = u.command("workspace", "create", "--name", "Harbour Books", "--country", "TR")["workspace_id"].(string)
	u.key = u.command("key", "create", "--workspace", u.ws, "--name", "test", "--permissions", "all")["key"].(string)
	for range 2 {
		u.serve(before, -1)
	}
	ids := u.sim.IDs()
	u.callbacks = "/hooks/whatsapp/" + u.command("channel", "add", "whatsapp", "--workspace", u.ws, "--phone-number-id", ids.PhoneNumberID, "--waba-id", ids.BusinessID,
		"--app-secret-env", "WA_SECRET", "--token-env", "WA_TOKEN", "--verify-token-env", "WA_VERIFY", "--graph-url", graph.URL)["channel_id"].(string)
	u.sim.SetWebhook((*u.nodes.Load())[1].url+u.callbacks, waVerify)
	if err := u.sim.VerifyWebhook(t.Context()); err != nil {
		t.Fatal(err)
	}
	team := u.newStaff()

	seed := newSeed(t)
	var notes [writers][]int      // the last acknowledged note of each contact
	var answers [senders][][]byte // the answers of each key
	var wrote [people]int         // the number of messages from each kind of person
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		together(writers+senders+people, func(w int) {
			rng := random(seed, uint64(w))
			for n := 0; !u.over.Load() && !t.Failed(); n++ {
				switch {
				case w < writers: // a new contact, or an update
					who := rng.IntN(n/2 + 1)
					if who >= len(notes[w]) {
						who = len(notes[w])
						notes[w] = append(notes[w], 0)
					}
					body := fmt.Sprintf(`{"external_id":"%d.%d","email":"%d.%d@example.com","note":"%d"}`, w, who, w, who, n+1)
					if _, err := u.until(rng, "POST", "/contacts", body); err != nil {
						t.Error(err)
						return
					}
					notes[w][who] = n + 1
				case w < writers+senders: // a send, by two callers at once
					s := w - writers
					var both [2]reply
					var errs [2]error
					a, b := random(seed, rng.Uint64()), random(seed, rng.Uint64())
					together(2, func(i int) {
						both[i], errs[i] = u.until([]*rand.Rand{a, b}[i], "POST", "/conversations/outbound", outbound("+"+u.number(1, s, n), "Ada"), "Idempotency-Key", fmt.Sprintf("%d.%d", s, n))
					})
					if errs[0] != nil || errs[1] != nil || !bytes.Equal(both[0].body, both[1].body) {
						t.Errorf("key %d.%d: %v, %v\n%s\n%s", s, n, errs[0], errs[1], both[0].body, both[1].body)
						return
					}
					answers[s] = append(answers[s], both[0].body)
				default:
					p := w - writers - senders
					if int64(wrote[p]) > u.acked.Load()/50 { // an accepted callback is processed later, and not too many may be left
						<-time.After(5 * time.Millisecond)
						n--
						continue
					}
					if u.sim.Inbound(whatsapptest.Inbound{From: u.number(2, p, n), Text: "Alo?"}).Wait() == 200 {
						wrote[p]++
					} else {
						t.Errorf("what %s wrote was not taken", u.number(2, p, n))
					}
				}
			}
		})
	}()

	u.written()
	u.serve(binary, 0) // the second server still has the previous release
	u.program = binary
	cast := u.casts((*u.nodes.Load())[0], (*u.nodes.Load())[1])
	u.written()
	team.mixed((*u.nodes.Load())[1], (*u.nodes.Load())[0])
	u.written()
	u.serve(binary, 1)
	u.written()
	u.over.Store(true)
	<-finished
	if t.Failed() {
		return
	}
	team.after()
	if err := u.sim.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}

	nodes, clients := *u.nodes.Load(), *u.clients.Load()
	since := time.Now()
	for left, at := -1.0, since; !u.erased(); <-time.After(200 * time.Millisecond) { // first the search takes in all that was written before
		if n := nodes[0].metric(t, "parley_search_behind") + nodes[1].metric(t, "parley_search_behind"); n != left {
			left, at = n, time.Now()
		} else if time.Since(at) > patience {
			t.Fatalf("something is left of whom the old server deleted; the search is %v behind\n%.4000s\n%.4000s", left, nodes[0].stderr.String(), nodes[1].stderr.String())
		}
	}
	t.Logf("nothing was left of whom the old server deleted after %v", time.Since(since))
	// All accepted callbacks are processed.
	heard := 0
	for p := range wrote {
		heard += wrote[p]
	}
	happened := func() map[string]int {
		subjects, counts := map[string]bool{}, map[string]int{}
		for _, e := range nodes[1].events(t, u.key, "oldest") {
			counts[e.Type]++
			if e.Type == "contact.created" || e.Type == "message.received" || e.Type == "message.sent" {
				if subjects[e.Type+e.Subject.ID] {
					t.Fatalf("%s of %s is there twice", e.Type, e.Subject.ID)
				}
				subjects[e.Type+e.Subject.ID] = true
			}
		}
		return counts
	}
	sent := 0
	for s := range answers {
		sent += len(answers[s])
	}
	for done, at := -1, time.Now(); done < heard+sent+len(cast); <-time.After(200 * time.Millisecond) { // on a busy machine, many callbacks may be left to process
		counts := happened()
		if n := counts["message.received"] + counts["message.read"]; n != done {
			done, at = n, time.Now()
		} else if time.Since(at) > patience {
			t.Fatalf("%d of %d messages of people are there, and %d of %d were read", counts["message.received"], heard, counts["message.read"], sent+len(cast))
		}
	}
	// Contacts.
	stored := map[string]string{}
	for _, one := range clients[0].contacts(t) {
		if one.ExternalID != "" {
			if _, twice := stored[one.ExternalID]; twice {
				t.Errorf("%s is there twice", one.ExternalID)
			}
			stored[one.ExternalID] = one.Note
		}
	}
	want := 0
	for w := range notes {
		want += len(notes[w])
		for who, note := range notes[w] {
			if got := stored[fmt.Sprintf("%d.%d", w, who)]; got != fmt.Sprint(note) {
				t.Errorf("%d.%d has the note %q, want %d", w, who, got, note)
			}
		}
	}
	t.Logf("%v: %d contacts are as they were answered", time.Since(began), want)
	// Each person got one message. Each key has one answer, which both servers return.
	got := map[string]int{}
	for _, s := range u.sim.Sends() {
		got[strings.TrimPrefix(s.To, "+")]++
	}
	sends := 0
	for s := range answers {
		sends += len(answers[s])
		for n, answer := range answers[s] {
			key, number := fmt.Sprintf("%d.%d", s, n), u.number(1, s, n)
			if got[number] != 1 {
				t.Errorf("%s was sent %d messages", number, got[number])
			}
			r, err := clients[n%2].send("POST", "/conversations/outbound", outbound("+"+number, "Ada"), "Idempotency-Key", key)
			if err != nil || !bytes.Equal(r.body, answer) {
				t.Errorf("key %s has another answer: %v\n%s\n%s", key, err, r.body, answer)
			}
		}
	}
	for _, number := range cast {
		if got[number] != 1 {
			t.Errorf("the broadcast sent %s %d messages", number, got[number])
		}
	}
	if n := len(u.sim.Sends()); n != sends+len(cast) {
		t.Errorf("the provider took %d messages of %d keys and %d rows", n, sends, len(cast))
	}
	for _, phase := range []string{"dispatching", "in_doubt"} {
		if list := nodes[0].want(t, 200, u.key, "GET", "/attempts?phase="+phase, ""); !strings.Contains(list, `"data":[]`) {
			t.Errorf("%s: %.500s", phase, list)
		}
	}
	// All contacts, and the feed.
	t.Logf("%v: %d sends are", time.Since(began), sends)
	total := len(clients[0].contacts(t))
	if total != want+sends+len(cast)+heard-1 {
		t.Errorf("%d contacts, want %d that were written, %d that were sent to, %d of the broadcast, of whom one was deleted, and %d who wrote", total, want, sends, len(cast), heard)
	}
	for kind, want := range map[string]int{"contact.created": total + u.gone, "message.received": heard, "message.sent": sends + len(cast)} {
		if got := happened()[kind]; got != want {
			t.Errorf("the feed has %s %d times, want %d", kind, got, want)
		}
	}
	for _, s := range nodes {
		u.stop(s)
	}
	t.Logf("%d contacts, %d sends, %d who wrote; %d requests came again elsewhere", want, sends, heard, u.retried.Load())
}

// casts sends a broadcast from a new server, with a key that the release before can't make, beside
// a server of that release, which gets the provider's reports and shows what was sent. It returns
// the numbers.
func (u *upgrade) casts(from, old *server) (numbers []string) {
	u.t.Helper()
	rows := make([]string, *upgradeWrites)
	for n := range rows {
		numbers = append(numbers, u.number(3, 0, n))
		rows[n] = "+" + numbers[n]
	}
	key := u.command("key", "create", "--workspace", u.ws, "--name", "broadcasts", "--permissions", "all")["key"].(string)
	for _, permissions := range []string{"broadcasts:read", "contacts:merge,contacts:read"} {
		u.command("key", "create", "--workspace", u.ws, "--name", permissions, "--permissions", permissions)
	}
	from.want(u.t, 201, key, "POST", "/webhooks", `{"url":"https://hooks.example.com/","types":["broadcast.*","conflict.*"],"enabled":false}`)
	u.sim.SetWebhook(old.url+u.callbacks, waVerify)
	c := from.client(u.t, key, 1)
	id := c.cast(u.t, greeting, "", rows...)
	c.must(u.t, 200, "POST", "/broadcasts/"+id+"/start", `{}`)
	if done := c.castUntil(u.t, id, "done", ""); done.count("sent")+done.count("delivered")+done.count("read") != len(rows) {
		u.t.Errorf("of %d people, the broadcast has %v", len(rows), done.Counts)
	}
	c.castDelivered(u.t, id)
	for _, path := range []string{"/events", "/attempts", "/webhooks", "/contacts", "/conversations", "/conversations?status=archived"} {
		old.want(u.t, 200, u.key, "GET", path, "")
	}
	list := decode[struct{ Data []struct{ ID string } }](u.t, []byte(old.want(u.t, 200, u.key, "GET", "/conversations?status=archived&limit=1", "")))
	if len(list.Data) != 1 || !strings.Contains(old.want(u.t, 200, u.key, "GET", "/conversations/"+list.Data[0].ID+"/messages", ""), `"read"`) {
		u.t.Errorf("the server of the release before does not show what the broadcast sent")
	}
	u.erases(c, old, id)
	u.sim.SetWebhook(from.url+u.callbacks, waVerify)
	return numbers
}

// erases lets a server of the release before delete somebody of a broadcast and somebody of whom
// another contact is a part. What only the new release knows of them is gone soon after, too: it looks
// every 30 seconds for changes that older servers make. c is a client of a new server.
func (u *upgrade) erases(c *client, old *server, broadcast string) {
	u.t.Helper()
	contact := func(mail string) string {
		return decode[struct{ Data struct{ ID string } }](u.t, c.must(u.t, 201, "POST", "/contacts", `{"email":"`+mail+`"}`)).Data.ID
	}
	into, from := contact("into@example.com"), contact("from@example.com")
	c.must(u.t, 200, "POST", "/contacts/"+into+"/merge", `{"from":"`+from+`"}`)
	row := c.castList(u.t, broadcast)[0]
	for _, id := range []string{into, row.Contact} {
		old.want(u.t, 204, u.key, "DELETE", "/contacts/"+id, "")
	}
	u.gone, u.erased = 3, func() bool {
		to := func(r castRow) bool { return r.ID == row.ID && r.To == nil }
		return slices.ContainsFunc(c.castList(u.t, broadcast), to) && !strings.Contains(string(c.must(u.t, 200, "GET", "/merges", "")), from)
	}
}

// A staff is the members of the workspace, with their browsers.
type staff struct {
	u      *upgrade
	nora   *visitor            // her session must not end during the test
	phones map[string]*visitor // the sessions of the other members
	ids    map[string]string
	other  string // a second workspace
}

const otherPassword = "another horse and battery"

func (u *upgrade) newStaff() *staff {
	u.t.Helper()
	f := &staff{u: u, phones: map[string]*visitor{}, ids: map[string]string{}}
	f.other = u.command("workspace", "create", "--name", "Harbour Toys")["workspace_id"].(string)
	for _, name := range []string{"nora", "mei", "tomas", "ana", "olga"} {
		f.ids[name] = u.command("member", "add", "--workspace", u.ws, "--name", name, "--email", emailOf(name), "--role", "admin")["member_id"].(string)
	}
	twin := u.command("member", "add", "--workspace", f.other, "--name", "ana", "--email", emailOf("ana"), "--role", "admin")["member_id"].(string)
	nodes := *u.nodes.Load()
	f.nora = f.byLink(u.ws, "nora", nodes[0])
	f.set(f.byLink(u.ws, "mei", nodes[0]), f.ids["mei"], "", rightPassword)
	f.set(f.byLink(u.ws, "ana", nodes[1]), f.ids["ana"], "", rightPassword)
	f.set(f.byLink(f.other, "ana", nodes[1]), twin, "", rightPassword)
	for name, n := range map[string]*server{"mei": nodes[1], "ana": nodes[0]} {
		f.phones[name] = f.signs(303, name, rightPassword, n)
	}
	return f
}

// byLink returns a browser in which a member has signed in by a link.
func (f *staff) byLink(ws, name string, at *server) *visitor {
	f.u.t.Helper()
	link, err := url.Parse(f.u.command("login-link", "--workspace", ws, "--member", emailOf(name))["url"].(string))
	if err != nil {
		f.u.t.Fatal(err)
	}
	v := newVisitor(f.u.t, at.url)
	v.mustPost(f.u.t, 303, link.Path, nil)
	return v
}

// signs signs in with a password.
func (f *staff) signs(status int, name, password string, at *server) *visitor {
	f.u.t.Helper()
	v := newVisitor(f.u.t, at.url)
	v.mustPost(f.u.t, status, "/sign-in", url.Values{"email": {emailOf(name)}, "password": {password}})
	return v
}

// set sets a password.
func (f *staff) set(v *visitor, member, old, password string) {
	f.u.t.Helper()
	v.mustPost(f.u.t, 303, "/me/password", url.Values{"member": {member}, "old": {old}, "password": {password}})
}

// hold checks whether a session is valid at servers: it must be as want says.
func (f *staff) hold(what string, v *visitor, want bool, at ...*server) {
	f.u.t.Helper()
	for i, n := range at {
		if v.at(n.url).out(f.u.t) == want {
			f.u.t.Errorf("%s: at server %d, the session holds: %v", what, i, !want)
		}
	}
}

// mixed runs while there are servers of both releases. Each e-mail is used for at most
// five sign-ins, because more are refused.
func (f *staff) mixed(old, fresh *server) {
	f.u.t.Helper()
	both := []*server{old, fresh}
	f.hold("begun at the release before", f.nora, true, both...)
	f.hold("by a password at the release before", f.phones["mei"], true, both...)

	// A member sets a password at a server of one release. It works at the other release,
	// and all other sessions of the member end.
	at := f.signs(303, "mei", rightPassword, fresh)
	f.hold("begun at this release", at, true, both...)
	f.set(at, f.ids["mei"], rightPassword, otherPassword)
	f.hold("from before the new password", f.phones["mei"], false, both...)
	f.hold("by the new password", at, true, both...)
	f.signs(422, "mei", rightPassword, old)
	f.phones["mei"] = f.signs(303, "mei", otherPassword, old)
	f.hold("by the new password, at the release before", f.phones["mei"], true, both...)

	at = f.byLink(f.u.ws, "olga", old)
	f.set(at, f.ids["olga"], "", rightPassword)
	f.hold("by a password of the release before", at, true, both...)
	f.phones["olga"] = f.signs(303, "olga", rightPassword, fresh)
	at = f.byLink(f.u.ws, "tomas", fresh)
	f.set(at, f.ids["tomas"], "", rightPassword)
	f.phones["tomas"] = f.signs(303, "tomas", rightPassword, old)

	// Members sign out everywhere: one at the previous release, one at the new one.
	for i, name := range []string{"olga", "tomas"} {
		one, two := f.byLink(f.u.ws, name, fresh), f.byLink(f.u.ws, name, old)
		one.at(both[i].url).mustPost(f.u.t, 303, "/me/sign-out", url.Values{"member": {f.ids[name]}})
		for _, v := range []*visitor{one, two, f.phones[name]} {
			f.hold("signed out everywhere", v, false, both...)
		}
		f.phones[name] = f.signs(303, name, rightPassword, both[1-i])
		f.hold("signed in again", f.phones[name], true, both...)
	}

	// A member has two workspaces. The hashes of the password are replaced by new ones,
	// which also work at the previous release.
	f.signs(303, "ana", rightPassword, fresh)
	v := f.signs(303, "ana", rightPassword, old)
	if page := v.mustGet(f.u.t, 200, "/choose"); !strings.Contains(page, "Harbour Books") || !strings.Contains(page, "Harbour Toys") {
		f.u.t.Errorf("ana may choose:\n%s", page)
	}
}

// after runs when no server of the previous release is left.
func (f *staff) after() {
	f.u.t.Helper()
	nodes := *f.u.nodes.Load()
	f.hold("from the beginning", f.nora, true, nodes...)
	for name, v := range f.phones {
		f.hold("of "+name, v, true, nodes...)
	}
	f.signs(303, "ana", rightPassword, nodes[1])
	f.signs(422, "nora", rightPassword, nodes[0]) // Nora has no password
}
