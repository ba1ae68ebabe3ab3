package storetest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"parley/desk"
	"parley/store"
)

// onePersonOneContact runs concurrent writes that name the same people by different
// subsets of their identities.
func onePersonOneContact(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	const people, rounds, writers = 4, 40, 8
	identities := func(p int) []desk.Identity {
		return []desk.Identity{
			{Kind: desk.KindEmail, Value: fmt.Sprintf("p%d@example.com", p)},
			{Kind: desk.KindPhone, Value: fmt.Sprintf("90532111220%d", p)},
			{Kind: desk.KindExternalID, Value: fmt.Sprintf("x%d", p)},
			{Kind: "twitter", Value: fmt.Sprintf("t%d", p)},
		}
	}
	// The first identity of each person is stored, and every write names it. So all writes
	// about a person are about one contact.
	for p := range people {
		op := &desk.Op{Kind: desk.OpUpsert, Write: desk.ContactWrite{Sent: identities(p)[:1]}}
		op.Write.Identities = desk.Field[[]desk.Identity]{Set: true, Value: identities(p)[:1]}
		put(t, s, ws, op)
	}
	var group sync.WaitGroup
	for n := range writers {
		group.Go(func() {
			r := rand.New(rand.NewPCG(uint64(n), 1))
			for range rounds {
				p := r.IntN(people)
				ids := identities(p)
				r.Shuffle(len(ids)-1, func(i, j int) { ids[i+1], ids[j+1] = ids[j+1], ids[i+1] })
				ids = ids[:1+r.IntN(len(ids))]
				r.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
				op := &desk.Op{Kind: desk.OpUpsert, Write: desk.ContactWrite{Sent: ids}}
				op.Write.Identities = desk.Field[[]desk.Identity]{Set: true, Value: ids}
				if _, errs, err := apply(t.Context(), s, ws, op); err != nil || errs[0] != nil {
					t.Error(err, errs)
				}
			}
		})
	}
	group.Wait()
	if n := len(all(t, s, ws)); n != people {
		t.Errorf("%d contacts of %d people", n, people)
	}
}

// lostUpdates: many writers add one handle each to the same contact.
func lostUpdates(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	c := put(t, s, ws, upsert("a@example.com", ""))
	const writers, each = 8, 10
	var group sync.WaitGroup
	for n := range writers {
		group.Go(func() {
			for i := range each {
				list := []desk.Identity{{Kind: "handle", Value: fmt.Sprintf("%d-%d", n, i)}}
				op := patch(c.ID, desk.ContactWrite{Sent: list, Identities: desk.Field[[]desk.Identity]{Set: true, Value: list}})
				if _, errs, err := apply(t.Context(), s, ws, op); err != nil || errs[0] != nil {
					t.Error(err, errs)
				}
			}
		})
	}
	group.Wait()
	got, _, err := s.Contact(t.Context(), ws, c.ID)
	must(t, err)
	if len(got.Further) != writers*each {
		t.Errorf("%d handles, want %d: an update was lost", len(got.Further), writers*each)
	}
}
