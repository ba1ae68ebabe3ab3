package sqlite

import (
	"testing"

	"parley/desk"
)

// BenchmarkCreate is one contact with one identity, a commit each.
func BenchmarkCreate(b *testing.B) {
	s, err := Open(b.Context(), Config{Path: b.TempDir() + "/parley.db"})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	ws := desk.ID{7}
	if err := s.CreateWorkspace(b.Context(), desk.Workspace{ID: ws}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if err := createContact(s, ws, n); err != nil {
			b.Fatal(err)
		}
		n++
	}
}
