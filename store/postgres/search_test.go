package postgres

import (
	"slices"
	"testing"

	"parley/desk"
	"parley/store"
	"parley/store/postgres/pgtest"
)

// TestEraseLeft: a contact that is back, because a merge was undone just after the search index did
// not find it, is not taken for deleted.
func TestEraseLeft(t *testing.T) {
	t.Parallel()
	s := openAt(t, pgtest.Database(t))
	ws, back, gone := newWorkspace(t, s), desk.ID{1}, desk.ID{2}
	if err := s.InTx(t.Context(), ws, func(of store.Tx) error {
		book, err := of.Book(desk.Lookup{})
		if err != nil {
			return err
		}
		op := &desk.Op{Kind: desk.OpUpsert, Write: desk.ContactWrite{
			Email: desk.Field[string]{Set: true, Value: "a@example.com"}, Sent: []desk.Identity{{Kind: desk.KindEmail, Value: "a@example.com"}},
		}}
		if _, err := book.Apply(op, desk.Actor{}, 1, func() desk.ID { return back }); err != nil {
			return err
		}
		return of.Flush(book)
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.InTx(t.Context(), ws, func(of store.Tx) error { return eraseLeft(of.(*tx), []desk.ID{back, gone}) }); err != nil {
		t.Fatal(err)
	}
	list, _, err := s.Erasures(t.Context(), ws, desk.ID{}, 10)
	if err != nil || !slices.EqualFunc(list, []desk.ID{gone}, func(e desk.Erasure, id desk.ID) bool { return e.ID == id }) {
		t.Errorf("%v, %v", list, err)
	}
}
