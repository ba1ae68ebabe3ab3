package sqlite

import (
	"path/filepath"
	"testing"

	"parley/desk"
	"parley/store"
)

// TestRestored_stops: a restored broadcast does not go on by itself, because the backup does
// not know whom it reached afterwards.
func TestRestored_stops(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "parley.db")
	s, err := Open(t.Context(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.BindSecret(t.Context(), "f"); err != nil {
		t.Fatal(err)
	}
	ws, running := desk.ID{1}, desk.ID{2}
	if err := s.CreateWorkspace(t.Context(), desk.Workspace{ID: ws, Name: "Acme"}); err != nil {
		t.Fatal(err)
	}
	if err := s.InTx(t.Context(), ws, func(tx store.Tx) error {
		return tx.PutBroadcast(&desk.Broadcast{ID: running, Name: "Spring", State: desk.BroadcastRunning, CreatedAt: 1})
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Restored(t.Context(), path, "f", false); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(t.Context(), Config{Path: path}); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	b, err := s.Broadcast(t.Context(), ws, running)
	if err != nil || b.State != desk.BroadcastPaused || b.Reason != desk.PausedStopped || b.Name != "Spring" {
		t.Errorf("it is %+v (%v)", b, err)
	}
	if due, err := s.BroadcastsDue(t.Context()); err != nil || len(due) > 0 {
		t.Errorf("due: %v (%v)", due, err)
	}
}
