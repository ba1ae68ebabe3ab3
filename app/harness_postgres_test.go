package app_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/store/postgres"
	"parley/store/postgres/pgtest"

	"github.com/jackc/pgx/v5"
)

// Tests whose names begin with overPostgres run over PostgreSQL. All others run on a SQLite
// file.
const overPostgres = "TestPostgres/"

// databases makes the databases for TestPostgres.
var databases *pgtest.Pool

// A clockedDatabase is a PostgreSQL database whose clock can be set, like that of SQLite.
type clockedDatabase struct {
	t    testing.TB
	url  string // sessions that connect with it have that clock
	mu   sync.Mutex
	conn *pgx.Conn
}

// clocked prepares the clock of a database. An earlier test may have used the same
// database.
func clocked(t testing.TB, url string) *clockedDatabase {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	separator := "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	d := &clockedDatabase{t: t, url: url + separator + "search_path=" + clockFirst, conn: c}
	d.do(`CREATE SCHEMA IF NOT EXISTS set; ` + tableOfClock)
	for _, name := range []string{"clock_timestamp", "statement_timestamp"} {
		d.do(fmt.Sprintf(`CREATE OR REPLACE FUNCTION set.%s() RETURNS timestamptz LANGUAGE sql STABLE
			AS 'SELECT pg_catalog.%s() + (SELECT ms FROM set.ahead) * interval ''1 millisecond'''`, name, name))
	}
	if pgtest.Citus() { // and for the sessions of the servers among each other
		d.everywhere(tableOfClock)
		d.everywhere(`DO 'BEGIN EXECUTE format(''ALTER DATABASE %I SET search_path = ` + clockFirst + `'', current_database()); END'`)
	}
	d.everywhere(`WITH earlier AS (DELETE FROM set.ahead) INSERT INTO set.ahead VALUES (0)`)
	return d
}

// clockFirst is the search path in which the clock is found before that of PostgreSQL.
const clockFirst = `public,set,pg_catalog`

const tableOfClock = `CREATE TABLE IF NOT EXISTS set.ahead (ms bigint NOT NULL)`

// everywhere runs a statement on every server of the database: Citus copies the functions of
// the clock to the workers, but not their table.
func (d *clockedDatabase) everywhere(sql string) {
	d.t.Helper()
	if !pgtest.Citus() {
		d.do(sql)
		return
	}
	var failed string
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.conn.QueryRow(context.Background(),
		`SELECT coalesce(string_agg(result, '; ') FILTER (WHERE NOT success), '') FROM run_command_on_all_nodes($1)`, sql).Scan(&failed); err != nil || failed != "" {
		d.t.Fatalf("%s: %s %v", sql, failed, err)
	}
}

func (d *clockedDatabase) do(sql string, args ...any) {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.conn.Exec(context.Background(), sql, args...); err != nil {
		d.t.Fatal(err)
	}
}

// deadlocks counts the transactions that waited for each other. PostgreSQL ends one of them only
// after a second.
func (d *clockedDatabase) deadlocks() (n int) {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.conn.QueryRow(context.Background(), `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`).Scan(&n); err != nil {
		d.t.Fatal(err)
	}
	return n
}

// set sets the database's clock ahead.
func (d *clockedDatabase) set(ahead time.Duration) {
	d.everywhere(fmt.Sprintf(`UPDATE set.ahead SET ms = %d`, ahead.Milliseconds()))
}

// open opens the database as another process would.
func (d *clockedDatabase) open() (worldStore, error) {
	return postgres.Open(d.t.Context(), postgres.Config{URL: d.url, MaxConns: 6})
}
