package desk

import (
	"slices"
	"strings"
)

// MaxMerged is how many conversations, and how many files, the contact that is merged may have
// (contract-data §6).
const MaxMerged = 10_000

// MaxTake is how many fields a request can name to take.
const MaxTake = MaxAttributes + 6

// personFields are the fields of a contact that a merge decides about, except attributes.
var personFields = []string{"external_id", "email", "phone", "name", "note", "owner"}

// field returns a pointer to a text field of a contact; nil for the owner.
func (c *Contact) field(name string) *string {
	switch name {
	case "external_id":
		return &c.ExternalID
	case "email":
		return &c.Email
	case "phone":
		return &c.Phone
	case "name":
		return &c.Name
	case "note":
		return &c.Note
	}
	return nil
}

// identityOf is the identity that a field's value stands for; ok is false for a field that is
// no identity.
func identityOf(field, value string) (i Identity, ok bool) {
	switch field {
	case "external_id":
		return Identity{Kind: KindExternalID, Value: value}, true
	case "email":
		return EmailIdentity(value), true
	case "phone":
		return Identity{Kind: KindPhone, Value: value}, true
	}
	return i, false
}

// further is the form in which an identity is a further one.
func (i Identity) further() Identity {
	i.Spelling = ""
	return i
}

// CheckTake refuses the names of fields that a merge can't take (contract-data §6).
func CheckTake(take []string, s *Settings) error {
	for _, name := range take {
		key, isAttribute := strings.CutPrefix(name, "attributes.")
		if isAttribute && s.Attributes[key] != nil || slices.Contains(personFields, name) {
			continue
		}
		return InvalidAt("/take", "%s is nothing that can be taken: name %s, or attributes.KEY of an attribute", Quote(name), strings.Join(personFields, ", "))
	}
	return nil
}

// merge runs an OpMerge.
func (b *Book) merge(op *Op, actor Actor, now Time) (Outcome, error) {
	into, err := b.byID(op.Target)
	if err != nil {
		return Outcome{}, err
	}
	from, err := b.byID(op.From)
	if err != nil {
		return Outcome{}, err
	}
	c, m := into.with(from, op.Take)
	if n := len(c.Further); n > MaxFurther {
		return Outcome{}, Invalidf("the contact would hold %d further handles, and may hold %d", n, MaxFurther).Advise(RemoveIdentities)
	}
	if n := len(c.Attributes.JSON()); n > MaxAttributeBytes {
		return Outcome{}, Invalidf("the contact's attributes would hold %d bytes, and may hold %d", n, MaxAttributeBytes)
	}
	m.Into, m.From, m.Survivor, m.At, m.Actor = into.ID, from.ID, into.ID, now, actor
	passes := without(from.Claims(), into.Claims())
	b.release(from)
	if changed := into.differs(&c); changed != nil {
		b.replace(into, &c, changed, actor, now)
	}
	e := b.entries[from.ID]
	e.MergedInto, e.Passes, b.entries[into.ID].passed = into.ID, passes, passes
	b.put(e, nil, Event{Type: ContactDeleted, Subject: from.ID, Actor: actor, At: max(now, from.UpdatedAt)})
	return Outcome{Status: StatusUpdated, ID: into.ID, Contact: b.Contact(into.ID), Merge: m}, nil
}

// with returns the contact after another one was merged into it, and the record of that.
func (c *Contact) with(from *Contact, take []string) (merged Contact, m *Merge) {
	merged, m = *c, &Merge{Undo: &Undo{From: from.person()}}
	held := map[Claim]bool{}
	for _, claim := range c.Claims() {
		held[claim] = true
	}
	further := slices.Clone(c.Further)
	hold := func(i Identity) {
		if slices.ContainsFunc(further, i.Same) {
			return
		}
		at, _ := slices.BinarySearchFunc(further, i, compareIdentities)
		further = slices.Insert(further, at, i.further())
	}
	decide := func(field, own, others string, set func(string)) {
		if others == "" || own == others {
			return
		}
		change := FieldChange{Field: field, Kept: own, Lost: others}
		if own == "" || slices.Contains(take, field) {
			change.Kept, change.Lost, change.Taken = others, own, own != ""
			set(others)
		}
		m.Changes = append(m.Changes, change)
		if i, ok := identityOf(field, change.Lost); ok && change.Lost != "" {
			hold(i)
		}
	}
	for _, name := range personFields {
		if name == "owner" {
			decide(name, ownerText(c.Owner), ownerText(from.Owner), func(string) { merged.Owner = from.Owner })
			continue
		}
		decide(name, *c.field(name), *from.field(name), func(value string) { *merged.field(name) = value })
	}
	values := map[string]string{}
	for _, v := range c.Attributes.values() {
		values[v.key] = v.json
	}
	for _, v := range from.Attributes.values() {
		decide("attributes."+v.key, values[v.key], v.json, func(json string) {
			merged.Attributes, _ = merged.Attributes.merge([]attributeValue{{v.key, json}})
		})
	}
	for _, i := range from.Further {
		hold(i)
	}
	fields := merged.primary()
	merged.Further = slices.DeleteFunc(further, func(i Identity) bool { return slices.ContainsFunc(fields, i.normal().Same) })
	for _, i := range from.Identities() {
		if claim := i.Claim(); held[claim] {
			m.Undo.Shared = append(m.Undo.Shared, claim)
		} else {
			m.Moved.Identities++
		}
	}
	return merged, m
}

func ownerText(m *Member) string {
	if m == nil {
		return ""
	}
	return m.ID.String()
}

// person returns the contact's values.
func (c *Contact) person() Person {
	return Person{
		ExternalID: c.ExternalID, Name: c.Name, Email: c.Email, Phone: c.Phone, Note: c.Note,
		Attributes: c.Attributes.JSON(), Owner: ownerID(c.Owner), Further: c.Further, CreatedAt: c.CreatedAt, Version: c.Version,
	}
}

// differs returns the names of the fields in which a contact differs from another one, sorted.
func (c *Contact) differs(next *Contact) (changed []string) {
	for _, name := range personFields {
		if name == "owner" && ownerID(c.Owner) != ownerID(next.Owner) || name != "owner" && *c.field(name) != *next.field(name) {
			changed = append(changed, name)
		}
	}
	if !slices.Equal(c.Further, next.Further) {
		changed = append(changed, "identities")
	}
	before, after := c.Attributes.values(), next.Attributes.values()
	for _, v := range after {
		if !slices.Contains(before, v) {
			changed = append(changed, "attributes."+v.key)
		}
	}
	for _, v := range before {
		if !slices.ContainsFunc(after, func(w attributeValue) bool { return w.key == v.key }) {
			changed = append(changed, "attributes."+v.key)
		}
	}
	slices.Sort(changed)
	return changed
}

// StaysOpen tells whether a conversation stays open beside another open one of the same
// person on the channel: the one in which alone the person waits, else the one with the newer
// message, else with the greater id (contract-data §6).
func (c *Conversation) StaysOpen(other *Conversation) bool {
	if waits := c.Talk.WaitingSince > 0; waits != (other.Talk.WaitingSince > 0) {
		return waits
	}
	if c.LastMessageAt != other.LastMessageAt {
		return c.LastMessageAt > other.LastMessageAt
	}
	return c.ID.Compare(other.ID) > 0
}

// With returns the window of two contacts that were merged: the one that was opened later, with
// its address; of automatic replies the later times and the higher count.
func (w Window) With(other Window) Window {
	both := w
	if other.OpenedAt > w.OpenedAt {
		both = other
	}
	both.RepliedAt, both.AutoReplyAt = max(w.RepliedAt, other.RepliedAt), max(w.AutoReplyAt, other.AutoReplyAt)
	both.AutoReplies = max(w.AutoReplies, other.AutoReplies)
	return both
}

// move runs an OpMove.
func (b *Book) move(op *Op, actor Actor, now Time) (Outcome, error) {
	to, err := b.byID(op.Target)
	if err != nil {
		return Outcome{}, err
	}
	i := op.Remove[0]
	from, ambiguous := b.holder(i)
	switch {
	case ambiguous:
		return Outcome{}, InvalidAt("/identity", "several contacts hold it since an older release: change one of them")
	case from == nil:
		return Outcome{}, InvalidAt("/identity", "no contact holds it now")
	case from == to:
		return Outcome{Status: StatusUpdated, ID: to.ID, Contact: to}, nil
	case len(to.Further) >= MaxFurther:
		return Outcome{}, InvalidAt("/to", "a contact holds at most %d further handles", MaxFurther).Advise(RemoveIdentities)
	}
	claim, next := i.Claim(), *from
	var moved []Identity
	for _, name := range personFields[:3] {
		if own, _ := identityOf(name, *from.field(name)); *from.field(name) != "" && own.Claim() == claim {
			moved, *next.field(name) = append(moved, own), ""
		}
	}
	next.Further = slices.DeleteFunc(slices.Clone(from.Further), func(f Identity) bool {
		found := f.normal().Claim() == claim
		if found {
			moved = append(moved, f)
		}
		return found
	})
	b.replace(from, &next, from.differs(&next), actor, now)
	got := *to
	got.Further = slices.Clone(to.Further)
	for _, m := range moved {
		m = m.further()
		if at, held := slices.BinarySearchFunc(got.Further, m, compareIdentities); !held {
			got.Further = slices.Insert(got.Further, at, m)
		}
	}
	b.replace(to, &got, []string{"identities"}, actor, now)
	return Outcome{Status: StatusUpdated, ID: to.ID, Contact: &got}, nil
}
