package sqlite_test

import (
	"testing"

	"parley/store"
	"parley/store/sqlite"
	"parley/store/storetest"
)

func TestConformance(t *testing.T) { storetest.Run(t, openTemp) }

func openTemp(t *testing.T) store.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Serves: true, Path: sqlite.NewFile(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for query, n := range sqlite.Replanned(s) {
			t.Errorf("SQLite has planned this statement again %d times: %s", n, query)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
