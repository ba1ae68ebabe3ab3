// Package sqlitetest provides tests with new SQLite databases that already have all
// tables. Making the tables takes longer than most tests, and much longer with the race
// detector. Only tests link it.
package sqlitetest

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Copies returns a function that makes a new database file for a test, in a directory of
// its own, and returns the path of the file. open opens the database at a path, and makes
// its tables. It is called once in a process; the files are copies of that one.
func Copies(open func(path string) (io.Closer, error)) func(testing.TB) string {
	made := sync.OnceValues(func() ([]byte, error) { return empty(open) })
	return func(t testing.TB) string {
		t.Helper()
		file, err := made()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "parley.db")
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
}

// empty returns the content of a database that was opened and closed.
func empty(open func(path string) (io.Closer, error)) ([]byte, error) {
	dir, err := os.MkdirTemp("", "parley-sqlite-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "parley.db")
	database, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("make a database: %w", err)
	}
	if err := database.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}
