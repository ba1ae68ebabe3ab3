package app_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/app"
	"parley/desk"
	"parley/store"
)

// A fullStore adds so much to every Book that a dry run may not load it.
type fullStore struct{ store.Store }

func (s fullStore) Book(ctx context.Context, ws desk.ID, l desk.Lookup) (*desk.Book, error) {
	book, err := s.Store.Book(ctx, ws, l)
	if err == nil {
		note := strings.Repeat("x", 1<<20) // all contacts share this text
		for n := range byte(65) {
			book.Load(&desk.Contact{ID: desk.ID{15: n}, Note: note})
		}
	}
	return book, err
}

// TestTryAll_of_large_contacts: later operations of a dry run must see the changes of earlier
// ones, which are not stored. So all contacts are loaded at once, up to a limit.
func TestTryAll_of_large_contacts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.node(fullStore{w.file}, app.Bounds{})
	op := func() *desk.Op { return &desk.Op{Kind: desk.OpDelete, ByID: true, Target: desk.ID{15: 1}} }
	_, _, err := a.TryAll(t.Context(), w.caller(), []*desk.Op{op(), op()})
	refused(t, err, desk.PayloadTooLarge)
	if outcome, err := a.Try(t.Context(), w.caller(), op()); err != nil || outcome.Status != desk.StatusDeleted { // a dry run of one operation has no limit
		t.Errorf("%+v, %v", outcome, err)
	}
}

// TestNewestContacts: pages continue at their cursors, which are bound to one owner.
func TestNewestContacts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, err := w.Access.Member(t.Context(), w.ws, w.ada.ID)
	must(t, err)
	var want []desk.ID
	for i := range 5 {
		c := w.put(phoned(fmt.Sprint(905321112200+i)), ownedBy("ada@example.com"))
		want = append([]desk.ID{c.ID}, want...)
		w.clock.advance(time.Second)
	}
	for _, owner := range []desk.ID{{}, w.ada.ID} {
		var got []desk.ID
		for cursor, pages := "", 0; cursor != "" || pages == 0; pages++ {
			list, next, err := w.NewestContacts(t.Context(), p, owner, cursor, 2)
			must(t, err)
			for _, c := range list {
				got = append(got, c.ID)
			}
			if cursor = next; next != "" {
				_, _, err = w.NewestContacts(t.Context(), p, w.grace.ID, next, 2)
				refused(t, err, desk.InvalidRequest)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("of %s: %v, want %v", owner, got, want)
		}
	}
	if list, next, err := w.NewestContacts(t.Context(), p, w.grace.ID, "", 2); err != nil || len(list) != 0 || next != "" {
		t.Errorf("of an owner of none: %v, %q, %v", list, next, err)
	}
}
