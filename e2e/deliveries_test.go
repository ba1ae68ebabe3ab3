package e2e_test

import (
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	deliveredEvents = flag.Int("delivered-events", 300, "how many events TestDeliveriesOfKilledServers and TestDeliveriesOfNodes deliver. Long run of TestDeliveriesOfNodes: -delivered-events 20000; of the other see -delivery-kills")
	deliveryKills   = flag.Int("delivery-kills", 1, "how often TestDeliveriesOfKilledServers kills its server, whose endpoint fails. Long run: -delivered-events 20000 -delivery-kills 20 -timeout 1h")
	rotatedEvents   = flag.Int("rotated-events", 200, "how many events TestRotation delivers around the rotation of a secret. Long run: -rotated-events 10000")
	hangingRounds   = flag.Int("hanging-rounds", 1, "how often TestHangingEndpoints measures deliveries with and without endpoints that hang. Long run: -hanging-rounds 15 -parallel 1")
)

// delivers are the flags of a server that may post to the tests' endpoints. The pauses
// between two attempts are short.
var delivers = []string{"--webhook-allow", "127.0.0.0/8", "--webhook-schedule", "50ms,100ms,200ms,400ms,500ms,1s,1s,1s,1s,1s,1s,1s"}

// onBothStores runs a test twice: on an installation with SQLite, and on one with
// PostgreSQL.
func onBothStores(t *testing.T, test func(*testing.T, deployment)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, deployment{dir: newDir(t)})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, newDeployment(t))
	})
}

// delivering starts a server of the installation.
func (d deployment) delivering(t testing.TB) *server {
	t.Helper()
	return serve(t, d.dir, append([]string{"--database", d.database}, delivers...)...)
}

// webhook adds a webhook that gets the events of new contacts.
func (s *server) webhook(t testing.TB, key, url string) (id string) {
	t.Helper()
	body := s.want(t, 201, key, "POST", "/webhooks", fmt.Sprintf(`{"url":"%s","types":["contact.created"]}`, url))
	return decode[struct{ Data struct{ ID string } }](t, []byte(body)).Data.ID
}

// created returns the ids of the events of new contacts, in the order of the feed.
func (s *server) created(t testing.TB, key string) (ids []string) {
	t.Helper()
	for _, e := range s.events(t, key, "oldest") {
		if e.Type == "contact.created" {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// wantSettled waits until no delivery is pending. None may have failed.
func (s *server) wantSettled(t testing.TB, key, webhook string) {
	t.Helper()
	list := func(status string) string {
		return s.want(t, 200, key, "GET", "/webhooks/"+webhook+"/deliveries?limit=1&status="+status, "")
	}
	const none = `{"data":[]}`
	waitFor(t, "all results to be stored", func() bool { return list("pending") == none })
	if failed := list("failed"); failed != none {
		t.Errorf("a delivery failed: %s", failed)
	}
}

// wantDelivered waits until n deliveries are stored as done. An endpoint has each of them a
// moment before.
func (s *server) wantDelivered(t testing.TB, key, webhook string, n int) {
	t.Helper()
	c := s.client(t, key, 1)
	waitFor(t, fmt.Sprint(n, " deliveries to be stored"), func() bool {
		done := 0
		c.eachPage(t, "/webhooks/"+webhook+"/deliveries?limit=200&status=delivered", func(body []byte) {
			done += len(decode[struct{ Data []struct{} }](t, body).Data)
		})
		return done == n
	})
}

// create makes contacts in batches. The servers may be killed meanwhile. If arrived is
// not nil, create pauses while too many events have not arrived yet.
func (l *loadedFeed) create(first, n int, arrived func() int) {
	const batch, ahead = 20, 500
	for from := first; from < first+n; from += batch {
		for arrived != nil && arrived() < from-ahead && l.t.Context().Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
		var rows []string
		for i := from; i < min(from+batch, first+n); i++ {
			rows = append(rows, fmt.Sprintf(`{"external_id":"%d"}`, i))
		}
		if status, answer := l.call(from/batch, "POST", "/contacts/batch", upserts(rows)); status != http.StatusOK && l.t.Context().Err() == nil {
			l.t.Errorf("a batch answers %d: %s", status, answer)
		}
	}
}

// A sink is an endpoint. It records which events it has accepted, and when.
type sink struct {
	url string

	mu       sync.Mutex
	rng      *rand.Rand // if it is not nil, three of ten attempts fail
	flying   int        // the number of attempts without a response
	attempts int
	tries    map[string]int // by event
	accepted map[string][]acceptance
	killed   []time.Time          // the times at which servers were killed
	last     map[string]time.Time // of an acceptance, by the request's path and query
}

// An acceptance is a response with status 204.
type acceptance struct {
	at     time.Time
	killed int // the number of servers that had been killed before
}

func newSink(t *testing.T) *sink {
	t.Helper()
	s := &sink{tries: map[string]int{}, accepted: map[string][]acceptance{}, last: map[string]time.Time{}}
	listener := httptest.NewServer(s)
	t.Cleanup(listener.Close)
	s.url = listener.URL + "/in"
	return s
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.fly(1)
	defer s.fly(-1)
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return // the server was killed
	}
	fault, pause := s.take(r.Header.Get("webhook-id"))
	select {
	case <-time.After(pause):
	case <-r.Context().Done():
	}
	switch fault {
	case accepts:
		s.mu.Lock()
		s.last[r.RequestURI] = time.Now()
		s.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	case refuses:
		http.Error(w, "try again", http.StatusInternalServerError)
	case resets:
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
		}
	}
}

func (s *sink) fly(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flying += n
}

// The results of an attempt at a sink.
const (
	accepts = iota
	refuses
	resets
)

// take returns the result of an attempt, and the pause before it. The sixth attempt of an
// event is always accepted.
func (s *sink) take(event string) (fault int, pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts++
	s.tries[event]++
	if s.rng != nil && s.tries[event] < 6 {
		// A few attempts hang, but only in long runs: an attempt that hangs for longer
		// than a server waits occupies a place for 15 s. Most other attempts end sooner.
		if s.attempts%500 == 0 && *deliveryKills > 3 {
			return resets, time.Minute
		}
		switch s.rng.IntN(10) {
		case 0:
			return refuses, 0
		case 1:
			return resets, 0
		case 2:
			return resets, time.Duration(s.rng.IntN(200)) * time.Millisecond
		}
	}
	s.accepted[event] = append(s.accepted[event], acceptance{time.Now(), len(s.killed)})
	return accepts, 0
}

// count returns the number of accepted events.
func (s *sink) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.accepted)
}

// wait waits until n events are accepted. It may wait for long in all, but not between
// one event and the next.
func (s *sink) wait(t testing.TB, n int) {
	t.Helper()
	for have, since := s.count(), time.Now(); have < n; time.Sleep(5 * time.Millisecond) {
		if now := s.count(); now > have {
			have, since = now, time.Now()
		}
		if time.Since(since) > 3*patience {
			t.Fatalf("%d events of %d have arrived, and no other since %v", have, n, since)
		}
	}
}

// kill kills a server, and waits until all attempts of the server have ended.
func (s *sink) kill(t testing.TB, p *server) {
	t.Helper()
	at := time.Now()
	p.kill()
	waitFor(t, "the end of the attempts of a killed server", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.flying == 0
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killed = append(s.killed, at)
}

// want compares the accepted events with the given events of the feed. It returns how
// many events came twice. An event may come twice only if a server was killed in between.
func (s *sink) want(t testing.TB, ids []string) (twice int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	missing, most, longest := 0, 0, time.Duration(0)
	ofKill := map[int]int{}
	for _, id := range ids {
		list := s.accepted[id]
		if len(list) == 0 {
			missing++
			continue
		}
		for i, again := range list[1:] {
			before := list[i]
			if before.killed == again.killed {
				t.Errorf("%s came again after %v, and no server was killed", id, again.at.Sub(before.at))
				continue
			}
			twice++
			ofKill[before.killed]++
			most = max(most, ofKill[before.killed])
			longest = max(longest, s.killed[before.killed].Sub(before.at))
		}
	}
	if missing > 0 || len(s.accepted) != len(ids) {
		t.Errorf("%d events of %d are missing; %d different ones arrived", missing, len(ids), len(s.accepted))
	}
	t.Logf("%d events, %d attempts, %d kills; %d came twice, of a kill at most %d, accepted up to %v before it",
		len(ids), s.attempts, len(s.killed), twice, most, longest)
	if *deliveryKills > 3 && longest > 2*time.Second { // one second, and another one for a busy machine
		t.Errorf("what was accepted %v before a kill came again", longest)
	}
	return twice
}

// TestDeliveriesOfKilledServers: an endpoint fails three of ten attempts, and the server
// is killed again and again. All events are accepted in the end. An event may come twice
// only if its attempt was running at a kill, or had been answered just before.
func TestDeliveriesOfKilledServers(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, d deployment) {
		seed := newSeed(t)
		s, rng := newSink(t), random(seed, 1)
		s.rng = random(seed, 0)
		_, key := d.workspace(t)
		l := &loadedFeed{t: t, key: key, nodes: []*server{d.delivering(t)}}
		webhook := l.nodes[0].webhook(t, key, s.url)
		var writing sync.WaitGroup
		writing.Go(func() { l.create(0, *deliveredEvents, s.count) })
		for kill := range *deliveryKills {
			left := *deliveredEvents - s.count()
			s.wait(t, s.count()+1+rng.IntN(1+left/(*deliveryKills-kill+1)))
			s.kill(t, l.nodes[0])
			next := d.delivering(t)
			l.mu.Lock()
			l.nodes[0] = next
			l.mu.Unlock()
		}
		s.wait(t, *deliveredEvents)
		writing.Wait()
		l.nodes[0].wantSettled(t, key, webhook)
		s.want(t, l.nodes[0].created(t, key))
	})
}

// TestDeliveriesOfNodes: one of three servers makes the deliveries, and each event
// arrives once. If this server stops, another one goes on, and no event arrives twice. If
// it is killed, another one goes on soon.
func TestDeliveriesOfNodes(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	s := newSink(t)
	_, key := d.workspace(t)
	l := &loadedFeed{t: t, key: key, nodes: []*server{d.delivering(t), d.delivering(t), d.delivering(t)}}
	webhook := l.nodes[0].webhook(t, key, s.url)
	// serving returns the index of the server that makes the attempts. There is only one,
	// because each server that made attempts before has been stopped.
	serving := func() (n int) {
		t.Helper()
		waitFor(t, "one server that makes attempts", func() bool {
			n = slices.IndexFunc(l.nodes, func(s *server) bool { return s.hasDelivered(t) })
			return n >= 0
		})
		return n
	}
	replace := func(n int) {
		next := d.delivering(t)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.nodes[n] = next
	}
	half, few := *deliveredEvents/2, *deliveredEvents/10
	// around writes half of the events. While the server delivers them, around calls end
	// to stop the server. The last few events are written after that.
	around := func(first int, end func(n int)) (took time.Duration) {
		t.Helper()
		var writing sync.WaitGroup
		writing.Go(func() { l.create(first, half-few, s.count) })
		s.wait(t, first+half/3)
		n := serving()
		end(n)
		ended, before := time.Now(), s.count()
		writing.Go(func() { l.create(first+half-few, few, s.count) })
		s.wait(t, before+1)
		took = time.Since(ended)
		replace(n)
		s.wait(t, first+half)
		writing.Wait()
		return took
	}

	around(0, func(n int) { l.nodes[n].stop(t) })
	if twice := s.want(t, l.nodes[0].created(t, key)); twice > 0 {
		t.Errorf("a server has stopped, and %d events came twice", twice)
	}
	took := around(half, func(n int) { s.kill(t, l.nodes[n]) })
	l.nodes[0].wantSettled(t, key, webhook)
	s.want(t, l.nodes[0].created(t, key))
	t.Logf("%v after a kill the next event arrived", took)
	if *deliveredEvents >= 20_000 && took > 25*time.Second { // 20 s, and some more for a busy machine
		t.Errorf("deliveries went on after %v", took)
	}
}

var attempted = regexp.MustCompile(`(?m)^parley_webhook_attempts_total\{.*\} [1-9]`)

// hasDelivered reports whether the server has made an attempt.
func (s *server) hasDelivered(t testing.TB) bool {
	t.Helper()
	return attempted.MatchString(s.metrics(t))
}

// metrics returns the text of the server's metrics.
func (s *server) metrics(t testing.TB) string {
	t.Helper()
	answer, err := http.Get(s.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A verified is a delivery with the secrets of the receivers that accept it.
type verified struct {
	ID string
	By []int
}

// TestRotation: the independent npm package standardwebhooks verifies every delivery.
// During a rotation, a receiver with the old secret and a receiver with the new secret
// accept all deliveries. After the rotation, the old secret no longer signs.
func TestRotation(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("testdata", "clients", "standardwebhooks", "receiver.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	installed := newProgram(t, "receiver.mjs", string(text))
	onBothStores(t, func(t *testing.T, d deployment) {
		_, key := d.workspace(t)
		s := d.delivering(t)
		l := &loadedFeed{t: t, key: key, nodes: []*server{s}}
		p := &program{dir: installed.dir, command: installed.command}
		secret := "whsec_" + base64.StdEncoding.EncodeToString([]byte("a secret of 24 bytes or so"))
		url := p.receive(t, secret)
		control := strings.TrimSuffix(url, "in")
		body := s.want(t, 201, key, "POST", "/webhooks", fmt.Sprintf(`{"url":"%s","types":["contact.created"],"secret":"%s"}`, url, secret))
		webhook := decode[struct{ Data struct{ ID string } }](t, []byte(body)).Data.ID
		deliveries := func(from int) []verified {
			t.Helper()
			return decode[[]verified](t, ask(t, "GET", fmt.Sprint(control, from), ""))
		}
		var got []verified // in order of arrival, with the secrets that verify them
		arrived := func(n int) {
			t.Helper()
			for have := -1; have < len(got) && len(got) < n; {
				have = len(got)
				waitFor(t, fmt.Sprintf("%d deliveries, %d have come", n, have), func() bool {
					got = append(got, deliveries(len(got))...)
					return len(got) > have
				})
			}
		}
		rotate := func(body string) {
			t.Helper()
			answer := s.want(t, 200, key, "POST", "/webhooks/"+webhook+"/rotate", body)
			ask(t, "PUT", control, decode[struct{ Data struct{ Secret string } }](t, []byte(answer)).Data.Secret)
		}

		n := *rotatedEvents
		var writing sync.WaitGroup
		writing.Go(func() { l.create(0, n, nil) })
		arrived(n / 3)
		rotate("{}")
		writing.Wait()
		arrived(n)
		l.create(n, 20, nil) // these events always come after the rotation
		n += 20
		arrived(n)
		all := deliveries(0)

		// No event may be sent before the receiver knows the third secret. When the
		// second secret has ended, the receiver would refuse such an event.
		rotate(`{"overlap_s":1}`)
		waitFor(t, "the end of the old secret", func() bool {
			l.create(n, 1, nil)
			n++
			arrived(n)
			return slices.Equal(got[n-1].By, []int{2})
		})
		ended := n
		l.create(n, 20, nil)
		n += 20
		arrived(n)
		s.wantSettled(t, key, webhook)

		all = append(all, deliveries(len(all))...)
		if len(all) != n {
			t.Errorf("%d deliveries of %d events: some were refused", len(all), n)
		}
		by := map[string]string{}
		for _, v := range all {
			by[v.ID] = fmt.Sprint(v.By)
		}
		rotations, created, counts := 0, 0, map[string]int{}
		for _, e := range s.events(t, key, "oldest") {
			switch e.Type {
			case "webhook.updated":
				rotations++
			case "contact.created":
				created++
				want := [][]string{{"[0]", "[0 1]"}, {"[0 1]"}, {"[1 2]", "[2]"}}[rotations]
				if created > ended {
					want = []string{"[2]"}
				}
				if !slices.Contains(want, by[e.ID]) {
					t.Errorf("event %d, after %d rotations, verifies by %s, want %v", created, rotations, by[e.ID], want)
				}
				counts[by[e.ID]]++
			}
		}
		if created != n || rotations != 2 {
			t.Errorf("%d events and %d rotations, want %d and 2", created, rotations, n)
		}
		t.Logf("deliveries by the secrets that verify them: %v", counts)
	})
}

// ask makes a request to a receiver.
func ask(t testing.TB, method, url, body string) []byte {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode > 299 {
		t.Fatalf("%s %s: %v, %d %s", method, url, err, response.StatusCode, answer)
	}
	return answer
}

// A crowd has endpoints that hang and one good endpoint.
type crowd struct {
	mu      sync.Mutex
	gate    chan struct{} // attempts hang until this is closed
	hanging int
	givenUp int             // the number of attempts that the server has given up
	delays  []time.Duration // the times from an event until it arrives at the good endpoint
}

func (c *crowd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the server has stopped
	}
	if r.URL.Path == "/good" {
		var event struct{ Timestamp time.Time }
		if json.Unmarshal(body, &event) != nil {
			http.Error(w, "not JSON", http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.delays = append(c.delays, time.Since(event.Timestamp))
		return
	}
	c.mu.Lock()
	gate := c.gate
	c.hanging++
	c.mu.Unlock()
	n := 0
	select {
	case <-gate:
	case <-r.Context().Done():
		n = 1
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hanging--
	c.givenUp += n
}

// state returns the number of attempts that hang, and the number of events that the good
// endpoint has received.
func (c *crowd) state() (hanging, good int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hanging, len(c.delays)
}

// TestHangingEndpoints: 32 endpoints of two workspaces never answer. Each of them has as
// many attempts as an endpoint may have. Meanwhile a good endpoint gets all events, about
// as fast as without the others.
func TestHangingEndpoints(t *testing.T) {
	t.Parallel()
	const (
		hanging = 32
		atOnce  = 8 // the number of attempts that an endpoint can have at a time
		perTurn = 100
		pace    = 10 * time.Millisecond
	)
	onBothStores(t, func(t *testing.T, d deployment) {
		c := &crowd{}
		listener := httptest.NewServer(c)
		t.Cleanup(listener.Close)
		s := d.delivering(t)
		var keys [2]string
		var feeds [2]*loadedFeed
		var written [2]int
		for i := range keys {
			_, keys[i] = d.workspace(t)
			feeds[i] = &loadedFeed{t: t, key: keys[i], nodes: []*server{s}}
		}
		create := func(n int) {
			for i, l := range feeds {
				l.create(written[i], n, nil)
				written[i] += n
			}
		}
		good := s.webhook(t, keys[0], listener.URL+"/good")
		var bad [hanging]string
		for i := range bad {
			bad[i] = s.webhook(t, keys[i%2], fmt.Sprintf("%s/hanging/%d", listener.URL, i))
		}
		enable := func(enabled bool) {
			t.Helper()
			for i, id := range bad {
				s.want(t, 200, keys[i%2], "PATCH", "/webhooks/"+id, fmt.Sprintf(`{"enabled":%t}`, enabled))
			}
		}
		settled := func() {
			t.Helper()
			waitFor(t, "all events at the good endpoint", func() bool { _, n := c.state(); return n == written[0] })
		}
		// turn writes events at a steady rate. It returns the times until they arrived.
		turn := func() []time.Duration {
			t.Helper()
			settled()
			before := written[0]
			tick := time.NewTicker(pace)
			defer tick.Stop()
			for range perTurn {
				<-tick.C
				feeds[0].create(written[0], 1, nil)
				written[0]++
			}
			settled()
			c.mu.Lock()
			defer c.mu.Unlock()
			return slices.Clone(c.delays[before:])
		}
		var alone, beside []time.Duration
		enable(false)
		for range *hangingRounds {
			alone = append(alone, turn()...)

			gate := make(chan struct{})
			c.mu.Lock()
			c.gate, c.givenUp = gate, 0
			c.mu.Unlock()
			enable(true)
			create(atOnce)
			waitFor(t, "all attempts to hang", func() bool { n, _ := c.state(); return n == hanging*atOnce })
			waitFor(t, "an event at the good endpoint", func() bool { _, n := c.state(); return n == written[0] })
			c.mu.Lock()
			if c.givenUp > 0 {
				t.Error("the good endpoint had to wait until attempts at others were given up")
			}
			c.mu.Unlock()
			beside = append(beside, turn()...)
			enable(false)
			close(gate)
			waitFor(t, "the end of the attempts that hung", func() bool { n, _ := c.state(); return n == 0 })
		}
		s.wantSettled(t, keys[0], good)
		p50, p99 := percentile(alone, 50), percentile(alone, 99)
		p50Beside, p99Beside := percentile(beside, 50), percentile(beside, 99)
		t.Logf("%d events in each of %d turns: alone p50 %v, p99 %v; beside %d endpoints that hang p50 %v, p99 %v: %.2f of alone",
			perTurn, *hangingRounds, p50, p99, hanging, p50Beside, p99Beside, float64(p99Beside)/float64(p99))
		if *hangingRounds > 1 && p99Beside > 2*p99 {
			t.Error("it is slower than twice as slow")
		}
	})
}
