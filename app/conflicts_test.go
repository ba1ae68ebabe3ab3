package app_test

import (
	"context"
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
