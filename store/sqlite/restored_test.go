package sqlite

import (
	"path/filepath"
	"testing"

	"parley/desk"
	"parley/store"
)

// TestRestored_stops: a restored broadcast does not go on or begin by itself, because the backup
// does not know whom it reached afterwards. Others stay as they are.
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
	ws := desk.ID{1}
	is := map[desk.BroadcastState]*desk.Broadcast{}
	if err := s.CreateWorkspace(t.Context(), desk.Workspace{ID: ws, Name: "Acme"}); err != nil {
		t.Fatal(err)
	}
	if err := s.InTx(t.Context(), ws, func(tx store.Tx) error {
		for i, state := range []desk.BroadcastState{desk.BroadcastDraft, desk.BroadcastScheduled, desk.BroadcastRunning, desk.BroadcastDone} {
			b := &desk.Broadcast{ID: desk.ID{2, byte(i)}, Name: "Spring", State: state, CreatedAt: 1, SendAt: 9_000_000_000_000}
			is[state] = b
			if err := tx.PutBroadcast(b); err != nil {
				return err
			}
		}
		return nil
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
	for was, made := range is {
		state, reason := was, desk.BroadcastReason("")
		if was == desk.BroadcastScheduled || was == desk.BroadcastRunning {
			state, reason = desk.BroadcastPaused, desk.PausedStopped
		}
		b, err := s.Broadcast(t.Context(), ws, made.ID)
		if err != nil || b.State != state || b.Reason != reason || b.Name != "Spring" {
			t.Errorf("the %s one is %+v (%v)", was, b, err)
		}
	}
	if due, err := s.BroadcastsDue(t.Context()); err != nil || len(due) > 0 {
		t.Errorf("due: %v (%v)", due, err)
	}
}
