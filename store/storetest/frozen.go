package storetest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"
	"testing"
)

// Frozen checks that released migrations still have the given SHA-256 sums, by file
// name, and that each migration has a sum. A migration that is on main is never edited:
// a later one corrects it.
func Frozen(t *testing.T, files fs.FS, sums map[string]string) {
	t.Helper()
	all, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range all { // a migration that is inserted before released ones would never run
		if !strings.HasPrefix(name, fmt.Sprintf("migrations/%05d_", i+1)) {
			t.Errorf("migration %d is %s: their numbers are 1, 2, 3 and so on", i+1, name)
		}
		if sums[strings.TrimPrefix(name, "migrations/")] == "" {
			t.Errorf("%s has no sum yet: freeze it", name)
		}
	}
	for name, want := range sums {
		text, err := fs.ReadFile(files, "migrations/"+name)
		if err != nil {
			t.Errorf("a released migration is gone: %v", err)
			continue
		}
		sum := sha256.Sum256(text)
		if got := hex.EncodeToString(sum[:]); got != want {
			t.Errorf("%s was edited after its release: its sum is %s, want %s; restore it and add a new migration", name, got, want)
		}
	}
}
