package e2e_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/store/postgres/pgtest"

	"github.com/jackc/pgx/v5"
)

var migrateContacts = flag.Int("migrate-contacts", 300, "how many contacts of each workspace TestMigrate copies")

// A migratedWorkspace is a workspace with records of every kind.
type migratedWorkspace struct {
	id, key, channel string
	media            []string
}

const (
	migrateTemplates = `{"name":"hello","language":"en_US","category":"UTILITY","status":"APPROVED","components":[{"type":"BODY","text":"Hello {{1}}, ünï – \"quoted\"."}]}
{"name":"offer","language":"de","category":"MARKETING","status":"APPROVED","components":[{"type":"BODY","text":"Ein Angebot!"}]}
{"name":"spoilt","language":"de","category":"UTILITY","status":"REJECTED","components":[{"type":"BODY","text":"Nein."}]}`
	migrateStopped = "+12025550199" // has opted out of marketing
)

// fillForMigration makes a workspace with contacts.
func fillForMigration(t *testing.T, dir string, contacts int) (w migratedWorkspace) {
	t.Helper()
	w.id, w.key = newWorkspace(t, dir, "--country", "US")
	for _, name := range []string{"ada", "grace"} {
		must(t, dir, "member", "add", "--workspace", w.id, "--name", name, "--email", name+"@example.com", "--role", "admin")
	}
	must(t, dir, "login-link", "--workspace", w.id, "--member", "ada@example.com")
	revoked := must(t, dir, "key", "create", "--workspace", w.id, "--name", "old", "--permissions", "contacts:read", "--expires", "720h")
	must(t, dir, "key", "revoke", revoked["key_id"].(string))
	w.channel = must(t, dir, "channel", "add", "sandbox", "--workspace", w.id)["channel_id"].(string)
	for template := range strings.SplitSeq(migrateTemplates, "\n") {
		file := filepath.Join(t.TempDir(), "template.json")
		if err := os.WriteFile(file, []byte(template), 0o600); err != nil {
			t.Fatal(err)
		}
		must(t, dir, "template", "put", "--channel", w.channel, "--file", file)
	}
	s := serve(t, dir, "--webhook-allow", "127.0.0.0/8")
	c := s.client(t, w.key, 1)
	for _, attribute := range lines(t, "attributes.jsonl") {
		c.must(t, 201, "POST", "/attributes", attribute)
	}
	c.must(t, 201, "POST", "/attributes", `{"key":"dropped","label":"Dropped","type":"boolean"}`)
	c.must(t, 200, "DELETE", "/attributes/dropped", "")
	c.must(t, 200, "POST", "/contacts/batch", upserts(lines(t, "legislators.jsonl")))
	for from := 0; from < contacts; from += 1000 {
		var people []string
		for i := from; i < min(contacts, from+1000); i++ {
			people = append(people, fmt.Sprintf(`{"external_id":"m%d","name":"Ünal %d\n\"x\"","email":"Person%d@Example.com","phone":"+4930%07d","note":"emoji 🎈, %% \\ and tab\t",
				"identities":[{"kind":"crm","value":"c-%d"},{"kind":"phone","value":"+4940%07d"}],"attributes":{"state":"S%d","district":%d.5}}`, i, i, i, i, i, i, i%7, i))
		}
		if got := summaryOf(t, c.must(t, 200, "POST", "/contacts/batch", upserts(people))); got.Created != len(people) {
			t.Fatalf("a batch of %d people: %+v", len(people), got)
		}
	}
	members := []string{"ada@example.com", "grace@example.com"}
	for i, one := range c.contacts(t) {
		switch {
		case i%40 == 0:
			c.must(t, 200, "PUT", "/contacts/"+one.ID+"/owner", `{"owner":"`+members[i/40%len(members)]+`"}`)
		case i%97 == 1:
			c.must(t, 204, "DELETE", "/contacts/"+one.ID, "")
		}
	}
	for i := range 30 {
		w.inbound(t, dir, fmt.Sprintf("+4930%07d", 2*i), fmt.Sprint("Is it there yet? ", i))
	}
	w.inbound(t, dir, migrateStopped, "Hello")
	w.inbound(t, dir, migrateStopped, "STOP")
	for i := range 12 {
		w.send(t, s, 201, fmt.Sprint("key-", i), phoneOf(i), "hello")
	}
	w.send(t, s, 422, "refused", "+12025550001", "hello")
	w.send(t, s, 503, "lost", "+12025550003", "hello") // the outcome of this send stays in doubt
	// This receiver answers every delivery with an error and a text.
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "restarting", http.StatusServiceUnavailable)
	}))
	defer receiver.Close()
	webhook := decode[struct{ Data struct{ ID string } }](t, c.must(t, 201, "POST", "/webhooks", `{"url":"`+receiver.URL+`"}`)).Data.ID
	c.must(t, 201, "POST", "/contacts", `{"external_id":"delivered"}`)
	waitFor(t, "a delivery to fail", func() bool {
		return strings.Contains(string(c.must(t, 200, "GET", "/webhooks/"+webhook+"/deliveries", "")), "restarting")
	})
	made := func(body string) string {
		return decode[struct{ Data struct{ ID string } }](t, c.must(t, 201, "POST", "/contacts", body)).Data.ID
	}
	one, other, third := made(`{"external_id":"one","email":"one@example.com"}`), made(`{"external_id":"other","email":"other@example.com"}`), made(`{"external_id":"third"}`)
	c.must(t, 200, "POST", "/contacts/"+one+"/merge", `{"from":"`+third+`"}`)
	c.must(t, 409, "PATCH", "/contacts/"+one, `{"email":"other@example.com"}`)
	waitFor(t, "the conflict with "+other, func() bool { return strings.Contains(string(c.must(t, 200, "GET", "/conflicts", "")), other) })
	broadcast := decode[struct{ Data struct{ ID string } }](t, c.must(t, 201, "POST", "/broadcasts",
		`{"name":"Spring","template":{"name":"offer","language":"de"},"consent":{"confirmed":true}}`)).Data.ID
	c.must(t, 200, "POST", "/broadcasts/"+broadcast+"/rows", `{"rows":[{"to":{"phone":"`+phoneOf(20)+`"}},{"to":{"phone":"`+phoneOf(21)+`"}}]}`)
	c.must(t, 200, "POST", "/broadcasts/"+broadcast+"/start", `{}`)
	waitFor(t, "the broadcast to end", func() bool {
		return strings.Contains(string(c.must(t, 200, "GET", "/broadcasts/"+broadcast, "")), `"state":"done"`)
	})
	for _, content := range []string{"a text", strings.Repeat("a long one ", 200_000), "a text"} {
		w.media = append(w.media, decode[struct{ Data struct{ ID string } }](t, c.must(t, 201, "POST", "/media?name=a.txt", content)).Data.ID)
	}
	conversations := decode[struct{ Data []struct{ ID string } }](t, c.must(t, 200, "GET", "/conversations", "")).Data
	c.must(t, 200, "PUT", "/conversations/"+conversations[0].ID+"/status", `{"status":"closed"}`)
	c.must(t, 200, "PUT", "/conversations/"+conversations[1].ID+"/assignee", `{"member":"`+members[0]+`"}`)
	c.must(t, 201, "POST", "/conversations/"+conversations[1].ID+"/notes", `{"text":"ünï \"x\"\n🎈","member":"`+members[0]+`"}`)
	c.must(t, 201, "POST", "/conversations/"+conversations[1].ID+"/notes", `{"text":"second"}`)
	c.must(t, 200, "PUT", "/members/"+memberOf(t, c, members[0])+"/availability", `{"available":false}`) // otherwise the policy would assign conversations during the test
	c.must(t, 200, "PUT", "/policy", `{"assign":{"mode":"round_robin","members":["`+members[0]+`"]},"owner_away":"pool","hours":{"time_zone":"Europe/Istanbul","week":{"mon":[["09:00","24:00"]]}},"auto_reply":{"away":"\"🎈\"\n"}}`)
	c.must(t, 201, "PUT", "/segments/named", `{"name":"\"ünï\" 🎈","filter":{"all":[{"field":"name","is":"present"},{"any":[{"field":"country","is":"in","values":["TR"]},{"field":"wrote_at","is":"older","days":90}]}]}}`)
	c.must(t, 201, "PUT", "/snippets/hi", `{"text":"Hi {{customer_name}} \"🎈\"\n"}`)
	s.stop(t)
	return w
}

func (w migratedWorkspace) inbound(t *testing.T, dir, from, text string) {
	t.Helper()
	must(t, dir, "sandbox", "inbound", "--channel", w.channel, "--from", from, "--text", text)
}

func (w migratedWorkspace) send(t *testing.T, s *server, status int, key, phone, template string) string {
	t.Helper()
	body := `{"to":{"phone":"` + phone + `"},"template":{"name":"hello","language":"en_US","variables":["Ada"]},"opt_in_confirmed":true}`
	if template == "offer" {
		body = `{"to":{"phone":"` + phone + `"},"template":{"name":"offer","language":"de","variables":[]},"opt_in_confirmed":true}`
	}
	got, answer := s.call(t, w.key, "POST", "/conversations/outbound", body, "Idempotency-Key", key)
	if got != status {
		t.Fatalf("the send %s: status %d, want %d: %s", key, got, status, answer)
	}
	return answer
}

// answers returns the bodies of all API responses about a workspace, with their paths.
func (w migratedWorkspace) answers(t *testing.T, s *server) map[string]string {
	t.Helper()
	c, all := s.client(t, w.key, 1), map[string]string{}
	pages := func(path string) (ids []string) {
		for cursor := ""; ; {
			at := path
			if cursor != "" {
				at += "&cursor=" + url.QueryEscape(cursor)
			}
			body := c.must(t, 200, "GET", at, "")
			all[at] = string(body)
			page := decode[struct {
				Data       []struct{ ID string }
				NextCursor string `json:"next_cursor"`
			}](t, body)
			for _, one := range page.Data {
				ids = append(ids, one.ID)
			}
			if cursor = page.NextCursor; cursor == "" {
				return ids
			}
		}
	}
	for _, path := range []string{"/attributes", "/attributes?archived=true", "/templates", "/snippets", "/segments", "/policy", "/channels", "/channels/" + w.channel + "/policy"} {
		all[path] = string(c.must(t, 200, "GET", path, ""))
	}
	c.eachPage(t, "/contacts?segment=named", func(body []byte) { // on a busy machine, a page ends early
		for _, one := range decode[struct{ Data []struct{ ID string } }](t, body).Data {
			all["named"] += one.ID + " "
		}
	})
	for _, id := range w.media {
		all[id] = string(c.must(t, 200, "GET", "/media/"+id, ""))
		all[id+" content"] = string(c.must(t, 200, "GET", "/media/"+id+"/content", ""))
	}
	pages("/members?limit=1")
	for i, id := range pages("/contacts?limit=70") {
		if i%10 == 0 {
			all[id] = string(c.must(t, 200, "GET", "/contacts/"+id, ""))
			all[id+" identities"] = string(c.must(t, 200, "GET", "/contacts/"+id+"/identities", ""))
			pages("/contacts/" + id + "/conversations?limit=5")
		}
	}
	if len(pages("/inbox?limit=10")) == 0 || len(pages("/inbox?order=waiting&limit=10")) == 0 {
		t.Error("the inbox is empty")
	}
	conversations := pages("/conversations?limit=10")
	if len(conversations) < 40 {
		t.Fatalf("only %d conversations", len(conversations))
	}
	for _, id := range conversations {
		all[id+" state"] = string(c.must(t, 200, "GET", "/conversations/"+id+"/state", ""))
		pages("/conversations/" + id + "/messages?limit=2")
		pages("/conversations/" + id + "/notes?limit=1")
	}
	return all
}

// memberOf returns the id of the member with an e-mail.
func memberOf(t *testing.T, c *client, email string) string {
	t.Helper()
	for _, m := range decode[struct {
		Data []struct {
			ID    string `json:"member_id"`
			Email string
		}
	}](t, c.must(t, 200, "GET", "/members", "")).Data {
		if strings.EqualFold(m.Email, email) {
			return m.ID
		}
	}
	t.Fatalf("no member has the e-mail %s", email)
	return ""
}

func openSource(t *testing.T, dir string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(filepath.Join(dir, "parley.db"))+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// leaveReports adds rows to tables that a server normally empties by itself: an inbound
// item that is due in a hundred years, a status of an unknown message, a callback, and
// sessions of members.
func leaveReports(t *testing.T, db *sql.DB) {
	t.Helper()
	for _, statement := range []string{
		`INSERT INTO inbound_items (workspace_id, due_at, id, channel_id, body)
			SELECT workspace_id, 4900000000000, randomblob(16), id, randomblob(100000) FROM channels`,
		`INSERT INTO erased_messages (workspace_id, hash, erased_at) SELECT workspace_id, randomblob(16), 4900000000000 FROM channels`,
		`INSERT INTO early_statuses (workspace_id, channel_id, external_id, at, delivery, attempt_id, failure)
			SELECT workspace_id, id, 'x', 4900000000000, 'delivered', randomblob(16), '' FROM channels`,
		`INSERT INTO callbacks (workspace_id, received_at, id, channel_id, body) SELECT workspace_id, 4900000000000, id, id, randomblob(4 << 20) FROM channels`,
		`INSERT INTO media_jobs (workspace_id, media_id, channel_id, contact_id, conversation_id, message_id, message_ts, ref, mime, size, sha256, tries, due_at, holder, ended)
			SELECT workspace_id, id, id, id, id, id, 1, 'ref', '', 0, x'', 3, 9223372036854775807, x'00000000000000000000000000000000', 1 FROM channels`,
		`INSERT INTO turns (workspace_id, channel_id, member_id, number) SELECT workspace_id, zeroblob(16), id, 7 FROM members`,
		`INSERT INTO auto_replies (workspace_id, contact_id, message_id, channel_id, conversation_id, kind, text, decided_at, due_at, tries)
			SELECT workspace_id, id, id, id, id, 'away', 'We are closed. 🎈', 1, 4900000000000, 1 FROM channels`,
		`INSERT INTO media_refs (workspace_id, media_id, channel_id, ref, at) SELECT workspace_id, id, id, 'ref', 1 FROM media`,
		`INSERT INTO sessions (workspace_id, hash, member_id, begun_at, expires_at, data) SELECT workspace_id, hex(id), id, 1, 4900000000000, x'00ff' FROM members`,
		`INSERT INTO member_access (workspace_id, member_id, password, seen_at) SELECT workspace_id, id, 'hash', 1 FROM members`,
		`INSERT INTO daily (workspace_id, day, kind, key, label, n) SELECT workspace_id, 50000, 'sent', hex(id), '', 1 FROM channels`,
		`INSERT OR REPLACE INTO daily_places (workspace_id, seq, tag) SELECT id, 1000000, 1 FROM workspaces`,
		`INSERT INTO imports (workspace_id, id, key, started_at, ended_at, read, created, updated, unchanged, rejected, error_bytes) SELECT id, id, randomblob(32), 1, 0, 5, 1, 1, 1, 2, 99 FROM workspaces`,
		`INSERT INTO import_uploads (workspace_id, id, slot, media_id, member_id, name, size, total, options, state, problem, problem_at, created_at, queued_at, ended_at, run_id)
			SELECT id, id, 1, id, id, 'people.csv 🎈', 9, 5, '{}', 'open', '', '', 1, 0, 0, id FROM workspaces`,
		`INSERT INTO import_rejects (workspace_id, run_id, at, body) SELECT id, id, 0, randomblob(100000) FROM workspaces`,
		`INSERT INTO erasures (workspace_id, id, at) SELECT id, id, 7 FROM workspaces`,
		`INSERT INTO callback_people (workspace_id, value, received_at, id) SELECT workspace_id, '12025550199', 4900000000000, id FROM channels`,
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

func wantSame(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d answers, want %d", what, len(got), len(want))
	}
	for path, body := range want {
		if got[path] != body {
			t.Errorf("%s: %s answers\n%.600s\nwant\n%.600s", what, path, got[path], body)
		}
	}
}

func fileSum(t *testing.T, path string) [32]byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(b)
}

// TestMigrate copies an installation, and kills the copy before it has ended. After the
// copy is completed, servers on both databases must return the same bytes.
func TestMigrate(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	dir := newDir(t)
	workspaces := []migratedWorkspace{fillForMigration(t, dir, *migrateContacts), fillForMigration(t, dir, *migrateContacts)}

	s := serve(t, dir)
	refused(t, nil, []string{"migrate", "--from", "sqlite:" + dir, "--to", database}, "a server holds", "stop it first")
	var want []map[string]string
	var attempts []string
	db := openSource(t, dir)
	waitFor(t, "what the sandbox reports of messages", func() (quiet bool) {
		err := db.QueryRowContext(t.Context(), `SELECT count(*) = 0 FROM inbound_items`).Scan(&quiet)
		return quiet && err == nil
	})
	for _, w := range workspaces {
		want = append(want, w.answers(t, s))
		attempts = append(attempts, parley(t, nil, "attempt", "list", "--workspace", w.id, "--data", dir, "--json").stdout)
	}
	s.stop(t)
	leaveReports(t, db)
	if err := db.Close(); err != nil { // this empties the log
		t.Fatal(err)
	}
	before := fileSum(t, filepath.Join(dir, "parley.db"))

	args := []string{"migrate", "--from", "sqlite:" + dir, "--to", database, "--json"}
	interrupted := 0
	for try := range 5 {
		p := launch(t, nil, args...)
		waitFor(t, "the copy to begin, or to go on", func() bool { return p.ended() || contactsCopied(t, database) > try**migrateContacts/3 })
		time.Sleep(time.Duration(try) * 3 * time.Millisecond)
		if try%2 == 0 {
			p.kill()
		} else {
			_ = p.cmd.Process.Signal(os.Interrupt) // the process may have ended already
		}
		if p.wait(t) == 0 {
			break
		}
		interrupted++
	}
	r := parley(t, nil, args...)
	if r.code != 0 && !strings.Contains(r.stderr, "holds a workspace already") {
		t.Fatalf("after %d interruptions: exit %d: %s", interrupted, r.code, r.stderr)
	}
	t.Logf("%d interruptions", interrupted)
	if r.code == 0 {
		var answer struct {
			Tables []struct {
				Name string
				Rows int
			}
			Verified bool
		}
		if err := json.Unmarshal([]byte(r.stdout), &answer); err != nil || !answer.Verified {
			t.Errorf("it answers %v: %s", err, r.stdout)
		}
		for _, table := range answer.Tables {
			// event_floors is empty because no event has expired; TestEventRetention copies expired
			// events. broadcast_numbers has rows only until a broadcast ends.
			if table.Rows == 0 && !slices.Contains([]string{"event_floors", "broadcast_numbers"}, table.Name) {
				t.Errorf("nothing of the table %s was there to be copied", table.Name)
			}
		}
	}
	if after := fileSum(t, filepath.Join(dir, "parley.db")); after != before {
		t.Error("the source has changed")
	}
	if _, err := os.Stat(filepath.Join(dir, "parley.db-wal")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the source has a log: %v", err)
	}
	refused(t, nil, args, "holds a workspace already")

	refused(t, []string{anotherKey}, []string{"serve", "--listen", "127.0.0.1:0", "--database", database}, "secret key")
	secret, err := os.ReadFile(filepath.Join(dir, "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	node := serveWith(t, []string{"PARLEY_SECRET_KEY=" + string(secret)}, "--data", newDir(t), "--database", database)
	for i, w := range workspaces {
		wantSame(t, "workspace "+w.id, w.answers(t, node), want[i])
		r := parley(t, nil, "attempt", "list", "--workspace", w.id, "--data", dir, "--database", database, "--json")
		if r.stdout != attempts[i] || !strings.Contains(r.stdout, `"in_doubt"`) {
			t.Errorf("the attempts are\n%s, want\n%s", r.stdout, attempts[i])
		}
	}

	// The copy also has data that the API does not show: keys and their answers,
	// opt-outs, the numbers of events.
	sqlite := serve(t, dir)
	for _, w := range workspaces {
		for _, key := range []string{"key-3", "refused"} {
			status, phone := 201, phoneOf(3)
			if key == "refused" {
				status, phone = 422, "+12025550001"
			}
			theirs, ours := w.send(t, sqlite, status, key, phone, "hello"), w.send(t, node, status, key, phone, "hello")
			if status == 201 && theirs != ours {
				t.Errorf("the key %s is answered with\n%s, want\n%s", key, ours, theirs)
			}
		}
		w.send(t, node, 503, "lost", "+12025550003", "hello")
		if answer := w.send(t, node, 422, "stopped", migrateStopped, "offer"); !strings.Contains(answer, "opt") {
			t.Errorf("marketing to one who has stopped it: %s", answer)
		}
		node.want(t, 201, w.key, "POST", "/contacts", `{"external_id":"after","name":"After"}`)
		node.want(t, 200, w.key, "POST", "/contacts", `{"identities":[{"kind":"crm","value":"c-7"}],"note":"found"}`)
		w.send(t, node, 201, "after", phoneOf(500), "hello")
	}
	node.stop(t)
	sqlite.stop(t)
}

// contactsCopied counts the contacts in the target of a copy, which may just have begun.
func contactsCopied(t *testing.T, database string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	_ = conn.QueryRow(t.Context(), `SELECT count(*) FROM contacts`).Scan(&n) // the table may not exist yet
	return n
}
