//go:build unix

package e2e_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/store/postgres/pgtest"
	"parley/whatsapp/whatsapptest"
)

var (
	castAway = flag.Duration("cast-away", 2*time.Second, "for how long the database is away, or the disk full, in TestBroadcastAway. Long run: -cast-rows 3000 -cast-away 60s -timeout 30m")
	castSlow = flag.Int("cast-slow", 20, "how many people TestBroadcastSlow sends to. Long run: -cast-slow 3000 -timeout 30m")
	castMany = flag.Int("cast-workspaces", 5, "in how many workspaces TestBroadcastMany sends. Long run, which checks the goal: -cast-workspaces 200 -speed 10s -parallel 1 -timeout 60m")
)

// wantOnce fails unless each row of a broadcast that is done has an outcome, and nobody got two
// messages. doubts is how many may be in doubt.
func (w *whatsApp) wantOnce(t testing.TB, c *client, id string, doubts int) {
	t.Helper()
	w.settled(t)
	sent := w.sentTo()
	for number, n := range sent {
		if n != 1 {
			t.Errorf("%s got %d messages", number, n)
		}
	}
	in := 0
	for _, r := range c.castCounted(t, id) {
		switch number := strings.TrimPrefix(*r.To, "+"); r.Status {
		case "in_doubt":
			in++
		case "sent", "delivered", "read":
			if sent[number] != 1 {
				t.Errorf("%s is %s, and nothing was sent", number, r.Status)
			}
		default:
			t.Errorf("%s is %s", number, r.Status)
		}
	}
	if in > doubts {
		t.Errorf("%d are in doubt", in)
	}
	t.Logf("%d got the message, %d are in doubt", len(sent), in)
}

// TestBroadcastSlow: the database is 200 ms away. All get the message, once.
func TestBroadcastSlow(t *testing.T) {
	t.Parallel()
	p := pgtest.NewProxy(t, pgtest.Database(t))
	w := newWhatsApp(t, p.URL, templatesOf(8))
	w.connect(t, w.server, "--per-second", "1000")
	c := w.server.client(t, w.key, 4)
	id := c.cast(t, greeting, "", castNumbers(2, *castSlow)...)
	p.Slow(200 * time.Millisecond)
	began := time.Now()
	c.must(t, 200, "POST", "/broadcasts/"+id+"/start", `{}`)
	c.castUntil(t, id, "done", "")
	t.Logf("%.1f messages a second", float64(*castSlow)/time.Since(began).Seconds())
	p.Slow(0)
	w.wantOnce(t, c, id, 0)
}

// TestBroadcastAway: while a broadcast sends, the database is away for a while, or the disk is full.
// It goes on by itself. Nobody gets the message twice, and nothing is refused for it.
func TestBroadcastAway(t *testing.T) {
	t.Parallel()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		p := pgtest.NewProxy(t, pgtest.Database(t))
		broadcastAway(t, deployment{newDir(t), p.URL}, func() { p.Away(true) }, func() { p.Away(false) })
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		small := smallDisk(t, 60<<10+*castRows*30)
		ballast := filepath.Join(small, "ballast")
		broadcastAway(t, deployment{dir: filepath.Join(small, "data")}, func() { fillDisk(t, ballast) }, func() { check(t, os.Remove(ballast)) })
	})
}

func broadcastAway(t *testing.T, d deployment, away, back func()) {
	t.Helper()
	w := newWhatsAppIn(t, d, whatsapptest.Config{Templates: templatesOf(8)})
	w.connect(t, w.server, "--per-second", "1000")
	c := w.server.client(t, w.key, 4)
	id := c.cast(t, greeting, "", castNumbers(2, *castRows)...)
	c.must(t, 200, "POST", "/broadcasts/"+id+"/start", `{}`)
	w.takes(t, *castRows/3)
	away()
	<-time.After(*castAway)
	before := w.sim.AcceptedTotal()
	back()
	began := time.Now()
	waitFor(t, "the database", func() bool {
		r, err := c.send("GET", "/broadcasts/"+id, "")
		return err == nil && r.status == 200
	})
	c.castUntil(t, id, "done", "")
	t.Logf("away for %v, by then %d of %d were sent; done %v later", *castAway, before, *castRows, time.Since(began))
	w.wantOnce(t, c, id, 64) // as many are sent at once
}

// TestBroadcastHeard: while a broadcast sends as fast as it can, what other people write is soon in
// the inbox: it does not wait behind the reports of the provider.
func TestBroadcastHeard(t *testing.T) {
	t.Parallel()
	overBoth(t, 1, func(t *testing.T, w *whatsApp, nodes []*server) {
		c := nodes[0].client(t, w.key, 4)
		id := c.cast(t, greeting, "", castNumbers(2, *castRows)...)
		c.must(t, 200, "POST", "/broadcasts/"+id+"/start", `{}`)
		const people = 10
		var took [people]time.Duration
		for i := range people {
			w.takes(t, (i+1)**castRows/(people+1))
			began := time.Now()
			if _, err := w.asks(t, c, fmt.Sprintf("90540%07d", i)); err != nil {
				t.Error(err)
			}
			took[i] = time.Since(began)
		}
		c.castUntil(t, id, "done", "")
		t.Logf("what people wrote was in the inbox after %v", took)
		w.wantOnce(t, c, id, 0)
	})
}

// TestBroadcastMany: in many workspaces of one node broadcasts run at once. Each gets its turn, and
// a team elsewhere answers about as fast as before.
func TestBroadcastMany(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, d deployment) {
		const rows = 100
		s := serve(t, d.dir, "--database", d.database)
		clients, ids := make([]*client, *castMany), make([]string, *castMany)
		for i := range clients {
			ws, key := d.workspace(t)
			d.sandbox(t, ws)
			clients[i] = s.client(t, key, 1)
			var numbers []string
			for n := range rows {
				numbers = append(numbers, fmt.Sprintf("+9053%07d9", n)) // the sandbox knows other ends
			}
			ids[i] = clients[i].draftOf(t, `,"consent":{"confirmed":true}`, numbers...)
		}
		ws, key := d.workspace(t)
		team := s.client(t, key, 1)
		talk := d.must(t, "sandbox", "inbound", "--channel", d.sandbox(t, ws), "--from", phoneOf(1), "--text", "Hello")["conversation_id"].(string)
		replies := 0
		// answers lets the team answer until it is over, and returns how long the replies took.
		answers := func(over func() bool) (times []time.Duration) {
			for !over() {
				began := time.Now()
				if _, err := team.replied(fmt.Sprintf("many-%d", replies), talk); err != nil {
					t.Error(err)
					break
				}
				replies++
				times = append(times, time.Since(began))
				<-time.After(20 * time.Millisecond)
			}
			return times
		}
		stop := time.Now().Add(*speed)
		alone := answers(func() bool { return time.Now().After(stop) })
		began := time.Now()
		for i, c := range clients {
			c.must(t, 200, "POST", "/broadcasts/"+ids[i]+"/start", `{}`)
		}
		started := time.Since(began)
		var done atomic.Bool
		var turn time.Duration // until each has sent something
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			defer done.Store(true)
			waiting := map[int]bool{}
			for i := range clients {
				waiting[i] = true
			}
			for end := time.Now().Add(castPatience() + time.Duration(*castMany)*3*time.Second); len(waiting) > 0; <-time.After(200 * time.Millisecond) {
				for i := range waiting {
					r, err := clients[i].expect("GET", "/broadcasts/"+ids[i], "", 200)
					if err != nil {
						t.Error(err)
						return
					}
					if strings.Contains(string(r.body), `"pending":100,`) {
						continue
					}
					delete(waiting, i)
					turn = time.Since(began)
				}
				if time.Now().After(end) {
					t.Errorf("%d of %d broadcasts had no turn", len(waiting), len(clients))
					return
				}
			}
			for i, c := range clients {
				c.castUntil(t, ids[i], "done", "")
			}
		}()
		beside := answers(done.Load)
		<-ended
		took := time.Since(began)
		for i, c := range clients {
			if now := c.castNow(t, ids[i]); now.count("sent")+now.count("delivered")+now.count("read") != rows {
				t.Errorf("broadcast %d: %v", i, now.Counts)
			}
		}
		one, two := percentile(alone, 99), percentile(beside, 99)
		t.Logf("%d broadcasts of %d rows were started in %v, each had sent something after %v, and all were done after %v; replies: median %v and p99 %v alone, %v and %v beside them",
			*castMany, rows, started, turn, took, percentile(alone, 50), one, percentile(beside, 50), two)
		wantRatio(t, *castMany >= 200, "p99 of replies", float64(two)/float64(one), false, 1.3)
	})
}
