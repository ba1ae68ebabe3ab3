package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"log/slog"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"parley/desk"
	"parley/store"
	"parley/store/postgres/pgtest"
	"parley/store/storetest"
)

// oldDatabase makes the schema of the first release with an empty workspace.
func oldDatabase(t *testing.T, url string) *sql.DB {
	t.Helper()
	db := schemaOf(t, url, 4)
	_, err := db.ExecContext(t.Context(), `INSERT INTO workspaces (id, name, country, version) VALUES ($1, 'Old', '', 1)`, storetest.OldID(0).String())
	check(t, err)
	return db
}

// schemaOf makes the schema of a version.
func schemaOf(t *testing.T, url string, version int64) *sql.DB {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	check(t, err)
	db := stdlib.OpenDB(*config)
	files, err := fs.Sub(migrations, "migrations")
	check(t, err)
	old, err := goose.NewProvider(goose.DialectPostgres, db, files)
	check(t, err)
	_, err = old.UpTo(t.Context(), version)
	check(t, err)
	return db
}

// TestFirstReleaseOpens opens a database of the first release, from two nodes at the
// same time.
func TestFirstReleaseOpens(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	db := oldDatabase(t, url)
	ws := storetest.OldID(0)
	for n, c := range storetest.OldContacts {
		_, err := db.ExecContext(t.Context(), `INSERT INTO contacts (workspace_id, id, external_id, name, email, phone, note, attributes, further, created_at, updated_at, version)
			VALUES ($1, $2, $3, '', $4, $5, '', '{}', $6, 1, 1, 1)`, ws.String(), storetest.OldID(byte(n+1)).String(), c.ExternalID, c.Email, c.Phone, c.Further)
		check(t, err)
	}
	for n := range storetest.OldEvents {
		_, err := db.ExecContext(t.Context(), `INSERT INTO events (workspace_id, seq, at, kind, subject_id, actor_id, changed) VALUES ($1, $2, 1, 'contact.created', $1, $1, '')`, ws.String(), n+1)
		check(t, err)
	}
	_, err := db.ExecContext(t.Context(), `INSERT INTO event_counters (workspace_id, seq) VALUES ($1, $2)`, ws.String(), storetest.OldEvents)
	check(t, err)
	check(t, db.Close())
	opened := make(chan error)
	go func() {
		s, err := Open(t.Context(), Config{URL: url, MaxConns: 2})
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	s := openAt(t, url)
	check(t, <-opened)
	storetest.UpgradedEvents(t, s)
	storetest.Upgraded(t, s)
}

// TestManyOfTheFirstReleaseOpen opens a large database of the first release.
func TestManyOfTheFirstReleaseOpen(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	db := oldDatabase(t, url)
	_, err := db.ExecContext(t.Context(), `INSERT INTO contacts (workspace_id, id, external_id, name, email, phone, note, attributes, further, created_at, updated_at, version)
		SELECT $1, lpad(to_hex(n + 1), 32, '0')::uuid, n, 'Person ' || n, n || '@example.com', '49151' || lpad(n::text, 8, '0'), '', '{"city":"Izmir"}', '', n, n, 1
		FROM generate_series(0, $2::int - 1) n`, storetest.OldID(0).String(), *storetest.OldMany)
	check(t, err)
	for kind, column := range map[string]string{"external_id": "external_id", "email": "email", "phone": "phone"} {
		_, err := db.ExecContext(t.Context(), `INSERT INTO identities (workspace_id, kind, value, contact_id) SELECT workspace_id, $1, `+column+`, id FROM contacts`, kind)
		check(t, err)
	}
	check(t, db.Close())
	storetest.UpgradedMany(t, func() store.Store { return openAt(t, url) })
}

// TestFirstReleaseAges opens a database with attempts, early statuses and signs of
// channels as the first release stored them.
func TestFirstReleaseAges(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	db := oldDatabase(t, url)
	for _, statement := range storetest.OldAging(
		func(id desk.ID) string { return "'" + id.String() + "'" }, func(b []byte) string { return fmt.Sprintf(`'\x%x'`, b) },
	) {
		_, err := db.ExecContext(t.Context(), statement)
		check(t, err)
	}
	check(t, db.Close())
	s := openAt(t, url)
	leases, err := strconv.Atoi(query(t, s, `SELECT count(*)::text FROM leases`)[0])
	check(t, err)
	storetest.UpgradedAging(t, s, leases)
}

// TestFirstReleaseTalks opens a database with conversations as the first release stored
// them.
func TestFirstReleaseTalks(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	db := oldDatabase(t, url)
	for _, statement := range storetest.OldTalk(func(id desk.ID) string { return "'" + id.String() + "'" }) {
		_, err := db.ExecContext(t.Context(), statement)
		check(t, err)
	}
	check(t, db.Close())
	storetest.UpgradedTalk(t, openAt(t, url))
}

// opener returns a function that opens one database with the given rules of identities.
func opener(t *testing.T, url string) func(rules string, log *slog.Logger) (store.Store, error) {
	return func(rules string, log *slog.Logger) (store.Store, error) {
		s, err := Open(t.Context(), Config{URL: url, MaxConns: 6, Log: log, rules: rules})
		if err == nil {
			t.Cleanup(func() { check(t, s.Close()) })
		}
		return s, err
	}
}

func TestOtherRules(t *testing.T) {
	t.Parallel()
	storetest.OtherRules(t, opener(t, pgtest.Database(t)))
}

func TestIdleOnNewRules(t *testing.T) {
	t.Parallel()
	storetest.IdleOnNewRules(t, opener(t, pgtest.Database(t)))
}

// TestRebuildWaits: a running transaction under the older rules commits before the
// rebuild begins.
func TestRebuildWaits(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	open, ws := opener(t, url), storetest.OldID(0)
	older, err := open(storetest.OlderRules, slog.New(slog.DiscardHandler))
	check(t, err)
	check(t, older.CreateWorkspace(t.Context(), desk.Workspace{ID: ws, Name: "Acme"}))
	c, err := pgx.Connect(t.Context(), url)
	check(t, err)
	defer func() { check(t, c.Close(context.WithoutCancel(t.Context()))) }()
	opened := make(chan error, 1)
	check(t, older.InTx(t.Context(), ws, func(store.Tx) error {
		go func() {
			_, err := open(storetest.NewerRules, slog.New(slog.DiscardHandler))
			opened <- err
		}()
		for waits := false; !waits; {
			check(t, c.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'workspaces'::regclass)`).Scan(&waits))
			select {
			case err := <-opened:
				t.Fatalf("opened beside a transaction: %v", err)
			default:
			}
		}
		return nil
	}))
	check(t, <-opened)
}

// TestRebuildFails: while a rebuild is unfinished, servers with the older rules do not
// write, and only a server with the newer rules can finish it.
func TestRebuildFails(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	open, ws := opener(t, url), storetest.OldID(0)
	older, err := open(storetest.OlderRules, slog.New(slog.DiscardHandler))
	check(t, err)
	check(t, older.CreateWorkspace(t.Context(), desk.Workspace{ID: ws, Name: "Acme"}))
	c, err := pgx.Connect(t.Context(), url)
	check(t, err)
	defer func() { check(t, c.Close(context.WithoutCancel(t.Context()))) }()
	_, err = c.Exec(t.Context(), `INSERT INTO contacts (workspace_id, id, external_id, name, email, phone, note, attributes, further, created_at, updated_at, version)
		VALUES ($1, $2, '', '', '', '', '', '{}', 'damaged', 1, 1, 1)`, ws.String(), storetest.OldID(1).String())
	check(t, err)
	if _, err := open(storetest.NewerRules, slog.New(slog.DiscardHandler)); err == nil {
		t.Fatal("opened with a damaged contact")
	}
	write := func(s store.Store) error { return s.InTx(t.Context(), ws, func(store.Tx) error { return nil }) }
	if err := write(older); !desk.IsType(err, desk.Unavailable) {
		t.Errorf("the older one writes: %v", err)
	}
	if _, err := open(storetest.OlderRules, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("opened with the older rules")
	}
	_, err = c.Exec(t.Context(), `UPDATE contacts SET further = ''`)
	check(t, err)
	newer, err := open(storetest.NewerRules, slog.New(slog.DiscardHandler))
	check(t, err)
	check(t, write(newer))
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
