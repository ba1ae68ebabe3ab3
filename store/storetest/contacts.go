package storetest

import (
	"reflect"
	"strings"
	"testing"

	"parley/app"
	"parley/desk"
)

func contactFieldsSurvive(t *testing.T, s app.Store) {
	ws, member := newWorkspace(t, s)
	nasty := "a'b\"c\\d\te\nf ,{}[]:%_é İı 😀 " + strings.Repeat("x", 5000)
	op := upsert("Ada@Example.com", "905321112233")
	op.Write.ExternalID, op.Write.Name, op.Write.Note = text("x-1"), text("A'd\"a\\ İ"), text(nasty)
	op.Write.Owner = text("ADA@example.com")
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

// same compares what callers see of two contacts.
func same(t *testing.T, got, want *desk.Contact) {
	t.Helper()
	g, w := *got, *want
	g.Version, w.Version = 0, 0
	if !reflect.DeepEqual(g, w) {
		t.Errorf("contact = %+v\nwant %+v", g, w)
	}
}

func unknownContact(t *testing.T, s app.Store) {
	ws, _ := newWorkspace(t, s)
	_, _, err := s.Contact(t.Context(), ws, newID())
	wantType(t, err, desk.NotFound)
	_, _, err = s.Contact(t.Context(), newID(), newID())
	wantType(t, err, desk.NotFound)
	wantType(t, s.UpdateContacts(t.Context(), newID(), nil, func(*desk.Book) {}), desk.NotFound)
}

func updateAndRelease(t *testing.T, s app.Store) {
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

func identityMoves(t *testing.T, s app.Store) {
	ws, _ := newWorkspace(t, s)
	first := put(t, s, ws, upsert("a@example.com", ""))
	second := put(t, s, ws, upsert("b@example.com", ""))
	// In one flush the first lets go of its e-mail and the second takes it, which
	// was loaded after it.
	put(t, s, ws, patch(first.ID, desk.ContactWrite{Email: null()}), patch(second.ID, upsert("a@example.com", "").Write))
	if got := put(t, s, ws, upsert("a@example.com", "")); got.ID != second.ID {
		t.Error("the moved identity does not lead to its new contact")
	}
	// And back the other way around, so that both orders of rows are tried.
	put(t, s, ws, patch(second.ID, desk.ContactWrite{Email: null()}), patch(first.ID, upsert("a@example.com", "").Write))
	if got := put(t, s, ws, upsert("a@example.com", "")); got.ID != first.ID {
		t.Error("the identity did not move back")
	}
}

func deleteErases(t *testing.T, s app.Store) {
	ws, _ := newWorkspace(t, s)
	first := put(t, s, ws, upsert("a@example.com", "905321112233"))
	put(t, s, ws, remove(first.ID))
	_, _, err := s.Contact(t.Context(), ws, first.ID)
	wantType(t, err, desk.NotFound)
	if again := put(t, s, ws, upsert("a@example.com", "905321112233")); again.ID == first.ID {
		t.Error("a deleted contact is found again")
	}
	// Created and deleted in one flush: nothing stays.
	before := len(all(t, s, ws))
	op := upsert("c@example.com", "")
	must(t, s.UpdateContacts(t.Context(), ws, []*desk.Op{op}, func(b *desk.Book) {
		o, err := b.Apply(op, desk.ID{}, now(), newID)
		must(t, err)
		_, err = b.Apply(remove(o.Contact.ID), desk.ID{}, now(), newID)
		must(t, err)
	}))
	if after := len(all(t, s, ws)); after != before {
		t.Errorf("%d contacts, want %d", after, before)
	}
}

func refusalStoresNothing(t *testing.T, s app.Store) {
	ws, _ := newWorkspace(t, s)
	first := put(t, s, ws, upsert("a@example.com", ""))
	put(t, s, ws, upsert("b@example.com", ""))
	both := upsert("a@example.com", "")
	both.Write.Sent = append(both.Write.Sent, desk.Identity{Kind: desk.KindEmail, Value: "b@example.com"})
	both.Write.Name = text("Nobody")
	_, errs, err := apply(t.Context(), s, ws, both, upsert("c@example.com", ""))
	must(t, err)
	wantType(t, errs[0], desk.IdentityConflict)
	must(t, errs[1]) // a neighbour is not touched
	got, _, err := s.Contact(t.Context(), ws, first.ID)
	must(t, err)
	same(t, got, first)
	if n := len(all(t, s, ws)); n != 3 {
		t.Errorf("%d contacts, want 3", n)
	}
}

// allOrNothing claims an identity behind the store's back: it is not among the ops,
// so nobody loaded its holder, and only the database's own key is left to refuse.
func allOrNothing(t *testing.T, s app.Store) {
	ws, _ := newWorkspace(t, s)
	put(t, s, ws, upsert("taken@example.com", ""))
	op, hidden := upsert("new@example.com", ""), upsert("taken@example.com", "")
	err := s.UpdateContacts(t.Context(), ws, []*desk.Op{op}, func(b *desk.Book) {
		for _, op := range []*desk.Op{op, hidden} {
			if _, err := b.Apply(op, desk.ID{}, now(), newID); err != nil {
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
	put(t, s, ws, op) // and the store goes on
}

func applyNothing(t *testing.T, s app.Store) {
	ws, _ := newWorkspace(t, s)
	first := put(t, s, ws, upsert("a@example.com", ""))
	again := put(t, s, ws, upsert("a@example.com", ""))
	same(t, again, first)
	must(t, s.UpdateContacts(t.Context(), ws, nil, func(*desk.Book) {}))
	got, _, err := s.Contact(t.Context(), ws, first.ID)
	must(t, err)
	same(t, got, first)
}

func workspacesAreSealed(t *testing.T, s app.Store) {
	one, _ := newWorkspace(t, s)
	two, _ := newWorkspace(t, s)
	a := put(t, s, one, upsert("a@example.com", "905321112233"))
	b := put(t, s, two, upsert("a@example.com", "905321112233"))
	if a.ID == b.ID {
		t.Fatal("one contact in two workspaces")
	}
	_, _, err := s.Contact(t.Context(), two, a.ID)
	wantType(t, err, desk.NotFound)
	for _, op := range []*desk.Op{patch(a.ID, desk.ContactWrite{Name: text("Eve")}), remove(a.ID)} {
		_, errs, err := apply(t.Context(), s, two, op)
		must(t, err)
		wantType(t, errs[0], desk.NotFound)
	}
	list, err := s.Contacts(t.Context(), two, desk.ContactFilter{Held: []desk.Identity{{Kind: desk.KindEmail, Value: "a@example.com"}}}, desk.ContactPlace{}, 10)
	must(t, err)
	if len(list) != 1 || list[0].ID != b.ID {
		t.Errorf("the filter sees %d contacts of the other workspace", len(list))
	}
	put(t, s, two, remove(b.ID))
	if got := put(t, s, one, upsert("a@example.com", "")); got.ID != a.ID {
		t.Error("deleting in one workspace released an identity in the other")
	}
}
