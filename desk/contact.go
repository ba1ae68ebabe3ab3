package desk

import (
	"cmp"
	"slices"
)

// A Contact is a person the workspace talks with (spec, Contact). An empty string means
// null. A Contact in a Book or an Outcome is never changed in place.
type Contact struct {
	ID         ID
	ExternalID string
	Name       string
	Email      string // as sent
	Phone      string // digits; answers show "+" before them
	Note       string
	Attributes Attributes
	Owner      *Member    // nil: in the shared pool
	Further    []Identity // identities besides the three fields; sorted by kind, then value
	CreatedAt  Time
	UpdatedAt  Time
	Version    int64 // 0: it is new, and gets the version 1; counts the stored changes; stores use it to detect lost updates
	Apart      Apart
	Brief      bool // the contact has further identities that were not read (Book.ToRead)
}

// An Apart says which values of a stored contact are in separate tables. Only stores use
// it.
type Apart struct{ Attributes, Further bool }

// Identities lists all identities of the contact, in normal form: first the fields
// external_id, email and phone, then the further identities by kind and value.
func (c *Contact) Identities() []Identity { return append(c.primary(), c.FurtherIdentities()...) }

// FurtherIdentities lists the further identities in normal form, by kind and value.
func (c *Contact) FurtherIdentities() []Identity {
	list := make([]Identity, len(c.Further))
	for n, i := range c.Further {
		list[n] = i.normal()
	}
	if !slices.IsSortedFunc(list, compareIdentities) { // an older release stored them in another order
		slices.SortStableFunc(list, compareIdentities)
	}
	return list
}

// normal returns the identity of a stored further handle. The first release stored
// e-mails by another rule.
func (i Identity) normal() Identity {
	if i.Kind == KindEmail {
		return EmailIdentity(i.Value)
	}
	return i
}

func (c *Contact) primary() []Identity {
	list := make([]Identity, 0, 3+len(c.Further))
	if c.ExternalID != "" {
		list = append(list, Identity{Kind: KindExternalID, Value: c.ExternalID})
	}
	if c.Email != "" {
		list = append(list, EmailIdentity(c.Email))
	}
	if c.Phone != "" {
		list = append(list, Identity{Kind: KindPhone, Value: c.Phone})
	}
	return list
}

// Size is the approximate size of the contact in a Book, in bytes.
func (c *Contact) Size() int {
	n := len(c.Attributes.json) + len(c.Note) + furtherBytes*len(c.Further)
	for _, i := range c.Further {
		n += len(i.Value)
	}
	return n
}

// Claims are the identities that the store keeps unique, each once. A chat account with
// the canonical number of the contact's phone adds no claim. Handles that today's rules
// refuse have no claim.
func (c *Contact) Claims() []Claim {
	list := make([]Claim, 0, 3+len(c.Further))
	var known map[Claim]bool // only for contacts that hold many
	if len(c.Further) > 16 {
		known = make(map[Claim]bool, 3+len(c.Further))
	}
	c.each(func(i Identity) bool {
		if i.Refused() != nil {
			return true
		}
		claim := i.Claim()
		if known[claim] || known == nil && slices.Contains(list, claim) {
			return true
		}
		if known != nil {
			known[claim] = true
		}
		list = append(list, claim)
		return true
	})
	return list
}

// each is an iterator: it calls f with the contact's identities, in any order, until f
// returns false.
func (c *Contact) each(f func(Identity) bool) {
	if c.ExternalID != "" && !f(Identity{Kind: KindExternalID, Value: c.ExternalID}) {
		return
	}
	if c.Email != "" && !f(EmailIdentity(c.Email)) {
		return
	}
	if c.Phone != "" && !f(Identity{Kind: KindPhone, Value: c.Phone}) {
		return
	}
	for _, i := range c.Further {
		if !f(i.normal()) {
			return
		}
	}
}

// Refused lists the stored handles that today's rules refuse.
func (c *Contact) Refused() (list []Identity) {
	if c.Email != "" && EmailIdentity(c.Email).Refused() != nil {
		list = append(list, Identity{Kind: KindEmail, Value: c.Email})
	}
	if i := (Identity{Kind: KindExternalID, Value: c.ExternalID}); i.Refused() != nil {
		list = append(list, i)
	}
	for _, i := range c.Further {
		if i.normal().Refused() != nil {
			list = append(list, i)
		}
	}
	return list
}

// Spells tells whether the contact holds an identity in exactly this spelling, as the
// first release compared it.
func (c *Contact) Spells(i Identity) (found bool) {
	claim := i.Claim()
	c.each(func(held Identity) bool {
		found = held.spelled() == i.spelled() && held.Claim() == claim
		return !found
	})
	return found
}

func compareIdentities(a, b Identity) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Value, b.Value))
}

// An AttributeWrite is one member of the attributes object of a write.
type AttributeWrite struct {
	Key   string
	Value Value
}

// A ContactWrite is the content of a POST, a PATCH or a batch row. An absent field does
// not change, and null clears it. Strings are in normal form already, and an empty name
// or note counts as null.
type ContactWrite struct {
	ExternalID, Name, Email, Phone, Note Field[string]
	Owner                                Field[Reference] // not resolved yet
	Identities                           Field[[]Identity]
	Attributes                           Field[[]AttributeWrite]

	// MoreUnknown counts the unknown attributes that are left out of Attributes, because an
	// error has no space to name them.
	MoreUnknown int

	// Sent holds every identity of the write that is not null, each once, in the order
	// of the request.
	Sent []Identity
}

// An AttributeProblem says why an attribute could not be stored.
type AttributeProblem struct{ Key, Message string }

// judge returns the write's attributes as canonical values. If some can't be stored, it
// returns an error that names them in the order of the request (spec, Errors). room is how
// many bytes the error's details may have.
func (w *ContactWrite) judge(defined map[string]*Attribute, room int) ([]attributeValue, error) {
	if w.Attributes.Null {
		var clear []attributeValue
		for key, a := range defined {
			if !a.Archived {
				clear = append(clear, attributeValue{key: key})
			}
		}
		slices.SortFunc(clear, func(a, b attributeValue) int { return cmp.Compare(a.key, b.key) })
		return clear, nil
	}
	problems := details[AttributeProblem]{room: room}
	changes := make([]attributeValue, 0, len(w.Attributes.Value))
	for _, a := range w.Attributes.Value {
		def := defined[a.Key]
		if def == nil {
			problems.add(AttributeProblem{a.Key, NoSuchAttribute}, a.Key, NoSuchAttribute)
			continue
		}
		json, reason := def.Canonical(a.Value)
		if reason != "" {
			problems.add(AttributeProblem{a.Key, reason}, a.Key, reason)
			continue
		}
		changes = append(changes, attributeValue{a.Key, json})
	}
	if problems.total += w.MoreUnknown; problems.total == 0 {
		return changes, nil
	}
	return nil, invalidAttributes(&problems)
}

func invalidAttributes(problems *details[AttributeProblem]) error {
	return problems.seen(Errorf(InvalidAttributes, "%d of the attributes can't be stored, so nothing was stored", problems.total))
}

// MaxAttributeBytes is the greatest size of a contact's attributes as JSON, in bytes
// (contract §3).
const MaxAttributeBytes = 256 << 10

const reasonSize = "the contact's attributes would hold more than 256 KiB"

// checkSize refuses a write after which a contact's attributes would be too large and
// larger than before. current is nil for a new contact.
func (w *ContactWrite) checkSize(current *Contact, changes []attributeValue, room int) error {
	var before Attributes
	if current != nil {
		before = current.Attributes
	}
	most := len(before.JSON())
	for _, c := range changes {
		most += len(c.key) + len(c.json) + len(`"":,`)
	}
	if most <= MaxAttributeBytes { // true for nearly all
		return nil
	}
	after, _ := before.merge(changes)
	if n := len(after.JSON()); n <= MaxAttributeBytes || n <= len(before.JSON()) {
		return nil
	}
	problems := details[AttributeProblem]{room: room}
	for _, a := range w.Attributes.Value {
		problems.add(AttributeProblem{a.Key, reasonSize}, a.Key, reasonSize)
	}
	return invalidAttributes(&problems)
}

// apply returns c after the write, and the names of the changed fields, sorted.
func (c Contact) apply(w *ContactWrite, owner *Member, attributes []attributeValue) (Contact, []string) {
	var changed []string
	set := func(name string, field *string, f Field[string], kind string) {
		if !f.Set || *field == f.Value {
			return
		}
		*field = f.Value // "" for null
		changed = append(changed, name)
		if kind == "" || *field == "" {
			return
		}
		// A handle that becomes a primary field is no longer a further handle.
		now := Identity{Kind: kind, Value: *field}
		if kind == KindEmail {
			now = EmailIdentity(*field)
		}
		if slices.ContainsFunc(c.Further, now.Same) {
			c.Further = slices.DeleteFunc(slices.Clone(c.Further), now.Same)
		}
	}
	set("external_id", &c.ExternalID, w.ExternalID, KindExternalID)
	set("name", &c.Name, w.Name, "")
	set("email", &c.Email, w.Email, KindEmail)
	set("phone", &c.Phone, w.Phone, KindPhone)
	set("note", &c.Note, w.Note, "")
	if w.Owner.Set && ownerID(c.Owner) != ownerID(owner) {
		c.Owner = owner
		changed = append(changed, "owner")
	}
	if further := c.further(w.Identities); !slices.Equal(further, c.Further) {
		c.Further = further
		changed = append(changed, "identities")
	}
	merged, keys := c.Attributes.merge(attributes)
	c.Attributes = merged
	for _, key := range keys {
		changed = append(changed, "attributes."+key)
	}
	slices.Sort(changed)
	return c, changed
}

// further returns the contact's further identities after a write. The identities listed in
// f are added; null removes all. Identities that a primary field holds are left out.
func (c *Contact) further(f Field[[]Identity]) []Identity {
	if f.Null {
		return nil
	}
	if len(f.Value) == 0 {
		return c.Further
	}
	held := make(map[Identity]bool, 3+len(c.Further)+len(f.Value)) // by canonical form
	c.each(func(i Identity) bool {
		held[Identity{Kind: i.Kind, Value: i.canonical()}] = true
		return true
	})
	list := slices.Clone(c.Further)
	for _, i := range f.Value {
		canonical := Identity{Kind: i.Kind, Value: i.canonical()}
		if held[canonical] {
			continue
		}
		held[canonical] = true
		i.Spelling = ""
		at, _ := slices.BinarySearchFunc(list, i, compareIdentities)
		list = slices.Insert(list, at, i)
	}
	return list
}

func ownerID(m *Member) ID {
	if m == nil {
		return ID{}
	}
	return m.ID
}

// UserIDs are the ids that a provider gave the contacts.
func UserIDs(contacts []*Contact) (values []string) {
	for _, c := range contacts {
		for _, i := range c.Further {
			if i.OfProvider() {
				values = append(values, i.Value)
			}
		}
	}
	return values
}

// ProviderHandles are the claims by which a provider may name the contacts. An erasure
// uses them to find everything that a provider reported of the contacts.
func ProviderHandles(contacts []*Contact) (values []string) {
	for _, c := range contacts {
		for _, claim := range c.Claims() {
			if claim.Kind == KindPhone || claim.Kind == KindWhatsAppUser {
				values = append(values, claim.Value)
			}
		}
	}
	return values
}
