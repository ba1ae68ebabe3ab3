package e2e_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	attackStrength = flag.Float64("attack-strength", 0.05, "how strong the attacks of TestAttacks are: 1 is what once stopped a server; from 1 on it also judges what a neighbour waits. Long run: -attack-strength 2 -attack-for 20s -timeout 30m")
	attackFor      = flag.Duration("attack-for", time.Second, "how long TestAttacks measures a neighbour beside each attack, at least; see -attack-strength")
)

// How long a neighbour of an attacker may wait for each of its calls.
const (
	neighbourP99     = 250 * time.Millisecond
	neighbourSlowest = 2 * time.Second
)

// An attack is a load on a server, from one workspace or without any. begin starts the
// load and returns. The neighbour's waits are measured from the time before begin until
// stop is called.
type attack struct {
	name    string
	serve   []string          // flags of the server
	handles int               // the greatest number of file handles of the server; 0: the system's limit
	prepare func(a *attacked) // runs before the neighbour's waits are measured; nil: nothing
	begin   func(a *attacked) (stop func())
	beside  func(a *attacked) // checks something else while the attack runs; nil: nothing
}

// attacks are the attacks of TestAttacks, in order. Their counts are those for strength
// 1.
var attacks = []attack{
	{name: "sign_ins_with_long_e-mails", begin: func(a *attacked) func() {
		form := url.Values{"email": {"a@" + ideographs(60_000) + ".com"}, "password": {rightPassword}}.Encode()
		return a.read(a.of(4), "POST /sign-in HTTP/1.1\r\n"+formHeader+fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(form), form))
	}},
	{name: "owners_with_long_e-mails", begin: func(a *attacked) func() {
		body := `{"external_id":"x","owner":"a@` + ideographs(25_000) + `.com"}`
		return a.read(a.of(4), fmt.Sprintf("POST /v1/contacts HTTP/1.1\r\nHost: parley\r\nConnection: close\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", a.key, len(body), body))
	}},
	{name: "changes_of_a_password", prepare: func(a *attacked) {
		a.mallory.mustPost(a.t, 303, "/me/password", url.Values{"member": {a.mallory.id}, "password": {rightPassword}})
	}, begin: func(a *attacked) func() {
		// The old password is wrong, so the session stays.
		form := url.Values{"member": {a.mallory.id}, "old": {"another " + rightPassword}, "password": {"a new " + rightPassword}}.Encode()
		return a.read(a.of(400), "POST /me/password HTTP/1.1\r\n"+formHeader+fmt.Sprintf("Cookie: %s\r\nContent-Length: %d\r\n\r\n%s", a.mallory.cookie(a.t), len(form), form))
	}},
	{name: "files_without_end", serve: []string{"--media-per-workspace", strconv.Itoa(mostFiles)}, begin: fills},
	{name: "removal_of_a_member", prepare: func(a *attacked) {
		a.leaver = a.member("Leaver", "agent")
		c := a.client(a.t, a.key, 1)
		rows := make([]string, 1000)
		for batch := range max(1, a.of(100_000)/len(rows)) {
			for n := range rows {
				rows[n] = fmt.Sprintf(`{"external_id":"%d-%d","name":"Somebody","owner":"%s"}`, batch, n, a.leaver)
			}
			c.mustBatch(a.t, rows)
		}
	}, begin: func(a *attacked) func() {
		ended := make(chan result, 1)
		go func() {
			ended <- parley(a.t, nil, append([]string{"member", "remove", a.leaver, "--data", a.dir}, a.flags...)...)
		}()
		return func() {
			if r := <-ended; r.code != 0 {
				a.t.Errorf("member remove: exit %d: %s", r.code, r.stderr)
			}
		}
	}},
	{name: "slow_forms", begin: func(a *attacked) func() {
		return a.trickle(a.of(400), a.formOf("POST /inbox/01900000-0000-7000-8000-000000000000/reply", ""))
	}},
	{name: "slow_files_in_forms", begin: func(a *attacked) func() {
		return a.trickle(a.of(400), a.formOf("POST /inbox/01900000-0000-7000-8000-000000000000/reply", a.mallory.id))
	}},
	{name: "slow_uploads", begin: func(a *attacked) func() {
		return a.trickle(a.of(400), "POST /v1/media?name=a.png HTTP/1.1\r\nHost: parley\r\nAuthorization: Bearer "+a.key+"\r\nContent-Type: image/png\r\nContent-Length: 1000000\r\n\r\n")
	}},
	{name: "unread_lists", begin: func(a *attacked) func() {
		a.longAttributes()
		return a.unread(a.of(1000), "GET /v1/attributes HTTP/1.1\r\nHost: parley\r\nAuthorization: Bearer "+a.key+"\r\n\r\n")
	}},
	{name: "unread_answers_to_assistants", begin: func(a *attacked) func() {
		a.longAttributes()
		const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_attributes","arguments":{}}}`
		return a.unread(a.of(400), fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: parley\r\nAccept: application/json, text/event-stream\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", a.key, len(call), call))
	}},
	{name: "pings", serve: []string{"--webhook-allow", "127.0.0.0/8"}, handles: 1024, begin: pings},
	{name: "streams_of_events", prepare: func(a *attacked) {
		for range a.of(1024) / ofKey {
			a.keys = append(a.keys, a.must("key", "create", "--workspace", a.workspace, "--name", "stream", "--permissions", "all")["key"].(string))
		}
	}, begin: func(a *attacked) func() {
		var stops []func()
		for _, key := range a.keys {
			stops = append(stops, a.read(ofKey, "GET /v1/events?cursor=latest HTTP/1.1\r\nHost: parley\r\nAccept: text/event-stream\r\nAuthorization: Bearer "+key+"\r\n\r\n"))
		}
		return func() {
			for _, stop := range stops {
				stop()
			}
		}
	}, beside: func(a *attacked) {
		answer := a.stream(a.t, a.neighbour.key, "?cursor=latest")
		_ = answer.Body.Close()
	}},
}

// ofKey is the number of streams that each key has in streams_of_events.
const ofKey = 16

// formHeader is the beginning of a browser's form request, after its first line.
const formHeader = "Host: parley\r\nConnection: close\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/x-www-form-urlencoded\r\n"

// ideographs returns n Chinese characters. As many of them as possible are different.
func ideographs(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteRune(rune(0x4e00 + i%20_000))
	}
	return b.String()
}

// mostFiles is the limit for the bytes of all files in the attacker's workspace.
const mostFiles = 100_000_000

// fills uploads different files of 20 MB until it is stopped. The workspace stores them
// only up to its limit.
func fills(a *attacked) (stop func()) {
	const size = 20_000_000
	var files atomic.Int64
	end := a.connections(a.of(12), 64<<10, fmt.Sprintf("POST /v1/media?name=a.txt HTTP/1.1\r\nHost: parley\r\nConnection: close\r\nAuthorization: Bearer %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n", a.key, size),
		func(_ context.Context, c net.Conn) {
			block := fmt.Appendf(nil, "%010d", files.Add(1))
			block = append(block, bytes.Repeat([]byte{'x'}, 10_000-len(block))...)
			for range size / len(block) {
				if _, err := c.Write(block); err != nil {
					return
				}
			}
			_, _ = io.Copy(io.Discard, c)
		})
	return func() {
		end()
		found := filesHave.FindStringSubmatch(a.metrics(a.t))
		if found == nil {
			a.t.Error("no metric of files")
			return
		}
		if have, err := strconv.ParseFloat(found[1], 64); err != nil || have > mostFiles {
			a.t.Errorf("the files have %s bytes, want at most %d", found[1], mostFiles)
		}
	}
}

var filesHave = regexp.MustCompile(`(?m)^parley_media_bytes (.*)$`)

// pings starts clients that ping an endpoint. The endpoint never answers, and each client
// leaves after a tenth of a second. At strength 2 there are about 500 pings a second.
func pings(a *attacked) (stop func()) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the test never accepts its connections
	if err != nil {
		a.t.Fatal(err)
	}
	webhook := a.webhook(a.t, a.key, "http://"+silent.Addr().String())
	end := a.connections(a.of(50), 4<<10, "POST /v1/webhooks/"+webhook+"/ping HTTP/1.1\r\nHost: parley\r\nAuthorization: Bearer "+a.key+"\r\nContent-Length: 0\r\n\r\n",
		func(ctx context.Context, _ net.Conn) {
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		})
	return func() {
		end()
		_ = silent.Close()
	}
}

// TestAttacks: during each attack, a neighbour in another workspace gets responses, and
// the server does not exceed its memory. From strength 1, each attack has a new server and is
// alone on the machine, and the test also checks the neighbour's waits. Otherwise, attacks on a
// server with the same flags come one after the other on one server.
func TestAttacks(t *testing.T) {
	beside := func(t *testing.T) {
		t.Helper()
		if *attackStrength < 1 {
			t.Parallel()
		}
	}
	beside(t)
	for n, together := range attacksTogether() {
		t.Run(fmt.Sprintf("server %d", n+1), func(t *testing.T) {
			beside(t)
			eachStore(t, func(t *testing.T, dir string, flags []string) {
				a := newAttacked(t, dir, flags, together)
				for _, attack := range together {
					t.Run(attack.name, func(t *testing.T) { a.run(t, attack) })
				}
			})
		})
	}
}

// attacksTogether returns the attacks that one server gets, one after the other.
func attacksTogether() (groups [][]attack) {
	for _, next := range attacks {
		i := slices.IndexFunc(groups, func(g []attack) bool {
			return *attackStrength < 1 && g[0].handles == next.handles && slices.Equal(g[0].serve, next.serve)
		})
		if i < 0 {
			groups = append(groups, []attack{next})
		} else {
			groups[i] = append(groups[i], next)
		}
	}
	return groups
}

// An attacked is a server with two workspaces: the attacker's, which is embedded, and a
// neighbour's.
type attacked struct {
	*team
	*server
	mallory   signedIn // a member of the attacker's workspace
	neighbour *team
	members   []signedIn // members of the neighbour's workspace, each with a password
	signIns   int        // of these members
	list      string     // the path of a list of the neighbour, of 31 KB
	batch     string     // a body of the neighbour, of 22 KB
	leaver    string     // the member of the attacker's workspace who is removed
	keys      []string   // further keys of the attacker's workspace
	long      bool       // the attacker's attributes are long
}

// A signedIn is a member with a session.
type signedIn struct {
	*visitor
	name, id string
}

// signsIn adds a member, who signs in by a link.
func (m *team) signsIn(name string) signedIn {
	m.t.Helper()
	id := m.member(name, "admin")
	return signedIn{m.visitor(name, 0), name, id}
}

// cookie returns the header with the member's session.
func (s signedIn) cookie(t testing.TB) string {
	t.Helper()
	u, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	var pairs []string
	for _, c := range s.http.Jar.Cookies(u) {
		pairs = append(pairs, c.Name+"="+c.Value)
	}
	return strings.Join(pairs, "; ")
}

// The calls of a neighbour.
const (
	signInEvery    = 200 * time.Millisecond
	triesOfMember  = 2  // so few that sign-ins are not limited, even if two e-mails share a place of the throttle
	triesOfAddress = 15 // for the same reason
	leastCalls     = 3
)

func newAttacked(t *testing.T, dir string, flags []string, together []attack) *attacked {
	t.Helper()
	attack := together[0]
	workspace := func(name string) *team {
		m := &team{t: t, dir: dir, flags: flags}
		m.workspace = m.must("workspace", "create", "--name", name)["workspace_id"].(string)
		m.key = m.must("key", "create", "--workspace", m.workspace, "--name", "test", "--permissions", "all")["key"].(string)
		return m
	}
	a := &attacked{team: workspace("Attacker"), neighbour: workspace("Neighbour")}
	a.server = serveHandles(t, attack.handles, append(append([]string{"--data", dir}, flags...), attack.serve...)...)
	a.nodes, a.neighbour.nodes = []*server{a.server}, []*server{a.server}
	a.mallory = a.signsIn("Mallory")
	c := a.client(t, a.neighbour.key, 4)
	var rows []string
	for n := range 20 {
		rows = append(rows, fmt.Sprintf(`{"external_id":"n%d","name":"Neighbour %[1]d","note":"%s"}`, n, strings.Repeat("n", 1000)))
	}
	a.batch = upserts(rows)
	c.mustBatch(t, rows)
	size := len(c.must(t, 200, "GET", "/contacts?limit=20", "")) / 20
	a.list = fmt.Sprintf("/contacts?limit=%d", 31_000/size)
	c.mustBatch(t, []string{`{"external_id":"m0","note":"` + strings.Repeat("n", 1000) + `"}`, `{"external_id":"written"}`})
	return a
}

// serveHandles is like serve, but limits the file handles of the server. 0 means the
// limit of this process.
func serveHandles(t testing.TB, handles int, args ...string) *server {
	t.Helper()
	if handles == 0 {
		return serveWith(t, nil, args...)
	}
	limited := append([]string{"-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, handles), binary, "serve", "--listen", "127.0.0.1:0"}, args...)
	s := &server{process: launchProgram(t, "sh", nil, limited...)}
	s.url = s.address(t)
	waitFor(t, "/healthz", func() bool { return s.status(t, "/healthz") == http.StatusOK })
	return s
}

// moreMembers adds the members who sign in during the next attack. On a slow machine, it takes
// longer than attackFor.
func (a *attacked) moreMembers() {
	for len(a.members)*triesOfMember < a.signIns+2*int(*attackFor/signInEvery)+leastCalls {
		m := a.neighbour.signsIn(fmt.Sprintf("Neighbour%d", len(a.members)))
		m.mustPost(a.t, 303, "/me/password", url.Values{"member": {m.id}, "password": {rightPassword}})
		a.members = append(a.members, m)
	}
}

// of is a method that scales a count to the chosen strength. The result is at least 1.
func (a *attacked) of(count int) int { return max(1, int(float64(count)**attackStrength)) }

// run makes the attack, and measures the neighbour's waits meanwhile.
func (a *attacked) run(t *testing.T, attack attack) {
	a.t, a.neighbour.t = t, t
	a.moreMembers()
	if attack.prepare != nil {
		attack.prepare(a)
	}
	c := a.client(t, a.neighbour.key, 4)
	id := contactOf(t, c.must(t, 200, "POST", "/contacts", `{"external_id":"written"}`)).ID
	calls := []struct {
		name  string
		every time.Duration
		call  func(n int) error
		took  []time.Duration
	}{
		{name: "write", call: func(n int) error {
			_, err := c.expect("PATCH", "/contacts/"+id, fmt.Sprintf(`{"name":"%d"}`, n), 200)
			return err
		}},
		{name: "batch", call: func(int) error {
			_, err := c.expect("POST", "/contacts/batch", a.batch, 200)
			return err
		}},
		{name: "list", call: func(int) error {
			_, err := c.expect("GET", a.list, "", 200)
			return err
		}},
		{name: "sign-in", every: signInEvery, call: func(int) error { return a.signIn() }},
	}
	over := make(chan struct{})
	var wg sync.WaitGroup
	for i := range calls {
		one := &calls[i]
		wg.Go(func() {
			for n := 0; ; n++ {
				begun := time.Now()
				if err := one.call(n); err != nil {
					t.Errorf("%s %d, after %v: %v", one.name, n, time.Since(begun), err)
				}
				took := time.Since(begun)
				one.took = append(one.took, took)
				if len(one.took) >= leastCalls {
					select {
					case <-over:
						return
					default:
					}
				}
				select {
				case <-over:
				case <-time.After(max(20*time.Millisecond, one.every-took)):
				}
			}
		})
	}
	before, used := a.peak(t), a.cpu(t)
	begun := time.Now()
	stop := attack.begin(a)
	at := time.Now()
	if attack.beside != nil {
		attack.beside(a)
	}
	<-time.After(*attackFor - time.Since(at))
	stop()
	close(over)
	wg.Wait()
	peak := a.peak(t)
	t.Logf("strength %v for %v (begun in %v): %d MB at most, %d before; %v of processor time", *attackStrength, time.Since(begun).Round(time.Millisecond), at.Sub(begun).Round(time.Millisecond), peak>>20, before>>20, a.cpu(t)-used)
	if peak > attackMemory {
		t.Errorf("%d MB of memory, want at most %d", peak>>20, attackMemory>>20)
	}
	for _, one := range calls {
		p99, slowest := percentile(one.took, 99), percentile(one.took, 100)
		t.Logf("a neighbour's %-7s %4d times: p50 %v, p99 %v, max %v", one.name, len(one.took), percentile(one.took, 50).Round(time.Microsecond), p99.Round(time.Microsecond), slowest.Round(time.Microsecond))
		if *attackStrength >= 1 && (p99 > neighbourP99 || slowest > neighbourSlowest) { // times prove nothing if other tests run at the same time
			t.Errorf("a neighbour's %s: p99 %v, want at most %v; max %v, want at most %v", one.name, p99, neighbourP99, slowest, neighbourSlowest)
		}
	}
}

// cpu returns the processor time that a process has used. It returns 0 if the system does
// not report it.
func (p *process) cpu(t testing.TB) time.Duration {
	t.Helper()
	return cpuOf(t, p.cmd.Process.Pid, false)
}

// cpuOf is the processor time that a process has used, or also its ended children.
func cpuOf(t testing.TB, pid int, children bool) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0 // it has ended, or the system has no such file
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	last := 13 // in user mode and in system mode
	if children {
		last = 15
	}
	if len(fields) < last {
		t.Fatalf("%s", stat)
	}
	var ticks time.Duration
	for _, field := range fields[11:last] {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		ticks += time.Duration(n)
	}
	return ticks * 10 * time.Millisecond
}

// signIn signs in as one of the neighbour's members. It uses one of many addresses, so
// that sign-ins are not limited.
func (a *attacked) signIn() error {
	n := a.signIns
	a.signIns++
	m := a.members[n/triesOfMember%len(a.members)]
	from := &net.TCPAddr{IP: net.IPv4(127, 1, byte(n/triesOfAddress/250), byte(1+n/triesOfAddress%250))}
	transport := &http.Transport{DialContext: (&net.Dialer{LocalAddr: from}).DialContext}
	defer transport.CloseIdleConnections()
	v := *m.visitor
	v.http = &http.Client{Transport: transport, CheckRedirect: m.http.CheckRedirect, Timeout: patience}
	r, err := v.send("/sign-in", url.Values{"email": {emailOf(m.name)}, "password": {rightPassword}})
	if err == nil && r.status != http.StatusSeeOther {
		err = fmt.Errorf("POST /sign-in answers %d: %.500s", r.status, r.body)
	}
	return err
}

// longAttributes makes attributes whose list has 4.2 MB.
func (a *attacked) longAttributes() {
	if a.long {
		return
	}
	a.long = true
	c := a.client(a.t, a.key, 1)
	var options []string
	for n := range 500 {
		options = append(options, fmt.Sprintf(`"%03d%s"`, n, strings.Repeat("\U0001F600", 252)))
	}
	for n := range 8 {
		c.must(a.t, 201, "POST", "/attributes", fmt.Sprintf(`{"key":"s%d","type":"select","options":[%s]}`, n, strings.Join(options, ",")))
	}
}

// formOf returns the beginning of a request with a form of the attacker's member: the
// fields and the beginning of a file. If member is "", it ends within a field.
func (a *attacked) formOf(request, member string) string {
	body := "--x\r\nContent-Disposition: form-data; name=\"reply\"\r\n\r\n"
	if member != "" {
		body = "--x\r\nContent-Disposition: form-data; name=\"member\"\r\n\r\n" + member + "\r\n--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.png\"\r\nContent-Type: image/png\r\n\r\n"
	}
	return request + " HTTP/1.1\r\nHost: parley\r\nSec-Fetch-Site: same-origin\r\nCookie: " + a.mallory.cookie(a.t) + "\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 1000000\r\n\r\n" + body
}

// trickle makes requests on n connections. Every 9 s it sends one more byte of each body.
func (a *attacked) trickle(n int, request string) (stop func()) {
	return a.connections(n, 4096, request, func(ctx context.Context, c net.Conn) {
		tick := time.NewTicker(9 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if _, err := io.WriteString(c, "x"); err != nil {
				return
			}
		}
	})
}

// unreadFor is the average time for which a connection stays open without being read.
// Then another one replaces it.
const unreadFor = 5 * time.Second

// unread makes requests on n connections, without reading the responses.
func (a *attacked) unread(n int, request string) (stop func()) {
	return a.connections(n, 4096, request, func(ctx context.Context, _ net.Conn) {
		select {
		case <-ctx.Done():
		case <-time.After(unreadFor/2 + rand.N(unreadFor)):
		}
	})
}

// read makes requests on n connections, and reads the responses to the end.
func (a *attacked) read(n int, request string) (stop func()) {
	return a.connections(n, 64<<10, request, func(_ context.Context, c net.Conn) { _, _ = io.Copy(io.Discard, c) })
}

// connections keeps n connections busy until stop is called. A connection makes a
// request, and is passed to use. Some time after use returns, another connection replaces
// it. The function returns when each connection has made its first request. It opens at
// most a thousand connections a second: more would slow down the machine, on which this
// test also runs.
func (a *attacked) connections(n, buffer int, request string, use func(context.Context, net.Conn)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	pause := max(100*time.Millisecond, time.Duration(n)*time.Millisecond)
	var all, first sync.WaitGroup
	one := func() net.Conn {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", strings.TrimPrefix(a.url, "http://"))
		if err != nil {
			return nil
		}
		context.AfterFunc(ctx, func() { _ = c.Close() })
		if err := c.(*net.TCPConn).SetReadBuffer(buffer); err != nil {
			a.t.Error(err)
		}
		_, _ = io.WriteString(c, request) // the server may close the connection to defend itself
		return c
	}
	first.Add(n)
	for range n {
		all.Go(func() {
			c := one()
			first.Done()
			for ctx.Err() == nil {
				if c != nil {
					use(ctx, c)
					_ = c.Close()
				}
				select {
				case <-ctx.Done():
				case <-time.After(pause):
				}
				c = one()
			}
		})
	}
	first.Wait()
	return func() {
		cancel()
		all.Wait()
	}
}
