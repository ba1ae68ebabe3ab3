// Package pgtest gives tests a PostgreSQL: fresh databases, and whole servers that a
// test may stop. Only tests link it.
//
// The server is that of TEST_POSTGRES_URL, where databases may be created, or else a
// private one, which the first test of a process starts from the installed programs
// and which ends with that process, in whatever way that ends.
package pgtest

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// patience is how long anything here may take on a busy machine.
const patience = time.Minute

// shared is the private server that all tests of this process use.
var shared = sync.OnceValues(start)

// Database returns the URL of a fresh, empty database, which is dropped when the test
// ends. Without a server the test is skipped.
func Database(t testing.TB) string {
	t.Helper()
	server := os.Getenv("TEST_POSTGRES_URL")
	if server == "" {
		s, err := shared()
		check(t, err)
		server = s.URL
	}
	name := create(t, server)
	t.Cleanup(func() {
		// Forced: a process that a test has killed leaves connections behind for a while.
		statement(t, server, "DROP DATABASE "+name+" WITH (FORCE)")
	})
	return sibling(t, server, name)
}

// A Pool hands databases from one test to the next: making a database and its tables
// takes longer than most tests do.
type Pool struct {
	t    testing.TB
	mu   sync.Mutex
	free []string
}

// NewPool returns a pool, whose databases are dropped when the test ends.
func NewPool(t testing.TB) *Pool { return &Pool{t: t} }

// Database returns the URL of a database that no other test has until this one ends. It
// has no rows, but it may have the tables that an earlier test has made.
func (p *Pool) Database(t testing.TB) string {
	t.Helper()
	p.mu.Lock()
	var database string
	if n := len(p.free); n > 0 {
		database, p.free = p.free[n-1], p.free[:n-1]
	}
	p.mu.Unlock()
	if database == "" {
		database = Database(p.t)
	}
	t.Cleanup(func() {
		statement(t, database, deleteRows)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.free = append(p.free, database)
	})
	return database
}

// deleteRows leaves the tables, and what goose knows of them. In tables this small
// DELETE is quicker than TRUNCATE; as a replica, the server looks at no foreign keys.
const deleteRows = `DO $$
DECLARE one text;
BEGIN
	SET LOCAL session_replication_role = replica;
	FOR one IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'goose_db_version' LOOP
		EXECUTE format('DELETE FROM %I', one);
	END LOOP;
END $$`

// Cluster starts a server for the test alone, which ends with the test.
func Cluster(t testing.TB) *Server {
	t.Helper()
	s, err := start()
	check(t, err)
	t.Cleanup(func() {
		if err := s.end(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Database returns the URL of a fresh, empty database on the server.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	return sibling(t, s.URL, create(t, s.URL))
}

// check ends a test that has no server: it is skipped for want of a program.
func check(t testing.TB, err error) {
	t.Helper()
	if missing, ok := err.(missing); ok { //nolint:errorlint // start returns it as it is
		t.Skipf("no PostgreSQL: %s; set TEST_POSTGRES_URL, or install Debian's package postgresql", string(missing))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func create(t testing.TB, server string) (name string) {
	t.Helper()
	name = "parley_" + strings.ToLower(rand.Text())
	statement(t, server, "CREATE DATABASE "+name+" TEMPLATE template0 ENCODING 'UTF8'")
	return name
}

// statement runs SQL on a connection of its own.
func statement(t testing.TB, server, sql string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Exec(ctx, sql)
	if closing := conn.Close(ctx); err == nil {
		err = closing
	}
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// sibling is the URL of another database on the same server.
func sibling(t testing.TB, server, name string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal("TEST_POSTGRES_URL is no URL") // it may hold a password
	}
	u.Path = "/" + name
	return u.String()
}
