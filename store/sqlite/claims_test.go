package sqlite

import (
	"database/sql"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the driver with which goose made databases

	"parley/desk"
	"parley/store"
	"parley/store/storetest"
)

// oldDatabase makes a database of the first release with an empty workspace.
func oldDatabase(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	check(t, err)
	files, err := fs.Sub(migrations, "migrations")
	check(t, err)
	old, err := goose.NewProvider(goose.DialectSQLite3, db, files)
	check(t, err)
	_, err = old.UpTo(t.Context(), 4)
	check(t, err)
	ws := storetest.OldID(0)
	_, err = db.ExecContext(t.Context(), `INSERT INTO workspaces (id, name, country, version) VALUES (?, 'Old', '', 1)`, ws[:])
	check(t, err)
	return db
}

// TestFirstReleaseOpens opens a database of the first release.
func TestFirstReleaseOpens(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "parley.db")
	db := oldDatabase(t, path)
	ws := storetest.OldID(0)
	for n, c := range storetest.OldContacts {
		id := storetest.OldID(byte(n + 1))
		_, err := db.ExecContext(t.Context(), `INSERT INTO contacts (workspace_id, id, external_id, name, email, phone, note, attributes, further, created_at, updated_at, version)
			VALUES (?, ?, ?, '', ?, ?, '', '{}', ?, 1, 1, 1)`, ws[:], id[:], c.ExternalID, c.Email, c.Phone, c.Further)
		check(t, err)
	}
	for n := range storetest.OldEvents {
		_, err := db.ExecContext(t.Context(), `INSERT INTO events (workspace_id, seq, at, kind, subject_id, actor_id, changed) VALUES (?, ?, 1, 'contact.created', ?, ?, '')`, ws[:], n+1, ws[:], ws[:])
		check(t, err)
	}
	check(t, db.Close())
	s := openAt(t, path)
	storetest.UpgradedEvents(t, s)
	if rules, err := one("rules", s.writer.stmt(`SELECT rules FROM claim_rules`), (*stmt).readText); err != nil || rules != desk.IdentityRules() {
		t.Errorf("the rules are %q, %v", rules, err)
	}
	// If the claims were made by other rules, they are rebuilt.
	check(t, s.writer.stmt(`UPDATE claim_rules SET rules = 'others'`).run())
	check(t, s.writer.stmt(`DELETE FROM claims WHERE kind = 'email'`).run())
	storetest.Upgraded(t, openAt(t, path))
}

// TestManyOfTheFirstReleaseOpen opens a large database of the first release.
func TestManyOfTheFirstReleaseOpen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "parley.db")
	db := oldDatabase(t, path)
	ws := storetest.OldID(0)
	_, err := db.ExecContext(t.Context(), `INSERT INTO contacts (workspace_id, id, external_id, name, email, phone, note, attributes, further, created_at, updated_at, version)
		WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n + 1 < ?2)
		SELECT ?1, unhex(printf('%032x', n + 1)), n, 'Person ' || n, n || '@example.com', printf('49151%08d', n), '', '{"city":"Izmir"}', '', n, n, 1 FROM n`, ws[:], *storetest.OldMany)
	check(t, err)
	for kind, column := range map[string]string{"external_id": "external_id", "email": "email", "phone": "phone"} {
		_, err := db.ExecContext(t.Context(), `INSERT INTO identities (workspace_id, kind, value, contact_id) SELECT workspace_id, ?, `+column+`, id FROM contacts`, kind)
		check(t, err)
	}
	check(t, db.Close())
	storetest.UpgradedMany(t, func() store.Store { return openAt(t, path) })
}

// TestFirstReleaseAges opens a database with attempts, early statuses and signs of
// channels as the first release stored them.
func TestFirstReleaseAges(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "parley.db")
	db := oldDatabase(t, path)
	blob := func(b []byte) string { return fmt.Sprintf("x'%x'", b) }
	for _, statement := range storetest.OldAging(func(id desk.ID) string { return blob(id[:]) }, blob) {
		_, err := db.ExecContext(t.Context(), statement)
		check(t, err)
	}
	check(t, db.Close())
	s := openAt(t, path)
	leases, err := one("leases", s.writer.stmt(`SELECT count(*) FROM leases`), (*stmt).readInt)
	check(t, err)
	storetest.UpgradedAging(t, s, int(leases))
}

// TestFirstReleaseTalks opens a database with conversations as the first release stored
// them.
func TestFirstReleaseTalks(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "parley.db")
	db := oldDatabase(t, path)
	for _, statement := range storetest.OldTalk(func(id desk.ID) string { return fmt.Sprintf("x'%x'", id[:]) }) {
		_, err := db.ExecContext(t.Context(), statement)
		check(t, err)
	}
	check(t, db.Close())
	storetest.UpgradedTalk(t, openAt(t, path))
}

// opener returns a function that opens one database with the given rules of identities.
func opener(t *testing.T) func(rules string, log *slog.Logger) (store.Store, error) {
	path := filepath.Join(t.TempDir(), "parley.db")
	return func(rules string, log *slog.Logger) (store.Store, error) {
		s, err := Open(t.Context(), Config{Path: path, Log: log, rules: rules})
		if err == nil {
			t.Cleanup(func() { check(t, s.Close()) })
		}
		return s, err
	}
}

func TestOtherRules(t *testing.T) {
	t.Parallel()
	storetest.OtherRules(t, opener(t))
}

func TestIdleOnNewRules(t *testing.T) {
	t.Parallel()
	storetest.IdleOnNewRules(t, opener(t))
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
