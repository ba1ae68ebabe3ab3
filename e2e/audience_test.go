package e2e_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	consoleStreams = flag.Int("console-streams", 18, "how many tabs of the console TestAudience opens on each store; from 100 on it also judges what they cost writers. Long run: -console-streams 200 -speed 3s -timeout 30m")
	consoleVisible = flag.Int("console-visible", 10, "of how many tabs of TestAudience one is visible; hidden ones fetch nothing")
)

// judgesAudience reports whether TestAudience checks times. If it does, no other test may
// run at the same time.
func judgesAudience() bool { return *consoleStreams >= 100 }

const (
	tabsOfMember  = 15                     // a member may have one stream more
	messagePause  = 50 * time.Millisecond  // between two messages of customers
	maxFragment   = 500 * time.Millisecond // for 99 of 100
	watchedThings = 60                     // the number of conversations to which customers write
)

// TestAudience: tabs of the console, each with its stream, show the inbox while customers
// write. Visible tabs fetch the inbox again. The test measures how long these fetches
// take. It also measures the rate of writes with tabs and without tabs, in turn, and
// compares the two.
func TestAudience(t *testing.T) {
	if !judgesAudience() {
		t.Parallel()
	}
	eachStore(t, func(t *testing.T, dir string, flags []string) {
		const writers = 64
		m := newTeam(t, dir, flags)
		for _, other := range m.nodes[1:] {
			other.stop(t)
		}
		a := &audience{t: t, team: m, sent: make([]atomic.Int64, watchedThings)}
		a.fill()
		c := m.nodes[0].client(t, m.key, writers)
		rounds := 1
		if judgesAudience() {
			rounds = 9
		}
		var next atomic.Int64
		create := func() float64 {
			return rate(t, writers, func() error {
				n := next.Add(1)
				_, err := c.expect("POST", "/contacts", fmt.Sprintf(`{"external_id":"s-%d","email":"s.%[1]d@example.com","phone":"+1212%07[1]d","name":"Speed %[1]d"}`, n), 201)
				return err
			})
		}
		var beside, alone []float64
		var told, waited, busy []time.Duration
		parts := map[int]int{}
		for round := range rounds {
			with := func() {
				leave := a.sit(*consoleStreams)
				<-time.After(*speed)
				now := leave.so()
				waitFor(t, "a change to be told and fetched", func() bool { // on a busy machine this takes longer
					now = leave.so()
					return len(now.told) > 0 && len(now.waited) > 0
				})
				told, waited = append(told, now.told...), append(waited, now.waited...)
				beside = append(beside, create())
				end := leave.now()
				busy = append(busy, end.waited[len(now.waited):]...)
				for status, n := range end.statuses {
					parts[status] += n
				}
			}
			if round%2 == 0 {
				with()
			}
			alone = append(alone, create())
			if round%2 == 1 {
				with()
			}
		}
		ratio(t, fmt.Sprintf("creates beside %d tabs, one of %d visible, and %.0f messages a second", *consoleStreams, *consoleVisible, 1/messagePause.Seconds()), "alone", beside, alone, 0)
		t.Logf("a stream names a change after p50 %v, p99 %v; fragments take p50 %v, p99 %v, beside creates p50 %v, p99 %v; %v; %d MB of memory",
			percentile(told, 50), percentile(told, 99), percentile(waited, 50), percentile(waited, 99), percentile(busy, 50), percentile(busy, 99), parts, m.nodes[0].peak(t)>>20)
		if len(told) == 0 || len(waited) == 0 || parts[200] == 0 {
			t.Error("nothing was told or fetched")
		}
		if judgesAudience() {
			if percentile(waited, 99) > maxFragment {
				t.Errorf("fragments: p99 %v, want at most %v", percentile(waited, 99), maxFragment)
			}
			if r := median(ratiosOf(beside, alone)); r < 0.8 {
				t.Errorf("the ratio of creates is %.2f, want at least 0.8", r)
			}
		}
	})
}

func ratiosOf(rates, others []float64) (list []float64) {
	for i := range rates {
		list = append(list, rates[i]/others[i])
	}
	return list
}

// An audience has members with tabs of the console.
type audience struct {
	t        *testing.T
	team     *team
	members  []*visitor
	customer filled // the form for writing as the customer, without its action
	ids      []string
	index    map[string]int
	sent     []atomic.Int64 // the time of a customer's last message in a conversation, in ns; 0: none yet
}

// fill makes the members and the conversations. Some conversations are assigned to
// members.
func (a *audience) fill() {
	t, m := a.t, a.team
	for n := range (*consoleStreams + tabsOfMember - 1) / tabsOfMember {
		name := fmt.Sprintf("Member%d", n)
		m.member(name, "agent")
		a.members = append(a.members, m.visitor(name, 0))
	}
	api := m.nodes[0].client(t, m.key, 1)
	a.index = map[string]int{}
	for n := range watchedThings {
		phone := phoneOf(n)
		if _, err := api.sent("first-"+phone, phone); err != nil {
			t.Fatal(err)
		}
	}
	list := decode[struct{ Data []struct{ ID string } }](t, api.must(t, 200, "GET", "/conversations?limit=200", "")).Data
	for n, v := range list {
		a.ids = append(a.ids, v.ID)
		a.index[v.ID] = n
		page := a.members[0].mustGet(t, 200, "/inbox/"+v.ID)
		if a.customer.values == nil {
			a.customer = mustForm(t, page, "/customer").with("text", "Is anybody there? I am waiting for an answer")
		}
		if n%3 == 0 {
			take := mustForm(t, page, "/assign", "Take")
			a.members[0].mustPost(t, 303, take.action, take.values)
		}
	}
	if len(a.ids) != watchedThings {
		t.Fatalf("%d conversations", len(a.ids))
	}
}

// A tally has the times that were measured in tabs.
type tally struct {
	told, waited []time.Duration
	statuses     map[int]int
}

// A seat is a set of open tabs.
type seat struct {
	a    *audience
	stop context.CancelFunc
	all  sync.WaitGroup
	mu   sync.Mutex
	tally
}

// so returns the tally up to this moment. The method now ends the tabs, and returns the
// whole tally.
func (s *seat) so() tally {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tally
}

func (s *seat) now() tally {
	s.stop()
	s.all.Wait()
	return s.so()
}

// sit opens tabs, each with its stream. After that, customers begin to write.
func (a *audience) sit(tabs int) *seat {
	a.t.Helper()
	ctx, stop := context.WithCancel(a.t.Context())
	s := &seat{a: a, stop: stop, tally: tally{statuses: map[int]int{}}}
	a.t.Cleanup(stop)
	transport := &http.Transport{MaxIdleConnsPerHost: 2 * tabs}
	a.t.Cleanup(transport.CloseIdleConnections)
	views := []string{"/inbox", "/inbox?view=unassigned", "/inbox?view=open"}
	for n := range tabs {
		w := &watcher{seat: s, ctx: ctx, v: a.members[n/tabsOfMember], page: views[n%len(views)], http: transport, stale: make(chan struct{}, 1)}
		stream := w.request("/live", "stream", "")
		answer, err := transport.RoundTrip(stream)
		for begun := time.Now(); err == nil && answer.StatusCode == http.StatusTooManyRequests && time.Since(begun) < patience; time.Sleep(10 * time.Millisecond) {
			_ = answer.Body.Close() // the server has not noticed yet that the earlier tabs are closed
			answer, err = transport.RoundTrip(stream)
		}
		if err != nil || answer.StatusCode != http.StatusOK {
			a.t.Fatalf("stream %d: %v %+v", n, err, answer)
		}
		s.all.Go(func() { w.listen(answer.Body) })
		if n%*consoleVisible == 0 {
			s.all.Go(w.renew)
		}
	}
	s.all.Go(func() {
		tick := time.NewTicker(messagePause)
		defer tick.Stop()
		var writing sync.WaitGroup
		defer writing.Wait()
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			writing.Go(func() {
				i := n % len(a.ids)
				a.sent[i].Store(time.Now().UnixNano())
				r, err := a.members[0].send("/inbox/"+a.ids[i]+"/customer", a.customer.values)
				if err != nil || r.status != http.StatusSeeOther {
					a.t.Errorf("a message: %d, %v", r.status, err)
				}
			})
		}
	})
	return s
}

// A watcher does the same as the script in one tab.
type watcher struct {
	*seat
	ctx   context.Context
	v     *visitor
	page  string
	http  *http.Transport
	stale chan struct{}
}

func (w *watcher) request(path, part, etag string) *http.Request {
	r, err := http.NewRequestWithContext(w.ctx, http.MethodGet, w.v.url+path, http.NoBody)
	if err != nil {
		panic(err)
	}
	for _, cookie := range w.v.http.Jar.Cookies(&url.URL{Scheme: "http", Host: r.URL.Host, Path: "/"}) {
		r.AddCookie(cookie)
	}
	r.Header.Set("Parley-Part", part)
	r.Header.Set("If-None-Match", etag)
	return r
}

// listen reads the stream.
func (w *watcher) listen(body io.ReadCloser) {
	defer body.Close()
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		names, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || names == "." {
			continue
		}
		now := time.Now()
		w.mu.Lock()
		for name := range strings.FieldsSeq(names) {
			id, ok := strings.CutPrefix(name, "conversation:")
			if i, known := w.a.index[id]; ok && known {
				if at := w.a.sent[i].Load(); at > 0 {
					w.told = append(w.told, now.Sub(time.Unix(0, at)))
				}
			}
		}
		w.mu.Unlock()
		select {
		case w.stale <- struct{}{}:
		default:
		}
	}
	if w.ctx.Err() == nil {
		w.a.t.Errorf("a stream ended: %v", lines.Err())
	}
}

// renew fetches the parts of the page that are out of date: at once, and then at most
// once a second.
func (w *watcher) renew() {
	etag := ""
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-w.stale:
		}
		again := time.After(time.Second)
		begun := time.Now()
		answer, err := w.http.RoundTrip(w.request(w.page, "views list", etag))
		if err == nil {
			_, err = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
		}
		if w.ctx.Err() != nil {
			return
		}
		if err != nil || answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusNotModified {
			w.a.t.Errorf("a fragment: %v %+v", err, answer)
			return
		}
		etag = answer.Header.Get("ETag")
		w.mu.Lock()
		w.waited = append(w.waited, time.Since(begun))
		w.statuses[answer.StatusCode]++
		w.mu.Unlock()
		select {
		case <-w.ctx.Done():
			return
		case <-again:
		}
	}
}
