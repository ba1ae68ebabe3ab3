package postgres_test

import (
	"testing"

	"parley/store"
	"parley/store/postgres"
	"parley/store/postgres/pgtest"
	"parley/store/storetest"
)

func TestConformance(t *testing.T) {
	pool := pgtest.NewPool(t) // making a database takes longer than most of the tests
	storetest.Run(t, func(t *testing.T) store.Store { return openAt(t, pool.Database(t)) })
}

func openAt(t *testing.T, database string) store.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), postgres.Config{URL: database, MaxConns: 4})
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
