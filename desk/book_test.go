package desk_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/desk"
)

// The workspace of these tests: three members, and an attribute of each kind that
// matters to a Book.
var (
	ada   = desk.Member{ID: desk.ID{0xAD, 0xA0}, Name: "Ada", Email: "Ada@Desk.example", Role: desk.RoleAdmin}
	grace = desk.Member{ID: desk.ID{0x62, 0xAC}, Name: "Grace", Email: "grace@desk.example", Role: desk.RoleAgent}

	settings = desk.NewSettings(desk.Workspace{ID: desk.ID{1}, Name: "Test"}, 1, []desk.Attribute{
		{Key: "born", Type: desk.DateAttribute, Archived: true},
		{Key: "city", Type: desk.TextAttribute},
		{Key: "old", Type: desk.TextAttribute, Archived: true},
		{Key: "score", Type: desk.NumberAttribute, Position: 1},
		{Key: "tags", Type: desk.MultiselectAttribute, Options: []string{"a,b", "}", `"`, `\`, "]["}, Position: 2},
		{Key: "tier", Type: desk.SelectAttribute, Options: []string{"gold", "tin"}, Position: 3},
	}, []desk.Member{ada, grace}, nil, nil)

	actor = desk.Actor{Kind: desk.ByKey, ID: desk.ID{0xAC}}
)

// id returns the id of the n-th contact.
func id(n int) desk.ID { return desk.ID{0xC0, 14: byte(n >> 8), 15: byte(n)} }

func handle(kind, value string) desk.Identity { return desk.Identity{Kind: kind, Value: value} }

// unclaim returns an identity for each claim.
func unclaim(claims []desk.Claim) (list []desk.Identity) {
	for _, c := range claims {
		list = append(list, handle(c.Kind, c.Value))
	}
	return list
}

func handles(pairs ...string) []desk.Identity {
	var l []desk.Identity
	for i := 0; i < len(pairs); i += 2 {
		l = append(l, handle(pairs[i], pairs[i+1]))
	}
	return l
}

// A part is a member of a contact's JSON object, as the API decodes it.
type part func(*desk.ContactWrite)

func write(parts ...part) (w desk.ContactWrite) {
	for _, p := range parts {
		p(&w)
	}
	return w
}

func sends(w *desk.ContactWrite, identities ...desk.Identity) {
	for _, i := range identities {
		w.Sent = desk.AddIdentity(w.Sent, i)
	}
}

func external(s string) part {
	return func(w *desk.ContactWrite) { w.ExternalID = sent(s); sends(w, handle("external_id", s)) }
}

func email(s string) part {
	return func(w *desk.ContactWrite) { w.Email = sent(s); sends(w, handle("email", desk.CanonicalEmail(s))) }
}

func phone(s string) part {
	return func(w *desk.ContactWrite) { w.Phone = sent(s); sends(w, handle("phone", s)) }
}

func further(pairs ...string) part {
	return func(w *desk.ContactWrite) {
		var l []desk.Identity
		for _, i := range handles(pairs...) {
			l = desk.AddIdentity(l, i)
		}
		w.Identities = sent(l)
		sends(w, l...)
	}
}

func name(s string) part  { return func(w *desk.ContactWrite) { w.Name = sent(s) } }
func note(s string) part  { return func(w *desk.ContactWrite) { w.Note = sent(s) } }
func owner(s string) part { return func(w *desk.ContactWrite) { w.Owner = sent(desk.ReferTo(s)) } }

func attr(key string, v desk.Value) part {
	return func(w *desk.ContactWrite) {
		w.Attributes.Set = true
		w.Attributes.Value = append(w.Attributes.Value, desk.AttributeWrite{Key: key, Value: v})
	}
}

// The parts that are null.
func noExternal(w *desk.ContactWrite)   { w.ExternalID = null[string]() }
func noEmail(w *desk.ContactWrite)      { w.Email = null[string]() }
func noPhone(w *desk.ContactWrite)      { w.Phone = null[string]() }
func noName(w *desk.ContactWrite)       { w.Name = null[string]() }
func noNote(w *desk.ContactWrite)       { w.Note = null[string]() }
func noOwner(w *desk.ContactWrite)      { w.Owner = null[desk.Reference]() }
func noFurther(w *desk.ContactWrite)    { w.Identities = null[[]desk.Identity]() }
func noAttributes(w *desk.ContactWrite) { w.Attributes = null[[]desk.AttributeWrite]() }

func upsert(parts ...part) *desk.Op { return &desk.Op{Kind: desk.OpUpsert, Write: write(parts...)} }

func patch(target desk.ID, parts ...part) *desk.Op {
	return &desk.Op{Kind: desk.OpPatch, ByID: true, Target: target, Write: write(parts...)}
}

func remove(target desk.ID, readings ...desk.Identity) *desk.Op {
	return &desk.Op{Kind: desk.OpRemoveIdentity, ByID: true, Target: target, Remove: readings}
}

func assign(o desk.Field[desk.Reference], find ...desk.Identity) *desk.Op {
	return &desk.Op{Kind: desk.OpAssign, Owner: o, Find: find}
}

func erase(find ...desk.Identity) *desk.Op { return &desk.Op{Kind: desk.OpDelete, Find: find} }

// at returns an assign or delete that also names its contact by id.
func at(target desk.ID, op *desk.Op) *desk.Op {
	op.ByID, op.Target = true, target
	return op
}

// A bench is a Book with a clock that only the test moves, and with ids that continue after
// those of the loaded contacts.
type bench struct {
	*desk.Book
	now  desk.Time
	made int
}

// bookOf opens a Book with contacts that were created at the time 100. The n-th one has
// id(n).
func bookOf(contacts ...desk.ContactWrite) *bench {
	b := &bench{Book: desk.NewBook(settings, len(contacts)), now: 100}
	for _, w := range contacts {
		if _, err := b.apply(&desk.Op{Kind: desk.OpUpsert, Write: w}); err != nil {
			panic(fmt.Sprintf("contact %d: %v", b.made+1, err))
		}
	}
	stored := desk.NewBook(settings, len(contacts))
	for _, e := range b.Changed() {
		stored.Load(e.Now)
	}
	b.Book, b.now = stored, 200
	return b
}

func (b *bench) apply(op *desk.Op) (desk.Outcome, error) {
	return b.Apply(op, actor, b.now, func() desk.ID { b.made++; return id(b.made) })
}

// must applies an op that must succeed, and returns the contact.
func (b *bench) must(t *testing.T, op *desk.Op) *desk.Contact {
	t.Helper()
	o, err := b.apply(op)
	if err != nil {
		t.Fatalf("%v: %s", op.Kind, explain(err))
	}
	return o.Contact
}

// refuses is a check: the op must be refused, and must change nothing.
func (b *bench) refuses(t *testing.T, op *desk.Op, want desk.ErrorType, details any) {
	t.Helper()
	entries, events := len(b.Changed()), len(b.Events())
	o, err := b.apply(op)
	var e *desk.Error
	if !errors.As(err, &e) || e.Type != want || !reflect.DeepEqual(e.Details, details) {
		t.Errorf("got %v, %v\nwant %s, details %v", explain(err), show(o.Contact), want, details)
	}
	if o != (desk.Outcome{}) || len(b.Changed()) != entries || len(b.Events()) != events {
		t.Errorf("the refusal left %v, %d more entries and %d more events", o, len(b.Changed())-entries, len(b.Events())-events)
	}
}

// explain shows an error with its details.
func explain(err error) string {
	var e *desk.Error
	if errors.As(err, &e) {
		return fmt.Sprintf("%v %v", e, e.Details)
	}
	return fmt.Sprint(err)
}

// show renders all fields of a contact.
func show(c *desk.Contact) string {
	if c == nil {
		return "none"
	}
	o := "nobody"
	if c.Owner != nil {
		o = c.Owner.Name
	}
	return fmt.Sprintf("%s ext=%q name=%q email=%q phone=%q note=%q attributes=%s owner=%s further=%q %d-%d v%d",
		c.ID, c.ExternalID, c.Name, c.Email, c.Phone, c.Note, c.Attributes.JSON(), o, shown(c.Further), c.CreatedAt, c.UpdatedAt, c.Version)
}

// shown is an identity's kind and value.
func shown(list []desk.Identity) (short []struct{ kind, value string }) {
	for _, i := range list {
		short = append(short, struct{ kind, value string }{i.Kind, i.Value})
	}
	return short
}

func checkHolds(t *testing.T, c *desk.Contact, pairs ...string) {
	t.Helper()
	if got, want := c.Identities(), handles(pairs...); !slices.Equal(got, want) {
		t.Errorf("the contact holds %q\nwant %q", got, want)
	}
}

func TestUpsert_matches(t *testing.T) {
	t.Parallel()
	stored := []desk.ContactWrite{
		write(external("crm-1"), email("Ada@X.example"), phone("905321111111"), further("telegram", "Ada", "email", "ada@y.example")),
		write(external("crm-2"), further("whatsapp", "905322222222", "whatsapp_user", "u2")),
	}
	for _, c := range []struct {
		name string
		op   *desk.Op
		want int // the contact; 3 is a new one
	}{
		{"no holder creates", upsert(email("new@x.example")), 3},
		{"an external id", upsert(external("crm-1")), 1},
		{"an external id is exact", upsert(external("CRM-1")), 3},
		{"an e-mail in any case", upsert(email("ADA@x.EXAMPLE")), 1},
		{"an e-mail that is a further handle", upsert(email("Ada@Y.example")), 1},
		{"a handle that is the e-mail field", upsert(further("email", "ada@x.example")), 1},
		{"a handle of another kind", upsert(further("telegram", "Ada")), 1},
		{"a handle of another kind is exact", upsert(further("telegram", "ada")), 3},
		{"the same value of another kind", upsert(further("signal", "Ada")), 3},
		{"whatsapp finds a phone", upsert(further("whatsapp", "905321111111")), 1},
		{"phone finds a whatsapp", upsert(phone("905322222222")), 2},
		{"a further phone finds a whatsapp", upsert(further("phone", "905322222222")), 2},
		{"whatsapp_user is no phone", upsert(further("whatsapp_user", "905322222222")), 3},
		{"an external id is no e-mail", upsert(external("ada@x.example")), 3},
		{"all of one contact, and new ones", upsert(external("crm-1"), email("ada@y.example"), further("signal", "new")), 1},
		{"null takes no part", upsert(noExternal, noPhone, email("ada@x.example")), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := bookOf(stored...)
			o, err := b.apply(c.op)
			if err != nil {
				t.Fatal(explain(err))
			}
			status := desk.StatusUpdated
			if c.want == 3 {
				status = desk.StatusCreated
			}
			if o.Status != status || o.Contact.ID != id(c.want) {
				t.Errorf("got %s %s, want %s %s", o.Status, o.Contact.ID, status, id(c.want))
			}
			for _, i := range c.op.Write.Sent { // the matched contact holds all of them now
				if again := b.must(t, upsert(further(i.Kind, i.Value))); again.ID != id(c.want) {
					t.Errorf("afterwards %s leads to %s", i, again.ID)
				}
			}
		})
	}
}

func TestUpsert_creates_what_was_sent(t *testing.T) {
	t.Parallel()
	b := bookOf()
	c := b.must(t, upsert(external("crm-1"), name("Ada"), email("Ada@X.example"), phone("905321111111"), note("VIP"), owner("ada@desk.example"),
		further("whatsapp", "905321111111", "telegram", "b", "email", "ada@x.example", "telegram", "a", "telegram", "b"),
		attr("tier", str("gold")), attr("city", str("İzmir"))))
	const want = `c0000000-0000-0000-0000-000000000001 ext="crm-1" name="Ada" email="Ada@X.example" phone="905321111111" note="VIP" ` +
		`attributes={"city":"İzmir","tier":"gold"} owner=Ada further=[{"telegram" "a"} {"telegram" "b"} {"whatsapp" "905321111111"}] 200-200 v0`
	if got := show(c); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	checkHolds(t, c, "external_id", "crm-1", "email", "ada@x.example", "phone", "905321111111",
		"telegram", "a", "telegram", "b", "whatsapp", "905321111111")
	claims := handles("external_id", "crm-1", "email", "ada@x.example", "phone", "905321111111", "telegram", "a", "telegram", "b")
	if got := unclaim(c.Claims()); !slices.Equal(got, claims) {
		t.Errorf("claims %q\nwant   %q", got, claims)
	}
	checkEvents(t, b, desk.Event{Type: desk.ContactCreated, Subject: id(1), Actor: actor, At: 200})
}

func checkEvents(t *testing.T, b *bench, want ...desk.Event) {
	t.Helper()
	if got := b.Events(); len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) {
		t.Errorf("events %+v\nwant   %+v", got, want)
	}
}

func TestConflicts_name_each_sent_identity_that_takes_part(t *testing.T) {
	t.Parallel()
	stored := []desk.ContactWrite{
		write(external("crm-1"), email("one@x.example"), phone("905321111111"), further("telegram", "one")),
		write(external("crm-2"), email("two@x.example"), further("whatsapp", "905322222222", "telegram", "two")),
	}
	for _, c := range []struct {
		name string
		op   *desk.Op
		want []desk.Identity
	}{
		{"two fields", upsert(external("crm-1"), email("Two@X.example")),
			handles("external_id", "crm-1", "email", "two@x.example")},
		{"request order, and those that nobody holds left out",
			upsert(further("telegram", "two", "telegram", "new"), phone("905321111111"), external("new")),
			handles("telegram", "two", "phone", "905321111111")},
		{"several of one contact", upsert(email("one@x.example"), external("crm-2"), further("telegram", "one")),
			handles("email", "one@x.example", "external_id", "crm-2", "telegram", "one")},
		{"whichever contact is the last", upsert(further("telegram", "one", "telegram", "two", "external_id", "crm-2")),
			handles("telegram", "one", "telegram", "two", "external_id", "crm-2")},
		{"once, however often it was sent", upsert(email("ONE@x.example"), further("email", "one@x.example", "telegram", "two")),
			handles("email", "one@x.example", "telegram", "two")},
		{"as it was sent: a phone that is held as whatsapp", upsert(external("crm-1"), phone("905322222222")),
			handles("external_id", "crm-1", "phone", "905322222222")},
		{"null takes no part", upsert(noExternal, email("one@x.example"), further("telegram", "two")),
			handles("email", "one@x.example", "telegram", "two")},

		{"a patch names only those of others", patch(id(1), external("crm-1"), email("two@x.example"), further("telegram", "two", "telegram", "one", "signal", "new")),
			handles("email", "two@x.example", "telegram", "two")},
		{"a patch of whatsapp where another has the phone", patch(id(2), further("whatsapp", "905321111111")),
			handles("whatsapp", "905321111111")},
		{"a patch never moves a handle", patch(id(2), name("Two"), further("telegram", "one")),
			handles("telegram", "one")},

		{"an assign by two", assign(null[desk.Reference](), handles("external_id", "crm-1", "telegram", "two")...),
			handles("external_id", "crm-1", "telegram", "two")},
		{"an assign by two, the last twice", assign(null[desk.Reference](), handles("telegram", "one", "telegram", "two", "external_id", "crm-2")...),
			handles("telegram", "one", "telegram", "two", "external_id", "crm-2")},
		{"a delete by two", erase(handles("email", "one@x.example", "phone", "905321111111", "phone", "905322222222")...),
			handles("email", "one@x.example", "phone", "905321111111", "phone", "905322222222")},
		{"a delete by an id and another's handle", at(id(1), erase(handle("telegram", "two"))),
			handles("telegram", "two")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			bookOf(stored...).refuses(t, c.op, desk.IdentityConflict, c.want)
		})
	}
}

// TestChecks_come_in_the_order_of_the_contract: record 404, owner 400, attributes
// 422, identities 409 (contract §2). Each case is wrong in several ways.
func TestChecks_come_in_the_order_of_the_contract(t *testing.T) {
	t.Parallel()
	stored := []desk.ContactWrite{write(external("crm-1")), write(external("crm-2"))}
	nobody, bad := owner("nobody@desk.example"), attr("tier", str("lead"))
	badTier := []desk.AttributeProblem{{Key: "tier", Message: "expected one of: gold, tin; got \"lead\""}}
	both := handles("external_id", "crm-1", "external_id", "crm-2")
	for _, c := range []struct {
		name    string
		op      *desk.Op
		want    desk.ErrorType
		details any
	}{
		{"upsert without an identity", upsert(nobody, bad), desk.InvalidRequest, nil},
		{"upsert with an empty list", upsert(further(), name("Ada")), desk.InvalidRequest, nil},
		{"upsert: owner", upsert(nobody, bad, further("external_id", "crm-1", "external_id", "crm-2")), desk.InvalidRequest, nil},
		{"upsert: attributes", upsert(owner(" ADA@desk.example"), bad, further("external_id", "crm-1", "external_id", "crm-2")), desk.InvalidAttributes, badTier},
		{"upsert: identities", upsert(further("external_id", "crm-1", "external_id", "crm-2")), desk.IdentityConflict, both},
		{"upsert of a new one: owner", upsert(nobody, bad, external("crm-3")), desk.InvalidRequest, nil},
		{"upsert of a new one: attributes", upsert(bad, external("crm-3")), desk.InvalidAttributes, badTier},

		{"patch: record", patch(id(9), nobody, bad, external("crm-2")), desk.NotFound, nil},
		{"patch of the zero id", patch(desk.ID{}, nobody), desk.NotFound, nil},
		{"patch: owner", patch(id(1), nobody, bad, external("crm-2")), desk.InvalidRequest, nil},
		{"patch: attributes", patch(id(1), bad, external("crm-2")), desk.InvalidAttributes, badTier},
		{"patch: identities", patch(id(1), external("crm-2")), desk.IdentityConflict, both[1:]},

		{"assign without a contact", assign(sent(desk.ReferTo("nobody"))), desk.InvalidRequest, nil},
		{"assign without an owner", assign(desk.Field[desk.Reference]{}, handle("external_id", "none")), desk.InvalidRequest, nil},
		{"assign: record by id", at(id(9), assign(sent(desk.ReferTo("nobody")))), desk.NotFound, nil},
		{"assign: record by handle", assign(sent(desk.ReferTo("nobody")), handle("external_id", "none")), desk.NotFound, nil},
		{"assign: one of its records", assign(sent(desk.ReferTo("nobody")), handles("external_id", "crm-1", "external_id", "none")...), desk.NotFound, nil},
		{"assign: records before identities", assign(null[desk.Reference](), append(both, handle("external_id", "none"))...), desk.NotFound, nil},
		{"assign: owner", assign(sent(desk.ReferTo("nobody")), handle("external_id", "crm-1")), desk.InvalidRequest, nil},
		{"assign: owner before identities", assign(sent(desk.ReferTo("nobody")), both...), desk.InvalidRequest, nil},
		{"assign: identities", assign(sent(desk.ReferTo("ada@desk.example")), both...), desk.IdentityConflict, both},

		{"delete without a contact", erase(), desk.InvalidRequest, nil},
		{"delete: record", at(id(9), erase(both[0])), desk.NotFound, nil},
		{"delete: another record", at(id(1), erase(handle("external_id", "none"))), desk.NotFound, nil},
		{"delete: records before identities", at(id(1), erase(both[1], handle("external_id", "none"))), desk.NotFound, nil},
		{"delete: identities", at(id(1), erase(both[1])), desk.IdentityConflict, both[1:]},

		{"remove an identity of nobody", remove(id(9), both[0]), desk.NotFound, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			bookOf(stored...).refuses(t, c.op, c.want, c.details)
		})
	}
}

func TestWrite_fields(t *testing.T) {
	t.Parallel()
	stored := write(external("crm-1"), name("Ada"), email("Ada@X.example"), phone("905321111111"), note("VIP"), owner(ada.Email),
		further("telegram", "ada"), attr("city", str("İzmir")))
	const before = `ext="crm-1" name="Ada" email="Ada@X.example" phone="905321111111" note="VIP" attributes={"city":"İzmir"} owner=Ada further=[{"telegram" "ada"}]`
	for _, c := range []struct {
		name    string
		parts   []part
		want    string // "" when nothing changes
		changed []string
	}{
		{"nothing sent", nil, "", nil},
		{"everything as it is", []part{external("crm-1"), name("Ada"), email("Ada@X.example"), phone("905321111111"), note("VIP"), owner("ADA@desk.EXAMPLE"),
			further("telegram", "ada", "email", "ada@x.example", "phone", "905321111111", "external_id", "crm-1"), attr("city", str("İzmir")), attr("tier", desk.Value{})}, "", nil},
		{"no handles", []part{further()}, "", nil},
		{"an empty object of attributes", []part{func(w *desk.ContactWrite) { w.Attributes.Set = true }}, "", nil},

		{"name", []part{name("Grace")}, strings.Replace(before, `"Ada"`, `"Grace"`, 1), []string{"name"}},
		{"name null", []part{noName}, strings.Replace(before, `"Ada"`, `""`, 1), []string{"name"}},
		{"note", []part{note("x")}, strings.Replace(before, "VIP", "x", 1), []string{"note"}},
		{"note null", []part{noNote}, strings.Replace(before, "VIP", "", 1), []string{"note"}},
		{"an e-mail in another case", []part{email("ada@x.example")}, strings.Replace(before, "Ada@X", "ada@x", 1), []string{"email"}},
		{"a primary null", []part{noExternal}, strings.Replace(before, "crm-1", "", 1), []string{"external_id"}},
		{"owner", []part{owner(" grace@DESK.example ")}, strings.Replace(before, "owner=Ada", "owner=Grace", 1), []string{"owner"}},
		{"owner by id", []part{owner(grace.ID.String())}, strings.Replace(before, "owner=Ada", "owner=Grace", 1), []string{"owner"}},
		{"owner by id in upper case", []part{owner(strings.ToUpper(grace.ID.String()))}, strings.Replace(before, "owner=Ada", "owner=Grace", 1), []string{"owner"}},
		{"owner by the id that it is", []part{owner(ada.ID.String())}, "", nil},
		{"owner null", []part{noOwner}, strings.Replace(before, "owner=Ada", "owner=nobody", 1), []string{"owner"}},
		{"attributes merge", []part{attr("tier", str("tin"))}, strings.Replace(before, `"}`, `","tier":"tin"}`, 1), []string{"attributes.tier"}},
		{"an attribute null", []part{attr("city", desk.Value{})}, strings.Replace(before, `"city":"İzmir"`, "", 1), []string{"attributes.city"}},
		{"an attribute emptied", []part{attr("city", str(""))}, strings.Replace(before, `"city":"İzmir"`, "", 1), []string{"attributes.city"}},
		{"attributes null", []part{noAttributes}, strings.Replace(before, `"city":"İzmir"`, "", 1), []string{"attributes.city"}},
		{"handles null", []part{noFurther}, strings.Replace(before, `{"telegram" "ada"}`, "", 1), []string{"identities"}},
		{"handles are added and sorted", []part{further("signal", "b", "zalo", "c", "signal", "a")},
			strings.Replace(before, `{"telegram" "ada"}`, `{"signal" "a"} {"signal" "b"} {"telegram" "ada"} {"zalo" "c"}`, 1), []string{"identities"}},
		{"everything null", []part{noExternal, noName, noEmail, noPhone, noNote, noOwner, noFurther, noAttributes},
			`ext="" name="" email="" phone="" note="" attributes={} owner=nobody further=[]`,
			[]string{"attributes.city", "email", "external_id", "identities", "name", "note", "owner", "phone"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := bookOf(stored)
			old := show(b.must(t, patch(id(1))))
			if want := fmt.Sprintf("%s %s 100-100 v0", id(1), before); old != want {
				t.Fatalf("stored %s\nwant   %s", old, want)
			}
			got := show(b.must(t, patch(id(1), c.parts...)))
			if c.want == "" {
				if got != old || len(b.Changed()) != 0 || len(b.Events()) != 0 {
					t.Errorf("got %s, %d entries, %d events; want nothing changed", got, len(b.Changed()), len(b.Events()))
				}
				return
			}
			if want := fmt.Sprintf("%s %s 100-200 v0", id(1), c.want); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			checkEvents(t, b, desk.Event{Type: desk.ContactUpdated, Subject: id(1), Actor: actor, At: 200, Changed: c.changed})
		})
	}
}

// TestWrite_primary_and_further: how writes move handles between the three fields and the
// further ones.
func TestWrite_primary_and_further(t *testing.T) {
	t.Parallel()
	stored := write(external("crm-1"), email("Ada@X.example"), phone("905321111111"), further("telegram", "ada", "email", "ada@y.example", "whatsapp", "905322222222"))
	for _, c := range []struct {
		name  string
		parts []part
		holds []string
		freed []desk.Identity // claims that nobody holds afterwards
	}{
		{"a changed primary releases the old", []part{external("crm-9"), email("new@x.example")},
			[]string{"external_id", "crm-9", "email", "new@x.example", "phone", "905321111111", "email", "ada@y.example", "telegram", "ada", "whatsapp", "905322222222"},
			handles("external_id", "crm-1", "email", "ada@x.example")},
		{"a primary that is null releases", []part{noPhone, noEmail},
			[]string{"external_id", "crm-1", "email", "ada@y.example", "telegram", "ada", "whatsapp", "905322222222"},
			handles("phone", "905321111111", "email", "ada@x.example")},
		{"a promoted handle is no further one", []part{email("ADA@y.example")},
			[]string{"external_id", "crm-1", "email", "ada@y.example", "phone", "905321111111", "telegram", "ada", "whatsapp", "905322222222"},
			handles("email", "ada@x.example")},
		{"a promoted handle, listed too", []part{email("ada@Y.example"), further("email", "ada@y.example")},
			[]string{"external_id", "crm-1", "email", "ada@y.example", "phone", "905321111111", "telegram", "ada", "whatsapp", "905322222222"},
			handles("email", "ada@x.example")},
		{"a promoted phone stays a chat account", []part{phone("905322222222")},
			[]string{"external_id", "crm-1", "email", "ada@x.example", "phone", "905322222222", "email", "ada@y.example", "telegram", "ada", "whatsapp", "905322222222"},
			handles("phone", "905321111111")},
		{"an old primary, listed, stays as a further one", []part{email("new@x.example"), further("email", "ada@x.example")},
			[]string{"external_id", "crm-1", "email", "new@x.example", "phone", "905321111111", "email", "ada@x.example", "email", "ada@y.example", "telegram", "ada", "whatsapp", "905322222222"},
			nil},
		{"a primary that is null, listed, becomes a further one", []part{further("external_id", "crm-1"), noExternal},
			[]string{"email", "ada@x.example", "phone", "905321111111", "email", "ada@y.example", "external_id", "crm-1", "telegram", "ada", "whatsapp", "905322222222"},
			nil},
		{"null clears all further ones", []part{noFurther},
			[]string{"external_id", "crm-1", "email", "ada@x.example", "phone", "905321111111"},
			handles("email", "ada@y.example", "telegram", "ada", "phone", "905322222222")},
		{"null clears all but the promoted", []part{noFurther, email("ada@y.example"), phone("905322222222")},
			[]string{"external_id", "crm-1", "email", "ada@y.example", "phone", "905322222222"},
			handles("email", "ada@x.example", "telegram", "ada", "phone", "905321111111")},
		{"the last identity can go", []part{noExternal, noEmail, noPhone, noFurther}, nil,
			handles("external_id", "crm-1", "email", "ada@x.example", "phone", "905321111111", "email", "ada@y.example", "telegram", "ada", "phone", "905322222222")},
		{"a listed handle fills no field", []part{noEmail, noPhone, further("email", "new@x.example", "phone", "905323333333")},
			[]string{"external_id", "crm-1", "email", "ada@y.example", "email", "new@x.example", "phone", "905323333333", "telegram", "ada", "whatsapp", "905322222222"},
			handles("email", "ada@x.example", "phone", "905321111111")},
		{"whatsapp of the phone field is a handle of its own", []part{further("whatsapp", "905321111111")},
			[]string{"external_id", "crm-1", "email", "ada@x.example", "phone", "905321111111", "email", "ada@y.example", "telegram", "ada", "whatsapp", "905321111111", "whatsapp", "905322222222"},
			nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := bookOf(stored)
			got := b.must(t, patch(id(1), c.parts...))
			checkHolds(t, got, c.holds...)
			claims, _ := b.Changed()[0].Claims()
			released := unclaim(claims)
			if !slices.Equal(sorted(released), sorted(c.freed)) {
				t.Errorf("released %q, want %q", released, c.freed)
			}
			for _, i := range c.freed {
				if again := b.must(t, upsert(further(i.Kind, i.Value))); again.ID == id(1) {
					t.Errorf("%s still leads to the contact", i)
				}
			}
			for _, i := range got.Identities() {
				if again := b.must(t, upsert(further(i.Kind, i.Value))); again.ID != id(1) {
					t.Errorf("%s leads to %s", i, again.ID)
				}
			}
		})
	}
}

func sorted(l []desk.Identity) []desk.Identity {
	return slices.SortedFunc(slices.Values(l), func(a, b desk.Identity) int { return strings.Compare(a.Kind+":"+a.Value, b.Kind+":"+b.Value) })
}

func TestUpsert_takes_on_the_new_ones(t *testing.T) {
	t.Parallel()
	b := bookOf(write(external("crm-1"), email("ada@x.example")))
	c := b.must(t, upsert(external("crm-1"), email("ada@y.example"), phone("905321111111"), further("telegram", "ada")))
	checkHolds(t, c, "external_id", "crm-1", "email", "ada@y.example", "phone", "905321111111", "telegram", "ada")
	if old := b.must(t, upsert(email("ada@x.example"))); old.ID != id(2) {
		t.Errorf("the old e-mail leads to %s, want a new contact", old.ID)
	}
}

func TestWrite_attributes(t *testing.T) {
	t.Parallel()
	stored := desk.StoredAttributes(`{"city":"İzmir","old":"kept","tier":"gold"}`)
	for _, c := range []struct {
		name  string
		parts []part
		want  string // "" if there are problems
		why   []desk.AttributeProblem
	}{
		{"absent", []part{name("Ada")}, stored.JSON(), nil},
		{"merge", []part{attr("score", num("1.50")), attr("city", str("Bursa"))}, `{"city":"Bursa","old":"kept","score":1.5,"tier":"gold"}`, nil},
		{"null clears one", []part{attr("tier", desk.Value{})}, `{"city":"İzmir","old":"kept"}`, nil},
		{"empty clears one", []part{attr("tags", list()), attr("city", str(""))}, `{"old":"kept","tier":"gold"}`, nil},
		{"null clears the active ones", []part{noAttributes}, `{"old":"kept"}`, nil},
		{"all that are bad, in request order", []part{attr("tier", str("lead")), attr("score", num("1")), attr("old", desk.Value{}), attr("city", num("1")), attr("nope", desk.Value{}), attr("score2", str(""))}, "",
			[]desk.AttributeProblem{
				{Key: "tier", Message: "expected one of: gold, tin; got \"lead\""},
				{Key: "old", Message: "this workspace attribute is archived"},
				{Key: "city", Message: "expected text"},
				{Key: "nope", Message: "no such workspace attribute"},
				{Key: "score2", Message: "no such workspace attribute"},
			}},
		{"an empty value for an archived one", []part{attr("old", str(""))}, "",
			[]desk.AttributeProblem{{Key: "old", Message: "this workspace attribute is archived"}}},
		{"the value that an archived one has", []part{attr("old", str("kept"))}, "",
			[]desk.AttributeProblem{{Key: "old", Message: "this workspace attribute is archived"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := &bench{Book: desk.NewBook(settings, 1), now: 200}
			b.Load(&desk.Contact{ID: id(1), Attributes: stored, CreatedAt: 100, UpdatedAt: 100})
			if c.why != nil {
				b.refuses(t, patch(id(1), append(c.parts, name("Ada"))...), desk.InvalidAttributes, c.why)
				return
			}
			if got := b.must(t, patch(id(1), c.parts...)); got.Attributes.JSON() != c.want {
				t.Errorf("got %s, want %s", got.Attributes.JSON(), c.want)
			}
		})
	}
}

func TestWrite_owner_that_no_member_is(t *testing.T) {
	t.Parallel()
	for _, ref := range []string{"", " ", "nobody", "nobody@desk.example", desk.ID{}.String(), id(1).String(), "Ada", strings.ReplaceAll(ada.ID.String(), "-", ""), "{" + ada.ID.String() + "}"} {
		b := bookOf(write(external("crm-1"), owner(ada.Email)))
		b.refuses(t, patch(id(1), owner(ref)), desk.InvalidRequest, nil)
		b.refuses(t, upsert(external("crm-1"), owner(ref)), desk.InvalidRequest, nil)
		b.refuses(t, upsert(external("crm-2"), owner(ref)), desk.InvalidRequest, nil)
		b.refuses(t, at(id(1), assign(sent(desk.ReferTo(ref)))), desk.InvalidRequest, nil)
	}
}

func TestUpdatedAt_never_decreases(t *testing.T) {
	t.Parallel()
	b := bookOf(write(external("crm-1"))) // stored at 100
	for _, step := range []struct{ now, want desk.Time }{{50, 100}, {0, 100}, {150, 150}, {-7, 150}, {150, 150}, {151, 151}} {
		b.now = step.now
		c := b.must(t, patch(id(1), name(fmt.Sprint(len(b.Events())))))
		if c.UpdatedAt != step.want || c.CreatedAt != 100 {
			t.Errorf("at %d: %d-%d, want 100-%d", step.now, c.CreatedAt, c.UpdatedAt, step.want)
		}
	}
	b.now = 20
	o, err := b.apply(at(id(1), assign(sent(desk.ReferTo(ada.Email)))))
	if err != nil || o.Contact.UpdatedAt != 151 {
		t.Errorf("assigned: %v, %v", show(o.Contact), err)
	}
	b.now = 900 // a write that changes nothing does not move it either
	if c := b.must(t, patch(id(1), owner(ada.Email))); c.UpdatedAt != 151 {
		t.Errorf("an unchanged contact is of %d", c.UpdatedAt)
	}
}

// TestEvents_of_a_contact_stand_in_order_of_time: also if the clock goes back. A timeline
// that is sorted by time must not show the deletion before the last change.
func TestEvents_of_a_contact_stand_in_order_of_time(t *testing.T) {
	t.Parallel()
	b := bookOf(write(external("crm-1")))
	b.must(t, patch(id(1), name("Ada")))
	b.now = 50
	b.must(t, patch(id(1), name("Grace")))
	b.must(t, at(id(1), erase()))
	for n, e := range b.Events() {
		if e.At < 200 {
			t.Errorf("event %d, %s, is of %d; the one before is of 200", n, e.Type, e.At)
		}
	}
}

func TestAssign_and_delete_find_one_contact(t *testing.T) {
	t.Parallel()
	stored := write(external("crm-1"), email("ada@x.example"), phone("905321111111"), further("telegram", "ada"))
	for _, c := range []struct {
		name string
		by   func(*desk.Op) *desk.Op
	}{
		{"id", func(op *desk.Op) *desk.Op { return at(id(1), op) }},
		{"external id", func(op *desk.Op) *desk.Op { op.Find = handles("external_id", "crm-1"); return op }},
		{"e-mail", func(op *desk.Op) *desk.Op { op.Find = handles("email", "ada@x.example"); return op }},
		{"a further handle", func(op *desk.Op) *desk.Op { op.Find = handles("telegram", "ada"); return op }},
		{"whatsapp for a phone", func(op *desk.Op) *desk.Op { op.Find = handles("whatsapp", "905321111111"); return op }},
		{"everything", func(op *desk.Op) *desk.Op {
			op.Find = handles("phone", "905321111111", "whatsapp", "905321111111", "telegram", "ada", "external_id", "crm-1")
			return at(id(1), op)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := bookOf(stored, write(external("crm-2")))
			for range 2 { // the second time changes nothing, and also has the status assigned
				o, err := b.apply(c.by(assign(sent(desk.ReferTo("GRACE@desk.example")))))
				if err != nil || o.Status != desk.StatusAssigned || o.Contact.ID != id(1) || o.Contact.Owner == nil || o.Contact.Owner.ID != grace.ID {
					t.Fatalf("%v, %s, %s", o.Status, show(o.Contact), explain(err))
				}
			}
			if len(b.Events()) != 1 {
				t.Errorf("%d events, want 1", len(b.Events()))
			}
			if got := b.must(t, c.by(assign(null[desk.Reference]()))); got.Owner != nil {
				t.Errorf("got %s, want no owner", show(got))
			}
			o, err := b.apply(c.by(erase()))
			if err != nil || o.Status != desk.StatusDeleted || o.Contact.ID != id(1) || o.Contact.Email != "ada@x.example" {
				t.Fatalf("%v, %s, %s", o.Status, show(o.Contact), explain(err))
			}
			b.refuses(t, c.by(erase()), desk.NotFound, nil)
			b.refuses(t, c.by(assign(null[desk.Reference]())), desk.NotFound, nil)
			b.refuses(t, patch(id(1), name("Ada")), desk.NotFound, nil)
			if got := b.must(t, at(id(2), erase())); got.ID != id(2) {
				t.Errorf("deleted %s", got.ID)
			}
		})
	}
}

func TestDelete_then_upsert_in_one_Book(t *testing.T) {
	t.Parallel()
	b := bookOf(write(external("crm-1"), email("ada@x.example"), note("old")))
	b.must(t, erase(handle("external_id", "crm-1")))
	o, err := b.apply(upsert(external("crm-1"), name("Ada")))
	if err != nil || o.Status != desk.StatusCreated || o.Contact.ID != id(2) || o.Contact.Note != "" {
		t.Fatalf("%s %s, %v", o.Status, show(o.Contact), err)
	}
	checkEntries(t, b, [][2][]desk.Identity{
		{handles("external_id", "crm-1", "email", "ada@x.example"), nil},
		{nil, handles("external_id", "crm-1")},
	})
	b.must(t, at(id(2), erase()))
	entries := b.Changed()
	if len(entries) != 2 || entries[1].Stored != nil || entries[1].Now != nil {
		t.Errorf("created and deleted, there are %d entries, the last %+v", len(entries), entries[len(entries)-1])
	}
	checkEntries(t, b, [][2][]desk.Identity{{handles("external_id", "crm-1", "email", "ada@x.example"), nil}, {}})
	checkEvents(t, b,
		desk.Event{Type: desk.ContactDeleted, Subject: id(1), Actor: actor, At: 200},
		desk.Event{Type: desk.ContactCreated, Subject: id(2), Actor: actor, At: 200},
		desk.Event{Type: desk.ContactDeleted, Subject: id(2), Actor: actor, At: 200})
}

// checkEntries compares each entry's Claims with the wanted released and taken ones.
func checkEntries(t *testing.T, b *bench, want [][2][]desk.Identity) {
	t.Helper()
	if len(b.Changed()) != len(want) {
		t.Fatalf("%d entries changed, want %d", len(b.Changed()), len(want))
	}
	for n, e := range b.Changed() {
		released, taken := e.Claims()
		if !slices.Equal(unclaim(released), want[n][0]) || !slices.Equal(unclaim(taken), want[n][1]) {
			t.Errorf("entry %d releases %q and takes %q\nwant %q and %q", n, released, taken, want[n][0], want[n][1])
		}
	}
}

func TestIdentities_move_between_contacts_of_one_Book(t *testing.T) {
	t.Parallel()
	b := bookOf(write(external("crm-1"), phone("905321111111")), write(external("crm-2"), phone("905322222222")))
	b.refuses(t, patch(id(2), phone("905321111111")), desk.IdentityConflict, handles("phone", "905321111111"))
	b.must(t, patch(id(1), noPhone))
	b.must(t, patch(id(2), phone("905321111111")))
	b.must(t, upsert(external("crm-1"), further("whatsapp", "905322222222")))
	checkEntries(t, b, [][2][]desk.Identity{
		{handles("phone", "905321111111"), handles("phone", "905322222222")},
		{handles("phone", "905322222222"), handles("phone", "905321111111")},
	})
	// The change is undone: the claims are as stored, while the entries stay changed.
	b.must(t, patch(id(1), noFurther))
	b.must(t, patch(id(2), phone("905322222222")))
	b.must(t, patch(id(1), phone("905321111111")))
	checkEntries(t, b, [][2][]desk.Identity{{}, {}})
}

func TestRemoveIdentity(t *testing.T) {
	t.Parallel()
	stored := []desk.ContactWrite{
		write(external("crm-1"), email("Ada@X.example"), phone("905321111111"),
			further("telegram", "ada", "whatsapp", "905321111111", "phone", "5321111111", "email", "ada@y.example", "external_id", "crm-9")),
		write(external("crm-2"), further("telegram", "two")),
	}
	for _, c := range []struct {
		name     string
		readings []desk.Identity
		refusal  desk.ErrorType
	}{
		{"a handle", handles("telegram", "ada"), ""},
		{"a further e-mail", handles("email", "Ada@Y.example", "email", "ada@y.example"), ""},
		{"a further external id", handles("external_id", "crm-9"), ""},
		{"the first reading that is held", handles("phone", "5321111111", "phone", "905321111111"), ""},
		{"the chat account of the phone field", handles("whatsapp", "905321111111"), ""},
		{"no reading", nil, desk.NotFound},
		{"another's", handles("telegram", "two"), desk.NotFound},
		{"of another kind", handles("signal", "ada"), desk.NotFound},
		{"in another case", handles("telegram", "Ada"), desk.NotFound},
		{"the external id field", handles("external_id", "crm-1"), desk.InvalidRequest},
		{"the e-mail field", handles("email", "Ada@X.example", "email", "ada@x.example"), desk.InvalidRequest},
		{"the phone field", handles("phone", "905321111111", "phone", "5321111111"), desk.InvalidRequest},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := bookOf(stored...)
			if c.refusal != "" {
				b.refuses(t, remove(id(1), c.readings...), c.refusal, nil)
				return
			}
			before := b.must(t, patch(id(1)))
			after := b.must(t, remove(id(1), c.readings...))
			gone := slices.DeleteFunc(before.Identities(), func(i desk.Identity) bool { return slices.Contains(after.Identities(), i) })
			if len(gone) != 1 || !slices.Contains(c.readings, gone[0]) || after.UpdatedAt != 200 || before.UpdatedAt != 100 {
				t.Errorf("before %s\nafter  %s", show(before), show(after))
			}
			checkEvents(t, b, desk.Event{Type: desk.ContactUpdated, Subject: id(1), Actor: actor, At: 200, Changed: []string{"identities"}})
			b.refuses(t, remove(id(1), gone...), desk.NotFound, nil)
		})
	}
	b := bookOf(stored...)
	b.must(t, remove(id(1), handle("whatsapp", "905321111111"))) // the phone field still holds the claim
	checkEntries(t, b, [][2][]desk.Identity{{}})
	if c := b.must(t, upsert(further("whatsapp", "905321111111"))); c.ID != id(1) {
		t.Errorf("the phone leads to %s", c.ID)
	}
}

// TestOutcomes_stay: later operations on the same Book do not change an outcome, because it
// is answered after them.
func TestOutcomes_stay(t *testing.T) {
	t.Parallel()
	b := bookOf(write(external("crm-1"), further("telegram", "a", "telegram", "b", "telegram", "c"), attr("city", str("İzmir"))))
	var outcomes []*desk.Contact
	var answers []string
	for _, op := range []*desk.Op{
		patch(id(1), name("Ada")),
		remove(id(1), handle("telegram", "c")),
		patch(id(1), further("telegram", "0")),
		patch(id(1), external("telegram"), email("a@x.example"), further("email", "b@x.example")),
		patch(id(1), email("b@x.example"), further("email", "a@x.example")),
		patch(id(1), attr("city", str("Bursa"))),
		patch(id(1), noFurther, noAttributes),
		at(id(1), erase()),
	} {
		c := b.must(t, op)
		outcomes, answers = append(outcomes, c), append(answers, show(c))
	}
	for n, c := range outcomes {
		if got := show(c); got != answers[n] {
			t.Errorf("outcome %d was %s\nand became    %s", n, answers[n], got)
		}
	}
}

func TestOp_says_what_to_load(t *testing.T) {
	t.Parallel()
	two := handles("external_id", "crm-1", "phone", "905321111111")
	for _, c := range []struct {
		name       string
		op         *desk.Op
		ids        []desk.ID
		identities []desk.Identity
	}{
		{"upsert", upsert(external("crm-1"), phone("905321111111")), nil, two},
		{"patch", patch(id(1), external("crm-1"), phone("905321111111")), []desk.ID{id(1)}, two},
		{"assign", at(id(1), assign(null[desk.Reference](), two...)), []desk.ID{id(1)}, two},
		{"delete", erase(two...), nil, two},
		{"remove", remove(id(1), two...), []desk.ID{id(1)}, nil},
	} {
		if ids, identities := c.op.IDs(), c.op.Identities(); !slices.Equal(ids, c.ids) || !slices.Equal(identities, c.identities) {
			t.Errorf("%s: %s, %q", c.name, ids, identities)
		}
	}
}

// TestUpsert_fixed_external_ids: a match does not give a contact another external id.
func TestUpsert_fixed_external_ids(t *testing.T) {
	t.Parallel()
	fixed := desk.NewSettings(desk.Workspace{ID: desk.ID{1}, FixedExternalIDs: true}, 1, nil, nil, nil, nil)
	b := desk.NewBook(fixed, 2)
	b.Load(&desk.Contact{ID: id(1), ExternalID: "crm-1", Email: "ada@x.example"})
	b.Load(&desk.Contact{ID: id(2), Phone: "905321111111"})
	try := func(op *desk.Op) error {
		_, err := b.Apply(op, actor, 100, func() desk.ID { return id(9) })
		return err
	}
	err := try(upsert(external("crm-9"), email("Ada@X.example"), further("telegram", "a")))
	var e *desk.Error
	if !errors.As(err, &e) || e.Type != desk.IdentityConflict || !slices.Equal(e.Details.([]desk.Identity), handles("external_id", "crm-9", "email", "ada@x.example")) {
		t.Errorf("another external id: %v", err)
	}
	for what, op := range map[string]*desk.Op{
		"the same":       upsert(external("crm-1"), email("ada@x.example")),
		"the first":      upsert(external("crm-2"), phone("905321111111")),
		"without a word": upsert(email("ada@x.example"), name("Ada")),
	} {
		if err := try(op); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := try(patch(id(1), external("crm-3"))); err != nil {
		t.Errorf("a patch: %v", err)
	}
	b.Load(&desk.Contact{ID: id(3), ExternalID: "crm-5", Further: handles("external_id", "crm-6")})
	if err := try(upsert(external("crm-6"), name("Bo"))); err != nil || b.Contact(id(3)).ExternalID != "crm-5" || b.Contact(id(3)).Name != "Bo" || len(b.Contact(id(3)).Further) != 1 {
		t.Errorf("the external id of a contact that was merged into it: %+v, %v", b.Contact(id(3)), err)
	}
}

// TestBook_new: a write that must create is refused if a contact holds one of its identities.
func TestBook_new(t *testing.T) {
	t.Parallel()
	w := write(func(w *desk.ContactWrite) {
		w.Email = desk.Field[string]{Set: true, Value: "ann@example.com"}
		w.Sent = handles("email", "ann@example.com")
	})
	b := desk.NewBook(settings, 1)
	next := func() desk.ID { return id(1) }
	if o, err := b.Apply(&desk.Op{Kind: desk.OpUpsert, New: true, Write: w}, actor, 1, next); err != nil || o.Status != desk.StatusCreated {
		t.Fatalf("%+v, %v", o, err)
	}
	_, err := b.Apply(&desk.Op{Kind: desk.OpUpsert, New: true, Write: w}, actor, 2, next)
	if e := desk.AsError(err); e.Type != desk.IdentityConflict || !reflect.DeepEqual(e.Details, handles("email", "ann@example.com")) {
		t.Errorf("%+v", e)
	}
}

// TestBook_version: a patch that expects a version is refused after any other change, even
// one in the same Book.
func TestBook_version(t *testing.T) {
	t.Parallel()
	name := func(s string) desk.ContactWrite {
		return desk.ContactWrite{Name: desk.Field[string]{Set: true, Value: s}}
	}
	b := desk.NewBook(settings, 1)
	b.Load(&desk.Contact{ID: id(1), Name: "Ann", Version: 7})
	apply := func(version int64, s string) error {
		_, err := b.Apply(&desk.Op{Kind: desk.OpPatch, ByID: true, Target: id(1), Version: version, Write: name(s)}, actor, 1, nil)
		return err
	}
	for _, c := range []struct {
		version int64
		name    string
		want    desk.ErrorType
	}{{6, "Older", desk.Changed}, {8, "Newer", desk.Changed}, {7, "Anna", ""}, {7, "Again", desk.Changed}, {0, "Any", ""}} {
		if err := apply(c.version, c.name); c.want == "" && err != nil || c.want != "" && !desk.IsType(err, c.want) {
			t.Errorf("version %d: %v", c.version, err)
		}
	}
	if got := b.Contact(id(1)).Name; got != "Any" {
		t.Errorf("named %s", got)
	}
}
