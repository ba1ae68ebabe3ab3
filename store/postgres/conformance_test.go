package postgres_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"parley/store"
	"parley/store/postgres"
	"parley/store/postgres/pgtest"
	"parley/store/storetest"

	"github.com/jackc/pgx/v5"
)

func TestConformance(t *testing.T) { storetest.Run(t, openTemp) }

func openTemp(t *testing.T) store.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), postgres.Config{URL: pgtest.Database(t), MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestClocks sets the database's clock by a function that stands before the server's own.
func TestClocks(t *testing.T) {
	t.Parallel()
	storetest.RunClocks(t, false, func(t *testing.T) (store.Store, func(time.Duration)) {
		url := pgtest.Database(t)
		c, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close(context.Background()) })
		do := func(sql string, args ...any) {
			if _, err := c.Exec(context.Background(), sql, args...); err != nil {
				t.Fatal(err)
			}
		}
		do(`CREATE SCHEMA set`)
		do(`CREATE TABLE set.ahead (seconds bigint NOT NULL)`)
		do(`INSERT INTO set.ahead VALUES (0)`)
		do(`CREATE FUNCTION set.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
			AS 'SELECT pg_catalog.clock_timestamp() + (SELECT seconds FROM set.ahead) * interval ''1 second'''`)
		separator := "?"
		if strings.Contains(url, "?") {
			separator = "&"
		}
		s, err := postgres.Open(t.Context(), postgres.Config{URL: url + separator + "search_path=public,set,pg_catalog", MaxConns: 4})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return s, func(d time.Duration) { do(`UPDATE set.ahead SET seconds = $1`, int64(d/time.Second)) }
	})
}
