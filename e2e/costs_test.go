package e2e_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"parley/store/postgres/pgtest"

	"github.com/jackc/pgx/v5"
)

var (
	costsTimes = flag.Int("costs-times", 12, "how often TestCosts makes each call. For the table in docs/performance.md: -costs-times 300 -v")
	costsOf    = flag.String("costs-of", "", "the binary that TestCosts measures, for a comparison; by default it is built")
)

// An operation is a call whose cost TestCosts measures. Its body may have %[1]d, the number of
// the call.
type operation struct {
	name, method, path, body string
	key                      bool // it has an Idempotency-Key
	trips                    int  // to PostgreSQL, at most
}

// TestCosts: no operation of one client makes more round trips to PostgreSQL than it is allowed
// here. With more repetitions, the test also logs what each operation writes, and its processor
// time.
func TestCosts(t *testing.T) {
	t.Parallel()
	if *costsOf != "" {
		binary = *costsOf
	}
	onBothStores(t, func(t *testing.T, d deployment) {
		var proxy *pgtest.Proxy
		direct := d.database
		if d.database != "" {
			proxy = pgtest.NewProxy(t, d.database)
		}
		ws, key := d.workspace(t)
		channel := d.sandbox(t, ws)
		member := d.must(t, "member", "add", "--workspace", ws, "--name", "Ada", "--email", "ada@example.com")["member_id"].(string)
		open := d.must(t, "sandbox", "inbound", "--channel", channel, "--from", "+4930777777", "--text", "Hello")["conversation_id"].(string)
		if proxy != nil {
			d.database = proxy.URL
		}
		s := serve(t, d.dir, "--database", d.database)
		c := s.client(t, key, 1)
		known := contactOf(t, c.must(t, 201, "POST", "/contacts", `{"external_id":"known","phone":"+4930888888"}`)).ID
		batch := make([]string, 100)
		for n := range batch {
			batch[n] = fmt.Sprintf(`{"external_id":"batch %%[1]d.%d","name":"Ann","phone":"+49301%%06[1]d%02d"}`, n, n)
		}
		outbound := `{"to":{%s},"template":{"name":"hello","language":"en_US"},"opt_in_confirmed":true}`
		for _, o := range []operation{
			{name: "create a contact", method: "POST", path: "/contacts", body: `{"external_id":"new %[1]d","name":"Ann","phone":"+49302%06[1]d"}`, trips: 1},
			{name: "change a contact, by upsert", method: "POST", path: "/contacts", body: `{"external_id":"known","name":"Ann %[1]d"}`, trips: 2},
			{name: "change a contact, by PATCH", method: "PATCH", path: "/contacts/" + known, body: `{"name":"Bob %[1]d"}`, trips: 2},
			{name: "set an owner", method: "PUT", path: "/contacts/" + known + "/owner", body: `{"owner":"` + member + `"}`, trips: 2},
			{name: "create 100 contacts in a batch", method: "POST", path: "/contacts/batch", body: upserts(batch), trips: 2},
			{name: "read a contact", method: "GET", path: "/contacts/" + known, trips: 1},
			{name: "list contacts", method: "GET", path: "/contacts?limit=50", trips: 2},
			{name: "search contacts", method: "GET", path: "/contacts?q=ann", trips: 6},
			{name: "send a template to a new person", method: "POST", path: "/conversations/outbound", body: fmt.Sprintf(outbound, `"phone":"+49303%06[1]d7"`), key: true, trips: 10},
			{name: "send a template to a known person", method: "POST", path: "/conversations/outbound", body: fmt.Sprintf(outbound, `"contact_id":"`+known+`"`), key: true, trips: 10},
			{name: "reply", method: "POST", path: "/conversations/" + open + "/messages", body: `{"text":"Hi %[1]d"}`, key: true, trips: 15},
			{name: "add a note", method: "POST", path: "/conversations/" + open + "/notes", body: `{"text":"Hi %[1]d"}`, trips: 3},
			{name: "assign a conversation", method: "PUT", path: "/conversations/" + open + "/assignee", body: `{"member":"` + member + `"}`, trips: 3},
			{name: "mark as read", method: "PUT", path: "/conversations/" + open + "/read", body: `{}`, trips: 8},
			{name: "read a conversation", method: "GET", path: "/conversations/" + open, trips: 2},
			{name: "list messages", method: "GET", path: "/conversations/" + open + "/messages", trips: 3},
			{name: "list the inbox", method: "GET", path: "/inbox", trips: 5},
			{name: "list templates", method: "GET", path: "/templates?contact_id=" + known, trips: 2},
			{name: "read 100 events", method: "GET", path: "/events?cursor=oldest&limit=100", trips: 5},
		} {
			d.cost(t, s, c, o, proxy, direct)
		}
	})
}

// cost measures an operation. Its first calls do what happens once.
func (d deployment) cost(t *testing.T, s *server, c *client, o operation, proxy *pgtest.Proxy, direct string) {
	t.Helper()
	n := 0
	call := func() bool {
		n++
		path, body := o.path, o.body
		if strings.Contains(body, "%[1]d") || strings.Contains(body, "%06[1]d") {
			body = fmt.Sprintf(body, n)
		}
		var header []string
		if o.key {
			header = []string{"Idempotency-Key", fmt.Sprintf("%s %d", o.name, n)}
		}
		r, err := c.send(o.method, path, body, header...)
		if err != nil || r.status >= 300 || strings.Contains(string(r.body), `"error":{`) {
			t.Errorf("%s: %v, %d %.300s", o.name, err, r.status, r.body)
			return false
		}
		return true
	}
	for range 3 {
		if !call() {
			return
		}
	}
	trips := 0
	if proxy != nil { // what the server does in the background adds to some of the calls: beside a busy system, to most
		for made := 0; made < *costsTimes || trips > o.trips && made < 20**costsTimes; made++ {
			for before := -1; before != proxy.Requests(); <-time.After(5 * time.Millisecond) {
				before = proxy.Requests()
			}
			before := proxy.Requests()
			if !call() {
				return
			}
			if now := proxy.Requests() - before; made == 0 || now < trips {
				trips = now
			}
		}
		if trips > o.trips {
			t.Errorf("%s: %d round trips, at most %d are allowed", o.name, trips, o.trips)
		}
	}
	cpu, wrote, began := s.cpu(t), d.written(t, s, direct), time.Now()
	other := d.databaseCPU(t)
	for range *costsTimes {
		if !call() {
			return
		}
	}
	each := func(d time.Duration) time.Duration { return (d / time.Duration(*costsTimes)).Round(time.Microsecond) }
	t.Logf("| %s | %d | %v | %v | %v | %.1f KB |", o.name, trips, each(time.Since(began)), each(s.cpu(t)-cpu), each(d.databaseCPU(t)-other), float64(d.written(t, s, direct)-wrote)/1000/float64(*costsTimes))
}

// written is how many bytes the database has written: PostgreSQL to its log, SQLite to all files.
func (d deployment) written(t *testing.T, s *server, direct string) (n int64) {
	t.Helper()
	if direct == "" {
		io, _ := os.ReadFile(fmt.Sprintf("/proc/%d/io", s.cmd.Process.Pid)) // no error: another system
		_, after, _ := strings.Cut(string(io), "\nwrite_bytes: ")
		_, _ = fmt.Sscan(after, &n)
		return n
	}
	conn, err := pgx.Connect(t.Context(), direct)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if err := conn.QueryRow(t.Context(), `SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
