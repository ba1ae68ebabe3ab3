package storetest

import (
	"slices"
	"testing"

	"parley/desk"
	"parley/store"
)

// pagesOf reads pages of n records to the end.
func pagesOf[T, P any](t *testing.T, n int, read func(after P) ([]T, bool, error), place func(T) P) (list []T) {
	t.Helper()
	var after P
	for more := true; more; {
		page, rest, err := read(after)
		must(t, err)
		if len(page) > n || rest && len(page) == 0 {
			t.Fatalf("a page of %d, others follow: %v", len(page), rest)
		}
		if list, more = append(list, page...), rest; len(page) > 0 {
			after = place(page[len(page)-1])
		}
	}
	return list
}

func exportedContacts(t *testing.T, s store.Store) {
	ws, member := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	put(t, s, other, called("Bob", 0))
	read := func(ws desk.ID, n int) []*desk.Contact {
		return pagesOf(t, n, func(after desk.ID) ([]*desk.Contact, bool, error) { return s.ContactsAfter(t.Context(), ws, after, n) }, func(c *desk.Contact) desk.ID { return c.ID })
	}
	if list := read(ws, 1); list != nil {
		t.Errorf("%d contacts of none", len(list))
	}
	var want []*desk.Contact
	for n := range 7 {
		op := called("Ada", n)
		if n == 3 {
			op.Write.Owner = refer(member.Email)
		}
		want = append(want, put(t, s, ws, op))
	}
	slices.SortFunc(want, func(a, b *desk.Contact) int { return a.ID.Compare(b.ID) })
	for _, n := range []int{1, 3, 7, 8} {
		list := read(ws, n)
		equal(t, "contacts", len(list), len(want))
		for i, c := range list {
			same(t, c, want[i])
		}
	}
}

func countedOptOuts(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	commit(t, s, other, func(tx store.Tx) error { return tx.SetOptOut(store.NumberHash{9}, store.OptOut{Since: 1, At: 1}) })
	for n, o := range []store.OptOut{{Since: 5, At: 7}, {At: 9}, {Since: 11, At: 11}} {
		commit(t, s, ws, func(tx store.Tx) error { return tx.SetOptOut(store.NumberHash{byte(n)}, o) })
	}
	n, err := s.CountOptOuts(t.Context(), ws)
	must(t, err)
	equal(t, "opt-outs", n, 2)
}
