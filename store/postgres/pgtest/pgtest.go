// Package pgtest provides tests with PostgreSQL: new databases, and whole servers that a
// test may stop. Only tests link it.
//
// TEST_POSTGRES_URL may name a server on which the tests can create databases. Without
// it, the first test of a process starts a private server from the installed programs.
// The private server ends when the process ends, even if the process is killed. With the
// flag -citus, the databases are on a Citus cluster.
//
//	pgtest.go      databases for tests
//	database.go    statements, and the names of databases
//	suite.go       the tests of a package, again
//	server.go      a private server
//	citus.go       databases on a Citus cluster
//	proxy.go       a proxy for a database, which can be slow or unreachable
//	sessions.go    sessions of the private server, which are used again
//	user_unix.go   the user as which the server runs
//	user_other.go  the same for other systems
package pgtest

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// shared returns the private server that all tests of this process use. The server does
// not sync to the disk: only a crash of the machine could lose committed data. A test of
// a server's own crash uses a Cluster.
var shared = sync.OnceValues(func() (*Server, error) { return start("", true, false) })

// Database returns the URL of a new, empty database, which is dropped when the test
// ends. Without a server, the test is skipped.
func Database(t testing.TB) string {
	t.Helper()
	if Citus() {
		database, join := BeforeCitus(t)
		join()
		return database
	}
	server := os.Getenv("TEST_POSTGRES_URL")
	if server == "" {
		s, err := shared()
		check(t, err)
		server = s.URL
	}
	name := create(t, server)
	t.Cleanup(func() {
		// FORCE, because a killed process leaves connections behind for a while.
		statement(t, server, "DROP DATABASE "+name+" WITH (FORCE)")
	})
	return keepSessions(t, sibling(t, server, name))
}

// BeforeCitus makes a database on all servers of the cluster that does not have the
// extension yet. It returns the URL at the coordinator, and the function that joins the
// servers. Without a cluster, that function does nothing.
func BeforeCitus(t testing.TB) (database string, join func()) {
	t.Helper()
	if !Citus() {
		return Database(t), func() {}
	}
	name, servers := createOnCitus(t)
	return sibling(t, servers[0], name), func() { joinOn(t, servers, name) }
}

// A Pool reuses databases for several tests, because creating a database and its tables
// takes longer than most tests.
type Pool struct {
	t    testing.TB
	mu   sync.Mutex
	free []pooled
}

// A pooled database has a connection that deletes the rows: a new one would first have to
// read the catalogue of each table.
type pooled struct {
	url  string
	conn *pgx.Conn
}

// NewPool returns a pool. Its databases are dropped when the test ends.
func NewPool(t testing.TB) *Pool { return &Pool{t: t} }

// Database returns the URL of a database that no other test uses before this test ends.
// It has no rows, but it may have the tables of an earlier test.
func (p *Pool) Database(t testing.TB) string {
	t.Helper()
	d := p.take()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if _, err := d.conn.Exec(ctx, deleteRows()); err != nil {
			t.Fatal(err)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.free = append(p.free, d)
	})
	return d.url
}

func (p *Pool) take() pooled {
	p.mu.Lock()
	if n := len(p.free); n > 0 {
		d := p.free[n-1]
		p.free = p.free[:n-1]
		p.mu.Unlock()
		return d
	}
	p.mu.Unlock()
	d := pooled{url: Database(p.t)}
	var err error
	if d.conn, err = pgx.Connect(p.t.Context(), d.url); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = d.conn.Close(context.Background()) })
	return d
}

// deleteRows returns a statement that deletes all rows, except those of goose, of the counter
// of hours, which migrations create, and of the rules of claims, without which the next start
// would store all claims anew. For small tables, DELETE is faster than TRUNCATE. Most tables
// never had a row; on a Citus cluster the coordinator can't tell by the size of its own table.
// With session_replication_role = replica, the server does not check foreign keys.
func deleteRows() string {
	had := ` AND pg_relation_size(oid) > 0`
	if Citus() {
		had = ""
	}
	return `DO $$
DECLARE one text;
BEGIN
	SET LOCAL session_replication_role = replica;
	FOR one IN SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
		AND relname NOT IN ('goose_db_version', 'uptime', 'claim_rules')` + had + ` LOOP
		EXECUTE format('DELETE FROM %I', one);
	END LOOP;
END $$`
}

// Cluster starts a server for this test only, and stops it when the test ends.
func Cluster(t testing.TB) *Server {
	t.Helper()
	return ClusterIn(t, "")
}

// Group starts servers for this test only, and makes a database on them. With -citus, they
// are a coordinator and two workers of a new cluster; without it, there is one server. It
// returns the database's URL at the first server.
func Group(t testing.TB) (database string, servers []*Server) {
	t.Helper()
	if !Citus() {
		server := Cluster(t)
		return server.Database(t), []*Server{server}
	}
	var urls []string
	for range 3 {
		s, err := start("", false, true)
		check(t, err)
		t.Cleanup(func() {
			if err := s.end(); err != nil {
				t.Error(err)
			}
		})
		servers, urls = append(servers, s), append(urls, s.URL)
	}
	name := createOn(t, urls)
	joinOn(t, urls, name)
	return sibling(t, urls[0], name), servers
}

// ClusterIn is like Cluster, with the server's files in a directory that all users may
// write to.
func ClusterIn(t testing.TB, dir string) *Server {
	t.Helper()
	s, err := start(dir, false, false)
	check(t, err)
	t.Cleanup(func() {
		if err := s.end(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Database returns the URL of a new, empty database on the server.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	return sibling(t, s.URL, create(t, s.URL))
}

// check skips a test if a program is missing that is needed to start a server.
func check(t testing.TB, err error) {
	t.Helper()
	if missing, ok := err.(missing); ok { //nolint:errorlint // start does not wrap it
		t.Skipf("no PostgreSQL: %s; set TEST_POSTGRES_URL, or install Debian's package postgresql", string(missing))
	}
	if err != nil {
		t.Fatal(err)
	}
}
