package e2e_test

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/store/postgres/pgtest"

	"github.com/jackc/pgx/v5"
)

var (
	databaseAway = flag.Duration("database-away", 5*time.Second, "how long the database of a server with eight webhooks is away in TestDatabaseAway. Long run: -database-away 60s")
	slowRounds   = flag.String("slow-rounds", "200ms", "the round trips to the database in TestSlowDatabase, separated by commas. Long run: -slow-rounds 0s,50ms,100ms,200ms,500ms -slow-writing 20s")
	slowWriting  = flag.Duration("slow-writing", 3*time.Second, "how long TestSlowDatabase writes events by each of them; see -slow-rounds")
)

// note is a long text, so that contacts are large and a small disk fills up soon.
var note = strings.Repeat("a long note ", 500)

// eightWebhooks adds eight webhooks to a workspace. All of them post to the same sink.
func eightWebhooks(t *testing.T, s *server, key string) (*sink, []string) {
	t.Helper()
	to := newSink(t)
	var ids []string
	for n := range 8 {
		ids = append(ids, s.webhook(t, key, to.url+"?"+strconv.Itoa(n)))
	}
	return to, ids
}

// TestDatabaseAway: while the database is away, a server with eight webhooks needs little
// CPU and logs little. Events are delivered soon after the database is back.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("it looks into /proc")
	}
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		p := pgtest.NewProxy(t, pgtest.Database(t))
		d := deployment{newDir(t), p.URL}
		databaseIsAway(t, d, func(*server) { p.Away(true) }, func() { p.Away(false) })
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		small := smallDisk(t, 60<<10)
		d := deployment{dir: filepath.Join(small, "data")}
		ballast := filepath.Join(small, "ballast")
		databaseIsAway(t, d, func(*server) { fillDisk(t, ballast) }, func() { check(t, os.Remove(ballast)) })
	})
}

// fillDisk writes to a file until its disk is full.
func fillDisk(t testing.TB, ballast string) {
	t.Helper()
	f, err := os.Create(ballast)
	check(t, err)
	defer f.Close()
	for block := make([]byte, 64<<10); err == nil; {
		_, err = f.Write(block)
	}
}

func databaseIsAway(t *testing.T, d deployment, away func(*server), back func()) {
	t.Helper()
	_, key := d.workspace(t)
	s := d.delivering(t)
	to, _ := eightWebhooks(t, s, key)
	count := func() int {
		to.mu.Lock()
		defer to.mu.Unlock()
		return to.attempts
	}
	create := func(n int) int {
		status, _ := s.call(t, key, "POST", "/contacts", fmt.Sprintf(`{"external_id":"%d","note":"%s"}`, n, note))
		return status
	}
	if status := create(0); status != http.StatusCreated {
		t.Fatalf("a write answers %d", status)
	}
	waitFor(t, "the first deliveries", func() bool { return count() == 8 })

	away(s)
	waitFor(t, "a write to be refused", func() bool { return create(1) == http.StatusServiceUnavailable })
	lines, spent := strings.Count(s.stderr.String(), "\n"), s.cpu(t)
	<-time.After(*databaseAway)
	logged, used := strings.Count(s.stderr.String(), "\n")-lines, s.cpu(t)-spent
	t.Logf("the database was away for %v: %d lines, %v of a processor", *databaseAway, logged, used)
	if most := time.Second; logged > 100 || used > most {
		t.Errorf("the log:\n%.4000s", s.stderr.String())
	}

	before := count()
	back()
	began := time.Now()
	for create(2) != http.StatusCreated {
		if time.Since(began) > patience {
			t.Fatal("no write is taken")
		}
	}
	waitFor(t, "the next deliveries", func() bool { return count() >= before+8 })
	t.Logf("%v after the database was back, its event was delivered", time.Since(began))
}

// A lagged is an endpoint. It records the deliveries that arrive while the database is
// slow.
type lagged struct {
	sync.Mutex
	written map[string]time.Time // by external id
	took    []time.Duration
}

var externalID = regexp.MustCompile(`"external_id":"([^"]*)"`)

// TestSlowDatabase: the connection to the database is slow. Ten events a second are still
// all delivered soon, and the metric of the lag shows the delay.
func TestSlowDatabase(t *testing.T) {
	t.Parallel()
	p := pgtest.NewProxy(t, pgtest.Database(t))
	d := deployment{newDir(t), p.URL}
	_, key := d.workspace(t)
	s := d.delivering(t)
	l := &lagged{written: map[string]time.Time{}}
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		buffer := make([]byte, 64<<10)
		n := 0
		for {
			m, err := r.Body.Read(buffer[n:])
			if n += m; err != nil {
				break
			}
		}
		l.Lock()
		defer l.Unlock()
		if found := externalID.FindSubmatch(buffer[:n]); found != nil {
			if at, known := l.written[string(found[1])]; known {
				l.took = append(l.took, time.Since(at))
				delete(l.written, string(found[1]))
			}
		}
	}))
	t.Cleanup(endpoint.Close)
	webhook := s.webhook(t, key, endpoint.URL)
	for _, word := range strings.Split(*slowRounds, ",") {
		trip, err := time.ParseDuration(word)
		if err != nil {
			t.Fatal(err)
		}
		p.Slow(trip)
		const every = 100 * time.Millisecond // ten events a second
		began, n, worst := time.Now(), 0, 0.0
		var writing sync.WaitGroup
		for ; time.Since(began) < *slowWriting; n++ {
			name := fmt.Sprintf("%s-%d", word, n)
			writing.Go(func() {
				l.Lock()
				l.written[name] = time.Now()
				l.Unlock()
				if status, answer := s.call(t, key, "POST", "/contacts", fmt.Sprintf(`{"external_id":"%s"}`, name)); status != http.StatusCreated {
					t.Errorf("a write answers %d: %s", status, answer)
				}
			})
			<-time.After(time.Until(began.Add(time.Duration(n+1) * every)))
			if n%10 == 9 {
				worst = max(worst, s.lag(t))
			}
		}
		writing.Wait()
		arrived := func() int {
			l.Lock()
			defer l.Unlock()
			return len(l.took)
		}
		for stop := time.Now().Add(40 * time.Second); arrived() < n && time.Now().Before(stop); <-time.After(10 * time.Millisecond) {
			worst = max(worst, s.lag(t))
		}
		l.Lock()
		slices.Sort(l.took)
		took := l.took
		l.took = nil
		l.Unlock()
		if len(took) < n {
			t.Errorf("with round trips of %v, %d of %d events were delivered, the lag was %.1f s\n%.2000s", trip, len(took), n, worst, s.stderr.String())
			continue
		}
		t.Logf("with round trips of %v: %d of %d events delivered, p50 %v, slowest %v; the greatest lag that was shown is %.1f s",
			trip, len(took), n, took[n/2].Round(time.Millisecond), took[n-1].Round(time.Millisecond), worst)
		if took[n-1] > 30*time.Second {
			t.Errorf("with round trips of %v, an event was delivered after %v", trip, took[n-1])
		}
	}
	p.Slow(0)
	s.wantSettled(t, key, webhook)
	for _, line := range strings.Split(s.stderr.String(), "\n") {
		if strings.Contains(line, "level=WARN") && strings.Contains(line, "webhook") {
			t.Errorf("logged: %s", line)
		}
	}
}

var lagShown = regexp.MustCompile(`(?m)^parley_webhook_lag_seconds (.*)$`)

// lag returns the lag in seconds from the server's metrics.
func (s *server) lag(t testing.TB) float64 {
	t.Helper()
	found := lagShown.FindStringSubmatch(s.metrics(t))
	if found == nil {
		t.Fatal("no lag is shown")
	}
	lag, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return lag
}

// execute runs statements on the installation's database.
func (d deployment) execute(t testing.TB, statements ...string) {
	t.Helper()
	if d.database == "" {
		db, err := sql.Open("sqlite", filepath.Join(d.dir, "parley.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		db.SetMaxOpenConns(1)
		for _, statement := range slices.Concat([]string{"PRAGMA busy_timeout = 10000", "BEGIN IMMEDIATE"}, statements, []string{"COMMIT"}) {
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
		return
	}
	conn, err := pgx.Connect(t.Context(), d.database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	for _, statement := range slices.Concat([]string{"BEGIN"}, statements, []string{"COMMIT"}) {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// TestLostCommits: while a server runs, the database returns to an earlier state, as
// after a failover to a standby that was behind. Only events after the restored cursor
// are delivered twice. Events that are written later are delivered.
func TestLostCommits(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, d deployment) {
		// These are all tables of the feed, the deliveries and the leases. The other
		// tables are not restored, so that the contacts of the lost events are not
		// created again.
		feed, webhooks := []string{"events", "event_counters"}, []string{"webhook_states", "deliveries", "leases"}
		if d.database == "" {
			feed = feed[:1]
		}
		_, key := d.workspace(t)
		s := d.delivering(t)
		to := newSink(t)
		webhook := s.webhook(t, key, to.url)
		l := &loadedFeed{t: t, key: key, nodes: []*server{s}}
		const kept, unsure, lost, later = 300, 40, 60, 50
		l.create(0, kept, nil)
		s.wantDelivered(t, key, webhook, kept)
		// The backup has these events. It does not have their deliveries.
		back := d.copyOf(t, webhooks...)
		l.create(kept, unsure, nil)
		s.wantDelivered(t, key, webhook, kept+unsure)
		back = append(back, d.copyOf(t, feed...)...)
		l.create(kept+unsure, lost, nil)
		s.wantDelivered(t, key, webhook, kept+unsure+lost)

		d.execute(t, back...)
		l.create(kept+unsure+lost, later, nil)
		ids := s.created(t, key)
		if len(ids) != kept+unsure+later {
			t.Fatalf("the feed has %d events, want %d", len(ids), kept+unsure+later)
		}
		waitFor(t, "what was written after the loss", func() bool {
			to.mu.Lock()
			defer to.mu.Unlock()
			return !slices.ContainsFunc(ids, func(id string) bool { return len(to.accepted[id]) == 0 })
		})
		s.wantSettled(t, key, webhook)
		to.mu.Lock()
		defer to.mu.Unlock()
		twice := 0
		for i, id := range ids {
			n := len(to.accepted[id])
			if i < kept && n != 1 || n > 2 {
				t.Errorf("event %d was delivered %d times", i, n)
			}
			twice += n - 1
		}
		t.Logf("%d events, %d of which were lost; %d came twice", kept+unsure+lost+later, lost, twice)
		if twice > unsure {
			t.Errorf("%d events came twice, want %d at most", twice, unsure)
		}
		if log := s.stderr.String(); strings.Count(log, "the database has lost commits") != 1 || strings.Contains(log, "events expired") {
			t.Errorf("logged:\n%s", log)
		}
	})
}

// copyOf copies tables. It returns the statements that restore the present content.
func (d deployment) copyOf(t testing.TB, tables ...string) (back []string) {
	t.Helper()
	var copying []string
	for _, table := range tables {
		copying = append(copying, "CREATE TABLE then_"+table+" AS SELECT * FROM "+table)
		if table == "leases" { // a server that extends its lease meanwhile must find the row
			back = append(back, "UPDATE leases SET holder = t.holder, until = t.until, calls = t.calls FROM then_leases t WHERE t.workspace_id = leases.workspace_id AND t.task = leases.task")
			continue
		}
		back = append(back, "DELETE FROM "+table, "INSERT INTO "+table+" SELECT * FROM then_"+table)
	}
	d.execute(t, copying...)
	return back
}
