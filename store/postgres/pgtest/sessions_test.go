package pgtest_test

import (
	"context"
	"testing"
	"time"

	"parley/store/postgres/pgtest"

	"github.com/jackc/pgx/v5"
)

// TestSessions: the next client gets the session of the one before, without anything of it.
func TestSessions(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	first, own := joined(t, url)
	for _, sql := range []string{"SET work_mem = '65MB'", "LISTEN news", "CREATE TEMP TABLE mine ()", "PREPARE mine AS SELECT 1", "SELECT pg_advisory_lock(1)"} {
		if _, err := first.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	leave(t, first)
	next := joinedAs(t, url, own)
	for sql, want := range map[string]string{
		"SELECT (current_setting('work_mem') = '65MB')::text":                                                                                             "false",
		"SELECT count(*)::text FROM pg_listening_channels()":                                                                                              "0",
		"SELECT count(*)::text FROM pg_class WHERE relname = 'mine'":                                                                                      "0",
		"SELECT count(*)::text FROM pg_prepared_statements WHERE name = 'mine'":                                                                           "0",
		"SELECT count(*)::text FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())": "0",
	} {
		var got string
		if err := next.QueryRow(t.Context(), sql).Scan(&got); err != nil || got != want {
			t.Errorf("%s: %s, want %s: %v", sql, got, want, err)
		}
	}
}

// TestSessions_others: a client that asks for other parameters gets a session of its own.
func TestSessions_others(t *testing.T) {
	t.Parallel()
	url, own := idle(t)
	for _, other := range []string{url + "?application_name=other", url + "?work_mem=65MB"} {
		if _, got := joined(t, other); got == own {
			t.Errorf("a client of %s gets the session of %s", other, url)
		}
	}
}

// TestSessions_left: what a client leaves in the middle of a transaction ends, and so does the
// session.
func TestSessions_left(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	if _, err := query(t, url, "CREATE TABLE t (a int)"); err != nil {
		t.Fatal(err)
	}
	for name, leaves := range map[string]func(*pgx.Conn){
		"politely": func(c *pgx.Conn) { leave(t, c) },
		"broken":   func(c *pgx.Conn) { _ = c.PgConn().Conn().Close() },
	} {
		c, own := joined(t, url)
		for _, sql := range []string{"BEGIN", "INSERT INTO t VALUES (1)", "LOCK TABLE t"} {
			if _, err := c.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		leaves(c)
		if n, err := query(t, url, "SELECT count(*)::text FROM t"); err != nil || n != "0" { // it waits for the lock
			t.Errorf("%s: %s rows are stored: %v", name, n, err)
		}
		for range 3 {
			if _, got := joined(t, url); got == own {
				t.Errorf("%s: the session goes on", name)
			}
		}
	}
}

// TestSessions_ended: a session that the server has ended is not given to anybody.
func TestSessions_ended(t *testing.T) {
	t.Parallel()
	url, _ := idle(t)
	if _, err := query(t, url+"?application_name=other", "SELECT pg_terminate_backend(pid, 60000)::text FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"); err != nil {
		t.Fatal(err)
	}
	if one, err := query(t, url, "SELECT '1'"); err != nil || one != "1" {
		t.Errorf("after that: %q, %v", one, err)
	}
}

// TestSessions_cancel: a statement that its client gives up ends.
func TestSessions_cancel(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	c, _ := joined(t, url)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := c.Exec(ctx, "SELECT pg_sleep(600)"); err == nil {
		t.Fatal("it slept")
	}
	for stop := time.Now().Add(time.Minute); ; {
		n, err := query(t, url, "SELECT count(*)::text FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%pg_sleep(600%' AND state = 'active' AND pid <> pg_backend_pid()")
		if err != nil || time.Now().After(stop) {
			t.Fatalf("%s statements go on: %v", n, err)
		}
		if n == "0" {
			return
		}
	}
}

// joined connects a client, and returns the process of its session.
func joined(t *testing.T, url string) (c *pgx.Conn, own int) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	if err := c.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&own); err != nil {
		t.Fatal(err)
	}
	return c, own
}

// joinedAs connects clients until one gets the session of a process. Cleaning it takes a moment.
func joinedAs(t *testing.T, url string, want int) *pgx.Conn {
	t.Helper()
	for range 20 {
		if c, own := joined(t, url); own == want {
			return c
		}
	}
	t.Fatal("the session was not kept")
	return nil
}

// idle returns the URL of a database that has an idle session, and its process.
func idle(t *testing.T) (url string, own int) {
	t.Helper()
	url = pgtest.Database(t)
	first, own := joined(t, url)
	leave(t, first)
	leave(t, joinedAs(t, url, own)) // so it is kept
	return url, own
}

func leave(t *testing.T, c *pgx.Conn) {
	t.Helper()
	if err := c.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}
