package desk

import (
	"slices"
	"strings"
	"time"
)

// UndoMerge is how long a merge can be undone (contract-data §6).
const UndoMerge = 30 * 24 * time.Hour

// MaxMerged is how many conversations, and how many files, the contact that is merged may have
// (contract-data §6).
const MaxMerged = 10_000

// MaxTake is how many fields a request can name to take.
const MaxTake = MaxAttributes + 6

// A Merge is the record of two contacts of one person that became one (contract-data §6).
type Merge struct {
	ID          ID
	Into, From  ID
	Survivor    ID // the contact that From is part of now; zero once the merge is undone
	At          Time
	Actor       Actor
	UndoneAt    Time          // 0: in force
	Changes     []FieldChange // empty once the merge can't be undone any more
	Moved       Moved
	NotRestored []NotRestored
	Undo        *Undo // nil once the merge can't be undone any more
}

// UndoUntil is the time until which the merge can be undone.
func (m *Merge) UndoUntil() Time { return m.At + Time(UndoMerge.Milliseconds()) }

// Expired tells whether the merge can't be undone any more.
func (m *Merge) Expired(now Time) bool { return m.Undo == nil || now >= m.UndoUntil() }

// ListBytes is an upper limit for the size of the merge in a list, as JSON.
func (m *Merge) ListBytes() int {
	n := recordRoom + 40*len(m.Moved.Closed)
	for _, c := range m.Changes {
		n += detailFrame + jsonBytes(c.Field) + jsonBytes(c.Kept) + jsonBytes(c.Lost) + 2*memberRoom
	}
	for _, r := range m.NotRestored {
		n += detailFrame + jsonBytes(r.Field)
	}
	return n
}

// memberRoom is the space that a list reserves for the member that an owner's id stands for.
const memberRoom = 3 * 1024

// A FieldChange is a field of which both contacts had a value, or which the surviving contact
// got. The values are texts: digits of a phone, an owner's id, an attribute's JSON. "" is null.
type FieldChange struct {
	Field      string // name, or attributes.KEY
	Kept, Lost string
	Taken      bool // the surviving contact got Kept, and had Lost before
}

// Given tells whether the surviving contact got the value from the other one.
func (c *FieldChange) Given() bool { return c.Taken || c.Lost == "" }

// Moved counts what a merge has moved.
type Moved struct {
	Identities    int
	Conversations int
	Closed        []ID // the conversations that the merge closed: a channel has one open one
}

// A NotRestored is a part that an undo could not restore.
type NotRestored struct {
	Field  string
	Reason NotRestoredReason
}

// A NotRestoredReason says why an undo could not restore a part.
type NotRestoredReason string

// The reasons (contract-data §6).
const (
	RestoreChanged NotRestoredReason = "changed" // it was changed after the merge
	RestoreTaken   NotRestoredReason = "taken"   // another contact has it now
	RestoreGone    NotRestoredReason = "gone"    // it was deleted after the merge
)

// An Undo has what is needed to undo a merge.
type Undo struct {
	From          Person         // the merged contact, as it was
	Shared        []Claim        // the claims that both contacts had, since an older release
	Conversations []ID           // those that moved
	Windows       []MergedWindow // of all channels on which one of the contacts had a window
	Merges        []ID           // the earlier merges into the merged contact
	Conflicts     []ID           // those that the merge resolved
	Rows          []RowRef       // of broadcasts
}

// A Person has the values of a contact.
type Person struct {
	ExternalID, Name, Email, Phone, Note string
	Attributes                           string // JSON
	Owner                                ID
	Further                              []Identity
	CreatedAt                            Time
}

// A MergedWindow is the windows of two contacts on a channel, and what a merge made of them.
type MergedWindow struct {
	Channel          ID
	Into, From, Both Window
}

// A Merged says which contact an id leads to that was merged, and by which merge.
type Merged struct{ Into, Merge ID }

// NoContactBut is like NoContact, for an id that may be of a merged contact.
func NoContactBut(m Merged) *Error {
	if m.Merge.IsZero() {
		return NoContact()
	}
	e := NotFoundf("the contact with this id was merged into another contact")
	e.Details = m
	return e
}

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
	b.release(from)
	if changed := into.differs(&c); changed != nil {
		b.replace(into, &c, changed, actor, now)
	}
	e := b.entries[from.ID]
	e.MergedInto = into.ID
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
		Attributes: c.Attributes.JSON(), Owner: ownerID(c.Owner), Further: c.Further, CreatedAt: c.CreatedAt,
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

// Shown returns the record as callers see it at a moment: without what an undo needs, and
// without values once the merge can't be undone any more.
func (m *Merge) Shown(now Time) *Merge {
	shown := *m
	shown.Undo = nil
	if m.At != 0 && now >= m.UndoUntil() {
		shown.Changes = nil
	}
	return &shown
}

// Event returns an event of the merge.
func (m *Merge) Event(t EventType, actor Actor, now Time) Event {
	return Event{Type: t, Subject: m.ID, Contact: m.Into, Actor: actor, At: now}
}

// A BlockedUndo is the detail of an undo before which another merge has to be undone.
type BlockedUndo struct{ Merge ID }
