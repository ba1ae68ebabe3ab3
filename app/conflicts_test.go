package app_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"parley/app"
	"parley/app/merges"
	"parley/desk"
)

var (
	refusals     = flag.Int("conflict-refusals", 120, "how many writes TestConflicts_counted has refused, in a tenth as many sets of contacts. Long run: -run 'TestConflicts_counted|TestConflicts_kept|TestPostgres/TestConflicts_counted|TestPostgres/TestConflicts_kept' -conflict-refusals 1000 -conflict-sets 100000 -timeout 60m")
	conflictSets = flag.Int("conflict-sets", 60, "how many sets of contacts TestConflicts_kept has refused; from 11,000 on old ones go. See -conflict-refusals")
)

// clashers makes contacts, each with a handle of the kind crm, and returns their ids.
func (w *world) clashers(n int) (ids []desk.ID) {
	w.t.Helper()
	for first := 0; first < n; first += 500 {
		var ops []*desk.Op
		for k := first; k < min(n, first+500); k++ {
			ops = append(ops, clash(k))
		}
		outcomes, _, err := w.WriteAll(w.t.Context(), w.caller(), ops)
		must(w.t, err)
		for _, o := range outcomes {
			ids = append(ids, o.ID)
		}
	}
	return ids
}

// clash writes the handles of people: of one it is an ordinary write, of several it is refused.
func clash(people ...int) *desk.Op {
	op := &desk.Op{Kind: desk.OpUpsert}
	for _, k := range people {
		alsoKnownAs("crm", fmt.Sprint("c", k))(&op.Write)
	}
	return op
}

// clashes has writes refused.
func (w *world) clashes(ops []*desk.Op) {
	w.t.Helper()
	_, errs, err := w.WriteAll(w.t.Context(), w.caller(), ops)
	must(w.t, err)
	for _, err := range errs {
		refused(w.t, err, desk.IdentityConflict)
	}
}

// allConflicts reads all open conflicts, by their sets, and checks the order.
func (w *world) allConflicts() map[[32]byte]*desk.Conflict {
	w.t.Helper()
	found := map[[32]byte]*desk.Conflict{}
	var last *desk.Conflict
	for cursor := ""; ; {
		page, next, err := w.Conflicts.Conflicts(w.t.Context(), w.caller(), desk.ConflictOpen, cursor, 200)
		must(w.t, err)
		for _, c := range page {
			if found[c.Key()] != nil || last != nil && c.LastAt > last.LastAt {
				w.t.Errorf("the conflict %v is there twice, or in the wrong place", c.ID)
			}
			found[c.Key()], last = c.Conflict, c.Conflict
		}
		if cursor = next; cursor == "" {
			return found
		}
	}
}

// onlyConflict checks that one conflict is open, which names these contacts; without contacts,
// that none is.
func (w *world) onlyConflict(when string, ids ...desk.ID) {
	w.t.Helper()
	got := w.allConflicts()
	if len(ids) == 0 && len(got) > 0 || len(ids) > 0 && (len(got) != 1 || got[setOf(ids...)] == nil) {
		w.t.Errorf("%s: %v", when, got)
	}
}

func setOf(ids ...desk.ID) [32]byte {
	slices.SortFunc(ids, desk.ID.Compare)
	return (&desk.Conflict{Contacts: ids}).Key()
}

// TestConflicts_counted: refusals of one set of contacts are one conflict, which counts them.
func TestConflicts_counted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sets := *refusals / 10
	ids, r := w.clashers(sets+2), rand.New(rand.NewPCG(1, 2))
	counts, of := map[[32]byte]int64{}, map[[32]byte][]string{}
	for done := 0; done < *refusals; {
		var ops []*desk.Op
		for range min(1+r.IntN(40), *refusals-done) {
			n := done % sets
			if done++; done > sets {
				n = r.IntN(sets)
			}
			people := []int{n, n + 1}
			if n%3 == 0 {
				people = append(people, n+2)
			}
			r.Shuffle(len(people), func(i, j int) { people[i], people[j] = people[j], people[i] })
			ops = append(ops, clash(people...))
			var set []desk.ID
			for _, k := range people {
				set = append(set, ids[k])
			}
			counts[setOf(set...)]++
			slices.Sort(people)
			of[setOf(set...)] = nil
			for _, k := range people {
				of[setOf(set...)] = append(of[setOf(set...)], fmt.Sprint("c", k))
			}
		}
		w.clashes(ops)
		if r.IntN(2) == 0 {
			w.Conflicts.StoreNow(t.Context())
		}
	}
	w.Conflicts.StoreNow(t.Context())
	found := w.allConflicts()
	if len(found) != sets {
		t.Errorf("%d conflicts, want %d", len(found), sets)
	}
	for key, c := range found {
		var named []string
		for _, i := range c.Identities {
			named = append(named, i.Value)
		}
		slices.Sort(named)
		want := slices.Sorted(slices.Values(of[key]))
		if c.Count != counts[key] || !slices.Equal(named, want) {
			t.Errorf("a conflict counts %d and names %q, want %d and %q", c.Count, named, counts[key], want)
		}
	}
}

// TestConflicts_kept: many sets of contacts, as many as a server remembers at once and a second.
// The newest are kept. What comes faster is not remembered.
func TestConflicts_kept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := 2
	for n*(n-1)/2 < *conflictSets {
		n++
	}
	ids := w.clashers(n)
	var sets [][32]byte
	i, j := 0, 1
	next := func(most int) (ops []*desk.Op) {
		for ; len(ops) < most && i < n-1; j++ {
			if j == n {
				if i, j = i+1, i+2; j == n {
					break
				}
			}
			ops, sets = append(ops, clash(i, j)), append(sets, setOf(ids[i], ids[j]))
		}
		return ops
	}
	for len(sets) < *conflictSets {
		w.clashes(next(min(desk.ConflictBurst/2, *conflictSets-len(sets))))
		w.Conflicts.StoreNow(t.Context())
		w.clock.advance(time.Second)
		w.clock.up.Add(int64(10 * time.Second)) // room for as many again
	}
	found := w.allConflicts()
	kept := sets[max(0, len(sets)-desk.MaxConflicts):]
	missing := 0
	for _, set := range kept {
		if found[set] == nil {
			missing++
		}
	}
	if len(found) != len(kept) || missing > 0 {
		t.Errorf("%d conflicts of %d are kept, want %d; %d of the newest are missing", len(found), len(sets), len(kept), missing)
	}
	if *conflictSets < 4*desk.ConflictBurst {
		return
	}
	// A flood: the same server gets three times what it remembers at once.
	before := w.clock.uptime()
	other := w.another()
	ids = other.clashers(80)
	i, j, n = 0, 1, 80
	for range 3 {
		other.clashes(next(desk.ConflictBurst))
	}
	most := desk.ConflictBurst + int((w.clock.uptime()-before).Seconds()*desk.ConflictRate) + 1
	other.Conflicts.StoreNow(t.Context())
	if got := len(other.allConflicts()); got < desk.ConflictBurst || got > most {
		t.Errorf("of a flood, %d sets are remembered, want %d to %d", got, desk.ConflictBurst, most)
	}
}

// TestConflicts_stored_later: what the database does not store waits for the next time.
func TestConflicts_stored_later(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := w.clashers(3)
	w.clashes([]*desk.Op{clash(0, 1), clash(1, 2)})
	w.store.down.Store(true)
	if w.Conflicts.StoreNow(t.Context()) {
		t.Error("without a database, all are said to be stored")
	}
	w.store.down.Store(false)
	w.clashes([]*desk.Op{clash(0, 1)})
	if !w.Conflicts.StoreNow(t.Context()) {
		t.Error("not all are stored")
	}
	found := w.allConflicts()
	if c := found[setOf(ids[0], ids[1])]; len(found) != 2 || c == nil || c.Count != 2 {
		t.Errorf("stored: %v, one with %+v", found, c)
	}
}

// TestConflicts_not_storable: a set that can't be stored does not hold up the others of its group, and
// is dropped.
func TestConflicts_not_storable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := w.clashers(4)
	bad, tries := setOf(ids[1], ids[2]), 0
	w.store.note = func(c *desk.Conflict) error {
		if c.Key() != bad {
			return nil
		}
		tries++
		return errors.New("it can't be stored")
	}
	w.clashes([]*desk.Op{clash(0, 1), clash(1, 2), clash(2, 3)})
	if !w.Conflicts.StoreNow(t.Context()) {
		t.Error("a set waits that can't be stored")
	}
	if found := w.allConflicts(); len(found) != 2 || found[bad] != nil {
		t.Errorf("stored: %v", found)
	}
	before := tries
	if w.Conflicts.StoreNow(t.Context()); tries != before || w.log.find("a conflict between contacts could not be stored") == nil {
		t.Errorf("it was tried %d times, then %d times; logged: %q", before, tries, w.log.find("conflict"))
	}
}

// TestConflicts_fixed: with fixed external ids, a contact that was merged is still found by its
// external id, which is a further handle now. A write that sends it changes the rest and keeps
// the field, and is no conflict.
func TestConflicts_fixed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fixed := true
	_, err := w.EditWorkspace(t.Context(), w.operator(), app.WorkspaceEdit{FixedExternalIDs: &fixed})
	must(t, err)
	into, from := w.put(identified("external_id", "erp-1"), mailed("a@example.com")), w.put(identified("external_id", "erp-2"), mailed("b@example.com"))
	w.merge(into, from)
	for _, sent := range []string{"erp-2", "erp-1"} {
		c := w.put(identified("external_id", sent), mailed("b@example.com"), named("Now "+sent))
		if c.ID != into.ID || c.ExternalID != "erp-1" || c.Name != "Now "+sent || c.Email != "b@example.com" {
			t.Errorf("after %s: %+v", sent, c)
		}
	}
	op := &desk.Op{Kind: desk.OpUpsert}
	identified("external_id", "erp-3")(&op.Write)
	mailed("b@example.com")(&op.Write)
	refused(t, errOf(w.Write(t.Context(), w.caller(), op)), desk.IdentityConflict)
	w.Conflicts.StoreNow(t.Context())
	if found := w.allConflicts(); len(found) != 0 {
		t.Errorf("a conflict of one contact is remembered: %v", found)
	}
}

// TestConflicts_undone: once a merge is undone, its conflicts name the contact again that is back,
// and go with it when it is deleted. If something has come since, they name both.
func TestConflicts_undone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, between []*desk.Op // they are refused
		want            []int      // the people whom the conflict names at the end
	}{
		"renamed":       {[]*desk.Op{clash(0, 1)}, nil, []int{0, 1}},
		"become one":    {[]*desk.Op{clash(0, 1), clash(1, 2)}, nil, []int{0, 1, 2}},
		"refused more":  {[]*desk.Op{clash(0, 1)}, []*desk.Op{clash(1, 2)}, []int{0, 1, 2}},
		"refused since": {nil, []*desk.Op{clash(0, 1)}, []int{0, 1, 2}},
		"both in it":    {[]*desk.Op{clash(0, 1, 2)}, nil, []int{0, 1, 2}},
		"its own again": {[]*desk.Op{clash(1, 2)}, []*desk.Op{clash(0, 1)}, []int{0, 1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			ids := w.clashers(3)
			w.clashes(c.before)
			w.Conflicts.StoreNow(t.Context())
			w.clock.advance(time.Second)
			m := w.merge(w.contact(ids[2]), w.contact(ids[0]))
			if c.before != nil {
				w.onlyConflict("after the merge", ids[1], ids[2])
			}
			w.clock.advance(time.Second)
			w.clashes(c.between)
			w.Conflicts.StoreNow(t.Context())
			_, err := w.Merges.Undo(t.Context(), w.caller(), m.ID)
			must(t, err)
			var want []desk.ID
			for _, k := range c.want {
				want = append(want, ids[k])
			}
			w.onlyConflict("after the undo", want...)
			w.deleteContact(ids[0])
			w.onlyConflict("after the deletion")
		})
	}
}

// TestConflicts_undone_joined: a conflict that was given to the surviving contact, and then became one
// with another conflict by another merge, names the contact again that is back.
func TestConflicts_undone_joined(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := w.clashers(4)
	w.clashes([]*desk.Op{clash(0, 2), clash(1, 3)})
	w.Conflicts.StoreNow(t.Context())
	w.clock.advance(time.Second)
	m := w.merge(w.contact(ids[0]), w.contact(ids[1]))
	w.merge(w.contact(ids[2]), w.contact(ids[3]))
	w.onlyConflict("after the merges", ids[0], ids[2])
	w.clock.advance(time.Second)
	_, err := w.Merges.Undo(t.Context(), w.caller(), m.ID)
	must(t, err)
	w.onlyConflict("after the undo", ids[:3]...)
	w.deleteContact(ids[1])
	w.onlyConflict("after the deletion")
}

// TestConflicts_late: contacts are merged, or deleted, between a refusal and the moment at which it is
// stored. A deletion leaves nothing, and an undone merge's contact is named again.
func TestConflicts_late(t *testing.T) {
	t.Parallel()
	t.Run("merged", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		ids := w.clashers(3)
		w.clashes([]*desk.Op{clash(1, 2)})
		w.clock.advance(time.Second)
		m := w.merge(w.contact(ids[0]), w.contact(ids[1]))
		w.Conflicts.StoreNow(t.Context())
		w.onlyConflict("after the merge", ids[0], ids[2])
		w.clock.advance(time.Second)
		_, err := w.Merges.Undo(t.Context(), w.caller(), m.ID)
		must(t, err)
		w.onlyConflict("after the undo", ids...)
		w.deleteContact(ids[1])
		w.onlyConflict("after the deletion")
	})
	t.Run("deleted", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		ids := w.clashers(3)
		w.clashes([]*desk.Op{clash(0, 1, 2)})
		w.deleteContact(ids[0])
		w.Conflicts.StoreNow(t.Context())
		w.onlyConflict("after the deletion")
	})
}

// TestConflicts_undone_of_others: a dismissed conflict of the surviving contact stays dismissed when
// a merge is undone, though it was refused again since: it names nothing of the contact that is back.
func TestConflicts_undone_of_others(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := w.clashers(3)
	refuse := func() {
		w.clashes([]*desk.Op{clash(0, 1)})
		w.Conflicts.StoreNow(t.Context())
	}
	refuse()
	dismissed := w.allConflicts()[setOf(ids[0], ids[1])]
	_, err := w.Conflicts.Resolve(t.Context(), w.caller(), dismissed.ID, desk.ConflictDecision{Action: desk.ConflictDismiss})
	must(t, err)
	m := w.merge(w.contact(ids[0]), w.contact(ids[2]))
	refuse()
	_, err = w.Merges.Undo(t.Context(), w.caller(), m.ID)
	must(t, err)
	refuse()
	w.onlyConflict("at the end")
	if got, err := w.Conflicts.Conflict(t.Context(), w.caller(), dismissed.ID); err != nil || got.Key() != setOf(ids[0], ids[1]) || got.Status != desk.ConflictDismissed || got.Count != 3 {
		t.Errorf("the dismissed one: %+v, %v", got, err)
	}
}

// TestConflicts_undone_one_by_one: a conflict that a merge of three has resolved names all three
// again once both merges are undone.
func TestConflicts_undone_one_by_one(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := w.clashers(3)
	w.clashes([]*desk.Op{clash(0, 1, 2)})
	w.Conflicts.StoreNow(t.Context())
	c := w.allConflicts()[setOf(ids...)]
	done, err := w.Conflicts.Resolve(t.Context(), w.caller(), c.ID, desk.ConflictDecision{Action: desk.ConflictMerge, Into: ids[0]})
	must(t, err)
	for _, id := range slices.Backward(done.Resolution.Merges) {
		_, err := w.Merges.Undo(t.Context(), w.caller(), id)
		must(t, err)
	}
	w.onlyConflict("after the undo", ids...)
	w.deleteContact(ids[1])
	w.onlyConflict("after the deletion")
}

// TestConflicts_tried_together: a decision to merge three is refused by its dry run, too, if only all
// of them together have too many handles.
func TestConflicts_tried_together(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := w.clashers(3)
	for n, id := range ids[1:] {
		op := &desk.Op{Kind: desk.OpPatch, ByID: true, Target: id}
		for k := range desk.MaxFurther*3/5 - 1 {
			alsoKnownAs("shop", fmt.Sprint(n, "-", k))(&op.Write)
		}
		_, err := w.Write(t.Context(), w.caller(), op)
		must(t, err)
	}
	w.clashes([]*desk.Op{clash(0, 1, 2)})
	w.Conflicts.StoreNow(t.Context())
	id, d := w.allConflicts()[setOf(ids...)].ID, desk.ConflictDecision{Action: desk.ConflictMerge, Into: ids[0]}
	_, tried := w.Conflicts.Try(t.Context(), w.caller(), id, d)
	_, err := w.Conflicts.Resolve(t.Context(), w.caller(), id, d)
	if err == nil || tried == nil || tried.Error() != err.Error() {
		t.Errorf("tried: %v; done: %v", tried, err)
	}
}

// TestConflicts_resolved_renamed: a conflict in which an identity was moved names the surviving
// contact after a merge, too: a later refusal opens it again.
func TestConflicts_resolved_renamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := w.clashers(4)
	w.clashes([]*desk.Op{clash(0, 1), clash(0, 3)})
	w.Conflicts.StoreNow(t.Context())
	open := w.allConflicts()
	moved, dismissed := open[setOf(ids[0], ids[1])], open[setOf(ids[0], ids[3])]
	move := desk.ConflictDecision{Action: desk.ConflictMove, Identity: desk.Identity{Kind: "crm", Value: "c1"}, To: ids[0]}
	for id, d := range map[desk.ID]desk.ConflictDecision{moved.ID: move, dismissed.ID: {Action: desk.ConflictDismiss}} {
		_, err := w.Conflicts.Resolve(t.Context(), w.caller(), id, d)
		must(t, err)
	}
	w.merge(w.contact(ids[2]), w.contact(ids[0]))
	w.clashes([]*desk.Op{{Kind: desk.OpPatch, ByID: true, Target: ids[1], Write: clash(2).Write}})
	w.Conflicts.StoreNow(t.Context())
	if got := w.allConflicts()[setOf(ids[1], ids[2])]; got == nil || got.ID != moved.ID || got.Count != 2 {
		t.Errorf("after another refusal: %+v", got)
	}
	if got, err := w.Conflicts.Conflict(t.Context(), w.caller(), dismissed.ID); err != nil || got.Key() != setOf(ids[2], ids[3]) || got.Status != desk.ConflictDismissed {
		t.Errorf("the dismissed one: %+v, %v", got, err)
	}
}

// TestConflicts_moved: a member moves a handle from one contact to another. This resolves an open
// conflict of the two that names the handle, and no other one. It works without a conflict, and
// twice.
func TestConflicts_moved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids, p := w.clashers(4), w.caller()
	w.clashes([]*desk.Op{clash(0, 1), clash(0, 2), clash(0, 3)})
	w.Conflicts.StoreNow(t.Context())
	open := w.allConflicts()
	dismissed := open[setOf(ids[0], ids[2])]
	_, err := w.Conflicts.Resolve(t.Context(), p, dismissed.ID, desk.ConflictDecision{Action: desk.ConflictDismiss})
	must(t, err)
	handle := func(k int) desk.Identity { return desk.Identity{Kind: "crm", Value: fmt.Sprint("c", k)} }
	for _, k := range []int{1, 1, 2, 2} {
		must(t, w.Conflicts.Move(t.Context(), p, handle(k), ids[k], ids[0]))
		if to, from := w.contact(ids[0]), w.contact(ids[k]); !slices.ContainsFunc(to.Further, handle(k).Same) || len(from.Further) != 0 {
			t.Errorf("c%d: %v, %v", k, to.Further, from.Further)
		}
	}
	w.onlyConflict("after the moves", ids[0], ids[3])
	resolved, err := w.Conflicts.Conflict(t.Context(), p, open[setOf(ids[0], ids[1])].ID)
	must(t, err)
	want := desk.ConflictDecision{Action: desk.ConflictMove, Identity: handle(1), To: ids[0]}
	if resolved.Status != desk.ConflictResolved || !resolved.Resolution.Decision.Equal(&want) || resolved.Resolution.Actor != p.Actor {
		t.Errorf("%+v, %+v", resolved.Conflict, resolved.Resolution)
	}
	if c, err := w.Conflicts.Conflict(t.Context(), p, dismissed.ID); err != nil || c.Status != desk.ConflictDismissed {
		t.Errorf("the dismissed one: %+v, %v", c, err)
	}

	refused(t, w.Conflicts.Move(t.Context(), p, handle(3), ids[1], ids[2]), desk.InvalidRequest) // a third contact holds it
	refused(t, w.Conflicts.Move(t.Context(), p, handle(9), ids[1], ids[2]), desk.InvalidRequest)
	refused(t, w.Conflicts.Move(t.Context(), p, handle(3), ids[3], w.clock.newID()), desk.NotFound)
	key, _ := w.newKey("contacts:read,contacts:write")
	p, err = w.Access.Authenticate(t.Context(), key)
	must(t, err)
	refused(t, w.Conflicts.Move(t.Context(), p, handle(3), ids[3], ids[0]), desk.Forbidden)
	w.onlyConflict("after refused moves", ids[0], ids[3])
}

// TestConflicts_decided_beside_merges: contacts are merged, once by the decision about their
// conflict and once by themselves, at the same time. One of the two finds it done, and no
// transaction waits for another one that waits for it.
func TestConflicts_decided_beside_merges(t *testing.T) {
	t.Parallel()
	const pairs = 12
	w := newWorld(t)
	ids, p, deadlocks := w.clashers(2*pairs), w.caller(), w.deadlocks()
	var ops []*desk.Op
	for n := range pairs {
		ops = append(ops, clash(2*n, 2*n+1))
	}
	w.clashes(ops)
	w.Conflicts.StoreNow(t.Context())
	open := w.allConflicts()
	var all sync.WaitGroup
	for n := range pairs {
		into, from := ids[2*n], ids[2*n+1]
		c := open[setOf(into, from)]
		if c == nil {
			t.Fatalf("pair %d has no conflict", n)
		}
		all.Go(func() {
			d := desk.ConflictDecision{Action: desk.ConflictMerge, Into: into}
			if _, err := w.Conflicts.Resolve(context.WithoutCancel(t.Context()), p, c.ID, d); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			if _, err := w.Merges.Do(context.WithoutCancel(t.Context()), p, merges.Request{Into: into, From: from}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if left := w.allConflicts(); len(left) > 0 {
		t.Errorf("%d conflicts are still open", len(left))
	}
	if n := w.deadlocks() - deadlocks; n > 0 {
		t.Errorf("%d transactions have waited for each other", n)
	}
}
