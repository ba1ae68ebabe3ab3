package postgres_test

import (
	"testing"

	"parley/store"
	"parley/store/postgres"
	"parley/store/postgres/pgtest"
	"parley/store/storetest"
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
