//go:build unix

package e2e_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

var (
	castCost    = flag.Int("cast-cost", 100, "how many people TestBroadcastCost sends to. Long run, which checks the goals: -cast-cost 10000 -speed 20s -parallel 1 -timeout 60m")
	castsStored = flag.Int("casts-stored", 1500, "how many rows and contacts TestBroadcastHuge has. Long run: -casts-stored 1000000 -parallel 1 -timeout 3h")
)

// TestBroadcastCost compares a broadcast through the sandbox with single sends, skipping with
// sending, and adding rows with a batch of contacts (contract-broadcast §10).
func TestBroadcastCost(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, d deployment) {
		ws, key := d.workspace(t)
		d.sandbox(t, ws)
		s := serve(t, d.dir, "--database", d.database)
		c := s.client(t, key, 64)
		c.must(t, 201, "POST", "/attributes", `{"key":"marketing_ok","label":"Marketing","type":"boolean"}`)
		var next atomic.Int64
		number := func() string { return fmt.Sprintf("+9053%07d9", next.Add(1)) }
		numbers := func() (list []string) {
			for range *castCost {
				list = append(list, number())
			}
			return list
		}
		// runs starts a broadcast, and returns how many rows a second have an outcome.
		runs := func(consent, count string) float64 {
			id := c.draftOf(t, `,"consent":`+consent, numbers()...)
			began := time.Now()
			c.must(t, 200, "POST", "/broadcasts/"+id+"/start", `{}`)
			done := c.castUntil(t, id, "done", "")
			took := time.Since(began).Seconds()
			if n := done.count(count) + done.count("delivered") + done.count("read"); n != *castCost {
				t.Errorf("%d are %s: %v", n, count, done.Counts)
			}
			return float64(*castCost) / took
		}
		atOnce := min(1000, *castCost) // rows in a call
		var sends, casts, skips, rows, batches []float64
		for range 3 {
			sends = append(sends, rate(t, 64, func() error {
				to := number()
				_, err := c.sent("cost-"+to, to)
				return err
			}))
			casts = append(casts, runs(`{"confirmed":true}`, "sent"))
			skips = append(skips, runs(`{"attribute":"marketing_ok"}`, "skipped"))
			draft := c.draftOf(t, `,"consent":{"confirmed":true}`)
			rows = append(rows, float64(atOnce)*rate(t, 4, func() error {
				list := make([]string, atOnce)
				for i := range list {
					list[i] = number()
				}
				_, err := c.expect("POST", "/broadcasts/"+draft+"/rows", castRowsOf(list...), 200)
				return err
			}))
			batches = append(batches, float64(atOnce)*rate(t, 4, func() error {
				list := make([]string, atOnce)
				for i := range list {
					list[i] = fmt.Sprintf(`{"phone":%q}`, number())
				}
				_, err := c.expect("POST", "/contacts/batch", upserts(list), 200)
				return err
			}))
		}
		t.Logf("a second: %.0f sends, %.0f of a broadcast, %.0f skipped, %.0f rows added, %.0f contacts of batches", sends, casts, skips, rows, batches)
		long := *castCost >= 10000
		wantRatio(t, long, "a broadcast, of sends/64", median(casts)/median(sends), true, 0.6)
		wantRatio(t, long, "skipping, of sending", median(skips)/median(casts), true, 3)
		wantRatio(t, long, "rows/4, of batch/4", median(rows)/median(batches), true, 0.7)
	})
}

// draftOf makes a draft of the template hello to numbers.
func (c *client) draftOf(t testing.TB, more string, numbers ...string) (id string) {
	t.Helper()
	body := c.must(t, 201, "POST", "/broadcasts", `{"name":"Spring","template":{"name":"hello","language":"en_US"}`+more+`}`)
	id = decode[struct{ Data cast }](t, body).Data.ID
	for part := range slices.Chunk(numbers, 1000) {
		c.must(t, 200, "POST", "/broadcasts/"+id+"/rows", castRowsOf(part...))
	}
	return id
}

// TestBroadcastBeside: beside a broadcast that sends sixty messages a second, teams answer and
// programs create contacts about as fast as without it (contract-broadcast §10).
func TestBroadcastBeside(t *testing.T) {
	t.Parallel()
	overBoth(t, 1, func(t *testing.T, w *whatsApp, nodes []*server) {
		w.must(t, "channel", "edit", w.channel, "--per-second", "80")
		s := nodes[0]
		c := s.client(t, w.key, 64)
		other, otherKey := w.workspace(t)
		var teams []*client
		var talks []string
		for _, one := range []struct{ ws, key string }{{w.ws, w.key}, {other, otherKey}} {
			channel := w.sandbox(t, one.ws)
			talks = append(talks, w.must(t, "sandbox", "inbound", "--channel", channel, "--from", phoneOf(1), "--text", "Hello")["conversation_id"].(string))
			teams = append(teams, s.client(t, one.key, 1))
		}
		var next atomic.Int64
		// measure returns the times of replies of both teams, and how many contacts are created
		// a second.
		measure := func() (times [2][]time.Duration, creates float64) {
			stop := time.Now().Add(*speed)
			together(2, func(i int) {
				for time.Now().Before(stop) {
					began := time.Now()
					if _, err := teams[i].replied(fmt.Sprintf("beside-%d", next.Add(1)), talks[i]); err != nil {
						t.Error(err)
						return
					}
					times[i] = append(times[i], time.Since(began))
					<-time.After(20 * time.Millisecond)
				}
			})
			creates = rate(t, 64, func() error {
				n := next.Add(1)
				_, err := c.expect("POST", "/contacts", fmt.Sprintf(`{"external_id":"b-%d","email":"b.%d@example.com","name":"Beside %d"}`, n, n, n), 201)
				return err
			})
			return times, creates
		}
		id := c.cast(t, greeting, `,"channel_id":"`+w.channel+`"`, castNumbers(2, 5000+int(10*60*speed.Seconds()))...)
		var alone, beside [2][]time.Duration
		var without, with []float64
		for range 3 {
			times, creates := measure()
			for i := range times {
				alone[i] = append(alone[i], times[i]...)
			}
			without = append(without, creates)
			c.must(t, 200, "POST", "/broadcasts/"+id+map[bool]string{true: "/start", false: "/resume"}[len(without) == 1], `{}`)
			before := w.sim.AcceptedTotal()
			w.takes(t, before+1)
			began := time.Now()
			times, creates = measure()
			t.Logf("the broadcast sent %.0f a second", float64(w.sim.AcceptedTotal()-before)/time.Since(began).Seconds())
			for i := range times {
				beside[i] = append(beside[i], times[i]...)
			}
			with = append(with, creates)
			if now := c.castNow(t, id); now.State != "running" {
				t.Fatalf("it is %s", now.State)
			}
			c.must(t, 200, "POST", "/broadcasts/"+id+"/pause", `{}`)
			c.castUntil(t, id, "paused", "asked")
		}
		long := *castCost >= 10000
		for i, whose := range []string{"the workspace", "another workspace"} {
			one, two := percentile(alone[i], 99), percentile(beside[i], 99)
			t.Logf("a reply in %s: median %v and p99 %v alone, %v and %v beside it", whose, percentile(alone[i], 50), one, percentile(beside[i], 50), two)
			wantRatio(t, long, "p99 of replies in "+whose, float64(two)/float64(one), false, 1.3)
		}
		t.Logf("creates a second: %.0f alone, %.0f beside it", without, with)
		wantRatio(t, long, "creates/64", median(with)/median(without), true, 0.85)
	})
}

// TestBroadcastHuge: the pages and the check of a broadcast with very many rows are as fast as
// those of a small one, and writing down who fits is not much slower than listing all contacts
// (contract-broadcast §10).
func TestBroadcastHuge(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, d deployment) {
		ws, key := d.workspace(t)
		d.sandbox(t, ws)
		s := serve(t, d.dir, "--database", d.database)
		c := s.client(t, key, 4)
		few := min(10000, *castsStored/10)
		fill := func(id string, rows int) {
			t.Helper()
			var next atomic.Int64
			together(4, func(int) {
				for first := int(next.Add(1000)) - 1000; first < rows && !t.Failed(); first = int(next.Add(1000)) - 1000 {
					var list []string
					for i := first; i < min(first+1000, rows); i++ {
						list = append(list, phoneOf(i))
					}
					if _, err := c.expect("POST", "/broadcasts/"+id+"/rows", castRowsOf(list...), 200); err != nil {
						t.Error(err)
					}
				}
			})
		}
		// slowest returns the slowest of the typical times of a broadcast's pages and its check.
		slowest := func(id string) (most time.Duration) {
			t.Helper()
			for _, path := range []string{"GET ", "GET /rows?limit=200", "GET /rows?status=pending&limit=200", "GET /rows?status=sent&limit=200", "GET /rows?reason=late", "POST /check"} {
				method, rest, _ := strings.Cut(path, " ")
				body := map[bool]string{true: `{}`}[method == "POST"]
				var times []time.Duration
				for range 15 {
					began := time.Now()
					c.must(t, 200, method, "/broadcasts/"+id+rest, body)
					times = append(times, time.Since(began))
				}
				typical := percentile(times, 50)
				t.Logf("%s: %v, at most %v", path, typical, percentile(times, 100))
				most = max(most, typical)
			}
			return most
		}
		small, large := c.draftOf(t, `,"consent":{"confirmed":true}`), c.draftOf(t, `,"consent":{"confirmed":true}`)
		for sent := 0; sent < *castsStored; sent += few { // as many as for the large one, so that only what is stored differs
			fill(small, few)
		}
		ofFew, memory := slowest(small), s.peak(t)
		began := time.Now()
		fill(large, *castsStored)
		t.Logf("%d rows stored in %v", *castsStored, time.Since(began))
		ofMany := slowest(large)
		t.Logf("pages of %d rows take up to %v, of %d up to %v; memory %d and %d MB", few, ofFew, *castsStored, ofMany, memory>>20, s.peak(t)>>20)
		long := *castsStored >= 1_000_000 // a failure would end what is measured next, so goals come last
		defer func() {
			if long && ofMany > 50*time.Millisecond {
				t.Error("a page takes more than 50 ms")
			}
		}()
		defer wantRatio(t, long, "memory, of that with few rows", float64(s.peak(t))/float64(memory), false, 1.2)

		var at atomic.Int64
		together(4, func(int) {
			for first := int(at.Add(1000)) - 1000; first < *castsStored && !t.Failed(); first = int(at.Add(1000)) - 1000 {
				var list []string
				for i := first; i < min(first+1000, *castsStored); i++ {
					list = append(list, fmt.Sprintf(`{"phone":%q}`, phoneOf(i)))
				}
				if _, err := c.expect("POST", "/contacts/batch", upserts(list), 200); err != nil {
					t.Error(err)
				}
			}
		})
		c.searchLevel(t, patience+time.Duration(*castsStored)*time.Millisecond)
		began = time.Now()
		listed := len(c.contacts(t))
		listing := time.Since(began)
		id := c.draftOf(t, `,"consent":{"confirmed":true},"audience":{"filter":{"all":[{"field":"phone","is":"present"}]}},"at_most":1000000,"pace":{"people":1,"minutes":1440}`)
		began = time.Now()
		c.must(t, 200, "POST", "/broadcasts/"+id+"/start", `{}`)
		now := c.castUntil(t, id, "running", "pace")
		collecting := time.Since(began)
		if now.count("rows") != listed || listed != *castsStored {
			t.Errorf("%d contacts are listed, and %d rows were written", listed, now.count("rows"))
		}
		t.Logf("%d contacts were listed in %v, and written down in %v", listed, listing, collecting)
		wantRatio(t, long, "collecting, of listing", listing.Seconds()/collecting.Seconds(), true, 0.5)
	})
}
