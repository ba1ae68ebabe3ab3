package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/desk"
	"parley/store"
	"parley/store/sqlite"

	"github.com/jackc/pgx/v5"
)

var dryRuns = flag.Int("dry-runs", 20, "how many random batches TestDryRun tries, and a quarter as many sends: a dry run equals the write that follows it. Long run: -run 'TestDryRun|TestPostgres/TestDryRun' -dry-runs 2000")

// underDryRun is the beginning of the names of tests whose servers make a dry run before
// each write.
const underDryRun = "TestDryRun/"

// TestDryRun runs the tests of writes again. Before each write it makes a dry run. The dry
// run has the same answer, except for ids and times that are not stored, and changes no
// table.
func TestDryRun(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"TestBatch": TestBatch, "TestContacts": TestContacts, "TestSend": TestSend, "TestSendChecksInOrder": TestSendChecksInOrder,
		"TestSendRefused": TestSendRefused, "TestSendNeeds": TestSendNeeds, "random_batches": testDryRunBatches, "random_sends": testDryRunSends,
	} {
		t.Run(name, test)
	}
}

func testDryRunBatches(t *testing.T) {
	var s *server
	for n := 0; n < *dryRuns && !t.Failed(); {
		if n%100 == 0 {
			s = newServer(t) // a new server, because each dump of all tables would take longer
		}
		r := rand.New(rand.NewPCG(uint64(n), 7))
		w := newTwin(s)
		for range 10 {
			rows := w.real(randomRows(r, len(w.ids)))
			w.batch(rows)
			if row := rows[0]; strings.HasPrefix(row, `{"op":"upsert","data":`) {
				w.as(w.key, "POST /v1/contacts", strings.TrimSuffix(strings.TrimPrefix(row, `{"op":"upsert","data":`), "}"))
				if len(w.ids) > 0 {
					w.as(w.key, "PATCH /v1/contacts/"+w.ids[r.IntN(len(w.ids))], strings.TrimSuffix(strings.TrimPrefix(row, `{"op":"upsert","data":`), "}"))
				}
			}
			n++
		}
	}
}

func testDryRunSends(t *testing.T) {
	s := newDesk(t)
	s.want(201, "POST /v1/attributes", `{"key":"score","type":"number"}`)
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	var contacts []string
	for n := 0; n < *dryRuns/4 && !t.Failed(); n++ {
		number := fmt.Sprintf("+1202224344%d", r.IntN(10))
		to := `{"phone":"` + pick(number, number, number, "+12022240001", "+12022240002") + `"}`
		if len(contacts) > 0 && r.IntN(3) == 0 {
			to = `{"contact_id":"` + pick(contacts...) + `"}`
		}
		changes := []string{`"to":` + to}
		for _, change := range []string{
			pick(`"assignee":"ada@example.com"`, `"assignee":"x"`, `"assignee":null`),
			pick(`"contact":{"name":"Eve","owner":"grace@example.com"}`, `"contact":{"email":"`+pick("a", "b")+`@x.y"}`, `"contact":{"attributes":{"score":"x"}}`, `"contact":{"phone":"`+number+`"}`),
			pick(`"template":{"name":"thanks","language":"en_US"}`, `"template":{"name":"offer","language":"en_US","variables":["a","b","c"]}`, `"template":{"name":"offer","language":"xx"}`, `"template":{"name":"picture","language":"en_US"}`),
			pick(`"opt_in_confirmed":false`, `"channel_id":"`+s.channel.String()+`"`, `"channel_id":"x"`),
		} {
			if r.IntN(3) == 0 {
				changes = append(changes, change)
			}
		}
		switch r.IntN(6) {
		case 0:
			r := s.do("POST /v1/contacts", fmt.Sprintf(`{"external_id":"%d","phone":"+120222434%d","owner":"ada@example.com"}`, n, 50+n%50))
			contacts = append(contacts, contact(t, r.body).ID)
		case 1:
			s.hear(s.channel, number[1:], pick("STOP", "START", "hi"))
		}
		s.outbound(fmt.Sprint("key", n), message(changes...))
	}
}

// canBeTried tells whether a request has a dry run, and its body may get another member.
func canBeTried(method, target, body string) bool {
	write := method == http.MethodPost && (target == "/v1/contacts" || target == "/v1/contacts/batch" || target == "/v1/conversations/outbound" || strings.HasPrefix(target, "/v1/conversations/") && strings.HasSuffix(target, "/messages")) ||
		method == http.MethodPatch && strings.HasPrefix(target, "/v1/contacts/")
	return write && json.Valid([]byte(body)) && strings.HasPrefix(strings.TrimSpace(body), "{")
}

// A trial is the answer to a dry run, and the contacts and conversations that were stored
// at that time.
type trial struct {
	reply
	stored string
}

// try makes the dry run of a request. Afterwards, the clock and the ids are as before.
func (s *server) try(method, target string, header http.Header, body string) trial {
	s.t.Helper()
	ids, clock := s.ids.Load(), s.clock.Load()
	var stored strings.Builder
	for _, list := range []string{"/v1/contacts?limit=200", "/v1/conversations?status=open&limit=200"} {
		stored.Write(s.exchange("GET", list, header, "").body)
	}
	tables := s.dump()
	body = strings.TrimSpace(body)
	comma := ","
	if strings.TrimSpace(body[1:len(body)-1]) == "" {
		comma = ""
	}
	r := s.exchange(method, target, header, body[:len(body)-1]+comma+`"dry_run":true}`)
	if after := s.dump(); after != tables {
		s.t.Errorf("%s %s: a dry run of %s stored\n%s\nbefore\n%s", method, target, body, after, tables)
	}
	s.ids.Store(ids)
	s.clock.Store(clock)
	return trial{r, stored.String()}
}

// providers matches the answers for which the provider is asked.
var providers = regexp.MustCompile(`"type":"(provider_rejected|provider_unavailable|send_outcome_unknown)"`)

// compare checks the dry run by the rules of contract-data §1.
func (tr trial) compare(t testing.TB, call string, real reply) {
	t.Helper()
	switch {
	case real.header.Get("Idempotent-Replayed") != "" || errorType(real.body) == "idempotency_key_reused":
		return // a dry run asks for no stored answer
	case providers.Match(real.body): // a dry run does not ask the provider either
		if tr.status != http.StatusOK {
			t.Errorf("%s: the dry run answers %d %s", call, tr.status, tr.body)
		}
	case real.status >= 400:
		if tr.status != real.status || !bytes.Equal(tr.body, real.body) || tr.header.Get("Dry-Run") != "" {
			t.Errorf("%s: the dry run answers\n%d %v %s, not\n%d %s", call, tr.status, tr.header, tr.body, real.status, real.body)
		}
	default:
		var dry, done any
		decodeJSON(t, tr.body, &dry)
		decodeJSON(t, real.body, &done)
		if tr.status != http.StatusOK || tr.header.Get("Dry-Run") != "true" || real.header.Get("Dry-Run") != "" || !tr.same("", dry, done) {
			t.Errorf("%s: the dry run answers\n%d %v %s, not\n%d %s\nstored: %s", call, tr.status, tr.header, tr.body, real.status, real.body, tr.stored)
		}
	}
}

// same tells whether a value of the dry run's answer is the real one, or, for ids and
// times, the one that was stored, or null.
func (tr trial) same(name string, dry, real any) bool {
	switch real := real.(type) {
	case map[string]any:
		object, _ := dry.(map[string]any)
		if len(object) != len(real) {
			return false
		}
		for member, v := range real {
			if name == "message" && member != "text" && object["text"] != nil {
				if object[member] != nil {
					return false
				}
			} else if !tr.same(member, object[member], v) {
				return false
			}
		}
		return true
	case []any:
		array, _ := dry.([]any)
		if len(array) != len(real) {
			return false
		}
		for i, v := range real {
			if !tr.same("", array[i], v) {
				return false
			}
		}
		return true
	case string:
		switch name {
		case "id", "contact_id":
			if strings.Contains(tr.stored, real) {
				return dry == real
			}
			return dry == nil
		case "created_at", "updated_at", "last_message_at":
			return dry == nil || strings.Contains(tr.stored, fmt.Sprintf("%q:%q", name, dry))
		}
	}
	return reflect.DeepEqual(dry, real)
}

// dump returns the content of all tables.
func (s *server) dump() string {
	s.t.Helper()
	tables := s.tables()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		fmt.Fprintln(&b, name, tables[name])
	}
	return b.String()
}

// tables are the rows of each table, as text.
func (s *server) tables() map[string]string {
	s.t.Helper()
	all := map[string]string{}
	if db, ok := s.store.(*sqlite.Store); ok {
		if err := db.Export(s.t.Context(), func(e *sqlite.Export) error {
			for _, table := range sqlite.Tables() {
				rows, err := e.Page(table, nil, 100_000)
				if err != nil {
					return err
				}
				all[table.Name] = fmt.Sprint(rows)
			}
			return nil
		}); err != nil {
			s.t.Fatal(err)
		}
		return all
	}
	if s.dumps.db == nil {
		s.dumps.open(s)
	}
	rows, _ := s.dumps.db.Query(s.t.Context(), s.dumps.query) // an error also appears in the rows
	var name, text string
	if _, err := pgx.ForEachRow(rows, []any{&name, &text}, func() error {
		all[name] = text
		return nil
	}); err != nil {
		s.t.Fatal(err)
	}
	return all
}

// dumps is the connection on which a test reads all tables of PostgreSQL, and the query that
// does so. A new connection for each dump would read the catalog of all tables again.
type dumps struct {
	db    *pgx.Conn
	query string
}

func (d *dumps) open(s *server) {
	s.t.Helper()
	url, _ := urls.Load(s.store)
	db, err := pgx.Connect(s.t.Context(), url.(string))
	if err != nil {
		s.t.Fatal(err)
	}
	d.db = db
	s.t.Cleanup(func() { _ = db.Close(context.Background()) })
	rows, _ := db.Query(s.t.Context(), `SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'`)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		s.t.Fatal(err)
	}
	var parts []string
	for _, name := range names {
		parts = append(parts, fmt.Sprintf(`SELECT '%s', (SELECT coalesce(string_agg(t::text, E'\n' ORDER BY t::text), '') FROM %s t)`, name, pgx.Identifier{name}.Sanitize()))
	}
	d.query = strings.Join(parts, " UNION ALL ")
}

// TestDryRunForm: dry_run is a boolean of the whole body, and only a dry run of a send
// needs no key.
func TestDryRunForm(t *testing.T) {
	s := newDesk(t)
	before := s.dump()
	for _, c := range []struct {
		call, key, body string
		status          int
		part            string
	}{
		{"POST /v1/contacts", "", `{"email":"a@b.c","dry_run":null}`, 400, "/dry_run: expected true or false, got null"},
		{"POST /v1/contacts", "", `{"email":"a@b.c","dry_run":"true"}`, 400, "/dry_run"},
		{"POST /v1/contacts", "", `{"email":"a@b.c","dry_run":true,"dry_run":false}`, 400, "/dry_run"},
		{"POST /v1/contacts/batch", "", `{"operations":[{"op":"delete","id":"x"}],"dry_run":1}`, 400, "/dry_run"},
		{"POST /v1/contacts/batch", "", `{"operations":[{"op":"upsert","data":{"email":"a@b.c","dry_run":true}}]}`, 200, "/operations/0/data/dry_run: unknown field"},
		{"PUT /v1/contacts/x/owner", "", `{"owner":"ada@example.com","dry_run":true}`, 400, "/dry_run: unknown field"},
		{outbound, "k", message(`"dry_run":null`), 400, "/dry_run"},
		{outbound, "k", message(`"dry_run":true`, `"contact":{"dry_run":true}`), 400, "/contact/dry_run: unknown field"},
		{outbound, "", message(), 400, "Idempotency-Key"},
		{outbound, "", message(`"dry_run":false`), 400, "Idempotency-Key"},
		{outbound, "", message(`"to":7`), 400, "Idempotency-Key"},
		{outbound, "", message(`"to":7`, `"dry_run":true`), 400, "/to"},
		{outbound, "", `{"dry_run":true,"to":7}`, 400, "/to"},
		{outbound, "é", message(`"dry_run":true`), 400, "Idempotency-Key"},
		{outbound, "k", message(`"dry_run":true`), 200, "Ada"},
		{outbound, "", message(`"dry_run":true`), 200, "Ada"},
	} {
		method, target, _ := strings.Cut(c.call, " ")
		header := http.Header{"Authorization": {"Bearer " + s.key}}
		if c.key != "" {
			header.Set("Idempotency-Key", c.key)
		}
		if r := s.exchange(method, target, header, c.body); r.status != c.status || !bytes.Contains(r.body, []byte(c.part)) {
			t.Errorf("%s %s: %d %s", c.call, c.body, r.status, r.body)
		}
	}
	if after := s.dump(); after != before {
		t.Errorf("stored: %s\nbefore: %s", after, before)
	}
	// A stored answer does not matter, and is not replayed.
	if r := s.outbound("k", message()); r.status != 201 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	for _, body := range []string{message(`"dry_run":true`), message(`"dry_run":true`, `"assignee":"ada@example.com"`)} {
		if r := s.outbound("k", body); r.status != 200 || r.header.Get("Dry-Run") != "true" || !bytes.Contains(r.body, []byte(`"existing_conversation":true`)) {
			t.Errorf("%d %v %s", r.status, r.header, r.body)
		}
	}
}

// TestDryRunLocksNothing: a dry run answers while a transaction holds the workspace.
func TestDryRunLocksNothing(t *testing.T) {
	s := newDesk(t)
	s.want(201, "POST /v1/contacts", `{"phone":"+12022243441"}`)
	err := s.store.InTx(t.Context(), s.ws, func(tx store.Tx) error {
		if _, err := tx.Book(desk.Lookup{Identities: []desk.Identity{{Kind: desk.KindPhone, Value: "12022243441"}}}); err != nil {
			return err
		}
		began := time.Now()
		s.want(200, "POST /v1/contacts", `{"phone":"+12022243441","name":"Ada","dry_run":true}`)
		s.want(200, "POST /v1/contacts/batch", `{"operations":[{"op":"delete","phone":"+12022243441"},{"op":"upsert","data":{"phone":"+12022243441"}}],"dry_run":true}`)
		if r := s.outbound("k", message(`"dry_run":true`)); r.status != 200 {
			t.Errorf("%d %s", r.status, r.body)
		}
		if waited := time.Since(began); waited > 4*time.Second {
			t.Errorf("the dry runs took %v", waited)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
