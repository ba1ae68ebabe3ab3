package storetest

import (
	"slices"
	"testing"

	"parley/desk"
	"parley/store"
)

// conflictsKept: conflicts are found by their set, by contact and by status, and go with a
// contact.
func conflictsKept(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	elsewhere, _ := newWorkspace(t, s)
	a, b, c := put(t, s, ws, upsert("a@example.com", "")).ID, put(t, s, ws, upsert("b@example.com", "")).ID, put(t, s, ws, upsert("c@example.com", "")).ID
	make := func(contacts ...desk.ID) *desk.Conflict {
		slices.SortFunc(contacts, desk.ID.Compare)
		at := now()
		return &desk.Conflict{ID: idAt(at), Contacts: contacts, Identities: []desk.Identity{{Kind: "email", Value: "a@example.com"}}, Count: 1, FirstAt: at, LastAt: at,
			Actor: desk.Actor{Kind: desk.ByCLI}, Status: desk.ConflictOpen}
	}
	ab, bc, abc := make(a, b), make(b, c), make(a, b, c)
	commit(t, s, ws, func(tx store.Tx) error {
		for _, v := range []*desk.Conflict{ab, bc, abc} {
			must(t, tx.PutConflict(v))
		}
		held, err := tx.KeepContacts([]desk.ID{a, newID(), b})
		equal(t, "held", held, map[desk.ID]bool{a: true, b: true})
		return err
	})
	ab.Status, ab.Count, ab.LastAt = desk.ConflictResolved, 7, now()
	ab.Resolution = &desk.Resolution{Decision: desk.ConflictDecision{Action: desk.ConflictMerge, Into: a, Take: []string{"name"}}, At: now(), Actor: ab.Actor, Merges: []desk.ID{newID()}}
	commit(t, s, ws, func(tx store.Tx) error {
		must(t, tx.PutConflict(ab))
		found, err := tx.ConflictOf(ab.Key())
		must(t, err)
		equal(t, "of the set", found, ab)
		with, err := tx.ConflictsWith(a)
		must(t, err)
		equal(t, "with a", ids(with), []desk.ID{ab.ID, abc.ID})
		return nil
	})
	of, err := s.ConflictsOf(t.Context(), ws, b, ab.ID, 1)
	must(t, err)
	equal(t, "of b, the second", ids(of), []desk.ID{bc.ID})
	names, err := s.ContactNames(t.Context(), ws, []desk.ID{a, newID()})
	must(t, err)
	equal(t, "names", names, map[desk.ID]string{a: ""})
	open, next, err := s.Conflicts(t.Context(), ws, desk.ConflictOpen, nil, 1)
	must(t, err)
	rest, last, err := s.Conflicts(t.Context(), ws, desk.ConflictOpen, next, 1)
	must(t, err)
	equal(t, "open", append(ids(open), ids(rest)...), []desk.ID{abc.ID, bc.ID})
	if last != nil {
		t.Error("the last page has another one")
	}
	if found, err := s.ConflictsByID(t.Context(), elsewhere, []desk.ID{ab.ID}); err != nil || found != nil {
		t.Errorf("another workspace sees %v (%v)", found, err)
	}
	put(t, s, ws, remove(c))
	left, err := s.ConflictsByID(t.Context(), ws, []desk.ID{ab.ID, bc.ID, abc.ID})
	must(t, err)
	equal(t, "after a deletion", left, []*desk.Conflict{ab})
	commit(t, s, ws, func(tx store.Tx) error {
		ac := make(a, newID())
		must(t, tx.PutConflict(ac))
		must(t, tx.TrimConflicts(1))
		with, err := tx.ConflictsWith(a)
		equal(t, "trimmed", ids(with), []desk.ID{ac.ID})
		return err
	})
	// A conflict is also of the contact of which one of its contacts is part now, and goes with it.
	d, e, f := put(t, s, ws, upsert("d@example.com", "")).ID, put(t, s, ws, upsert("e@example.com", "")).ID, put(t, s, ws, upsert("f@example.com", "")).ID
	de := make(d, e)
	de.Status = desk.ConflictResolved
	commit(t, s, ws, func(tx store.Tx) error { return tx.PutConflict(de) })
	merge(t, s, ws, f, e)
	of, err = s.ConflictsOf(t.Context(), ws, f, desk.ID{}, 10)
	must(t, err)
	equal(t, "of the survivor", ids(of), []desk.ID{de.ID})
	put(t, s, ws, remove(f))
	left, err = s.ConflictsByID(t.Context(), ws, []desk.ID{de.ID})
	must(t, err)
	equal(t, "after the survivor's deletion", len(left), 0)

	n, err := s.ForgetConflicts(t.Context(), ws, now(), 10)
	must(t, err)
	equal(t, "forgotten", n, 1)
}

func ids(list []*desk.Conflict) (ids []desk.ID) {
	for _, c := range list {
		ids = append(ids, c.ID)
	}
	return ids
}
