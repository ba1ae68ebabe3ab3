package app_test

import (
	"context"
	"strings"
	"testing"

	"parley/app"
	"parley/desk"
)

// A fullStore has more in every Book than a dry run may load.
type fullStore struct{ app.Store }

func (s fullStore) Book(ctx context.Context, ws desk.ID, l desk.Lookup) (*desk.Book, error) {
	book, err := s.Store.Book(ctx, ws, l)
	if err == nil {
		note := strings.Repeat("x", 1<<20) // they share it
		for n := range byte(65) {
			book.Load(&desk.Contact{ID: desk.ID{15: n}, Note: note})
		}
	}
	return book, err
}

// TestTryAll_of_large_contacts: later operations of a dry run must see what is not stored,
// so all contacts are loaded at once, and there is a limit to that.
func TestTryAll_of_large_contacts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.node(fullStore{w.file}, app.Bounds{})
	op := func() *desk.Op { return &desk.Op{Kind: desk.OpDelete, ByID: true, Target: desk.ID{15: 1}} }
	_, _, err := a.TryAll(t.Context(), w.caller(), []*desk.Op{op(), op()})
	refused(t, err, desk.PayloadTooLarge)
	if outcome, err := a.Try(t.Context(), w.caller(), op()); err != nil || outcome.Status != desk.StatusDeleted { // of one there is none
		t.Errorf("%+v, %v", outcome, err)
	}
}
