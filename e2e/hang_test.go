package e2e_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"parley/store/postgres/pgtest"
)

// TestDatabaseHangs: the database takes connections and statements, but answers nothing, as a
// server whose disk has stopped. Each request gets 503 within a bound. After that, everything
// works again by itself: what was answered is stored, and nothing was sent twice.
func TestDatabaseHangs(t *testing.T) {
	t.Parallel()
	const (
		clients = 40               // more than a server has connections
		within  = 32 * time.Second // writeBound of store/postgres, longestQueued of app, and a busy machine
	)
	proxy := pgtest.NewProxy(t, pgtest.Database(t))
	d := deployment{newDir(t), proxy.URL}
	ws, key := d.workspace(t)
	d.sandbox(t, ws)
	s := serve(t, d.dir, "--database", d.database)
	c := s.client(t, key, clients)
	c.http.Timeout = 2 * within
	known := contactOf(t, c.must(t, 201, "POST", "/contacts", `{"external_id":"known"}`)).ID
	outbound := func(i int) string {
		return fmt.Sprintf(`{"to":{"phone":"%s"},"template":{"name":"hello","language":"en_US"},"opt_in_confirmed":true}`, phoneOf(i))
	}
	call := func(i int) (reply, error) {
		switch i % 4 {
		case 0:
			return c.send("POST", "/contacts", fmt.Sprintf(`{"external_id":"%d"}`, i))
		case 1:
			return c.send("POST", "/conversations/outbound", outbound(i), "Idempotency-Key", fmt.Sprint(i))
		case 2:
			return c.send("GET", "/contacts/"+known, "")
		}
		return c.send("POST", "/contacts/batch", upserts([]string{fmt.Sprintf(`{"external_id":"%d"}`, i)}))
	}

	resume := proxy.Hang()
	defer resume()
	var mu sync.Mutex
	var slowest time.Duration
	together(clients, func(i int) {
		began := time.Now()
		r, err := call(i)
		took := time.Since(began)
		mu.Lock()
		defer mu.Unlock()
		if slowest = max(slowest, took); err != nil || r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") == "" || took > within {
			t.Errorf("request %d: %v, %d %s after %v", i, err, r.status, r.body, took)
		}
	})
	if got := s.status(t, "/readyz"); got != http.StatusServiceUnavailable {
		t.Errorf("/readyz answers %d", got)
	}
	resume()

	began := time.Now()
	together(clients, func(i int) {
		for {
			r, err := call(i)
			switch {
			case err == nil && r.status < 300:
				return
			case err != nil || r.status != http.StatusServiceUnavailable || time.Since(began) > patience:
				t.Errorf("request %d, again: %v, %d %s", i, err, r.status, r.body)
				return
			}
			<-time.After(20 * time.Millisecond)
		}
	})
	t.Logf("the slowest 503 came after %v; everything works %v after the database", slowest, time.Since(began))
	people := map[string]int{}
	for _, one := range c.contacts(t) {
		people[one.ExternalID]++
	}
	for i := range clients {
		if name := fmt.Sprint(i); i%4 == 0 || i%4 == 3 {
			if people[name] != 1 {
				t.Errorf("%s is there %d times", name, people[name])
			}
		}
		if i%4 == 1 {
			if got := c.messagesTo(t, phoneOf(i)); got != 1 {
				t.Errorf("%s has %d messages", phoneOf(i), got)
			}
		}
	}
}
