package app_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"parley/desk"
)

var conflictDecisions = flag.Int("conflict-decisions", 60, "TestConflicts_model: how many refusals, decisions and merges there are. Long run: -run 'TestConflicts_model|TestPostgres/TestConflicts_model' -conflict-decisions 10000")

// stepsInAWorld is how many steps TestConflicts_model makes in one workspace. Each compares all
// of its conflicts.
const stepsInAWorld = 100

// A modelConflict is what the model knows about a conflict.
type modelConflict struct {
	people   []desk.ID // sorted
	count    int64
	named    map[string]bool // handles
	status   desk.ConflictStatus
	decision desk.ConflictDecision
}

func (c *modelConflict) String() string {
	return fmt.Sprint(c.people, " ", c.count, " ", slices.Sorted(maps.Keys(c.named)), " ", c.status, " ", c.decision.Action, " ", c.decision.Identity.Value)
}

// A conflictModel is contacts with handles, of which some were merged, and their conflicts.
type conflictModel struct {
	*world
	*rand.Rand
	holders   map[string]desk.ID // of each handle
	conflicts map[desk.ID]*modelConflict
}

// TestConflicts_model lets writes be refused, decides about the conflicts at random, and merges
// contacts beside this. After each step, all conflicts are as a model has them.
func TestConflicts_model(t *testing.T) {
	t.Parallel()
	for begin := 0; begin < *conflictDecisions; begin += stepsInAWorld {
		t.Run(fmt.Sprint("from=", begin), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.checkpoints()
			m := &conflictModel{w, rand.New(rand.NewPCG(5, uint64(begin))), map[string]desk.ID{}, map[desk.ID]*modelConflict{}}
			for k, id := range w.clashers(12) {
				m.holders[fmt.Sprint("c", k)] = id
			}
			for n := begin; n < min(begin+stepsInAWorld, *conflictDecisions); n++ {
				w.clock.advance(time.Second)
				what := m.step()
				if m.compare(); t.Failed() {
					t.Fatalf("after step %d, %s", n, what)
				}
			}
		})
	}
}

// people are the contacts that hold a handle.
func (m *conflictModel) people() []desk.ID {
	list := slices.Collect(maps.Values(m.holders))
	slices.SortFunc(list, desk.ID.Compare)
	return slices.Compact(list)
}

// of returns the conflict of a set of contacts, or the zero ID.
func (m *conflictModel) of(people []desk.ID) (id desk.ID) {
	for id, c := range m.conflicts {
		if slices.Equal(c.people, people) {
			return id
		}
	}
	return id
}

// step lets one thing happen, in the world and in the model, and says what.
func (m *conflictModel) step() string {
	ids := slices.SortedFunc(maps.Keys(m.conflicts), desk.ID.Compare)
	switch what := m.IntN(20); {
	case what < 9 || len(ids) == 0:
		return m.refuse()
	case what < 19:
		id := ids[m.IntN(len(ids))]
		for n := 0; n < 3 && m.conflicts[id].status != desk.ConflictOpen; n++ { // rather an open one
			id = ids[m.IntN(len(ids))]
		}
		return m.decide(id)
	}
	if people := m.people(); len(people) > 3 {
		m.Shuffle(len(people), func(i, j int) { people[i], people[j] = people[j], people[i] })
		merge := m.merge(m.contact(people[0]), m.contact(people[1]))
		m.merged(people[0], people[1], merge.ID)
		return "a merge"
	}
	return m.refuse()
}

// refuse writes two or three handles, which are refused if different contacts hold them.
func (m *conflictModel) refuse() string {
	t := m.t
	t.Helper()
	op, named, people := &desk.Op{Kind: desk.OpUpsert}, map[string]bool{}, []desk.ID(nil)
	for _, k := range m.Perm(len(m.holders))[:2+m.IntN(2)] {
		handle := fmt.Sprint("c", k)
		alsoKnownAs("crm", handle)(&op.Write)
		named[handle], people = true, append(people, m.holders[handle])
	}
	slices.SortFunc(people, desk.ID.Compare)
	people = slices.Compact(people)
	_, err := m.Write(t.Context(), m.caller(), op)
	if len(people) == 1 {
		must(t, err)
		return "a write"
	}
	refused(t, err, desk.IdentityConflict)
	m.Conflicts.StoreNow(t.Context())
	id := m.of(people)
	c := m.conflicts[id]
	if c == nil {
		c = &modelConflict{people: people, named: map[string]bool{}, status: desk.ConflictOpen}
		m.conflicts[m.newest()] = c
	}
	c.count++
	maps.Copy(c.named, named)
	if c.status == desk.ConflictResolved {
		c.status, c.decision = desk.ConflictOpen, desk.ConflictDecision{}
	}
	return fmt.Sprint("a refusal of ", people)
}

// newest is the id of the conflict that the model does not know yet.
func (m *conflictModel) newest() (id desk.ID) {
	m.t.Helper()
	for _, c := range m.allConflicts() {
		if m.conflicts[c.ID] == nil {
			id = c.ID
		}
	}
	return id
}

// decide makes a random decision about a conflict, which may not fit it or come too late. One that
// is carried out is made again.
func (m *conflictModel) decide(id desk.ID) string {
	t := m.t
	t.Helper()
	c := m.conflicts[id]
	d := desk.ConflictDecision{Action: []desk.ConflictAction{desk.ConflictDismiss, desk.ConflictMove, desk.ConflictMerge}[m.IntN(3)]}
	one, fits := c.people[m.IntN(len(c.people))], true
	switch d.Action {
	case desk.ConflictMerge:
		if d.Into = one; len(m.people()) < 6 { // few are left
			d = desk.ConflictDecision{Action: desk.ConflictDismiss}
		}
	case desk.ConflictMove:
		handle := fmt.Sprint("c", m.IntN(len(m.holders)))
		if m.IntN(5) > 0 {
			names := slices.Sorted(maps.Keys(c.named))
			handle = names[m.IntN(len(names))]
		}
		d.Identity, d.To = desk.Identity{Kind: "crm", Value: handle}, one
		fits = c.named[handle] && slices.Contains(c.people, m.holders[handle])
	}
	what := fmt.Sprintf("%s of %v about %v", d.Action, d.Identity, c)
	tried, dry := m.Conflicts.Try(t.Context(), m.caller(), id, d)
	done, err := m.Conflicts.Resolve(t.Context(), m.caller(), id, d)
	if (dry == nil) != (err == nil) || dry != nil && dry.Error() != err.Error() {
		t.Errorf("a dry run said %v, and it became %v", dry, err)
	}
	switch {
	case c.status != desk.ConflictOpen && !c.decision.Equal(&d):
		refused(t, err, desk.ConflictClosed)
		return "too late: " + what
	case c.status != desk.ConflictOpen:
		must(t, err)
		return "again: " + what
	case !fits:
		refused(t, err, desk.InvalidRequest)
		return "unfit: " + what
	}
	must(t, err)
	if tried.Status != done.Status || !slices.Equal(tried.Contacts, done.Contacts) || !maps.Equal(tried.Names, done.Names) {
		t.Errorf("a dry run said %+v, and it became %+v", tried, done)
	}
	c.status, c.decision = desk.ConflictResolved, d
	switch d.Action {
	case desk.ConflictDismiss:
		c.status = desk.ConflictDismissed
	case desk.ConflictMove:
		m.holders[d.Identity.Value] = d.To
	case desk.ConflictMerge:
		if len(done.Resolution.Merges) != len(c.people)-1 {
			t.Errorf("the merges %v, of %v", done.Resolution.Merges, c.people)
		}
		for n, from := range slices.DeleteFunc(slices.Clone(c.people), func(id desk.ID) bool { return id == d.Into }) {
			m.merged(d.Into, from, done.Resolution.Merges[n])
		}
	}
	_, err = m.Conflicts.Resolve(t.Context(), m.caller(), id, d)
	must(t, err)
	return what
}

// merged puts a contact in the place of another one: its handles and its conflicts.
func (m *conflictModel) merged(into, from, merge desk.ID) {
	if r, err := m.Merges.Merge(m.t.Context(), m.caller(), merge); err != nil || r.Into != into || r.From != from {
		m.t.Errorf("the merge of %v into %v: %+v, %v", from, into, r, err)
	}
	for handle, holder := range m.holders {
		if holder == from {
			m.holders[handle] = into
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(m.conflicts), desk.ID.Compare) {
		c := m.conflicts[id]
		if !slices.Contains(c.people, from) || c.status == desk.ConflictResolved && c.decision.Action == desk.ConflictMerge {
			continue
		}
		rest := slices.DeleteFunc(slices.Clone(c.people), func(id desk.ID) bool { return id == from || id == into })
		if len(rest) == 0 { // of just these two
			if c.status == desk.ConflictOpen {
				c.status, c.decision = desk.ConflictResolved, desk.ConflictDecision{Action: desk.ConflictMerge, Into: into}
			}
			continue
		}
		rest = append(rest, into)
		slices.SortFunc(rest, desk.ID.Compare)
		other := m.conflicts[m.of(rest)]
		if other == nil || other == c {
			c.people = rest
			continue
		}
		other.count += c.count
		maps.Copy(other.named, c.named)
		if other.status == desk.ConflictResolved && c.status != desk.ConflictResolved {
			other.status, other.decision = c.status, c.decision
		}
		delete(m.conflicts, id)
	}
}

// compare compares all conflicts and handles with the model's.
func (m *conflictModel) compare() {
	t := m.t
	t.Helper()
	seen := 0
	for _, status := range []desk.ConflictStatus{desk.ConflictOpen, desk.ConflictResolved, desk.ConflictDismissed} {
		list, next, err := m.Conflicts.Conflicts(t.Context(), m.caller(), status, "", 200)
		must(t, err)
		if next != "" {
			t.Fatal("there are too many conflicts for a page")
		}
		seen += len(list)
		for _, c := range list {
			got := &modelConflict{people: c.Contacts, count: c.Count, named: map[string]bool{}, status: c.Status}
			for _, i := range c.Identities {
				got.named[i.Value] = true
			}
			if c.Resolution != nil {
				got.decision = c.Resolution.Decision
			}
			if want := m.conflicts[c.ID]; want == nil || got.String() != want.String() {
				t.Errorf("%v, want %v", got, want)
			}
		}
	}
	if seen != len(m.conflicts) {
		t.Errorf("%d conflicts, want %d", seen, len(m.conflicts))
	}
	for handle, holder := range m.holders {
		if c := m.contact(holder); !slices.ContainsFunc(c.Further, desk.Identity{Kind: "crm", Value: handle}.Same) {
			t.Errorf("%v does not hold %s", holder, handle)
		}
	}
}
