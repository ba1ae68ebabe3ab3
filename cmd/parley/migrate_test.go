package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/config"
	"parley/desk"
	"parley/poster"
	"parley/store"
	"parley/store/postgres"
	"parley/store/postgres/pgtest"
	"parley/store/sqlite"

	"github.com/gofrs/flock"
	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite" // the driver of database/sql
)

// A migrationTest is an installation in a directory and a database to copy it to.
type migrationTest struct{ dir, database string }

// newMigrationTest makes an installation with the given number of workspaces, each with
// a key.
func newMigrationTest(t *testing.T, workspaces int) migrationTest {
	t.Helper()
	m := migrationTest{filepath.Join(t.TempDir(), "data"), pgtest.Database(t)}
	for i := range workspaces {
		var made struct {
			ID string `json:"workspace_id"`
		}
		answer := m.parley(t, exitDone, "workspace", "create", "--name", fmt.Sprint("Acme ", i))
		if err := json.Unmarshal([]byte(answer), &made); err != nil {
			t.Fatal(err)
		}
		m.parley(t, exitDone, "key", "create", "--workspace", made.ID, "--name", "k", "--permissions", "all")
	}
	return m
}

// parley runs a command on the directory and returns its output.
func (m migrationTest) parley(t *testing.T, code int, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	got := run(t.Context(), append(args, "--json", "--data", m.dir), nil, &stdout, &stderr)
	if got != code {
		t.Fatalf("parley %s: exit %d, want %d: %s%s", strings.Join(args, " "), got, code, stdout.String(), stderr.String())
	}
	return stdout.String() + stderr.String()
}

func (m migrationTest) migrate(t *testing.T, code int) string {
	t.Helper()
	return m.parley(t, code, "migrate", "--from", "sqlite:"+m.dir, "--to", m.database)
}

// stopAfter starts a copy in batches of two rows, and interrupts it after the given
// number of batches.
func (m migrationTest) stopAfter(t *testing.T, batches int) {
	t.Helper()
	n := 0
	m.stopWhen(t, func(string) bool {
		n++
		return n == batches
	})
}

// stopWhen starts a copy in batches of two rows, and interrupts it after a step.
func (m migrationTest) stopWhen(t *testing.T, is func(doing string) bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := migration{config.Storage{Dir: m.dir}, config.Storage{URL: m.database}, 2, func(doing, _ string, _ int) {
		if is(doing) {
			cancel()
		}
	}}
	if _, _, err := c.run(ctx); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Fatalf("an interrupted copy: %v", err)
	}
}

// ask runs a statement in the target database. It returns the values of the only column.
func (m migrationTest) ask(t *testing.T, sql string) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), m.database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	rows, err := conn.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return list
}

func wantWords(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("no word of %q: %s", word, text)
		}
	}
}

// TestMigrateResumes: after an interruption at any place, the next run continues there.
func TestMigrateResumes(t *testing.T) {
	t.Parallel()
	m := newMigrationTest(t, 7)
	for _, batches := range []int{1, 2, 3, 1, 4} {
		m.stopAfter(t, batches)
		if len(m.ask(t, `SELECT fingerprint FROM migration_progress`)) != 1 {
			t.Fatal("an interrupted copy leaves no mark")
		}
	}
	if got := m.ask(t, `SELECT count(*)::text FROM api_keys`); got[0] != "7" {
		t.Errorf("%s keys after the interruptions: nothing was kept", got)
	}
	answer := m.migrate(t, exitDone)
	wantWords(t, answer, `"verified":true`, `{"name":"workspaces","rows":7}`, `{"name":"api_keys","rows":7}`, `{"name":"directory","rows":14}`)
	tables := m.ask(t, `SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public'`)
	for _, name := range tables {
		copied := slices.ContainsFunc(sqlite.Tables(), func(t sqlite.Table) bool { return t.Name == name })
		if !copied && !slices.Contains([]string{"goose_db_version", "installation", "event_counters", "leases", "pace", "uptime", "claim_rules", "media_chunks", "media_drafts", "search_places", "search_terms"}, name) {
			t.Errorf("the table %s is filled by nothing", name)
		}
	}
	newest := `SELECT workspace_id || ' ' || max(seq) FROM %s GROUP BY workspace_id ORDER BY 1`
	events, counters := m.ask(t, fmt.Sprintf(newest, "events")), m.ask(t, fmt.Sprintf(newest, "event_counters"))
	if !slices.Equal(events, counters) {
		t.Errorf("the counters are %v, want %v", counters, events)
	}
}

// source opens the database that is copied, and returns it with its first workspace.
func (m *migrationTest) source(t *testing.T) (from *sqlite.Store, ws desk.ID) {
	t.Helper()
	from, err := sqlite.Open(t.Context(), sqlite.Config{Path: config.Storage{Dir: m.dir}.Database()})
	if err != nil {
		t.Fatal(err)
	}
	list, err := from.Workspaces(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return from, list[0].ID
}

// TestMigrateLargeRows: rows with megabytes are copied, as a callback may have them.
func TestMigrateLargeRows(t *testing.T) {
	t.Parallel()
	m := newMigrationTest(t, 1)
	from, ws := m.source(t)
	const callbacks = 5
	for i := range callbacks {
		n := desk.InboundItem{ID: desk.ID{byte(i)}, Due: 4_900_000_000_000, ReceivedAt: 7, Skip: i, Body: make([]byte, 4<<20)}
		_, _ = rand.NewChaCha8([32]byte{byte(i)}).Read(n.Body)
		err := from.InTx(t.Context(), ws, func(tx store.Tx) error {
			return errors.Join(tx.PutCallback(n), tx.PutInbound(n), tx.PutCallbackPeople(n, []string{"12025550143", "TR.1"}))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := from.Close(); err != nil {
		t.Fatal(err)
	}
	wantWords(t, m.migrate(t, exitDone), `"verified":true`, `{"name":"callbacks","rows":5}`, `{"name":"callback_people","rows":10}`, `{"name":"inbound_items","rows":5}`)
	if got := m.ask(t, `SELECT sum(length(body)) || ' ' || (SELECT sum(skip) FROM inbound_items) FROM callbacks`); got[0] != fmt.Sprint(callbacks*4<<20, " 10") {
		t.Errorf("the bodies and what is taken in of them: %s", got)
	}
}

// TestMigrateBroadcasts: a copied broadcast does not go on or begin by itself, because the copy does
// not know whom the other database reaches. That is also so if the command is killed when all
// is copied and before all of them are stopped: no server starts, and the next run finishes
// it, unless the source has changed meanwhile.
func TestMigrateBroadcasts(t *testing.T) {
	t.Parallel()
	m := newMigrationTest(t, 1)
	from, ws := m.source(t)
	if err := from.Close(); err != nil {
		t.Fatal(err)
	}
	name := func(name string) {
		from, _ := m.source(t)
		for i, state := range []desk.BroadcastState{desk.BroadcastDraft, desk.BroadcastRunning, desk.BroadcastScheduled, desk.BroadcastRunning} {
			err := from.InTx(t.Context(), ws, func(tx store.Tx) error {
				return tx.PutBroadcast(&desk.Broadcast{ID: desk.ID{byte(i + 1)}, Name: name, State: state, CreatedAt: 1, SendAt: 4_900_000_000_000})
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := from.Close(); err != nil {
			t.Fatal(err)
		}
	}
	name("Spring")
	m.stopWhen(t, func(doing string) bool { return doing == stepChecked })
	if got := m.ask(t, `SELECT state FROM broadcasts ORDER BY id`); !slices.Equal(got, []string{"draft", "running", "scheduled", "running"}) {
		t.Fatalf("after the kill they are %q", got)
	}
	m.ask(t, `UPDATE broadcasts SET state = 'paused' WHERE id = (SELECT max(id::text)::uuid FROM broadcasts) RETURNING state`) // as if the last were stopped already
	copied, err := postgres.Open(t.Context(), postgres.Config{URL: m.database, MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(copied.BindSecret(t.Context(), "a server's"), copied.Close()); err == nil || !strings.Contains(err.Error(), "is being copied") {
		t.Errorf("a server starts: %v", err)
	}
	name("Summer")
	wantWords(t, m.migrate(t, exitFailed), "was written to since the copy was complete")
	name("Spring")
	wantWords(t, m.migrate(t, exitDone), `{"name":"broadcasts","rows":4}`)
	if got, want := m.ask(t, `SELECT state || ' ' || coalesce(body::jsonb ->> 'Reason', '') FROM broadcasts ORDER BY id`), []string{"draft ", "paused stopped", "paused stopped", "paused "}; !slices.Equal(got, want) {
		t.Errorf("they are %q, want %q", got, want)
	}
}

// TestMigrateWebhooks: webhooks continue at their cursors, with their secrets.
func TestMigrateWebhooks(t *testing.T) {
	t.Parallel()
	m := newMigrationTest(t, 1)
	workspaces := m.parley(t, exitDone, "workspace", "list")
	var list struct {
		Data []struct {
			ID string `json:"workspace_id"`
		}
	}
	if err := json.Unmarshal([]byte(workspaces), &list); err != nil {
		t.Fatal(err)
	}
	var added struct {
		ID string `json:"webhook_id"`
	}
	for _, args := range [][]string{{"https://a.example/in", "--types", "contact.*,message.sent", "--disabled"}, {"https://b.example/in"}} {
		answer := m.parley(t, exitDone, append([]string{"webhook", "add", "--workspace", list.Data[0].ID, "--url"}, args...)...)
		if err := json.Unmarshal([]byte(answer), &added); err != nil {
			t.Fatal(err)
		}
	}
	want := m.parley(t, exitDone, "webhook", "list", "--workspace", list.Data[0].ID)
	wantWords(t, m.migrate(t, exitDone), `"verified":true`, `{"name":"webhooks","rows":2}`, `{"name":"webhook_states","rows":2}`)
	copied := func(args ...string) string {
		var stdout, stderr bytes.Buffer
		args = append(args, "--json", "--data", m.dir, "--database", m.database)
		if code := run(t.Context(), args, nil, &stdout, &stderr); code != exitDone {
			t.Fatalf("%v: %s", args, stderr.String())
		}
		return stdout.String()
	}
	if got := copied("webhook", "list", "--workspace", list.Data[0].ID); got != want {
		t.Errorf("the copy has\n%s\nwant\n%s", got, want)
	}
	wantWords(t, copied("webhook", "rotate", added.ID), `"secret":"whsec_`)
}

// TestMigrateShared: since the first release, two contacts may share an identity. They
// still share it in the copy, and each is found by its own spelling.
func TestMigrateShared(t *testing.T) {
	t.Parallel()
	m := newMigrationTest(t, 1)
	db, err := sql.Open("sqlite", config.Storage{Dir: m.dir}.Database())
	if err != nil {
		t.Fatal(err)
	}
	spellings := []string{"5511987654321", "551187654321"}
	for n, phone := range spellings {
		_, err := db.ExecContext(t.Context(), `INSERT INTO contacts (workspace_id, id, external_id, name, email, phone, note, attributes, further, created_at, updated_at, version)
			SELECT id, ?, '', '', '', ?, '', '{}', '', 1, 1, 1 FROM workspaces`, append(make([]byte, 15), byte(n+1)), phone)
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.ExecContext(t.Context(), `UPDATE claim_rules SET rules = 'of before'`); err != nil { // makes the next start rebuild the claims of these contacts
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	wantWords(t, m.migrate(t, exitDone), `"verified":true`, `{"name":"contacts","rows":2}`, `{"name":"claims","rows":2}`)
	if shares := m.ask(t, `SELECT share::text FROM claims ORDER BY 1`); !slices.Equal(shares, []string{"0", "1"}) {
		t.Errorf("the shares are %v", shares)
	}
	in, err := open(t.Context(), config.Storage{Dir: m.dir, URL: m.database}, slog.New(slog.DiscardHandler), makesNot, poster.Config{}, desk.DefaultDeliveryRules(), fileLimits{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.store.Close() }()
	list, err := in.store.Workspaces(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for n, phone := range spellings {
		i := desk.Identity{Kind: desk.KindPhone, Value: phone}
		book, err := in.store.Book(t.Context(), list[0].ID, desk.Lookup{Identities: []desk.Identity{i}})
		if err != nil {
			t.Fatal(err)
		}
		if c, err := book.Holder(i); err != nil || c == nil || c.ID != (desk.ID{15: byte(n + 1)}) {
			t.Errorf("%s is %v, %v", phone, c, err)
		}
	}
	shared, err := in.store.Shared(t.Context(), list[0].ID)
	if err != nil || len(shared) != 1 || len(shared[0].Contacts) != 2 {
		t.Errorf("shared: %v, %v", shared, err)
	}
}

func TestMigrateRefuses(t *testing.T) {
	t.Parallel()
	t.Run("a database in use", func(t *testing.T) {
		t.Parallel()
		m := newMigrationTest(t, 1)
		m.parley(t, exitDone, "workspace", "create", "--name", "Other", "--database", m.database)
		wantWords(t, m.migrate(t, exitFailed), "holds a workspace already")
		if got := m.ask(t, `SELECT name FROM workspaces`); len(got) != 1 {
			t.Errorf("the database's workspaces are now %v", got)
		}
	})
	t.Run("a second copy", func(t *testing.T) {
		t.Parallel()
		m := newMigrationTest(t, 1)
		m.migrate(t, exitDone)
		wantWords(t, m.migrate(t, exitFailed), "holds a workspace already")
	})
	t.Run("another copy's database", func(t *testing.T) {
		t.Parallel()
		m, other := newMigrationTest(t, 3), newMigrationTest(t, 1)
		m.stopAfter(t, 2)
		other.database = m.database
		wantWords(t, other.migrate(t, exitFailed), "copy of another installation")
		m.migrate(t, exitDone)
	})
	t.Run("another installation's database", func(t *testing.T) {
		t.Parallel()
		m, other := newMigrationTest(t, 1), newMigrationTest(t, 0)
		there, err := open(t.Context(), config.Storage{Dir: other.dir, URL: m.database}, slog.New(slog.DiscardHandler), makes, poster.Config{}, desk.DefaultDeliveryRules(), fileLimits{})
		if err != nil {
			t.Fatal(err)
		}
		if err := there.store.Close(); err != nil {
			t.Fatal(err)
		}
		wantWords(t, m.migrate(t, exitFailed), "another secret key")
	})
	t.Run("a source that changed", func(t *testing.T) {
		t.Parallel()
		m := newMigrationTest(t, 3)
		m.stopAfter(t, 8)
		var made struct {
			Data []workspaceRecord `json:"data"`
		}
		if err := json.Unmarshal([]byte(m.parley(t, exitDone, "workspace", "list")), &made); err != nil {
			t.Fatal(err)
		}
		for _, w := range made.Data {
			m.parley(t, exitDone, "workspace", "edit", w.WorkspaceID, "--name", "Renamed")
			var keys struct {
				Data []struct {
					ID string `json:"key_id"`
				} `json:"data"`
			}
			if err := json.Unmarshal([]byte(m.parley(t, exitDone, "key", "list", "--workspace", w.WorkspaceID)), &keys); err != nil {
				t.Fatal(err)
			}
			m.parley(t, exitDone, "key", "edit", keys.Data[0].ID, "--name", "renamed")
		}
		wantWords(t, m.migrate(t, exitFailed), "differs in the table api_keys", "make the database", "anew")
	})
	t.Run("a directory that is served", func(t *testing.T) {
		t.Parallel()
		m := newMigrationTest(t, 1)
		lock := flock.New(filepath.Join(m.dir, "serve.lock"))
		if locked, err := lock.TryLock(); !locked || err != nil {
			t.Fatal(err)
		}
		wantWords(t, m.migrate(t, exitFailed), "a server holds the data directory", "stop it first")
		if err := lock.Close(); err != nil {
			t.Fatal(err)
		}
		m.migrate(t, exitDone)
	})
	t.Run("no installation", func(t *testing.T) {
		t.Parallel()
		m := newMigrationTest(t, 0)
		wantWords(t, m.migrate(t, exitFailed), "holds no SQLite database to copy")
		if files, _ := filepath.Glob(m.dir); files != nil {
			t.Errorf("it makes %s", files)
		}
	})
	t.Run("wrong calls", func(t *testing.T) {
		t.Parallel()
		m := migrationTest{dir: t.TempDir()}
		for _, args := range [][]string{
			{"--from", "sqlite:d"},
			{"--to", "postgres://db/parley"},
			{"--from", "d", "--to", "postgres://db/parley"},
			{"--from", "sqlite:", "--to", "postgres://db/parley"},
			{"--from", "sqlite:d", "--to", ""},
			{"--from", "sqlite:d", "--to", "sqlite:hunter2"},
			{"--from", "sqlite:d", "--to", "postgres://ada:hunter2%@db/parley"},
			{"--from", "sqlite:d", "--to", "mysql://ada:hunter2@db/parley"},
			{"--from", "sqlite:d", "--to", "postgres://ada:hunter2@db/"},
		} {
			if answer := m.parley(t, exitUsage, append([]string{"migrate"}, args...)...); strings.Contains(answer, "hunter2") {
				t.Errorf("it repeats what may be a password: %s", answer)
			}
		}
	})
}

// TestDigest: rows that differ only slightly have different sums.
func TestDigest(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, rows := range [][][]any{
		{}, {{nil}}, {{""}}, {{[]byte{}}}, {{int64(0)}}, {{"a"}}, {{[]byte("a")}}, {{"a", "b"}}, {{"ab", ""}}, {{"", "ab"}}, {{"a"}, {"a"}},
	} {
		d := newDigest()
		for _, row := range rows {
			d.add(row)
		}
		sum := string(d.Sum(nil))
		if seen[sum] || d.rows != len(rows) {
			t.Errorf("the rows %v have the sum of others, or are counted as %d", rows, d.rows)
		}
		seen[sum] = true
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	p := &progress{to: &log}
	p.show("copied", "contacts", 2000)
	p.show("copied", "contacts", 4000) // too early: nothing is shown
	p.clear()
	if got, want := log.String(), "contacts: copied 2000 rows\n"; got != want {
		t.Errorf("it writes %q, want %q", got, want)
	}
}
