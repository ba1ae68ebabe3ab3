package e2e_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"parley/store/postgres/pgtest"

	_ "modernc.org/sqlite"
)

// opening returns two commands that open an installation, as examples: all other commands
// open it in the same way.
func opening(dir string) map[string][]string {
	return map[string][]string{
		"command": {"workspace", "list", "--data", dir},
		"server":  {"serve", "--data", dir, "--listen", "127.0.0.1:0"},
	}
}

const (
	oneKey     = "PARLEY_SECRET_KEY=000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	oneBase64  = "PARLEY_SECRET_KEY=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	anotherKey = "PARLEY_SECRET_KEY=ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
)

func refused(t *testing.T, env []string, args []string, words ...string) {
	t.Helper()
	r := parley(t, env, args...)
	told := r.stderr
	if pgtest.Citus() { // the store has said before that it found the extension
		told = told[strings.LastIndexByte(strings.TrimSuffix(told, "\n"), '\n')+1:]
	}
	if r.code != 1 || r.stdout != "" || strings.Count(told, "\n") != 1 {
		t.Errorf("parley %s: exit %d, want 1 and one line: %s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
	}
	for _, word := range words {
		if !strings.Contains(r.stderr, word) {
			t.Errorf("parley %s: the line does not say %q: %s", strings.Join(args, " "), word, r.stderr)
		}
	}
}

func TestAnotherSecretKeyIsRefused(t *testing.T) {
	t.Parallel()
	given, made := newDir(t), newDir(t)
	if r := parley(t, []string{oneKey}, "workspace", "create", "--name", "A", "--data", given); r.code != 0 {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	if _, err := os.Stat(filepath.Join(given, "secret.key")); err == nil {
		t.Error("a key from the environment was written to the directory")
	}
	if r := parley(t, []string{oneBase64}, "workspace", "list", "--data", given); r.code != 0 {
		t.Errorf("the same key in base64: exit %d: %s", r.code, r.stderr)
	}
	must(t, made, "workspace", "create", "--name", "A")
	for name := range opening("") {
		t.Run(name, func(t *testing.T) { // not in parallel, because a server takes its lock before it checks the key
			refused(t, []string{anotherKey}, opening(given)[name], "secret key", "PARLEY_SECRET_KEY")
			refused(t, []string{anotherKey}, opening(made)[name], "secret key")
			refused(t, nil, opening(given)[name], "secret.key", "PARLEY_SECRET_KEY")
			refused(t, []string{"PARLEY_SECRET_KEY=short"}, opening(given)[name], "PARLEY_SECRET_KEY", "32 bytes")
		})
	}
	serveWith(t, []string{oneKey}, "--data", given).stop(t)
}

func TestDatabaseOfANewerParleyIsRefused(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	must(t, dir, "workspace", "create", "--name", "Test")
	setSchema(t, dir, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, 1)`)
	for _, args := range opening(dir) {
		refused(t, nil, args, dir, "newer", "99999")
	}
	setSchema(t, dir, `DELETE FROM goose_db_version WHERE version_id = 99999`)
	must(t, dir, "workspace", "list")
}

func setSchema(t *testing.T, dir, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "parley.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(context.Background(), statement); err != nil {
		t.Fatal(err)
	}
}

// TestFirstCommandsAtOnce: ten processes start at the same time and make only one
// installation.
func TestFirstCommandsAtOnce(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if r := parley(t, nil, "workspace", "create", "--name", "Test", "--data", dir); r.code != 0 {
				t.Errorf("exit %d: %s", r.code, r.stderr)
			}
		})
	}
	wg.Wait()
	if n := len(must(t, dir, "workspace", "list")["data"].([]any)); n != 10 {
		t.Errorf("%d workspaces, want 10", n)
	}
}

// TestStopLeavesOneFile: after a clean stop, one file has all data. It is the file that a
// backup copies.
func TestStopLeavesOneFile(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	_, key := newWorkspace(t, dir)
	s := serve(t, dir)
	s.want(t, 201, key, "POST", "/contacts", `{"external_id":"1"}`)
	s.stop(t)
	if info, err := os.Stat(filepath.Join(dir, "parley.db-wal")); err == nil && info.Size() > 0 {
		t.Errorf("the log still holds %d bytes", info.Size())
	}
}
