package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"parley/desk"
	"parley/store"
)

func listOrder(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	var ops []*desk.Op
	for i := range 25 {
		ops = append(ops, upsert(fmt.Sprintf("p%d@example.com", i), ""))
	}
	// All contacts have the same time, so the id decides the order.
	must(t, s.UpdateContacts(t.Context(), ws, ops, func(b *desk.Book, from, to int) {
		at := now()
		for _, op := range ops[from:to] {
			_, err := b.Apply(op, desk.Actor{}, at, newID)
			must(t, err)
		}
	}))
	want := all(t, s, ws)
	if len(want) != 25 || !slices.IsSortedFunc(want, func(a, b *desk.Contact) int { return slices.Compare(a.ID[:], b.ID[:]) }) {
		t.Fatalf("%d contacts of one moment are not in order of id", len(want))
	}
	for size := 1; size <= 26; size++ {
		var got []desk.ID
		place := desk.ContactPlace{}
		for {
			page, _, err := s.Contacts(t.Context(), ws, desk.ContactFilter{}, place, size)
			must(t, err)
			if len(page) == 0 {
				break
			}
			for _, c := range page {
				got = append(got, c.ID)
			}
			place = page[len(page)-1].Place()
		}
		if len(got) != 25 {
			t.Fatalf("pages of %d show %d contacts", size, len(got))
		}
		for i := range got {
			if got[i] != want[i].ID {
				t.Fatalf("pages of %d differ at %d", size, i)
			}
		}
	}
}

// newestContacts: the list by newest change is the export list in reverse.
func newestContacts(t *testing.T, s store.Store) {
	ws, member := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	put(t, s, other, upsert("other@example.com", ""))
	var ops []*desk.Op
	for i := range 25 {
		op := upsert(fmt.Sprintf("p%d@example.com", i), "")
		if i%3 == 0 {
			op.Write.Owner = refer(member.ID.String())
		}
		ops = append(ops, op)
	}
	must(t, s.UpdateContacts(t.Context(), ws, ops, func(b *desk.Book, from, to int) {
		at := now()
		for i, op := range ops[from:to] {
			if i%5 == 0 {
				at = now()
			}
			_, err := b.Apply(op, desk.Actor{}, at, newID)
			must(t, err)
		}
	}))
	everyone := all(t, s, ws)
	slices.Reverse(everyone)
	for owner, want := range map[desk.ID][]*desk.Contact{
		{}:        everyone,
		member.ID: slices.DeleteFunc(slices.Clone(everyone), func(c *desk.Contact) bool { return c.Owner == nil }),
		newID():   nil,
	} {
		for _, size := range []int{1, 7, 24, 25, 26} {
			got := walk(t, size, func(before *desk.ContactPlace, limit int) ([]*desk.Contact, *desk.ContactPlace, error) {
				return s.NewestContacts(t.Context(), ws, owner, before, limit)
			})
			if len(got) != len(want) {
				t.Fatalf("of %s in pages of %d: %d contacts, want %d", owner, size, len(got), len(want))
			}
			for i := range got {
				same(t, got[i], want[i])
			}
		}
	}
}

func listFilters(t *testing.T, s store.Store) {
	ws, member := newWorkspace(t, s)
	a := put(t, s, ws, upsert("a@example.com", "905321112233"))
	w := upsert("b@example.com", "")
	w.Write.Owner = refer(member.ID.String())
	b := put(t, s, ws, w)
	c := put(t, s, ws, upsert("c@example.com", ""))
	for name, tc := range map[string]struct {
		filter desk.ContactFilter
		want   []*desk.Contact
	}{
		"none":            {desk.ContactFilter{}, []*desk.Contact{a, b, c}},
		"owner":           {desk.ContactFilter{Owner: member.ID}, []*desk.Contact{b}},
		"another_owner":   {desk.ContactFilter{Owner: newID()}, nil},
		"since":           {desk.ContactFilter{UpdatedSince: b.UpdatedAt}, []*desk.Contact{b, c}},
		"since_and_owner": {desk.ContactFilter{UpdatedSince: c.UpdatedAt, Owner: member.ID}, nil},
	} {
		got, _, err := s.Contacts(t.Context(), ws, tc.filter, desk.ContactPlace{}, 10)
		must(t, err)
		if len(got) != len(tc.want) {
			t.Errorf("%s: %d contacts, want %d", name, len(got), len(tc.want))
			continue
		}
		for i := range got {
			same(t, got[i], tc.want[i])
		}
	}
}

// walkBesideWriters: a client that reads all pages sees every contact that exists from the
// first page to the last, even if contacts change meanwhile.
func walkBesideWriters(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	const people = 60
	existing := map[desk.ID]bool{}
	for i := range people {
		existing[put(t, s, ws, upsert(fmt.Sprintf("p%d@example.com", i), "")).ID] = true
	}
	stop := make(chan struct{})
	var writers sync.WaitGroup
	writers.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			op := upsert(fmt.Sprintf("p%d@example.com", i*7%people), "")
			op.Write.Note = text(fmt.Sprint(i))
			if _, _, err := apply(t.Context(), s, ws, op, upsert(fmt.Sprintf("new%d@example.com", i), "")); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 5 {
		seen := map[desk.ID]bool{}
		// The walk ends at the time at which it began: contacts after this time have
		// changed since the beginning.
		for place, pages := (desk.ContactPlace{}), 0; pages < 200; pages++ {
			page, _, err := s.Contacts(t.Context(), ws, desk.ContactFilter{}, place, 3)
			must(t, err)
			if len(page) == 0 {
				break
			}
			for _, c := range page {
				seen[c.ID] = true
			}
			place = page[len(page)-1].Place()
		}
		for id := range existing {
			if !seen[id] {
				t.Errorf("contact %s was missed", id)
			}
		}
	}
	close(stop)
	writers.Wait()
}
