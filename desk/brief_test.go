package desk_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/desk"
)

// older adds contacts to the shelf, as an older release may have stored them: they share
// handles with other contacts, in other spellings.
func (s *shelf) older(t *rapid.T) {
	for n, id := range slices.SortedFunc(maps.Keys(s.rows), func(a, b desk.ID) int { return slices.Compare(a[:], b[:]) }) {
		if !chance(t, 30) {
			continue
		}
		row := s.rows[id]
		other := desk.Contact{ID: desk.ID{1, byte(n)}, Name: "older", Attributes: row.Attributes, CreatedAt: 1, UpdatedAt: 1}
		if row.Email != "" {
			other.Further = append(other.Further, handle("email", strings.Replace(row.Email, ".example", "。example", 1)))
		}
		if row.Phone != "" {
			other.Phone = "90" + "0" + row.Phone[2:]
		}
		if chance(t, 50) {
			other.ExternalID = oneOf(t, []string{"5", "6"})
		}
		s.rows[other.ID] = other
	}
}

// holders returns the holders of every claim that operations name.
func (s *shelf) holders(ops []*desk.Op) map[desk.Claim][]desk.ID {
	holders := map[desk.Claim][]desk.ID{}
	for _, op := range ops {
		for _, i := range op.Identities() {
			claim := i.Claim()
			if holders[claim] != nil {
				continue
			}
			for _, id := range slices.SortedFunc(maps.Keys(s.rows), func(a, b desk.ID) int { return slices.Compare(a[:], b[:]) }) {
				if row := s.rows[id]; slices.Contains(row.Claims(), claim) {
					holders[claim] = append(holders[claim], id)
				}
			}
		}
	}
	return holders
}

// openBrief returns a Book for ops. If leave is set, contacts are loaded without their
// further identities.
func (s *shelf) openBrief(ops []*desk.Op, leave bool) *desk.Book {
	b, loaded := desk.NewBook(settings, len(ops)), map[desk.ID]bool{}
	load := func(id desk.ID) {
		row, ok := s.rows[id]
		if !ok || loaded[id] {
			return
		}
		loaded[id] = true
		c := stored(&row)
		if leave && len(c.Further) > 0 {
			c.Further, c.Brief = nil, true
		}
		b.Load(c)
	}
	holders := s.holders(ops)
	for _, op := range ops {
		for _, id := range op.IDs() {
			load(id)
		}
		for _, i := range op.Identities() {
			for _, id := range holders[i.Claim()] {
				load(id)
			}
		}
	}
	for _, c := range b.ToRead(ops, holders) {
		b.Read(c, slices.Clone(s.rows[c.ID].Further))
	}
	return b
}

// TestBook_brief: the answers, the events, and the stored contacts and claims are the same,
// whichever further identities a Book leaves unread.
func TestBook_brief(t *testing.T) {
	t.Parallel()
	left := 0
	rapid.Check(t, func(t *rapid.T) {
		s, steps := anyShelf(t), anySteps.Draw(t, "steps")
		if chance(t, 50) {
			s.older(t)
		}
		for len(steps) > 0 {
			group := steps[:1+below(t, min(len(steps), 4))]
			steps = steps[len(group):]
			for _, step := range group {
				step.op.Brief = chance(t, 90)
			}
			one, other := s.openBrief(opsOf(group), false), s.openBrief(opsOf(group), true)
			if other.HasBrief() {
				left++
			}
			before := s.made
			var want []string
			for _, step := range group {
				o, err := one.Apply(step.op, actor, step.now, s.newID)
				if step.op.Brief {
					o.Contact = nil
				}
				want = append(want, o.ID.String()+answer(o, err))
			}
			s.made = before
			for n, step := range group {
				o, err := other.Apply(step.op, actor, step.now, s.newID)
				if step.op.Brief {
					o.Contact = nil
				}
				if got := o.ID.String() + answer(o, err); got != want[n] {
					t.Errorf("%v:\n%s\nwith all read\n%s", step, got, want[n])
				}
			}
			s.sameChanges(t, one, other)
		}
	})
	if left == 0 {
		t.Error("nothing was left unread")
	}
}

// sameChanges compares the changes of two Books, and stores them. The other Book may have
// left further identities unread.
func (s *shelf) sameChanges(t tester, one, other *desk.Book) {
	t.Helper()
	if !reflect.DeepEqual(one.Events(), other.Events()) {
		t.Fatalf("events %+v\nwith all read %+v", other.Events(), one.Events())
	}
	if len(one.Changed()) != len(other.Changed()) {
		t.Fatalf("%d contacts change, with all read %d", len(other.Changed()), len(one.Changed()))
	}
	for n, want := range one.Changed() {
		got := other.Changed()[n]
		now := got.Now
		if now != nil && now.Brief {
			filled := *now
			filled.Further = s.rows[now.ID].Further
			now = &filled
		}
		released, taken := want.Claims()
		gotReleased, gotTaken := got.Claims()
		if show(now) != show(want.Now) || !slices.Equal(gotReleased, released) || !slices.Equal(gotTaken, taken) {
			t.Fatalf("stored %s, releases %v, takes %v\nwith all read %s, %v, %v", show(now), gotReleased, gotTaken, show(want.Now), released, taken)
		}
		switch {
		case want.Now != nil:
			s.rows[want.Now.ID] = *stored(want.Now)
		case want.Stored != nil:
			delete(s.rows, want.Stored.ID)
		}
	}
}

// TestBook_brief_shared: contacts that share a handle are told apart by its spelling, which
// may be in their further identities.
func TestBook_brief_shared(t *testing.T) {
	t.Parallel()
	s := newShelf()
	s.rows[id(1)] = desk.Contact{ID: id(1), Email: "a@x.example", Further: handles("email", "a@x。example")}
	s.rows[id(2)] = desk.Contact{ID: id(2), Email: "a@x．example", Further: handles("telegram", "1")}
	op := assign(null[desk.Reference](), desk.Identity{Kind: "email", Value: "a@x.example", Spelling: "a@x。example"})
	op.Brief = true
	if o, err := s.openBrief([]*desk.Op{op}, true).Apply(op, actor, 0, nil); err != nil || o.ID != id(1) {
		t.Errorf("%v, %v", o.ID, err)
	}
}

// TestBook_brief_handles: the handles of a contact whose further identities were not read
// can't change; otherwise some would be lost.
func TestBook_brief_handles(t *testing.T) {
	t.Parallel()
	for name, op := range map[string]*desk.Op{"erase": at(id(1), erase()), "change": patch(id(1), noEmail)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := desk.NewBook(settings, 1)
			b.Load(&desk.Contact{ID: id(1), Email: "a@x.example", Brief: true})
			defer func() {
				if recover() == nil || len(b.Changed()) != 0 {
					t.Error("the handles changed")
				}
			}()
			_, _ = b.Apply(op, actor, 0, nil)
		})
	}
}
