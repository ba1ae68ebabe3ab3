package e2e_test

import (
	"context"
	"flag"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/store/postgres/pgtest"

	"github.com/jackc/pgx/v5"
)

var failoverLost = flag.Duration("failover-lost", 500*time.Millisecond, "of how long the standby of TestFailover lacks the commits when it takes over. Long run: -failover-lost 3s")

// TestFailover: while a server runs, a standby takes over that lacks the last commits. If
// the standby has a delivery as done, the delivery is not repeated. All events that the
// standby has are delivered, and so are all later events.
func TestFailover(t *testing.T) {
	t.Parallel()
	const batch = 20
	primary := pgtest.Cluster(t)
	database := primary.Database(t)
	proxy := pgtest.NewProxy(t, database)
	d := deployment{newDir(t), proxy.URL}
	_, key := d.workspace(t)
	s := d.delivering(t)
	to := newSink(t)
	webhook := s.webhook(t, key, to.url)
	l := &loadedFeed{t: t, key: key, nodes: []*server{s}}
	written := 0
	write := func(n int) {
		l.create(written, n, nil)
		written += n
	}
	write(10 * batch)
	to.wait(t, written)
	s.wantSettled(t, key, webhook)
	standby := primary.Standby(t)
	conn, err := pgx.Connect(t.Context(), standby.Sibling(t, database))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	numbers := func(sql string) (list []int64) {
		t.Helper()
		rows, err := conn.Query(t.Context(), sql)
		if err == nil {
			list, err = pgx.CollectRows(rows, pgx.RowTo[int64])
		}
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return list
	}
	exec := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	const fed = `SELECT seq FROM events WHERE kind = 'contact.created' ORDER BY seq`
	write(3 * batch)
	waitFor(t, "the standby to follow", func() bool { return len(numbers(fed)) == written })

	exec(`ALTER SYSTEM SET primary_conninfo = ''`) // from now on, the standby does not replicate
	exec(`SELECT pg_reload_conf()`)
	waitFor(t, "the standby to be cut off", func() bool { return len(numbers(`SELECT 1::bigint FROM pg_stat_wal_receiver`)) == 0 })
	for began := time.Now(); time.Since(began) < *failoverLost || written < 20*batch; {
		write(batch)
	}
	to.wait(t, written)
	proxy.Away(true)
	if err := primary.Stop("immediate"); err != nil {
		t.Fatal(err)
	}
	exec(`SELECT pg_promote(true, 60)`)
	known := map[int64]bool{} // the events that must be delivered
	for _, seq := range numbers(`SELECT seq FROM deliveries WHERE status = 'delivered'`) {
		known[seq] = true
	}
	seqs := numbers(fed)
	lost := written - len(seqs)
	if lost == 0 || len(known) == 0 {
		t.Fatalf("%d events are lost, and %d are known to be delivered", lost, len(known))
	}
	proxy.LeadTo(standby)
	proxy.Away(false)
	waitFor(t, "/readyz", func() bool { return s.status(t, "/readyz") == http.StatusOK })
	had := len(seqs)
	write(5 * batch)

	ids := s.created(t, key)
	if len(ids) != had+5*batch {
		t.Fatalf("the feed has %d events, want %d", len(ids), had+5*batch)
	}
	waitFor(t, "what was written afterwards", func() bool {
		to.mu.Lock()
		defer to.mu.Unlock()
		for _, id := range ids {
			if len(to.accepted[id]) == 0 {
				return false
			}
		}
		return true
	})
	s.wantSettled(t, key, webhook)
	to.mu.Lock()
	defer to.mu.Unlock()
	twice := 0
	for i, id := range ids {
		n := len(to.accepted[id])
		if n > 2 || n > 1 && (i >= had || known[seqs[i]]) {
			t.Errorf("event %d of %d was delivered %d times", i, len(ids), n)
		}
		twice += n - 1
	}
	t.Logf("%d events were lost; of %d that are left, %d were known to be delivered, and %d came twice", lost, had, len(known), twice)
	if log := s.stderr.String(); strings.Count(log, "the database has lost commits") != 1 || strings.Contains(log, "events expired") {
		t.Errorf("logged:\n%s", log)
	}
}
