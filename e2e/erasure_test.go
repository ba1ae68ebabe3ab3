package e2e_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/store/postgres/pgtest"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

var forgotten = flag.Int("forgotten", 12, "how many contacts TestErasureOfDeliveries deletes. Long run: -forgotten 1000")

// traceOf matches words and numbers that only one person's data has.
var traceOf = regexp.MustCompile(`(external|email|newname|name|note|crm|plan|text|remark)-of-person-\d{5}|4930\d{6}7`)

func tracesIn(texts ...[]byte) map[string]bool {
	found := map[string]bool{}
	for _, text := range texts {
		for _, trace := range traceOf.FindAll(text, -1) {
			found[string(trace)] = true
		}
	}
	return found
}

// An echo is an endpoint whose errors repeat the request. It refuses only every second
// request, so the webhook does not fail for long. It can also hold requests back.
type echo struct {
	*httptest.Server
	mu    sync.Mutex
	tries int
	later []echoed // requests after the contacts were deleted
	over  int64    // no attempt that begins after this second may have traces; 0: the contacts are not deleted yet
	gate  chan struct{}
	held  int             // the number of requests with traces that are held back
	again map[string]bool // of the events held back: those that are refused until a moment after the deletion
}

type echoed struct {
	began  int64 // Unix seconds
	about  string
	traces map[string]bool
}

func newEcho(t *testing.T) *echo {
	t.Helper()
	e := &echo{again: map[string]bool{}}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		began, err2 := strconv.ParseInt(r.Header.Get("Webhook-Timestamp"), 10, 64)
		if err != nil || err2 != nil {
			t.Error(err, err2)
			return
		}
		traces := tracesIn(body)
		e.mu.Lock()
		e.tries++
		refuse, gate := e.tries%2 == 0, e.gate
		if e.over != 0 {
			refuse = e.tries%5 == 0 || e.again[r.Header.Get("Webhook-Id")] && began <= e.over // fewer than before, so that all is soon delivered
			e.later = append(e.later, echoed{began, r.Header.Get("Webhook-Id"), traces})
		}
		if gate != nil && len(traces) > 0 {
			e.held++
			refuse = e.held%2 == 0 // ten refusals in a row, and the next probe may be 30 s away
			e.again[r.Header.Get("Webhook-Id")] = refuse
			e.mu.Unlock()
			<-gate
		} else {
			e.mu.Unlock()
		}
		if refuse {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write(body)
		}
	}))
	t.Cleanup(e.Close)
	return e
}

// hold holds back all requests with traces. The returned function releases them.
func (e *echo) hold() (release func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	gate := make(chan struct{})
	e.gate, e.held = gate, 0
	return sync.OnceFunc(func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.gate = nil
		close(gate)
	})
}

func (e *echo) look(at func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	at()
}

// A dump is the content of every table in plain encoding: from SQLite as an operator
// reads it, from PostgreSQL as its wire protocol sends it.
func (d deployment) dump(t *testing.T) map[string][]byte {
	t.Helper()
	tables := map[string][]byte{}
	if d.database == "" {
		db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(filepath.Join(d.dir, "parley.db"))+"?mode=ro")
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, table := range sqliteRows(t, db, `SELECT name FROM sqlite_schema WHERE type = 'table'`) {
			tables[string(table)] = bytes.Join(sqliteRows(t, db, `SELECT * FROM "`+string(table)+`"`), []byte("\n"))
		}
		return tables
	}
	conn, err := pgx.Connect(t.Context(), d.database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	read := func(query string) (list [][]byte) {
		t.Helper()
		rows, err := conn.Query(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			list = append(list, bytes.Join(rows.RawValues(), []byte("|")))
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return list
	}
	for _, table := range read(`SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'`) {
		tables[string(table)] = bytes.Join(read(`SELECT * FROM "`+string(table)+`"`), []byte("\n"))
	}
	return tables
}

func sqliteRows(t *testing.T, db *sql.DB, query string) (list [][]byte) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	values, into := make([]sql.RawBytes, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		var row []byte
		for _, v := range values {
			row = append(append(row, v...), '|')
		}
		list = append(list, bytes.TrimSuffix(row, []byte("|")))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// TestErasureOfDeliveries: an endpoint repeats the data of people in its errors, and the
// errors are stored. Then the people are deleted. After that, no table has their data,
// and no attempt sends it. An attempt may have been running at the deletion: its response
// is not stored.
func TestErasureOfDeliveries(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(testing.TB) string{"sqlite": func(testing.TB) string { return "" }, "postgres": pgtest.Database} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			erasureOfDeliveries(t, deployment{newDir(t), database(t)})
		})
	}
}

func erasureOfDeliveries(t *testing.T, d deployment) {
	t.Helper()
	var in []string // flags that name the database
	ws, key := "", ""
	if d.database == "" {
		ws, key = newWorkspace(t, d.dir)
	} else {
		in = []string{"--database", d.database}
		ws, key = d.workspace(t)
	}
	channel := must(t, d.dir, slices.Concat([]string{"channel", "add", "sandbox", "--workspace", ws}, in)...)["channel_id"].(string)
	s := serve(t, d.dir, slices.Concat([]string{"--webhook-allow", "127.0.0.0/8", "--webhook-schedule", "300ms,2s,1s,1s"}, in)...)
	c := s.client(t, key, 8)
	endpoint := newEcho(t)
	added := c.must(t, 201, "POST", "/webhooks", fmt.Sprintf(`{"url":%q,"types":["contact.*","conversation.*","message.*","note.*"]}`, endpoint.URL))
	webhook := decode[struct{ Data struct{ ID string } }](t, added).Data.ID

	// The people, each with a conversation.
	count := *forgotten
	word := func(kind string, n int) string { return fmt.Sprintf("%s-of-person-%05d", kind, n) }
	person := func(n int) string {
		return fmt.Sprintf(`{"external_id":%q,"email":"%s@example.com","phone":%q,"name":%q,"note":%q,"identities":[{"kind":"crm","value":%q}]}`,
			word("external", n), word("email", n), phoneOf(n), word("name", n), word("note", n), word("crm", n))
	}
	var people []string
	for n := range count + 1 { // the last person is not deleted
		people = append(people, person(n))
	}
	c.must(t, 201, "POST", "/attributes", `{"key":"plan","type":"text"}`)
	for batch := range slices.Chunk(people, 1000) {
		if got := summaryOf(t, c.must(t, 200, "POST", "/contacts/batch", upserts(batch))); got.Created != len(batch) {
			t.Fatalf("%+v", got)
		}
	}
	together(2, func(i int) {
		for n := i; n <= count; n += 2 {
			if r := parley(t, nil, slices.Concat([]string{"sandbox", "inbound", "--channel", channel, "--from", phoneOf(n), "--text", word("text", n), "--data", d.dir}, in)...); r.code != 0 {
				t.Error(r.stderr)
			}
			if _, err := c.expect("POST", "/contacts", fmt.Sprintf(`{"external_id":%q,"attributes":{"plan":%q}}`, word("external", n), word("plan", n)), 200); err != nil {
				t.Error(err)
			}
		}
	})
	for _, one := range decode[struct {
		Data []struct{ ID, LastMessagePreview string }
	}](t, []byte(strings.ReplaceAll(
		string(c.must(t, 200, "GET", "/conversations?limit=200", "")), "last_message_preview", "LastMessagePreview"))).Data {
		c.must(t, 201, "POST", "/conversations/"+one.ID+"/notes", fmt.Sprintf(`{"text":%q}`, strings.Replace(one.LastMessagePreview, "text", "remark", 1)))
	}
	known := func(tables map[string][]byte) (all, responses map[string]bool) {
		for _, content := range tables {
			all = merged(all, tracesIn(content))
		}
		return all, tracesIn(tables["delivery_responses"])
	}
	var all, responses map[string]bool
	waitFor(t, "what the endpoint answers, stored", func() bool {
		all, responses = known(d.dump(t))
		return len(responses) > count // each person has eight or nine responses
	})
	if len(all) < 9*count {
		t.Fatalf("only %d traces of %d people are stored", len(all), count)
	}

	// The people are deleted while attempts are running.
	release := endpoint.hold()
	defer release()
	for n := range min(count, 8) {
		c.must(t, 200, "POST", "/contacts", fmt.Sprintf(`{"external_id":%q,"name":%q}`, word("external", n), word("newname", n)))
	}
	waitFor(t, "attempts that wait for an answer", func() (ok bool) {
		endpoint.look(func() { ok = endpoint.held >= min(count, 8) })
		return ok
	})
	var gone []string
	for n := range count {
		gone = append(gone, fmt.Sprintf(`{"op":"delete","identities":[{"kind":"external_id","value":%q}]}`, word("external", n)))
	}
	for batch := range slices.Chunk(gone, 1000) {
		if got := summaryOf(t, c.must(t, 200, "POST", "/contacts/batch", `{"operations":[`+strings.Join(batch, ",")+`]}`)); got.Deleted != len(batch) {
			t.Fatalf("%+v", got)
		}
	}
	endpoint.look(func() { endpoint.over = time.Now().Unix() + 1 })
	release()
	stays := tracesIn([]byte(people[count]), []byte(word("text", count)), []byte(word("plan", count)), []byte(word("remark", count)))
	left := func(what string, texts ...[]byte) {
		t.Helper()
		for trace := range tracesIn(texts...) {
			if !stays[trace] {
				t.Errorf("%s of a deleted person is left in %s", trace, what)
			}
		}
	}
	nothingLeft := func(when string) {
		t.Helper()
		tables := d.dump(t)
		for table, content := range tables {
			left(table+" "+when, content)
		}
		if found, _ := known(tables); !found[word("name", count)] {
			t.Errorf("the one who stays is not found %s: the test has lost its subject", when)
		}
	}
	nothingLeft("right after the deletion")

	// Attempts are made after the deletion.
	waitFor(t, "all deliveries to settle", func() bool {
		page := decode[struct{ Data []struct{ Status string } }](t, c.must(t, 200, "GET", "/webhooks/"+webhook+"/deliveries?status=pending&limit=1", ""))
		feed := decode[struct{ Data struct{ Cursor string } }](t, c.must(t, 200, "GET", "/webhooks/"+webhook, "")).Data.Cursor
		newest := decode[struct{ Cursor string }](t, c.must(t, 200, "GET", "/events?cursor=latest", "")).Cursor
		return len(page.Data) == 0 && feed == newest
	})
	late, repeated := 0, map[string]bool{}
	endpoint.look(func() {
		for _, r := range endpoint.later {
			if r.began <= endpoint.over {
				continue
			}
			late++
			repeated[r.about] = true
			for trace := range r.traces {
				if !stays[trace] {
					t.Errorf("an attempt that began %d s after the deletion sends %s", r.began-endpoint.over+1, trace)
				}
			}
		}
	})
	if late < count/4 {
		t.Errorf("only %d attempts were made later", late)
	}
	nothingLeft("in the end")
	c.eachPage(t, "/webhooks/"+webhook+"/deliveries?limit=200", func(body []byte) { left("the list of deliveries", body) })
	s.stop(t)
	left("the log", []byte(s.stderr.String()), []byte(s.stdout.String()))
	t.Logf("%d people, %d traces, %d of them in stored answers; %d later attempts of %d events", count, len(all), len(responses), late, len(repeated))
	if d.database != "" {
		return
	}
	var files [][]byte
	paths, err := filepath.Glob(filepath.Join(d.dir, "parley.db*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, b)
	}
	kept := tracesIn(files...)
	for trace := range stays {
		delete(kept, trace)
	}
	t.Logf("%d of %d traces are in the file after a clean stop", len(kept), len(all))
	if len(kept)*1000 > len(all)*5 {
		t.Errorf("the file keeps %v", kept)
	}
}

func merged(a, b map[string]bool) map[string]bool {
	if a == nil {
		a = map[string]bool{}
	}
	for k := range b {
		a[k] = true
	}
	return a
}

// TestErasureOfSends: an endpoint repeats the addresses of sends in doubt. Then the
// people are deleted. After that, no table has their addresses. This holds for people who
// had a contact before the send, and for people who got one later.
func TestErasureOfSends(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(testing.TB) string{"sqlite": func(testing.TB) string { return "" }, "postgres": pgtest.Database} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := deployment{newDir(t), database(t)}
			ws, key := d.workspace(t)
			d.sandbox(t, ws)
			flags := []string{"--webhook-allow", "127.0.0.0/8", "--webhook-schedule", "300ms,1s,1s"}
			if d.database != "" {
				flags = append(flags, "--database", d.database)
			}
			c := serve(t, d.dir, flags...).client(t, key, 8)
			endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				w.WriteHeader(http.StatusInternalServerError)
				_, _ = w.Write(body)
			}))
			t.Cleanup(endpoint.Close)
			c.must(t, 201, "POST", "/webhooks", `{"url":"`+endpoint.URL+`","types":["send.*"]}`)
			const people = 6
			phone := func(n int) string { return fmt.Sprintf("+49306666%d0003", n) }
			for n := range people {
				if n%2 == 0 {
					c.must(t, 201, "POST", "/contacts", `{"phone":"`+phone(n)+`"}`)
				}
				body := `{"to":{"phone":"` + phone(n) + `"},"template":{"name":"hello","language":"en_US"},"opt_in_confirmed":true}`
				if r, err := c.send("POST", "/conversations/outbound", body, "Idempotency-Key", phone(n)[8:]); err != nil || r.status != 503 {
					t.Fatalf("%d %v", r.status, err)
				}
				if n%2 == 1 {
					c.must(t, 201, "POST", "/contacts", `{"phone":"`+phone(n)+`"}`)
				}
			}
			trace := regexp.MustCompile(`49306666\d0003`)
			waitFor(t, "the answers of the endpoint", func() bool { return len(trace.FindAll(d.dump(t)["delivery_responses"], -1)) >= people/2 })
			for n := range people {
				c.must(t, 200, "POST", "/contacts/batch", `{"operations":[{"op":"delete","phone":"`+phone(n)+`"}]}`)
			}
			for table, content := range d.dump(t) {
				if found := trace.FindAll(content, -1); found != nil {
					t.Errorf("%s has %q", table, found)
				}
			}
		})
	}
}

// TestErasedMessagesAreKeyed: of the message of a deleted person, only a hash is kept.
// The key of the hash is not in the database. If the message comes again, the sandbox
// says that it is dropped.
func TestErasedMessagesAreKeyed(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(testing.TB) string{"sqlite": func(testing.TB) string { return "" }, "postgres": pgtest.Database} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := deployment{newDir(t), database(t)}
			ws, key := d.workspace(t)
			channel := d.sandbox(t, ws)
			in := []string{}
			if d.database != "" {
				in = []string{"--database", d.database}
			}
			say := func() map[string]any {
				t.Helper()
				return d.must(t, "sandbox", "inbound", "--channel", channel, "--from", "+493066660042", "--text", "Hello", "--external-id", "said.1")
			}
			contact, _ := say()["contact_id"].(string)
			serve(t, d.dir, in...).client(t, key, 1).must(t, 204, "DELETE", "/contacts/"+contact, "")
			if again := say(); again["conversation_id"] != nil || again["message_id"] != nil {
				t.Errorf("said again: %v", again)
			}
			text, err := os.ReadFile(filepath.Join(d.dir, "secret.key"))
			if err != nil {
				t.Fatal(err)
			}
			secret, err := hex.DecodeString(strings.TrimSpace(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			purpose := hmac.New(sha256.New, secret)
			purpose.Write([]byte("erased messages"))
			mac := hmac.New(sha256.New, purpose.Sum(nil))
			for _, id := range []string{ws, channel} {
				parsed := uuid.MustParse(id)
				mac.Write(parsed[:])
			}
			mac.Write([]byte("said.1"))
			if kept := d.dump(t)["erased_messages"]; !bytes.Contains(kept, mac.Sum(nil)[:16]) {
				t.Errorf("kept: %x", kept)
			}
		})
	}
}
