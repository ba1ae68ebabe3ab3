package web

import (
	"errors"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/desk"
)

// respond returns a Response of a server that has no client.
func respond(s *Server) *Response {
	return &Response{ResponseWriter: httptest.NewRecorder(), server: s, request: httptest.NewRequest("GET", "/", nil)}
}

// TestReserve: memory is taken before an answer is made, and given back as far as the
// answer does not need it. A call that finds no memory is refused. Another workspace has
// its own share.
func TestReserve(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		const page = 4 << 20
		var held []*Response
		for range largeBytes / 2 / page {
			w := respond(s)
			if err := w.Reserve(page, ada); err != nil {
				t.Fatal(err)
			}
			held = append(held, w)
		}
		begun := time.Now()
		if err := respond(s).Reserve(page, ada); !errors.Is(err, errNoRoom) || time.Since(begun) != patience {
			t.Errorf("above the share: %v after %v", err, time.Since(begun))
		}
		begun = time.Now()
		other := respond(s)
		if err := other.Reserve(page, bob); err != nil || time.Since(begun) > 0 {
			t.Errorf("another workspace: %v after %v", err, time.Since(begun))
		}
		if !held[0].Fit(100<<10) || s.large.bytes() != largeBytes/2-page+100<<10+page {
			t.Errorf("%d bytes are left after an answer of 100 KiB", s.large.bytes())
		}
		if held[1].Fit(page + 1) {
			t.Error("an answer that is larger than what was reserved fits")
		}
		if !held[2].Fit(Free) || held[2].room != nil {
			t.Error("a small answer keeps memory")
		}
		next := respond(s)
		if err := next.Reserve(page, ada); err != nil {
			t.Error(err)
		}
		for _, w := range append(held, next, other) {
			w.Unreserve()
		}
		empty(t, s.large)
		empty(t, s.bodies)
	})
}

// TestReserve_bodies: calls whose bodies fill the share of their workspace get memory for
// their answers, one after the other.
func TestReserve_bodies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		const size = 250e3 // takes 256 KiB
		var calls []*Response
		for range s.bodies.share / (256 << 10) {
			w := respond(s)
			w.request = httptest.NewRequest("POST", "/", strings.NewReader(strings.Repeat("x", size)))
			if _, err := w.Body(1<<20, ada); err != nil {
				t.Fatal(err)
			}
			calls = append(calls, w)
		}
		if n := s.bodies.bytes(); n != s.bodies.share {
			t.Fatalf("the bodies take %d bytes", n)
		}
		for _, w := range calls {
			go func() {
				if err := w.Reserve(4*size, ada); err != nil {
					t.Error(err)
				}
				<-time.After(time.Second)
				w.end()
			}()
		}
		<-time.After(2 * patience)
		empty(t, s.bodies)
		empty(t, s.large)
	})
}

// TestRoom: the answer to a write waits for memory. It counts even if there is still no
// memory after the wait.
func TestRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		full, first, second := respond(s), respond(s), respond(s)
		if err := full.Reserve(largeBytes/2, ada); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, full.Unreserve)
		begun := time.Now()
		if first.Room(largeBytes/2, ada); time.Since(begun) != time.Second {
			t.Errorf("it waited %v", time.Since(begun))
		}
		begun = time.Now()
		if second.Room(2<<20, ada); time.Since(begun) != patience || s.large.bytes() != largeBytes/2+2<<20 {
			t.Errorf("it waited %v; %d bytes", time.Since(begun), s.large.bytes())
		}
		first.Unreserve()
		second.Unreserve()
		empty(t, s.large)
	})
}

// TestTurns: only so many writes of a workspace are under way. The others wait, the oldest
// first. Writes of other workspaces do not wait.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		take := func(owner desk.ID, weight int) *Response {
			t.Helper()
			w := respond(s)
			if err := w.Turn(owner, weight); err != nil {
				t.Fatal(err)
			}
			return w
		}
		single, batch := take(ada, 1), take(ada, maxTurns-1)
		begun := time.Now()
		if err := respond(s).Turn(ada, 1); !errors.Is(err, errNoRoom) || time.Since(begun) != patience {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		take(bob, maxTurns+1).end()
		var order []int
		for n, weight := range []int{20, 1, maxTurns} {
			go func() {
				w := take(ada, weight)
				order = append(order, n)
				<-time.After(time.Second)
				w.Reply(200, "text/plain", nil)
			}()
			synctest.Wait()
		}
		single.end()
		synctest.Wait()
		if len(order) > 0 {
			t.Errorf("%v overtook one that waits for longer", order)
		}
		batch.end()
		synctest.Wait()
		if len(order) != 2 || slices.Contains(order, 2) {
			t.Errorf("%v have their turn", order)
		}
		<-time.After(3 * time.Second)
		if len(order) != 3 || len(s.turns.of) != 0 {
			t.Errorf("%v had their turn, %d workspaces are left", order, len(s.turns.of))
		}
	})
}

// TestScrapes: anybody may ask for the metrics, so only a few of these answers are made at
// a time.
func TestScrapes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{NewID: func() desk.ID { return desk.ID{} }, Log: slog.New(slog.DiscardHandler)})
		get := func() int {
			rec := httptest.NewRecorder()
			s.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
			return rec.Code
		}
		hog := respond(s)
		if err := hog.Turn(desk.ID{}, maxTurns); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if code := get(); code != 503 || time.Since(begun) != patience {
			t.Errorf("%d after %v", code, time.Since(begun))
		}
		hog.end()
		if code := get(); code != 200 || len(s.turns.of) != 0 {
			t.Errorf("%d; %d have turns", code, len(s.turns.of))
		}
	})
}
