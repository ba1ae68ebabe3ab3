package pgtest_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"parley/store/postgres/pgtest"

	"github.com/jackc/pgx/v5"
)

func TestDatabase(t *testing.T) {
	t.Parallel()
	one, two := pgtest.Database(t), pgtest.Database(t)
	if one == two {
		t.Fatalf("two databases have the URL %s", one)
	}
	if _, err := query(t, one, "CREATE TABLE t (a int)"); err != nil {
		t.Fatal(err)
	}
	const tables = "SELECT count(*)::text FROM information_schema.tables WHERE table_schema = 'public'"
	for url, want := range map[string]string{one: "1", two: "0"} {
		if n, err := query(t, url, tables); err != nil || n != want {
			t.Errorf("%s tables, want %s: %v", n, want, err)
		}
	}
}

func TestDatabaseIsDropped(t *testing.T) {
	t.Parallel()
	var url string
	t.Run("inner", func(t *testing.T) {
		url = pgtest.Database(t)
		conn, err := pgx.Connect(t.Context(), url) // stays open
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
	})
	if url == "" {
		t.Skip("no PostgreSQL; TestDatabaseIsDropped/inner says why")
	}
	if n, err := query(t, pgtest.Database(t), "SELECT count(*)::text FROM pg_database WHERE datname = '"+url[strings.LastIndexByte(url, '/')+1:]+"'"); err != nil || n != "0" {
		t.Errorf("the database outlives its test: %s, %v", n, err)
	}
}

func TestPool(t *testing.T) {
	t.Parallel()
	p := pgtest.NewPool(t)
	var first string
	t.Run("first", func(t *testing.T) {
		first = p.Database(t)
		if second := p.Database(t); second == first {
			t.Errorf("a database is used twice: %s", first)
		}
		for _, sql := range []string{"CREATE TABLE a (n int PRIMARY KEY)", "CREATE TABLE b (n int REFERENCES a)", "INSERT INTO a VALUES (1)", "INSERT INTO b VALUES (1)"} {
			if _, err := query(t, first, sql); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("next", func(t *testing.T) {
		if got := p.Database(t); got != first {
			t.Errorf("the next test gets %s, not %s", got, first)
		}
		if n, err := query(t, first, "SELECT ((SELECT count(*) FROM a) + (SELECT count(*) FROM b))::text"); err != nil || n != "0" {
			t.Errorf("the next test finds %s rows: %v", n, err)
		}
	})
}

// TestCluster: a crash loses no acknowledged data, and the URL stays the same.
func TestCluster(t *testing.T) {
	t.Parallel()
	s := pgtest.Cluster(t)
	url := s.Database(t)
	for statement, want := range map[string]string{"SHOW fsync": "on", "SHOW synchronous_commit": "on", "SHOW max_connections": "200"} {
		if got, err := query(t, url, statement); err != nil || got != want {
			t.Errorf("%s: %q, want %q: %v", statement, got, want, err)
		}
	}
	if _, err := query(t, url, "CREATE TABLE t AS SELECT 'kept' AS a"); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop("immediate"); err != nil {
		t.Fatal(err)
	}
	if _, err := query(t, url, "SELECT a FROM t"); err == nil {
		t.Error("a stopped server answers")
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	if got, err := query(t, url, "SELECT a FROM t"); err != nil || got != "kept" {
		t.Errorf("after a crash: %q, %v", got, err)
	}
}

// TestServerEndsWithItsProcess: the private server ends even if the test process is
// killed.
func TestServerEndsWithItsProcess(t *testing.T) {
	t.Parallel()
	if os.Getenv("PGTEST_CHILD") != "" {
		_, _ = os.Stdout.WriteString("url " + pgtest.Cluster(t).URL + "\n")
		select {} // the process waits here until it is killed
	}
	pgtest.Cluster(t) // skips the test if no server can be started
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestServerEndsWithItsProcess$")
	child.Env = append(os.Environ(), "PGTEST_CHILD=1")
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	url := ""
	for lines := bufio.NewScanner(stdout); url == "" && lines.Scan(); {
		url, _ = strings.CutPrefix(lines.Text(), "url ")
		if !strings.HasPrefix(url, "postgres://") {
			url = ""
		}
	}
	_, before := query(t, url, "SELECT ''")
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
	if before != nil {
		t.Fatalf("the child has no server at %q: %v", url, before)
	}
	for stop := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, err := query(t, url, "SELECT ''"); err != nil {
			return
		}
		if time.Now().After(stop) {
			t.Fatal("the server outlives the process that started it")
		}
	}
}

// query returns the text that a statement returns, if any.
func query(t *testing.T, url, statement string) (text string, err error) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(context.Background()) }()
	rows, err := conn.Query(t.Context(), statement)
	if err != nil {
		return "", err
	}
	for rows.Next() {
		if err := rows.Scan(&text); err != nil {
			return "", err
		}
	}
	return text, rows.Err()
}
