package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/desk"
	"parley/store"
)

func contactFieldsSurvive(t *testing.T, s store.Store) {
	ws, member := newWorkspace(t, s)
	nasty := "a'b\"c\\d\te\nf ,{}[]:%_é İı 😀 " + strings.Repeat("x", 5000)
	op := upsert("Ada@Example.com", "905321112233")
	op.Write.ExternalID, op.Write.Name, op.Write.Note = text("x-1"), text("A'd\"a\\ İ"), text(nasty)
	op.Write.Owner = refer("ADA@example.com")
	op.Write.Identities = desk.Field[[]desk.Identity]{Set: true, Value: []desk.Identity{
		{Kind: "twitter", Value: nasty[:200]}, {Kind: desk.KindWhatsApp, Value: "905321112233"}, {Kind: "a", Value: ":"},
	}}
	op.Write.Sent = append(op.Write.Sent, op.Write.Identities.Value...)
	op.Write.Attributes = desk.Field[[]desk.AttributeWrite]{Set: true, Value: []desk.AttributeWrite{
		{Key: "score", Value: desk.Value{Kind: desk.NumberValue, Text: "12345678901234567890.5"}},
		{Key: "plan", Value: desk.Value{Kind: desk.StringValue, Text: "pro"}},
	}}
	want := put(t, s, ws, op)
	got, _, err := s.Contact(t.Context(), ws, want.ID)
	must(t, err)
	if got.Owner == nil || got.Owner.ID != member.ID {
		t.Errorf("owner = %v, want %v", got.Owner, member.ID)
	}
	if got.Attributes.JSON() != `{"plan":"pro","score":12345678901234567890.5}` {
		t.Errorf("attributes = %s", got.Attributes.JSON())
	}
	same(t, got, want)
	for _, i := range op.Write.Sent { // each identity leads to the contact
		if again := put(t, s, ws, &desk.Op{Kind: desk.OpUpsert, Write: desk.ContactWrite{Sent: []desk.Identity{i}}}); again.ID != want.ID {
			t.Errorf("%s leads to another contact", i.Kind)
		}
	}
	if n := len(all(t, s, ws)); n != 1 {
		t.Errorf("%d contacts, want 1", n)
	}
}

// same compares the fields of two contacts that callers can see.
func same(t *testing.T, got, want *desk.Contact) {
	t.Helper()
	g, w := *got, *want
	g.Version, w.Version = 0, 0
	g.Apart, w.Apart = desk.Apart{}, desk.Apart{}
	if !reflect.DeepEqual(g, w) {
		t.Errorf("contact = %+v\nwant %+v", g, w)
	}
}

// largeValues makes attributes and further identities grow and shrink, together and
// separately.
func largeValues(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	edit(t, s, ws, desk.Change{Attribute: &desk.Attribute{Key: "about", Label: "About", Type: desk.TextAttribute, Position: 2}})
	attribute := func(op *desk.Op, value string) *desk.Op {
		op.Write.Attributes = desk.Field[[]desk.AttributeWrite]{Set: true, Value: []desk.AttributeWrite{
			{Key: "about", Value: desk.Value{Kind: desk.StringValue, Text: value}},
		}}
		return op
	}
	further := func(op *desk.Op, first, n int) *desk.Op {
		op.Write.Identities.Set = true
		for i := range n {
			held := desk.Identity{Kind: "crm", Value: fmt.Sprintf("%04d\"%s", first+i, strings.Repeat("😀", 240))}
			op.Write.Identities.Value = append(op.Write.Identities.Value, held)
			op.Write.Sent = append(op.Write.Sent, held)
		}
		return op
	}
	person := func() *desk.Op { return upsert("a@example.com", "") }
	named := person()
	named.Write.Name = text("Ada")
	none := person()
	none.Write.Identities = desk.Field[[]desk.Identity]{Set: true, Null: true}
	for round := range 2 {
		var id desk.ID
		for step, op := range []*desk.Op{
			attribute(further(person(), 0, 40), strings.Repeat("😀", 4000)),
			named,
			attribute(person(), strings.Repeat("x", 1000)+strings.Repeat("😀", 3000-round)),
			further(person(), 40, 10),
			further(attribute(person(), "small"), 50, 1),
			none,
			attribute(person(), strings.Repeat("y", 3000)),
			further(attribute(person(), strings.Repeat("😀", 3999)), 0, 20),
		} {
			want := put(t, s, ws, op)
			got, _, err := s.Contact(t.Context(), ws, want.ID)
			must(t, err)
			same(t, got, want)
			list := all(t, s, ws)
			same(t, list[len(list)-1], want)
			book, err := s.Book(t.Context(), ws, person().Lookup())
			must(t, err)
			same(t, book.Contact(want.ID), want)
			if id != want.ID && step > 0 || len(list) != 1 {
				t.Errorf("step %d: the contact is another one, or one of %d", step, len(list))
			}
			id = want.ID
		}
		put(t, s, ws, remove(id))
		missingContact(s.Contact(t.Context(), ws, id))(t)
	}
}

// briefOperations: a group of brief operations changes contacts with many further
// identities. No identity is lost or found twice.
func briefOperations(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	crm := func(of string, n int) desk.Identity {
		return desk.Identity{Kind: "crm", Value: fmt.Sprintf("%s%d%s", of, n, strings.Repeat("😀", 240))}
	}
	crms := func(of string) (list []desk.Identity) {
		for n := range 10 { // more than 8 KiB
			list = append(list, crm(of, n))
		}
		return list
	}
	email := func(of string) desk.Identity { return desk.EmailIdentity(of + "@example.com") }
	chat, phone := desk.Identity{Kind: desk.KindWhatsApp, Value: "905321112233"}, desk.Identity{Kind: desk.KindPhone, Value: "905321112233"}
	person := func(of, name string, more ...desk.Identity) *desk.Op {
		op := upsert(of+"@example.com", "")
		op.Write.Name = text(name)
		op.Write.Identities = desk.Field[[]desk.Identity]{Set: len(more) > 0, Value: more}
		op.Write.Sent = append(op.Write.Sent, more...)
		return op
	}
	a := put(t, s, ws, person("a", "", append(crms("a"), chat)...)).ID
	put(t, s, ws, patch(a, upsert("", phone.Value).Write)) // one claim for phone and chat account
	b := put(t, s, ws, person("b", "", crms("b")...)).ID
	unassign := func(of ...desk.Identity) *desk.Op { return &desk.Op{Kind: desk.OpAssign, Find: of, Owner: nobody()} }
	drop := func(of desk.ID, i desk.Identity) *desk.Op {
		return &desk.Op{Kind: desk.OpRemoveIdentity, ByID: true, Target: of, Remove: []desk.Identity{i}}
	}
	ofA, ofB := append([]desk.Identity{email("a"), phone}, append(crms("a"), chat)...), append([]desk.Identity{email("b")}, crms("b")...)
	for n, step := range []struct {
		ops  []*desk.Op
		ids  []desk.ID // of the outcomes; the zero id is a refusal
		a, b []desk.Identity
	}{
		{[]*desk.Op{person("a", "1"), person("b", "1"), person("a", "2")}, []desk.ID{a, b, a}, ofA, ofB},
		{[]*desk.Op{unassign(crm("a", 3)), unassign(email("b")), unassign(email("b"), crm("b", 3)), unassign(email("b"), crm("a", 3))}, []desk.ID{a, b, b, {}}, ofA, ofB},
		{[]*desk.Op{person("b", "3", crm("a", 5)), person("a", "3")}, []desk.ID{{}, a}, ofA, ofB},
		{[]*desk.Op{patch(a, desk.ContactWrite{Phone: null()}), person("b", "4", chat)}, []desk.ID{a, {}}, slices.Delete(slices.Clone(ofA), 1, 2), ofB},
		{[]*desk.Op{patch(a, upsert("", phone.Value).Write), person("b", "5")}, []desk.ID{a, b}, ofA, ofB},
		{[]*desk.Op{person("a", "6"), drop(a, crm("a", 9)), person("b", "6", crm("a", 9))}, []desk.ID{a, a, b},
			slices.Delete(slices.Clone(ofA), 11, 12), slices.Insert(slices.Clone(ofB), 1, crm("a", 9))},
		{[]*desk.Op{patch(b, desk.ContactWrite{Email: null()}), patch(a, upsert("b@example.com", "").Write), person("b", "7")}, []desk.ID{b, a, a},
			append([]desk.Identity{email("b")}, slices.Delete(slices.Clone(ofA), 11, 12)[1:]...), slices.Insert(crms("b"), 0, crm("a", 9))},
	} {
		for _, op := range step.ops {
			op.Brief = true
		}
		outcomes, _, err := apply(t.Context(), s, ws, step.ops...)
		must(t, err)
		for i, o := range outcomes {
			if o.ID != step.ids[i] {
				t.Errorf("step %d: operation %d is of %s, want %s", n, i, o.ID, step.ids[i])
			}
		}
		for id, want := range map[desk.ID][]desk.Identity{a: step.a, b: step.b} {
			c, _, err := s.Contact(t.Context(), ws, id)
			must(t, err)
			if got := c.Identities(); !slices.Equal(got, want) {
				t.Errorf("step %d: %d identities, want %d: %.300q", n, len(got), len(want), got)
			}
			book, err := s.Book(t.Context(), ws, desk.Lookup{Identities: want})
			must(t, err)
			for _, i := range want {
				if holder, err := book.Holder(i); err != nil || holder == nil || holder.ID != id {
					t.Errorf("step %d: %.20q leads to another contact, %v", n, i, err)
				}
			}
		}
	}
	erase := &desk.Op{Kind: desk.OpDelete, Brief: true, Find: []desk.Identity{crm("b", 0)}}
	_, errs, err := apply(t.Context(), s, ws, person("b", "8"), erase, person("c", "8", crms("b")...))
	must(t, errors.Join(append(errs, err)...))
	if n := len(all(t, s, ws)); n != 2 {
		t.Errorf("%d contacts, want 2", n)
	}
}

// groupEnds: if a Book has ended the group, earlier operations are stored, and no later
// operation is applied.
func groupEnds(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	var ops []*desk.Op
	for n := range 4 {
		op := upsert(fmt.Sprintf("p%d@example.com", n), "")
		op.Write.Note = text(strings.Repeat("n", desk.MaxBookBytes/2))
		put(t, s, ws, op)
		op = upsert(fmt.Sprintf("p%d@example.com", n), "")
		op.Write.Name = text("Ada")
		ops = append(ops, op)
	}
	applied := 0
	must(t, s.UpdateContacts(t.Context(), ws, ops, func(b *desk.Book, from, to int) {
		if from == 0 {
			applied = 0
		}
		if applied != from || b.Ended() {
			t.Errorf("operations from %d, after %d", from, applied)
		}
		for _, op := range ops[from:to] {
			if applied == 2 {
				b.End()
				return
			}
			_, err := b.Apply(op, desk.Actor{}, now(), newID)
			must(t, err)
			applied++
		}
	}))
	named := 0
	for _, c := range all(t, s, ws) {
		if c.Name == "Ada" {
			named++
		}
	}
	if applied != 2 || named != 2 {
		t.Errorf("%d operations were applied, and %d stored, want 2", applied, named)
	}
}

func unknownContact(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	missingContact(s.Contact(t.Context(), ws, newID()))(t)
	missingContact(s.Contact(t.Context(), newID(), newID()))(t)
	wantType(t, s.UpdateContacts(t.Context(), newID(), nil, func(*desk.Book, int, int) {}), desk.NotFound)
}

func updateAndRelease(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	first := put(t, s, ws, upsert("a@example.com", "905321112233"))
	w := upsert("b@example.com", "").Write
	w.Phone = null()
	changed := put(t, s, ws, patch(first.ID, w))
	if changed.UpdatedAt <= first.UpdatedAt || changed.CreatedAt != first.CreatedAt {
		t.Errorf("times %v, %v after %v", changed.CreatedAt, changed.UpdatedAt, first.UpdatedAt)
	}
	got, _, err := s.Contact(t.Context(), ws, first.ID)
	must(t, err)
	same(t, got, changed)
	// Both old handles are free again.
	second := put(t, s, ws, upsert("a@example.com", "905321112233"))
	if second.ID == first.ID {
		t.Error("a released identity still finds its old contact")
	}
}

func identityMoves(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	first := put(t, s, ws, upsert("a@example.com", ""))
	second := put(t, s, ws, upsert("b@example.com", ""))
	// In one flush, the first contact gives up its e-mail and the second takes it. The
	// second was loaded after the first.
	put(t, s, ws, patch(first.ID, desk.ContactWrite{Email: null()}), patch(second.ID, upsert("a@example.com", "").Write))
	if got := put(t, s, ws, upsert("a@example.com", "")); got.ID != second.ID {
		t.Error("the moved identity does not lead to its new contact")
	}
	// Then the reverse, so that both orders are tested.
	put(t, s, ws, patch(second.ID, desk.ContactWrite{Email: null()}), patch(first.ID, upsert("a@example.com", "").Write))
	if got := put(t, s, ws, upsert("a@example.com", "")); got.ID != first.ID {
		t.Error("the identity did not move back")
	}
}

func deleteErases(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	first := put(t, s, ws, upsert("a@example.com", "905321112233"))
	put(t, s, ws, remove(first.ID))
	missingContact(s.Contact(t.Context(), ws, first.ID))(t)
	if again := put(t, s, ws, upsert("a@example.com", "905321112233")); again.ID == first.ID {
		t.Error("a deleted contact is found again")
	}
	// Created and deleted in one flush: nothing is stored.
	before := len(all(t, s, ws))
	op := upsert("c@example.com", "")
	must(t, s.UpdateContacts(t.Context(), ws, []*desk.Op{op}, func(b *desk.Book, _, _ int) {
		o, err := b.Apply(op, desk.Actor{}, now(), newID)
		must(t, err)
		_, err = b.Apply(remove(o.Contact.ID), desk.Actor{}, now(), newID)
		must(t, err)
	}))
	if after := len(all(t, s, ws)); after != before {
		t.Errorf("%d contacts, want %d", after, before)
	}
}

func refusalStoresNothing(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	first := put(t, s, ws, upsert("a@example.com", ""))
	put(t, s, ws, upsert("b@example.com", ""))
	both := upsert("a@example.com", "")
	both.Write.Sent = append(both.Write.Sent, desk.Identity{Kind: desk.KindEmail, Value: "b@example.com"})
	both.Write.Name = text("Nobody")
	_, errs, err := apply(t.Context(), s, ws, both, upsert("c@example.com", ""))
	must(t, err)
	wantType(t, errs[0], desk.IdentityConflict)
	must(t, errs[1]) // other operations of the group are not affected
	got, _, err := s.Contact(t.Context(), ws, first.ID)
	must(t, err)
	same(t, got, first)
	if n := len(all(t, s, ws)); n != 3 {
		t.Errorf("%d contacts, want 3", n)
	}
}

// allOrNothing claims an identity that the operations do not name. Its holder is not
// loaded, so only the database's key can refuse the claim.
func allOrNothing(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	put(t, s, ws, upsert("taken@example.com", ""))
	op, hidden := upsert("new@example.com", ""), upsert("taken@example.com", "")
	err := s.UpdateContacts(t.Context(), ws, []*desk.Op{op}, func(b *desk.Book, _, _ int) {
		for _, op := range []*desk.Op{op, hidden} {
			if _, err := b.Apply(op, desk.Actor{}, now(), newID); err != nil {
				t.Error(err)
			}
		}
	})
	if err == nil || desk.IsType(err, desk.Unavailable) {
		t.Errorf("error = %v, want one that is not the machine's", err)
	}
	if n := len(all(t, s, ws)); n != 1 {
		t.Errorf("%d contacts, want 1: a flush was stored in part", n)
	}
	put(t, s, ws, op) // afterwards the store still works
}

func applyNothing(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	first := put(t, s, ws, upsert("a@example.com", ""))
	again := put(t, s, ws, upsert("a@example.com", ""))
	same(t, again, first)
	must(t, s.UpdateContacts(t.Context(), ws, nil, func(*desk.Book, int, int) {}))
	got, _, err := s.Contact(t.Context(), ws, first.ID)
	must(t, err)
	same(t, got, first)
}

func workspacesAreSealed(t *testing.T, s store.Store) {
	one, _ := newWorkspace(t, s)
	two, _ := newWorkspace(t, s)
	a := put(t, s, one, upsert("a@example.com", "905321112233"))
	b := put(t, s, two, upsert("a@example.com", "905321112233"))
	if a.ID == b.ID {
		t.Fatal("one contact in two workspaces")
	}
	missingContact(s.Contact(t.Context(), two, a.ID))(t)
	for _, op := range []*desk.Op{patch(a.ID, desk.ContactWrite{Name: text("Eve")}), remove(a.ID)} {
		_, errs, err := apply(t.Context(), s, two, op)
		must(t, err)
		wantType(t, errs[0], desk.NotFound)
	}
	book, err := s.Book(t.Context(), two, upsert("a@example.com", "").Lookup())
	must(t, err)
	if held := book.Oldest(desk.EmailIdentity("a@example.com")); held == nil || held.ID != b.ID || book.Contact(a.ID) != nil {
		t.Errorf("the identity leads to %v", held)
	}
	put(t, s, two, remove(b.ID))
	if got := put(t, s, one, upsert("a@example.com", "")); got.ID != a.ID {
		t.Error("deleting in one workspace released an identity in the other")
	}
}

// parts: a group that is too large for one Book is processed in parts. Each part sees
// the changes of the parts before it. All changes are stored together or not at all.
func parts(t *testing.T, s store.Store) {
	const people = 20
	person := func(n int) *desk.Op { return upsert(fmt.Sprintf("p%d@example.com", n), "") }
	name := func(op *desk.Op, s string) *desk.Op { op.Write.Name = text(s); return op }
	fill := func(ws desk.ID) {
		for n := range people {
			op := person(n)
			op.Write.Note = text(strings.Repeat("n", 1<<20))
			put(t, s, ws, op)
		}
	}
	ops := func() (list []*desk.Op) {
		moved := upsert("p0@example.com", "905321112233")
		moved.Write.ExternalID = text("x-0")
		moved.Write.Sent = append(moved.Write.Sent, desk.Identity{Kind: desk.KindExternalID, Value: "x-0"})
		list = append(list, moved, name(person(1), "first"))
		for n := range people {
			list = append(list, name(person(n), fmt.Sprint("n", n)))
		}
		both := upsert("p19@example.com", "905321112233") // the first operation gave this number to another contact
		renamed := upsert("q0@example.com", "")
		renamed.Write.Sent = append(renamed.Write.Sent, desk.Identity{Kind: desk.KindExternalID, Value: "x-0"})
		return append(list, both, name(person(1), "last"), renamed, name(person(0), "anew"),
			&desk.Op{Kind: desk.OpDelete, Find: person(2).Write.Sent}, name(person(2), "again"))
	}
	show := func(outcomes []desk.Outcome, errs []error, ws desk.ID) (list []string) {
		for i, o := range outcomes {
			list = append(list, fmt.Sprint(i, " ", o.Status, " ", errs[i]))
		}
		for _, c := range all(t, s, ws) {
			list = append(list, fmt.Sprint(c.Name, " ", c.Email, " ", c.ExternalID, " ", c.Phone, " ", len(c.Note)))
		}
		slices.Sort(list[len(outcomes):]) // their times differ, so their order does too
		return list
	}

	one, _ := newWorkspace(t, s)
	fill(one)
	const most = 4 << 20
	for bound, contacts := range map[int]int{most: most>>20 + 1, 0: people} { // a look-up stops once its contacts have more bytes than the bound
		named := desk.Lookup{Most: bound}
		for n := range people {
			named.Identities = append(named.Identities, person(n).Write.Sent...)
		}
		book, err := s.Book(t.Context(), one, named)
		must(t, err)
		must(t, s.InTx(t.Context(), one, func(tx store.Tx) error {
			within, err := tx.Book(named)
			if err == nil && (within.Len() != book.Len() || book.Len() > contacts || !book.Over(most)) {
				t.Errorf("a look-up of at most %d bytes has %d contacts, and %d in a transaction", bound, book.Len(), within.Len())
			}
			return err
		}))
	}
	var outcomes []desk.Outcome
	var errs []error
	for _, op := range ops() {
		o, e, err := apply(t.Context(), s, one, op)
		must(t, err)
		outcomes, errs = append(outcomes, o...), append(errs, e...)
	}
	want := show(outcomes, errs, one)

	two, _ := newWorkspace(t, s)
	fill(two)
	before := all(t, s, two)
	list, calls := ops(), 0
	run := func(last func(*desk.Book)) error {
		return s.UpdateContacts(t.Context(), two, list, func(b *desk.Book, from, to int) {
			if from == 0 {
				outcomes, errs, calls = nil, nil, 0
			}
			if calls++; from != len(outcomes) || b.Len() > 1+desk.MaxBookBytes>>20 {
				t.Errorf("a Book of %d contacts for the operations from %d, after %d", b.Len(), from, len(outcomes))
			}
			for _, op := range list[from:to] {
				o, err := b.Apply(op, desk.Actor{Kind: desk.ByKey, ID: desk.ID{9}}, now(), newID)
				outcomes, errs = append(outcomes, o), append(errs, err)
			}
			if to == len(list) {
				last(b)
			}
		})
	}
	err := run(func(b *desk.Book) { // claims an identity of a contact that is not loaded, as in allOrNothing
		if _, err := b.Apply(person(10), desk.Actor{}, now(), newID); err != nil {
			t.Error(err)
		}
	})
	if err == nil || calls < 3 {
		t.Errorf("error = %v after %d parts", err, calls)
	}
	for i, c := range all(t, s, two) {
		same(t, c, before[i])
	}
	must(t, run(func(*desk.Book) {}))
	if got := show(outcomes, errs, two); !slices.Equal(got, want) || calls < 3 {
		t.Errorf("in %d parts:\n%s\none by one:\n%s", calls, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
