package e2e_test

import (
	"database/sql"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/store/postgres/pgtest"

	"github.com/jackc/pgx/v5"
)

// examined runs parley doctor, and returns the status of each check.
func examined(t *testing.T, code int, args ...string) map[string]string {
	t.Helper()
	r := parley(t, nil, append([]string{"doctor", "--json"}, args...)...)
	var answer struct {
		OK     bool
		Checks []struct{ ID, Status, Message, Fix string }
	}
	if err := json.Unmarshal([]byte(r.stdout), &answer); err != nil || r.code != code || answer.OK != (code == 0) || strings.Count(r.stderr, "\n") != code {
		t.Fatalf("doctor %v: exit %d, %v\n%s%s", args, r.code, err, r.stdout, r.stderr)
	}
	found := map[string]string{}
	for _, c := range answer.Checks {
		if c.Message == "" || (c.Fix == "") != (c.Status == "ok" || c.Status == "skip") && c.ID != "db.integrity" {
			t.Errorf("%+v", c)
		}
		found[c.ID] = c.Status
	}
	return found
}

// changed runs statements on a SQLite database, without parley.
func changed(t *testing.T, dir string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "parley.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range statements {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

const attemptInDoubt = `INSERT INTO attempts (workspace_id, id, key, hash, actor_id, phase, created_at, lease_until, settled_at, plan, external_id, refusal, notes, erased)
	SELECT id, id, 'k', '', id, 'in_doubt', 1, 0, 0, '{}', '', '', '', 0 FROM workspaces`

const attemptInDoubtPostgres = `INSERT INTO attempts (workspace_id, id, key, hash, actor_id, phase, created_at, lease_until, settled_at, plan, external_id, refusal, notes, erased)
	SELECT id, id, 'k', '', id, 'in_doubt', 1, 0, 0, '{}', '', '', '', false FROM workspaces`

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestDoctor breaks an installation in one way after the other. Each time, doctor names what
// is broken. It finds nothing in a sound one beside a server, and it changes nothing.
func TestDoctor(t *testing.T) {
	t.Parallel()
	whole := newDir(t)
	_, key := newWorkspace(t, whole)
	s := serve(t, whole)
	s.want(t, 201, key, "POST", "/contacts", `{"external_id":"1","name":"Ada","email":"ada@example.com"}`)
	s.want(t, 201, key, "POST", "/media?name=a.txt", "hello")
	for id, status := range examined(t, 0, "--deep", "--data", whole) {
		if status != "ok" {
			t.Errorf("a sound installation: %s is %s", id, status)
		}
	}
	waitFor(t, "the search to know the contact", func() bool { // the copies are looked at later, on a busy machine after more than a minute
		return strings.Contains(s.want(t, 200, key, "GET", "/contacts?q=ada", ""), "ada@example.com")
	})
	s.stop(t)
	if got := examined(t, 0, "--data", whole); len(got) != 9 {
		t.Errorf("without --deep: %v", got)
	}

	for name, broken := range map[string]struct {
		id, status string
		do         func(t *testing.T, dir string)
	}{
		"directory": {"data.mode", "fail", func(t *testing.T, dir string) { check(t, os.Chmod(dir, 0o755)) }},
		"file":      {"data.mode", "fail", func(t *testing.T, dir string) { check(t, os.Chmod(filepath.Join(dir, "parley.db"), 0o644)) }},
		"other key": {"key.fingerprint", "fail", func(t *testing.T, dir string) {
			check(t, os.WriteFile(filepath.Join(dir, "secret.key"), []byte(strings.Repeat("00", 32)), 0o600))
		}},
		"no key": {"key.fingerprint", "fail", func(t *testing.T, dir string) { check(t, os.Remove(filepath.Join(dir, "secret.key"))) }},
		"no database": {"db.open", "fail", func(t *testing.T, dir string) {
			check(t, os.Remove(filepath.Join(dir, "parley.db")))
		}},
		"other file": {"db.open", "fail", func(t *testing.T, dir string) {
			check(t, os.WriteFile(filepath.Join(dir, "parley.db"), []byte(strings.Repeat("no database ", 1000)), 0o600))
		}},
		"newer schema": {"db.schema", "fail", func(t *testing.T, dir string) {
			changed(t, dir, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)`)
		}},
		"older schema": {"db.schema", "fail", func(t *testing.T, dir string) {
			changed(t, dir, `DELETE FROM goose_db_version WHERE version_id = (SELECT max(version_id) FROM goose_db_version)`)
		}},
		"journal": {"db.settings", "fail", func(t *testing.T, dir string) { changed(t, dir, `PRAGMA journal_mode = DELETE`) }},
		"search": {"search.behind", "warn", func(t *testing.T, dir string) {
			changed(t, dir, `UPDATE search_places SET seq = 0`, `UPDATE events SET at = at - 120000`)
		}},
		"not indexed": {"search.behind", "warn", func(t *testing.T, dir string) {
			changed(t, dir, `DELETE FROM search_places`, `UPDATE contacts SET updated_at = updated_at - 120000`)
		}},
		"doubt": {"sends.in_doubt", "warn", func(t *testing.T, dir string) { changed(t, dir, attemptInDoubt) }},
		"page": {"db.integrity", "fail", func(t *testing.T, dir string) {
			f, err := os.OpenFile(filepath.Join(dir, "parley.db"), os.O_RDWR, 0)
			check(t, err)
			defer f.Close()
			info, err := f.Stat()
			check(t, err)
			for at := int64(100 << 10); at < info.Size(); at += 64 << 10 { // a page here and there
				_, err := f.WriteAt([]byte(strings.Repeat("\xff", 64)), at)
				check(t, err)
			}
		}},
		"identity lost":  {"db.identities", "fail", func(t *testing.T, dir string) { changed(t, dir, `DELETE FROM claims WHERE kind = 'email'`) }},
		"identity stray": {"db.identities", "fail", func(t *testing.T, dir string) { changed(t, dir, `DELETE FROM contacts`) }},
		"media": {"media.missing", "fail", func(t *testing.T, dir string) {
			files, err := filepath.Glob(filepath.Join(dir, "media", "*", "??", "*"))
			if err != nil || len(files) != 1 {
				t.Fatal(files, err)
			}
			check(t, os.Remove(files[0]))
		}},
		"media cut off": {"media.missing", "fail", func(t *testing.T, dir string) {
			files, _ := filepath.Glob(filepath.Join(dir, "media", "*", "??", "*"))
			check(t, os.Truncate(files[0], 2))
		}},
		"media record": {"media.missing", "fail", func(t *testing.T, dir string) { changed(t, dir, `DELETE FROM media_contents`) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := newDir(t)
			check(t, os.CopyFS(dir, os.DirFS(whole)))
			check(t, os.Chmod(dir, 0o700))
			check(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
				if err == nil && path != dir {
					err = os.Chmod(path, map[bool]os.FileMode{true: 0o700, false: 0o600}[d.IsDir()])
				}
				return err
			}))
			broken.do(t, dir)
			code := map[string]int{"fail": 1, "warn": 0}[broken.status]
			found := examined(t, code, "--deep", "--data", dir)
			if found[broken.id] != broken.status {
				t.Errorf("%s is %q: %v", broken.id, found[broken.id], found)
			}
			for id, status := range found {
				if id != broken.id && status != "ok" && status != "skip" && name != "page" && !slices.Contains([]string{"other file", "no database"}, name) {
					t.Errorf("%s is %s", id, status)
				}
			}
		})
	}
}

// TestDoctorReadsOnly: doctor changes no byte of an installation and leaves no file behind,
// whether it was stopped, killed or runs. It also reads one that nobody can write.
func TestDoctorReadsOnly(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	_, key := newWorkspace(t, dir)
	s := serve(t, dir)
	s.want(t, 201, key, "POST", "/contacts", `{"name":"Ada","email":"ada@example.com"}`)
	looks := func(when string) {
		t.Helper()
		before := contents(t, dir)
		examined(t, 0, "--deep", "--data", dir)
		if after := contents(t, dir); !maps.Equal(before, after) {
			t.Errorf("%s: %v, before %v", when, slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(before)))
		}
	}
	s.kill()
	looks("killed")
	s = serve(t, dir)
	s.stop(t)
	looks("stopped")
	check(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(path, 0o500)
		} else if err == nil {
			err = os.Chmod(path, 0o400)
		}
		return err
	}))
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	looks("read-only")
}

// contents returns the bytes of all files of a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	check(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = string(b)
		return err
	}))
	return all
}

// TestDoctorPostgres is the same for what PostgreSQL has of its own.
func TestDoctorPostgres(t *testing.T) {
	t.Parallel()
	database := pgtest.Cluster(t).URL
	dir := newDir(t)
	at := []string{"--data", dir, "--database", database}
	r := parley(t, nil, append([]string{"workspace", "create", "--name", "Test", "--json"}, at...)...)
	if r.code != 0 {
		t.Fatal(r.stderr)
	}
	run := func(statements ...string) {
		t.Helper()
		c, err := pgx.Connect(t.Context(), database)
		check(t, err)
		defer c.Close(t.Context())
		for _, statement := range statements {
			_, err := c.Exec(t.Context(), statement)
			check(t, err)
		}
	}
	want := func(code int, args []string, bad map[string]string) {
		t.Helper()
		found := examined(t, code, append(args, "--deep")...)
		for id, status := range found {
			if wanted := bad[id]; wanted != status && (wanted != "" || status != "ok" && status != "skip") {
				t.Errorf("%s is %s, want %q", id, status, wanted)
			}
		}
		if len(found) != 12 {
			t.Errorf("%v", found)
		}
	}
	want(0, at, nil)
	run(`ALTER SYSTEM SET full_page_writes = off`, `SELECT pg_reload_conf()`)
	waitFor(t, "the setting", func() bool { return parley(t, nil, append([]string{"doctor"}, at...)...).code == 1 })
	want(1, at, map[string]string{"db.settings": "fail"})
	run(`ALTER SYSTEM RESET full_page_writes`, `SELECT pg_reload_conf()`)
	waitFor(t, "the setting", func() bool { return parley(t, nil, append([]string{"doctor"}, at...)...).code == 0 })
	run(attemptInDoubtPostgres)
	want(0, at, map[string]string{"sends.in_doubt": "warn"})
	run(`DELETE FROM attempts`, `INSERT INTO events (workspace_id, seq, at, kind, subject_id, actor_id, changed) SELECT id, 1000, 1, 'contact.updated', id, id, '' FROM workspaces`)
	want(0, at, map[string]string{"search.behind": "warn"})
	run(`DELETE FROM events WHERE seq = 1000`, `INSERT INTO claims (workspace_id, kind, value, share, contact_id) SELECT id, 'email', 'nobody@example.com', 0, id FROM workspaces`)
	want(1, at, map[string]string{"db.identities": "fail"})
	run(`DELETE FROM claims`, `INSERT INTO media_contents (workspace_id, sha256, size, unused, pins, pinned_until, chunks) SELECT id, '\x01', 3, 0, 0, 0, id FROM workspaces`,
		`INSERT INTO media_chunks (workspace_id, chunks, n, bytes) SELECT id, id, 0, 'ab' FROM workspaces`)
	want(1, at, map[string]string{"media.missing": "fail"})
	run(`INSERT INTO media_chunks (workspace_id, chunks, n, bytes) SELECT id, id, 1, 'c' FROM workspaces`)
	want(0, at, nil)
	run(`DELETE FROM media_contents`, attemptInDoubtPostgres)
	run(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)`)
	want(1, at, map[string]string{"db.schema": "fail"})
	run(`DELETE FROM goose_db_version WHERE version_id = 9999`)
	check(t, os.WriteFile(filepath.Join(dir, "secret.key"), []byte(strings.Repeat("00", 32)), 0o600))
	want(1, at, map[string]string{"key.fingerprint": "fail", "sends.in_doubt": "warn"})
	want(1, []string{"--data", dir, "--database", database + "_none"}, map[string]string{"db.open": "fail", "key.fingerprint": "skip"})
}
