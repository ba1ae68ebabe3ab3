package desk

import (
	"cmp"
	"slices"
)

// A Contact is a person the workspace talks with (spec, Contact). An empty string
// is a null field. A Contact in a Book or an Outcome is never changed in place.
type Contact struct {
	ID         ID
	ExternalID string
	Name       string
	Email      string // as it was sent
	Phone      string // digits; the wire shows "+" before them
	Note       string
	Attributes Attributes
	Owner      *Member    // nil in the shared pool
	Further    []Identity // beyond the three fields; sorted by kind, then value
	CreatedAt  Time
	UpdatedAt  Time
	Version    int64 // counts the stored changes; the store's guard against a lost update
}

// Identities lists everything that finds the contact, in normal form: the fields
// external_id, email and phone first, then the further ones by kind and value.
func (c *Contact) Identities() []Identity {
	return append(c.primary(), c.Further...)
}

func (c *Contact) primary() []Identity {
	list := make([]Identity, 0, 3+len(c.Further))
	for _, i := range [3]Identity{
		{KindExternalID, c.ExternalID}, {KindEmail, FoldEmail(c.Email)}, {KindPhone, c.Phone},
	} {
		if i.Value != "" {
			list = append(list, i)
		}
	}
	return list
}

// Claims are the identities as the store keeps them unique, each once: a chat
// account with the digits of a phone number that the contact holds adds none.
func (c *Contact) Claims() []Identity {
	list := c.primary()
	for _, i := range c.Further {
		claim := i.Claim()
		if claim != i && (claim.Value == c.Phone || c.holdsFurther(claim)) {
			continue
		}
		list = append(list, claim)
	}
	return list
}

func (c *Contact) holdsFurther(i Identity) bool {
	_, found := slices.BinarySearchFunc(c.Further, i, compareIdentities)
	return found
}

func compareIdentities(a, b Identity) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Value, b.Value))
}

// An AttributeWrite is one member of a write's attributes object.
type AttributeWrite struct {
	Key   string
	Value Value
}

// A ContactWrite is what a POST, a PATCH or a batch row says of a contact. What
// is absent stays, what is null is cleared; strings are in normal form already,
// and an empty name or note counts as null.
type ContactWrite struct {
	ExternalID, Name, Email, Phone, Note Field[string]
	Owner                                Field[string] // a member's id or e-mail, not resolved yet
	Identities                           Field[[]Identity]
	Attributes                           Field[[]AttributeWrite]

	// Sent holds every identity of the write that is not null, in the order in
	// which the request names them, each once.
	Sent []Identity
}

// An AttributeProblem says why an attribute could not be stored.
type AttributeProblem struct{ Key, Message string }

// judge turns the write's attributes into canonical values, or names all that
// can't be stored, in request order (spec, Errors).
func (w *ContactWrite) judge(defined map[string]*Attribute) ([]attributeValue, error) {
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
	var problems []AttributeProblem
	changes := make([]attributeValue, 0, len(w.Attributes.Value))
	for _, a := range w.Attributes.Value {
		def := defined[a.Key]
		if def == nil {
			problems = append(problems, AttributeProblem{a.Key, NoSuchAttribute})
			continue
		}
		json, reason := def.Canonical(a.Value)
		if reason != "" {
			problems = append(problems, AttributeProblem{a.Key, reason})
			continue
		}
		changes = append(changes, attributeValue{a.Key, json})
	}
	if problems == nil {
		return changes, nil
	}
	e := Errorf(InvalidAttributes, "%d of the attributes can't be stored, so nothing was: details names each with its reason", len(problems))
	e.Details = problems
	return nil, e
}

// apply returns c with the write laid over it, and what that changed by name.
func (c Contact) apply(w *ContactWrite, owner *Member, attributes []attributeValue) (Contact, []string) {
	var changed []string
	set := func(name string, field *string, f Field[string], kind string) {
		if !f.Set || *field == f.Value {
			return
		}
		*field = f.Value // "" when null
		changed = append(changed, name)
		if kind == "" || *field == "" {
			return
		}
		// A handle that becomes a primary field is no further one any more.
		value := *field
		if kind == KindEmail {
			value = FoldEmail(value)
		}
		if i := slices.Index(c.Further, Identity{kind, value}); i >= 0 {
			c.Further = slices.Delete(slices.Clone(c.Further), i, i+1)
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
	return c, changed
}

// further returns the further identities after a write of f: listed ones are
// added, null removes all, and the primary fields are not repeated.
func (c *Contact) further(f Field[[]Identity]) []Identity {
	if f.Null {
		return nil
	}
	if len(f.Value) == 0 {
		return c.Further
	}
	list, primary := slices.Clone(c.Further), c.primary()
	for _, i := range f.Value {
		if at, found := slices.BinarySearchFunc(list, i, compareIdentities); !found && !slices.Contains(primary, i) {
			list = slices.Insert(list, at, i)
		}
	}
	return list
}

func ownerID(m *Member) ID {
	if m == nil {
		return ID{}
	}
	return m.ID
}
