package desk_test

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/desk"
)

// A shelf stands for a store: it keeps contacts and the holders of claims between Books. It
// loads into a Book only the contacts that the operations name, and stores the changed ones.
type shelf struct {
	rows   map[desk.ID]desk.Contact
	claims map[desk.Claim]desk.ID
	events []desk.Event
	made   int
}

func newShelf() *shelf {
	return &shelf{rows: map[desk.ID]desk.Contact{}, claims: map[desk.Claim]desk.ID{}}
}

func (s *shelf) newID() desk.ID { s.made++; return id(s.made) }

func (s *shelf) clone() *shelf {
	return &shelf{maps.Clone(s.rows), maps.Clone(s.claims), slices.Clone(s.events), s.made}
}

// open returns a Book with the contacts that ops can change.
func (s *shelf) open(ops ...*desk.Op) *desk.Book {
	var named []desk.ID
	for _, op := range ops {
		named = append(named, op.IDs()...)
		for _, i := range op.Identities() {
			if holder, ok := s.claims[i.Claim()]; ok {
				named = append(named, holder)
			}
		}
	}
	b := desk.NewBook(settings, len(ops))
	for n, id := range named {
		if row, ok := s.rows[id]; ok && !slices.Contains(named[:n], id) {
			b.Load(stored(&row))
		}
	}
	return b
}

// stored returns a contact as it comes back from a store: it is equal, and shares no
// memory.
func stored(c *desk.Contact) *desk.Contact {
	fresh := *c
	fresh.Attributes = desk.StoredAttributes(c.Attributes.JSON())
	fresh.Further = append([]desk.Identity(nil), c.Further...) // nil when there are none
	return &fresh
}

// flush stores the changes of a Book: first it deletes the released claims of all entries,
// then it stores the rows and their new claims. It fails where a database would.
func (s *shelf) flush(t tester, b *desk.Book) {
	t.Helper()
	for _, e := range b.Changed() {
		released, _ := e.Claims()
		for _, i := range released {
			if e.Stored == nil || s.claims[i] != e.Stored.ID {
				t.Fatalf("%s is released, and %s holds it", i, s.claims[i])
			}
			delete(s.claims, i)
		}
	}
	for _, e := range b.Changed() {
		_, taken := e.Claims()
		for _, i := range taken {
			if holder, held := s.claims[i]; held {
				t.Fatalf("%s is taken, and %s holds it", i, holder)
			}
			s.claims[i] = e.Now.ID
		}
		switch {
		case e.Now != nil:
			s.rows[e.Now.ID] = *stored(e.Now)
		case e.Stored != nil:
			delete(s.rows, e.Stored.ID)
		}
	}
	s.events = append(s.events, b.Events()...)
	s.check(t)
}

// check compares the claims with the contacts: no two contacts hold the same claim, and no
// claim is lost.
func (s *shelf) check(t tester) {
	t.Helper()
	want := map[desk.Claim]desk.ID{}
	for id, row := range s.rows {
		for _, i := range row.Claims() {
			if other, twice := want[i]; twice {
				t.Fatalf("%s and %s both hold %s", id, other, i)
			}
			want[i] = id
		}
	}
	if !maps.Equal(want, s.claims) {
		t.Fatalf("the claims are %v\nthe contacts hold %v", s.claims, want)
	}
}

func (s *shelf) String() string {
	var lines []string
	for _, row := range s.rows {
		lines = append(lines, show(&row))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// The values of which operations are made. There are so few that conflicts are frequent.
var (
	emails = []string{"a@x.example", "A@X.example", "b@x.example", "c@x.example"}
	digits = []string{"905321111111", "905322222222", "905323333333"}
	words  = []string{"1", "2", "3", "4"}

	pool = func() (l []desk.Identity) {
		for _, w := range words {
			l = append(l, handle("external_id", w), handle("telegram", w))
		}
		for _, d := range digits {
			l = append(l, handle("phone", d), handle("whatsapp", d))
		}
		return append(l, handles("email", "a@x.example", "email", "b@x.example", "email", "c@x.example")...)
	}()

	values = map[string][]desk.Value{
		"city":  {str("İzmir"), str("a,\"b\":{}\\"), str("]"), str("Bursa"), str(""), num("1"), {}},
		"score": {num("1.50"), str("1.5"), num("2"), num("3"), num("4"), str("x"), {}},
		"tags":  {list(str("a,b"), str("}")), list(str("}")), list(str("]["), str(`\`), str(`"`)), list(), {}},
		"tier":  {str("gold"), str("tin"), str("gold"), str("tin"), str("lead"), {}},
		"old":   {str("x"), {}},
		"nope":  {str("x")},
	}
)

// below draws a number from 0 to n-1; all are equally likely. rapid's own numbers and
// samples prefer the first ones, and then few contacts change.
func below(t *rapid.T, n int) int {
	v := 0
	for range 10 {
		v *= 2
		if rapid.Bool().Draw(t, "bit") {
			v++
		}
	}
	return v * n / 1024
}

func oneOf[T any](t *rapid.T, of []T) T { return of[below(t, len(of))] }

// chance is true n times in a hundred.
func chance(t *rapid.T, n int) bool { return below(t, 100) < n }

func someOf[T any](t *rapid.T, least, most int, of []T) (l []T) {
	for range least + below(t, most-least+1) {
		l = append(l, oneOf(t, of))
	}
	return l
}

func anyOwner(t *rapid.T) string {
	if chance(t, 10) {
		return oneOf(t, []string{"nobody", ""})
	}
	return oneOf(t, []string{"ada@DESK.example", "grace@desk.example", ada.ID.String()})
}

func anyAttributes(t *rapid.T) (parts []part) {
	for _, key := range slices.Compact(slices.Sorted(slices.Values(someOf(t, 1, 3, []string{"city", "score", "tags", "tier"})))) {
		parts = append(parts, attr(key, oneOf(t, values[key])))
	}
	if chance(t, 5) {
		parts = append(parts, attr("old", oneOf(t, values["old"])))
	}
	if chance(t, 5) {
		parts = append(parts, attr("nope", str("x")))
	}
	return parts
}

// anyParts draws some members of a contact, in any order.
func anyParts(t *rapid.T) (parts []part) {
	all := [][2]func() []part{
		{func() []part { return []part{external(oneOf(t, words))} }, func() []part { return []part{noExternal} }},
		{func() []part { return []part{email(oneOf(t, emails))} }, func() []part { return []part{noEmail} }},
		{func() []part { return []part{phone(oneOf(t, digits))} }, func() []part { return []part{noPhone} }},
		{func() []part {
			var pairs []string
			for _, i := range someOf(t, 0, 3, pool) {
				pairs = append(pairs, i.Kind, i.Value)
			}
			return []part{further(pairs...)}
		}, func() []part { return []part{noFurther} }},
		{func() []part { return []part{name(oneOf(t, words))} }, func() []part { return []part{noName} }},
		{func() []part { return []part{owner(anyOwner(t))} }, func() []part { return []part{noOwner} }},
		{func() []part { return anyAttributes(t) }, func() []part { return []part{noAttributes} }},
	}
	for len(all) > 0 {
		n := below(t, len(all))
		switch {
		case chance(t, 25):
			parts = append(parts, all[n][0]()...)
		case chance(t, 10):
			parts = append(parts, all[n][1]()...)
		}
		all = slices.Delete(all, n, n+1)
	}
	return parts
}

func anyUpsert(t *rapid.T) *desk.Op {
	parts := anyParts(t)
	if w := write(parts...); len(w.Sent) == 0 && !w.ExternalID.Set && chance(t, 90) {
		parts = append(parts, external(oneOf(t, words)))
	}
	return upsert(parts...)
}

func anyOp(t *rapid.T) *desk.Op {
	target := func() desk.ID { return id(below(t, 6)) }
	find := func(op *desk.Op) *desk.Op {
		byID := chance(t, 60)
		if !byID || chance(t, 30) {
			for _, i := range someOf(t, 1, 2, pool) {
				op.Find = desk.AddIdentity(op.Find, i)
			}
		}
		if byID {
			op = at(target(), op)
		}
		return op
	}
	switch kind := below(t, 100); {
	case kind < 40:
		return anyUpsert(t)
	case kind < 65:
		return patch(target(), anyParts(t)...)
	case kind < 73:
		return find(assign(sent(desk.ReferTo(anyOwner(t)))))
	case kind < 77:
		return find(assign(null[desk.Reference]()))
	case kind < 87:
		return find(erase())
	default:
		return remove(target(), someOf(t, 0, 9, pool)...)
	}
}

// A step is an operation at a time; the clock may go back.
type step struct {
	op  *desk.Op
	now desk.Time
}

// String shows the step when a property fails.
func (s step) String() string {
	text := fmt.Sprintf("at %d %s", s.now, []string{"upsert", "assign", "delete", "patch", "remove"}[s.op.Kind])
	if s.op.ByID {
		text += " " + s.op.Target.String()[34:]
	}
	w := reflect.ValueOf(s.op.Write)
	for n := range w.NumField() {
		if f := w.Field(n); f.Kind() == reflect.Struct && f.FieldByName("Set").Bool() {
			text += fmt.Sprintf(" %s=%+v", w.Type().Field(n).Name, f.FieldByName("Value"))
		}
	}
	return fmt.Sprintf("%s owner=%v find=%v sent=%v remove=%v", text, s.op.Owner, s.op.Find, s.op.Write.Sent, s.op.Remove)
}

// GoString returns the text that rapid prints for a step that it drew.
func (s step) GoString() string { return s.String() }

var anySteps = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
	return step{anyOp(t), 100 + desk.Time(below(t, 100))}
}), 4, 30)

// anyShelf returns a shelf with a few contacts, whose ids begin with 1. Each has a value of
// the archived attribute.
func anyShelf(t *rapid.T) *shelf {
	s := newShelf()
	for _, first := range rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step { return step{anyUpsert(t), 150} }), 6, 10).Draw(t, "contacts") {
		b := s.open(first.op)
		if o, err := b.Apply(first.op, actor, first.now, s.newID); err != nil || o.Status != desk.StatusCreated {
			continue
		}
		s.flush(t, b)
		row := s.rows[id(s.made)]
		row.Attributes = desk.StoredAttributes(strings.Replace(`{"born":"kept",`+row.Attributes.JSON()[1:], ",}", "}", 1))
		s.rows[id(s.made)] = row
	}
	s.events = nil
	return s
}

// answer returns the result of an operation as a caller sees it.
func answer(o desk.Outcome, err error) string {
	if err != nil {
		return explain(err)
	}
	return string(o.Status) + " " + show(o.Contact)
}

// state is the visible state of a Book.
type state struct {
	entries []desk.Entry
	rows    []string
	events  []desk.Event
	holders map[desk.Identity]string
}

func stateOf(t tester, b *desk.Book) state {
	s := state{events: slices.Clone(b.Events()), holders: map[desk.Identity]string{}}
	for _, e := range b.Changed() {
		s.entries = append(s.entries, *e)
		s.rows = append(s.rows, show(e.Stored), show(e.Now))
	}
	for _, i := range pool {
		if c := holderOf(t, b, i); c != nil {
			s.holders[i] = show(c)
		}
	}
	return s
}

// holderOf returns the holder of an identity, found by operations only: an assign to nobody
// shows whether there is one, and an upsert of only the identity returns it.
func holderOf(t tester, b *desk.Book, i desk.Identity) *desk.Contact {
	t.Helper()
	if _, err := b.Apply(assign(sent(desk.ReferTo("nobody")), i), actor, 0, nil); desk.IsType(err, desk.NotFound) {
		return nil
	}
	o, err := b.Apply(&desk.Op{Kind: desk.OpUpsert, Write: desk.ContactWrite{Sent: []desk.Identity{i}}}, actor, 0, nil)
	if err != nil {
		t.Fatalf("probe of %s: %s", i, explain(err))
	}
	return o.Contact
}

// byID returns the contact with this id as it is in the Book, or nil.
func byID(b *desk.Book, id desk.ID) *desk.Contact {
	o, _ := b.Apply(patch(id), actor, 0, nil)
	return o.Contact
}

// TestBook_refusals_leave_no_trace: if Apply refuses an operation, the Book does not
// change.
func TestBook_refusals_leave_no_trace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, steps := anyShelf(t), anySteps.Draw(t, "steps")
		b := s.open(opsOf(steps)...)
		for _, step := range steps {
			before, made := stateOf(t, b), s.made
			o, err := b.Apply(step.op, actor, step.now, s.newID)
			if err == nil {
				continue
			}
			if after := stateOf(t, b); !reflect.DeepEqual(after, before) || o != (desk.Outcome{}) || s.made != made {
				t.Fatalf("%v was refused: %s\nbefore %+v\nafter  %+v", step, explain(err), before, after)
			}
		}
	})
}

func opsOf(steps []step) []*desk.Op {
	ops := make([]*desk.Op, len(steps))
	for n := range steps {
		ops[n] = steps[n].op
	}
	return ops
}

// TestBook_holders_agree: after every operation no two contacts hold the same claim, and
// each identity finds the contact whose record has it.
func TestBook_holders_agree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, steps := anyShelf(t), anySteps.Draw(t, "steps")
		b := s.open(opsOf(steps)...)
		for _, step := range steps {
			_, _ = b.Apply(step.op, actor, step.now, s.newID)
			want := map[desk.Claim]desk.ID{}
			for n := range s.made + 1 {
				c := byID(b, id(n))
				if c == nil {
					continue
				}
				for _, i := range c.Claims() {
					if other, twice := want[i]; twice {
						t.Fatalf("after %v %s and %s both hold %s", step, other, id(n), i)
					}
					want[i] = id(n)
				}
				checkContact(t, c)
			}
			for _, i := range pool {
				holder, held := want[i.Claim()]
				if c := holderOf(t, b, i); (c != nil) != held || held && (c.ID != holder || c != byID(b, holder)) {
					t.Fatalf("after %v %s leads to %s, and %s holds it", step, i, show(c), holder)
				}
			}
		}
	})
}

// checkContact checks the invariants of a contact.
func checkContact(t tester, c *desk.Contact) {
	t.Helper()
	all := c.Identities()
	for n, i := range all {
		if slices.Contains(all[:n], i) {
			t.Fatalf("%s is there twice: %s", i, show(c))
		}
		if !slices.Contains(c.Claims(), i.Claim()) {
			t.Fatalf("%s is not claimed: %q", i, c.Claims())
		}
	}
	if !slices.IsSortedFunc(c.Further, func(a, b desk.Identity) int { return strings.Compare(a.Kind+"\x00"+a.Value, b.Kind+"\x00"+b.Value) }) {
		t.Fatalf("not sorted: %q", c.Further)
	}
	if c.UpdatedAt < c.CreatedAt {
		t.Fatalf("updated at %d, created at %d", c.UpdatedAt, c.CreatedAt)
	}
}

// TestBook_claims_replay applies the released and taken claims of the entries to the stored
// claims: first all deletes, then all inserts. Each deleted claim must exist, and no
// inserted claim may exist. The result must be the claims of the contacts. shelf.flush
// checks this.
func TestBook_claims_replay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, steps := anyShelf(t), anySteps.Draw(t, "steps")
		b := s.open(opsOf(steps)...)
		for _, step := range steps {
			_, _ = b.Apply(step.op, actor, step.now, s.newID)
		}
		seen := map[*desk.Entry]bool{}
		for _, e := range b.Changed() {
			if seen[e] {
				t.Fatal("an entry is there twice")
			}
			seen[e] = true
			if e.Stored != nil && e.Now != nil && e.Stored.ID != e.Now.ID {
				t.Fatalf("an entry is of %s and %s", e.Stored.ID, e.Now.ID)
			}
		}
		s.flush(t, b)
	})
}

// TestBook_group_equals_singles: a batch of n operations has the same answers, events and
// stored contacts as n single writes, wherever the batch is divided. This holds although
// each Book has only the contacts that its operations name.
func TestBook_group_equals_singles(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		single, steps := anyShelf(t), anySteps.Draw(t, "steps")
		grouped := single.clone()

		var want []string
		for _, step := range steps {
			b := single.open(step.op)
			o, err := b.Apply(step.op, actor, step.now, single.newID)
			want = append(want, answer(o, err))
			single.flush(t, b)
		}

		outcomes, errs := make([]desk.Outcome, len(steps)), make([]error, len(steps))
		for n := 0; n < len(steps); {
			end := n + rapid.IntRange(1, len(steps)-n).Draw(t, "group")
			b := grouped.open(opsOf(steps[n:end])...)
			for ; n < end; n++ {
				outcomes[n], errs[n] = b.Apply(steps[n].op, actor, steps[n].now, grouped.newID)
			}
			grouped.flush(t, b)
		}

		for n := range steps { // the answers are made only now, after all operations
			if got := answer(outcomes[n], errs[n]); got != want[n] {
				t.Errorf("%d, %v:\nin a group %s\nalone      %s", n, steps[n], got, want[n])
			}
		}
		if grouped.String() != single.String() || !maps.Equal(grouped.claims, single.claims) {
			t.Errorf("stored in groups:\n%s\none by one:\n%s", grouped, single)
		}
		if !reflect.DeepEqual(grouped.events, single.events) {
			t.Errorf("events in groups %+v\none by one %+v", grouped.events, single.events)
		}
	})
}

// TestBook_events: each accepted change has one event, which names the changed fields. A
// refusal, or a write that changes nothing, has none.
func TestBook_events(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, steps := anyShelf(t), anySteps.Draw(t, "steps")
		b := s.open(opsOf(steps)...)
		for _, step := range steps {
			before := map[desk.ID]*desk.Contact{}
			for n := range s.made + 1 {
				before[id(n)] = byID(b, id(n))
			}
			events := len(b.Events())
			o, err := b.Apply(step.op, actor, step.now, s.newID)
			happened := b.Events()[events:]
			if err != nil {
				if len(happened) != 0 {
					t.Fatalf("%v was refused, with events %+v", step, happened)
				}
				continue
			}
			old := before[o.Contact.ID]
			want := desk.Event{Subject: o.Contact.ID, Actor: actor, At: o.Contact.UpdatedAt}
			switch o.Status {
			case desk.StatusCreated:
				want.Type = desk.ContactCreated
				if old != nil || o.Contact.CreatedAt != step.now || o.Contact.UpdatedAt != step.now {
					t.Fatalf("created %s over %s at %d", show(o.Contact), show(old), step.now)
				}
			case desk.StatusDeleted:
				want.Type = desk.ContactDeleted
				if old != o.Contact || byID(b, old.ID) != nil {
					t.Fatalf("deleted %s, it was %s", show(o.Contact), show(old))
				}
				want.At = max(step.now, old.UpdatedAt)
			default:
				want.Type, want.Changed = desk.ContactUpdated, differences(old, o.Contact)
				if want.Changed == nil {
					if o.Contact != old || len(happened) != 0 {
						t.Fatalf("%v changed nothing: %s, %s, %+v", step, show(old), show(o.Contact), happened)
					}
					continue
				}
				if o.Contact.UpdatedAt != max(step.now, old.UpdatedAt) || o.Contact.CreatedAt != old.CreatedAt {
					t.Fatalf("%v: %s\nbecame %s", step, show(old), show(o.Contact))
				}
			}
			if len(happened) != 1 || !sameEvent(happened[0], want) {
				t.Fatalf("%v: events %+v\nwant %+v", step, happened, want)
			}
		}
	})
}

func sameEvent(a, b desk.Event) bool {
	slices.Sort(a.Changed)
	slices.Sort(b.Changed)
	return reflect.DeepEqual(a, b)
}

// differences names the fields in which two contacts differ. A further handle that
// became a field counts as that field's change only.
func differences(a, b *desk.Contact) (changed []string) {
	add := func(differ bool, name string) {
		if differ {
			changed = append(changed, name)
		}
	}
	add(a.ExternalID != b.ExternalID, "external_id")
	add(a.Name != b.Name, "name")
	add(a.Email != b.Email, "email")
	add(a.Phone != b.Phone, "phone")
	add(a.Note != b.Note, "note")
	add(a.Owner != b.Owner, "owner")
	fields := handles("external_id", b.ExternalID, "email", desk.CanonicalEmail(b.Email), "phone", b.Phone)
	left := slices.DeleteFunc(slices.Clone(a.Further), func(i desk.Identity) bool { return slices.Contains(fields, i) })
	add(!slices.Equal(left, b.Further), "identities")
	before, after := members(a.Attributes), members(b.Attributes)
	for key, v := range before {
		add(after[key] != v, "attributes."+key)
	}
	for key := range after {
		_, there := before[key]
		add(!there, "attributes."+key)
	}
	slices.Sort(changed)
	return changed
}

// TestBook_refuses_what_the_contract_refuses compares every answer with the rules of
// contract §2 and §3, which the test implements again in the plainest way.
func TestBook_refuses_what_the_contract_refuses(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, steps := anyShelf(t), anySteps.Draw(t, "steps")
		for _, step := range steps {
			want, details := verdict(s, step.op)
			b := s.open(step.op)
			o, err := b.Apply(step.op, actor, step.now, s.newID)
			got := string(o.Status)
			var e *desk.Error
			if errors.As(err, &e) {
				got = string(e.Type)
				if found, _ := e.Details.([]desk.Identity); !slices.Equal(found, details) {
					t.Fatalf("%v: details %q, want %q\n%s", step, found, details, s)
				}
			}
			if got != want {
				t.Fatalf("%v: %s, want %s\n%s", step, answer(o, err), want, s)
			}
			s.flush(t, b)
		}
	})
}

// verdict is the contract's answer to an operation: a status or an error type.
func verdict(s *shelf, op *desk.Op) (string, []desk.Identity) {
	holders := func(list []desk.Identity, except desk.ID) (named []desk.Identity, ids map[desk.ID]bool) {
		ids = map[desk.ID]bool{}
		for _, i := range list {
			if holder, held := s.claims[i.Claim()]; held && holder != except {
				named, ids[holder] = append(named, i), true
			}
		}
		return named, ids
	}
	_, exists := s.rows[op.Target]
	named, ids := holders(append(slices.Clone(op.Write.Sent), op.Find...), desk.ID{})
	finds := op.Kind == desk.OpAssign || op.Kind == desk.OpDelete
	o := op.Write.Owner
	if op.Kind == desk.OpAssign {
		o = op.Owner
	}
	switch {
	case op.Kind == desk.OpUpsert && len(op.Write.Sent) == 0, finds && !op.ByID && len(op.Find) == 0:
		return "invalid_request", nil
	case op.ByID && !exists, finds && len(named) < len(op.Find):
		return "not_found", nil
	case o.Has() && (o.Value == desk.ReferTo("nobody") || o.Value == desk.Reference{}):
		return "invalid_request", nil
	}
	for _, a := range op.Write.Attributes.Value {
		if def := settings.Attributes[a.Key]; def == nil {
			return "invalid_attributes", nil
		} else if _, reason := def.Canonical(a.Value); reason != "" {
			return "invalid_attributes", nil
		}
	}
	if op.ByID && finds {
		ids[op.Target] = true
	}
	switch op.Kind {
	case desk.OpUpsert:
		switch len(ids) {
		case 0:
			return "created", nil
		case 1:
			return "updated", nil
		}
		return "identity_conflict", named
	case desk.OpPatch:
		if named, _ := holders(op.Write.Sent, op.Target); len(named) > 0 {
			return "identity_conflict", named
		}
		return "updated", nil
	case desk.OpAssign, desk.OpDelete:
		if len(ids) > 1 {
			return "identity_conflict", named
		}
		return map[desk.OpKind]string{desk.OpAssign: "assigned", desk.OpDelete: "deleted"}[op.Kind], nil
	}
	c := s.rows[op.Target]
	for _, i := range op.Remove {
		switch {
		case slices.Contains(handles("external_id", c.ExternalID, "email", desk.CanonicalEmail(c.Email), "phone", c.Phone), i):
			return "invalid_request", nil
		case slices.Contains(c.Further, i):
			return "updated", nil
		}
	}
	return "not_found", nil
}

// BenchmarkApply_many_handles adds a handle to a contact that has many.
func BenchmarkApply_many_handles(b *testing.B) {
	for _, n := range []int{50, 500, 5000} {
		b.Run(fmt.Sprintf("further=%d", n), func(b *testing.B) {
			c := &desk.Contact{ID: id(1), ExternalID: "crm-1"}
			for i := range n {
				c.Further = append(c.Further, handle("telegram", fmt.Sprintf("%06d", i)))
			}
			op := patch(id(1), further("telegram", "new"))
			b.ReportAllocs()
			for b.Loop() {
				book := desk.NewBook(settings, 1)
				book.Load(c)
				if _, err := book.Apply(op, actor, 1, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
