package sqlite

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/desk"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// shape describes a contact's row: for each field its length or "apart", and the fields
// in large_values.
func shape(t *testing.T, s *Store) string {
	t.Helper()
	var got []string
	rows := s.writer.stmt(`SELECT attributes, further FROM contacts`)
	for rows.next() {
		for _, field := range []string{attributesField, furtherField} {
			if v := rows.readText(); v == apart {
				got = append(got, field+" apart")
			} else {
				got = append(got, fmt.Sprintf("%s %t", field, len(v) <= largeBytes))
			}
		}
	}
	if err := rows.done(); err != nil {
		t.Fatal(err)
	}
	kept, err := all("large values", s.writer.stmt(`SELECT field FROM large_values ORDER BY field`), (*stmt).readText)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(append(got, kept...), ", ")
}

func largeWrite(attributes, further int) *desk.Op {
	op := &desk.Op{Kind: desk.OpUpsert}
	op.Write.Sent = []desk.Identity{{Kind: "anchor", Value: "a"}}
	op.Write.Attributes.Set = true
	for k := range 10 {
		v := desk.AttributeWrite{Key: fmt.Sprint("k", k), Value: desk.Value{Kind: desk.StringValue, Text: strings.Repeat("v", attributes/10)}}
		op.Write.Attributes.Value = append(op.Write.Attributes.Value, v)
	}
	op.Write.Identities.Set = true
	op.Write.Identities.Value = append(op.Write.Identities.Value, op.Write.Sent...)
	for n := range further / 1000 {
		op.Write.Identities.Value = append(op.Write.Identities.Value, desk.Identity{Kind: "crm", Value: fmt.Sprint(n, strings.Repeat("x", 1000))})
	}
	return op
}

// TestLargeValuesAreApart: rows of contacts stay short. If a value becomes small or its
// contact is deleted, nothing of it is left in large_values.
func TestLargeValuesAreApart(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	ws := newWorkspace(t, s)
	defineTexts(t, s, ws, 10)
	none := &desk.Op{Kind: desk.OpUpsert, Write: desk.ContactWrite{Sent: []desk.Identity{{Kind: desk.KindEmail, Value: "a@example.com"}}}}
	none.Write.Email = desk.Field[string]{Set: true, Value: "a@example.com"}
	none.Write.Identities = desk.Field[[]desk.Identity]{Set: true, Null: true}
	withEmail := func(op *desk.Op) *desk.Op {
		op.Write.Email, op.Write.Sent = none.Write.Email, append(op.Write.Sent, none.Write.Sent...)
		return op
	}
	for n, step := range []struct {
		op   *desk.Op
		want string
	}{
		{withEmail(largeWrite(100, 1000)), "attributes true, further true"},
		{withEmail(largeWrite(9000, 1000)), "attributes apart, further true, attributes"},
		{withEmail(largeWrite(9100, 20_000)), "attributes apart, further apart, attributes, further"},
		{withEmail(largeWrite(100, 1000)), "attributes true, further apart, further"},
		{none, "attributes true, further true"},
		{withEmail(largeWrite(30_000, 20_000)), "attributes apart, further apart, attributes, further"},
		{&desk.Op{Kind: desk.OpDelete, Find: none.Write.Sent}, ""},
	} {
		if err := updateAs(s, ws, newBenchID, step.op); err != nil {
			t.Fatal(err)
		}
		if got := shape(t, s); got != step.want {
			t.Errorf("step %d: %s, want %s", n, got, step.want)
		}
	}
}

// TestLargeValuesOfOlderReleases: large values that an older release stored in a
// contact's row are read there. They move to large_values with the next change of the
// contact, of any kind.
func TestLargeValuesOfOlderReleases(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	ws := newWorkspace(t, s)
	defineTexts(t, s, ws, 10)
	op := largeWrite(30_000, 20_000)
	if err := updateAs(s, ws, newBenchID, op); err != nil {
		t.Fatal(err)
	}
	read := func() *desk.Contact {
		list, _, err := s.Contacts(t.Context(), ws, desk.ContactFilter{}, desk.ContactPlace{}, 2)
		if err != nil || len(list) != 1 {
			t.Fatal(len(list), err)
		}
		return list[0]
	}
	before := read()
	for _, query := range []string{
		`UPDATE contacts AS c SET attributes = ` + attributesOf + `, further = ` + furtherOf,
		`DELETE FROM large_values`,
	} {
		if err := s.writer.stmt(query).run(); err != nil {
			t.Fatal(err)
		}
	}
	if got := shape(t, s); got != "attributes false, further false" {
		t.Fatal(got)
	}
	check := func() {
		t.Helper()
		if got := read(); got.Attributes != before.Attributes || !slices.Equal(got.Further, before.Further) {
			t.Errorf("%d bytes of attributes, %d further identities", len(got.Attributes.JSON()), len(got.Further))
		}
	}
	check()
	named := &desk.Op{Kind: desk.OpUpsert, Write: desk.ContactWrite{Sent: op.Write.Sent, Name: desk.Field[string]{Set: true, Value: "Ada"}}}
	if err := updateAs(s, ws, newBenchID, named); err != nil {
		t.Fatal(err)
	}
	if got := shape(t, s); got != "attributes apart, further apart, attributes, further" {
		t.Error(got)
	}
	check()
}

// TestUnchangedLargeValuesAreNotWritten: changes of other values do not write large
// values again.
func TestUnchangedLargeValuesAreNotWritten(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	ws := newWorkspace(t, s)
	defineTexts(t, s, ws, 10)
	op := largeWrite(30_000, 20_000)
	if err := updateAs(s, ws, newBenchID, op); err != nil {
		t.Fatal(err)
	}
	before := s.written()
	named := &desk.Op{Kind: desk.OpUpsert, Write: desk.ContactWrite{Sent: op.Write.Sent, Name: desk.Field[string]{Set: true, Value: "Ada"}}}
	if err := updateAs(s, ws, newBenchID, named); err != nil {
		t.Fatal(err)
	}
	if n := s.written() - before; n != 2 { // the contact and the event
		t.Errorf("%d rows were written, want 2", n)
	}
}

// TestExportOfLargeValues: in the export, a value is a column, wherever it is stored.
func TestExportOfLargeValues(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	ws := newWorkspace(t, s)
	defineTexts(t, s, ws, 10)
	if err := updateAs(s, ws, newBenchID, largeWrite(30_000, 20_000)); err != nil {
		t.Fatal(err)
	}
	contacts := Tables()[slices.IndexFunc(Tables(), func(table Table) bool { return table.Name == contactsTable })]
	err := s.Export(t.Context(), func(e *Export) error {
		page, err := e.Page(contacts, nil, 10)
		if err != nil || len(page) != 1 {
			t.Fatal(len(page), err)
		}
		for _, field := range []string{attributesField, furtherField} {
			if v := page[0][slices.Index(contacts.Columns, field)].(string); len(v) < 20_000 {
				t.Errorf("%s: %.100s", field, v)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// runs returns how often a prepared statement has run since the last call.
func runs(c conn, query string) int {
	s := c.prepared[query]
	if s == nil {
		return 0
	}
	tls := libc.NewTLS()
	defer tls.Close()
	return int(lib.Xsqlite3_stmt_status(tls, handleOf(s), lib.SQLITE_STMTSTATUS_RUN, 1))
}

// TestFurtherIdentitiesAreLeftUnread: for a batch, large further identities are read
// only for the contacts that need them.
func TestFurtherIdentitiesAreLeftUnread(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	ws := newWorkspace(t, s)
	defineTexts(t, s, ws, 10)
	anchor := desk.Identity{Kind: desk.KindExternalID, Value: "a"}
	op := largeWrite(100, 20_000)
	op.Write.Sent = append(op.Write.Sent, anchor)
	op.Write.ExternalID = desk.Field[string]{Set: true, Value: "a"}
	if err := updateAs(s, ws, newBenchID, op); err != nil {
		t.Fatal(err)
	}
	other := &desk.Op{Kind: desk.OpUpsert, Write: desk.ContactWrite{Sent: []desk.Identity{{Kind: desk.KindExternalID, Value: "b"}}, ExternalID: desk.Field[string]{Set: true, Value: "b"}}}
	name := func(by desk.Identity, name string, brief bool) *desk.Op {
		op := &desk.Op{Kind: desk.OpUpsert, Brief: brief, Write: desk.ContactWrite{Sent: []desk.Identity{by}, Name: desk.Field[string]{Set: true, Value: name}}}
		if by == anchor {
			op.Write.ExternalID = desk.Field[string]{Set: true, Value: "a"}
		}
		return op
	}
	for n, step := range []struct {
		reads int
		ops   []*desk.Op
	}{
		{0, []*desk.Op{other}},
		{1, []*desk.Op{name(anchor, "a", false)}},
		{0, []*desk.Op{name(anchor, "b", true)}},
		{0, []*desk.Op{name(anchor, "c", true), other, name(anchor, "d", true)}},
		{1, []*desk.Op{name(anchor, "e", true), name(desk.Identity{Kind: "anchor", Value: "a"}, "f", true)}},
		{1, []*desk.Op{name(anchor, "g", true), name(anchor, "h", false)}},
		{0, []*desk.Op{{Kind: desk.OpAssign, Brief: true, Find: []desk.Identity{anchor}, Owner: desk.Field[desk.Reference]{Set: true, Null: true}}}},
		{1, []*desk.Op{{Kind: desk.OpDelete, Brief: true, Find: []desk.Identity{anchor}}}},
	} {
		runs(s.writer, largeQuery)
		if err := updateAs(s, ws, newBenchID, step.ops...); err != nil {
			t.Fatal(err)
		}
		if n2 := runs(s.writer, largeQuery); n2 != step.reads {
			t.Errorf("step %d: %d large values were read, want %d", n, n2, step.reads)
		}
	}
}
