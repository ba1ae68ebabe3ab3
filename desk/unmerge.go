package desk

import (
	"slices"
	"strings"
)

// unmerge runs an OpUnmerge: the merged contact returns with what it brought, and the
// surviving one gets back what the merge has changed, as far as nobody has changed it since
// (contract-data §6).
func (b *Book) unmerge(op *Op, actor Actor, now Time) (Outcome, error) {
	m := op.Unmerge
	into, err := b.byID(op.Target)
	if err != nil {
		return Outcome{}, err
	}
	r := &restoring{book: b, merge: m, into: into, next: *into, from: b.person(m)}
	r.identities()
	r.fields()
	r.prune()
	from := r.from
	from.CreatedAt, from.UpdatedAt = m.Undo.From.CreatedAt, max(now, m.At)
	if changed := into.differs(&r.next); changed != nil {
		b.replace(into, &r.next, changed, actor, now)
	}
	b.put(&Entry{}, &from, Event{Type: ContactCreated, Subject: from.ID, Actor: actor, At: from.UpdatedAt})
	b.hold(&from)
	undone := *m
	undone.NotRestored = r.missing
	return Outcome{Status: StatusUpdated, ID: into.ID, Contact: b.Contact(into.ID), Merge: &undone}, nil
}

// person returns the contact as it was when it was merged, with a version that it has never
// had: a form that somebody opened before the merge must not match it.
func (b *Book) person(m *Merge) Contact {
	p := &m.Undo.From
	return Contact{
		ID: m.From, ExternalID: p.ExternalID, Name: p.Name, Email: p.Email, Phone: p.Phone, Note: p.Note,
		Attributes: StoredAttributes(p.Attributes), Owner: b.settings.Member(p.Owner), Further: slices.Clone(p.Further),
		Version: p.Version + 1,
	}
}

// A restoring undoes a merge.
type restoring struct {
	book    *Book
	merge   *Merge
	into    *Contact // the surviving contact as it is
	next    Contact  // and after the undo
	from    Contact  // the contact that returns
	back    []Claim  // the claims that return with it
	missing []NotRestored
}

func (r *restoring) miss(field string, reason NotRestoredReason) {
	lost := NotRestored{field, reason}
	if !slices.Contains(r.missing, lost) {
		r.missing = append(r.missing, lost)
	}
}

// stays returns why an identity does not return to the merged contact; "": it returns.
func (r *restoring) stays(i Identity) NotRestoredReason {
	claim := i.Claim()
	holder, held := r.book.holders[claim]
	switch {
	case !held:
		return ""
	case holder != r.into.ID || len(r.book.sharers[claim]) > 0 || slices.Contains(r.merge.Undo.Shared, claim):
		return RestoreTaken
	}
	for _, name := range personFields[:3] {
		value := *r.into.field(name)
		if own, _ := identityOf(name, value); value == "" || own.Claim() != claim {
			continue
		}
		change := r.change(name)
		if change == nil || !change.Given() || change.Kept != value {
			return RestoreChanged
		}
	}
	return ""
}

// change returns what the merge has done with a field, or nil.
func (r *restoring) change(field string) *FieldChange {
	for i := range r.merge.Changes {
		if c := &r.merge.Changes[i]; c.Field == field {
			return c
		}
	}
	return nil
}

// identities decides which identities return.
func (r *restoring) identities() {
	for _, name := range personFields[:3] {
		value := r.from.field(name)
		if *value == "" {
			continue
		}
		i, _ := identityOf(name, *value)
		if reason := r.stays(i); reason != "" {
			r.miss(name, reason)
			*value = ""
		} else {
			r.back = append(r.back, i.Claim())
		}
	}
	r.from.Further = slices.DeleteFunc(r.from.Further, func(i Identity) bool {
		i = i.normal()
		reason := r.stays(i)
		if reason != "" {
			r.miss("identities", reason)
			return true
		}
		r.back = append(r.back, i.Claim())
		return false
	})
	if r.from.Owner == nil && !r.merge.Undo.From.Owner.IsZero() {
		r.miss("owner", RestoreGone)
	}
}

// fields restores the fields of the surviving contact.
func (r *restoring) fields() {
	for i := range r.merge.Changes {
		change := &r.merge.Changes[i]
		if !change.Given() {
			continue
		}
		if r.value(change.Field) != change.Kept {
			r.miss(change.Field, RestoreChanged)
			continue
		}
		was := change.Lost
		if i, ok := identityOf(change.Field, was); ok && was != "" {
			if holder, held := r.book.holders[i.Claim()]; held && holder != r.into.ID {
				r.miss(change.Field, RestoreTaken)
				was = ""
			}
			r.next.Further = slices.DeleteFunc(slices.Clone(r.next.Further), func(f Identity) bool { return f.normal().Same(i) })
		}
		r.set(change.Field, was)
	}
}

// value returns a field of the surviving contact as it is now.
func (r *restoring) value(field string) string {
	if key, ok := strings.CutPrefix(field, "attributes."); ok {
		for _, v := range r.into.Attributes.values() {
			if v.key == key {
				return v.json
			}
		}
		return ""
	}
	if field == "owner" {
		return ownerText(r.into.Owner)
	}
	return *r.into.field(field)
}

func (r *restoring) set(field, value string) {
	if key, ok := strings.CutPrefix(field, "attributes."); ok {
		r.next.Attributes, _ = r.next.Attributes.merge([]attributeValue{{key, value}})
		return
	}
	if field != "owner" {
		*r.next.field(field) = value
		return
	}
	r.next.Owner = nil
	if id, ok := ParseID(value); ok {
		if r.next.Owner = r.book.settings.Member(id); r.next.Owner == nil {
			r.miss("owner", RestoreGone)
		}
	}
}

// prune takes the identities that return from the surviving contact.
func (r *restoring) prune() {
	returns := make(map[Claim]bool, len(r.back))
	for _, claim := range r.back {
		returns[claim] = true
	}
	r.next.Further = slices.DeleteFunc(slices.Clone(r.next.Further), func(i Identity) bool { return returns[i.normal().Claim()] })
}

// UndoLookup names the contacts that the undo of a merge looks at.
func (m *Merge) UndoLookup() Lookup {
	l := Lookup{IDs: []ID{m.Into}, Merges: true}
	if m.Undo == nil {
		return l
	}
	p := &m.Undo.From
	from := Contact{ExternalID: p.ExternalID, Email: p.Email, Phone: p.Phone, Further: p.Further}
	l.Identities = from.Identities()
	for i := range m.Changes {
		if c := &m.Changes[i]; c.Given() && c.Lost != "" {
			if identity, ok := identityOf(c.Field, c.Lost); ok {
				l.Identities = append(l.Identities, identity)
			}
		}
	}
	return l
}

// Apart returns the windows of two contacts after their merge was undone: as they were,
// and moved on by what came since. now is the window of the surviving contact. intoHeard and
// fromHeard are the times of the newest messages that each of the two has written; 0 if they
// wrote nothing on the channel.
func (m *MergedWindow) Apart(now Window, intoHeard, fromHeard Time) (into, from Window) {
	move := func(w Window, heard Time) Window {
		if heard > w.OpenedAt && heard > m.Both.OpenedAt {
			number, user := "", ""
			if heard == now.OpenedAt {
				number, user = now.Number, now.UserID
			}
			w.Open(heard, number, user)
		}
		if now.ShutAt > m.Both.ShutAt {
			w.Shut(now.ShutAt, now.ShutBy)
		}
		if now.RepliedAt > m.Both.RepliedAt {
			w.Replied(now.RepliedAt)
		}
		if now.AutoReplyAt > m.Both.AutoReplyAt {
			w.AutoReplyAt = now.AutoReplyAt
			w.AutoReplies += max(now.AutoReplies-m.Both.AutoReplies, 0)
		}
		return w
	}
	return move(m.Into, intoHeard), move(m.From, fromHeard)
}
