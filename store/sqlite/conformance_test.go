package sqlite_test

import (
	"path/filepath"
	"testing"

	"parley/app"
	"parley/store/sqlite"
	"parley/store/storetest"
)

func TestConformance(t *testing.T) { storetest.Run(t, openTemp) }

func openTemp(t *testing.T) app.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "parley.db")})
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
