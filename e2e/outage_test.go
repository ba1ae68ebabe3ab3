package e2e_test

import (
	"flag"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"parley/store/postgres/pgtest"
)

var pgStops = flag.Int("pg-stops", 1, "how often TestOutage stops the PostgreSQL server under load. Long run: -pg-stops 20")

// TestOutage stops PostgreSQL, as in a crash, while writers and senders use two servers,
// and starts it again. The servers run on. Every request gets a response in time, but it
// may be 503. No acknowledged write is lost, no message is sent twice, and the servers
// recover by themselves.
func TestOutage(t *testing.T) {
	t.Parallel()
	const (
		writers = 32
		senders = 4
		atOnce  = 20 // the size of a batch
		newSets = 8  // the number of sets that each writer begins between two stops
	)
	cluster := pgtest.Cluster(t)
	d := deployment{newDir(t), cluster.Database(t)}
	ws, key := d.workspace(t)
	d.sandbox(t, ws)
	seed := newSeed(t)
	rng := random(seed, 0)
	var nodes [2]*client
	servers := d.nodes(t)
	for i, s := range servers {
		nodes[i] = s.client(t, key, writers+senders)
	}
	var sets [writers][]*set
	var acked, unavailable, sends atomic.Int64
	var slowest atomic.Int64
	var back time.Duration // the longest time from a start of the database to a server's first success

	for stop := range *pgStops {
		var over atomic.Bool // set when the database is back, and each writer has written to it
		var wrote [writers]atomic.Int64
		var first [2]atomic.Int64 // the times of the servers' first successes after the start
		finished := make(chan struct{})
		go func() {
			defer close(finished)
			together(writers+senders, func(w int) {
				if w >= writers {
					for n := 0; !over.Load() && !t.Failed(); n++ {
						name := fmt.Sprintf("%d-%d-%d", stop, w, n)
						if _, err := nodes[w%2].sent(name, phoneOf(int(sends.Add(1)))); err != nil {
							t.Error(err)
						}
					}
					return
				}
				rng := random(seed, uint64(1+stop*writers+w))
				for !over.Load() && !t.Failed() {
					if len(sets[w]) < (stop+1)*newSets {
						one := &set{name: fmt.Sprintf("%d-%d-%d", stop, w, len(sets[w])), size: 1}
						if w%4 == 3 {
							one.size = atOnce
						}
						sets[w] = append(sets[w], one)
					}
					one := sets[w][max(0, len(sets[w])-1-rng.IntN(2*newSets))]
					one.sent++
					began := time.Now()
					r, err := one.write(nodes[w%2], rng)
					slowest.Store(max(slowest.Load(), int64(time.Since(began)))) // not exact: it is only logged
					switch {
					case err != nil:
						t.Errorf("stop %d: a request is not answered: %v", stop, err)
					case r.status == http.StatusServiceUnavailable:
						unavailable.Add(1)
						if r.header.Get("Retry-After") == "" {
							t.Errorf("503 without Retry-After: %s", r.body)
						}
						<-time.After(time.Duration(rng.IntN(20)) * time.Millisecond)
					case r.status >= 300 || one.size > 1 && summaryOf(t, r.body).Errors > 0:
						t.Errorf("stop %d: a write of %+v answers %d: %.500s", stop, one, r.status, r.body)
					default:
						if one.acked = one.sent; one.size == 1 {
							one.id = contactOf(t, r.body).ID
						}
						acked.Add(1)
						wrote[w].Add(1)
						first[w%2].CompareAndSwap(0, time.Now().UnixNano())
					}
				}
			})
		}()
		everybody := func() bool {
			for w := range wrote {
				if wrote[w].Load() == 0 {
					return t.Failed()
				}
			}
			return true
		}
		waitFor(t, "every writer to be at work", everybody)
		<-time.After(time.Duration(rng.IntN(500)) * time.Millisecond) // the stop may come at any moment of their work
		if err := cluster.Stop("immediate"); err != nil {
			t.Fatal(err)
		}
		for i, s := range servers {
			waitFor(t, "/readyz to tell that the database is away", func() bool { return s.status(t, "/readyz") == http.StatusServiceUnavailable })
			if s.ended() {
				t.Fatalf("server %d has ended:\n%s", i, s.stderr.String())
			}
		}
		for i := range first {
			first[i].Store(0)
		}
		if err := cluster.Start(); err != nil {
			t.Fatal(err)
		}
		started := time.Now().UnixNano()
		for w := range wrote {
			wrote[w].Store(0)
		}
		waitFor(t, "every writer to write again", everybody)
		over.Store(true)
		<-finished

		for i, s := range servers {
			back = max(back, time.Duration(first[i].Load()-started))
			if got := s.status(t, "/readyz"); got != http.StatusOK {
				t.Errorf("server %d: /readyz answers %d", i, got)
			}
		}
		notes := map[string]string{}
		for _, one := range nodes[0].contacts(t) {
			notes[one.ExternalID] = one.Note
		}
		for w := range sets {
			for _, one := range sets[w] {
				if err := one.check(notes); err != nil {
					t.Errorf("stop %d: %v", stop, err)
				}
			}
		}
		for person := range sends.Load() {
			if got := nodes[1].messagesTo(t, phoneOf(int(person)+1)); got != 1 {
				t.Errorf("%s has %d messages", phoneOf(int(person)+1), got)
			}
		}
		if t.Failed() {
			return
		}
	}
	for _, s := range servers {
		s.stop(t)
	}
	t.Logf("%d stops among %d acknowledged writes and %d sends; %d answers of 503, the slowest answer of all after %v; first success of each server at most %v after the return",
		*pgStops, acked.Load(), sends.Load(), unavailable.Load(), time.Duration(slowest.Load()), back)
}
