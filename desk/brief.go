package desk

import "slices"

// A store may load contacts without their further identities (Contact.Brief), because these
// can be a megabyte for one contact and many operations do not need them. ToRead returns
// the contacts whose further identities are needed.

// ToRead returns the contacts that were loaded without their further identities, and need
// them before the Book applies ops. holders are the stored holders of all claims that ops
// name.
//
// An operation needs no further identities if it finds one contact, by handles that no
// other contact holds, and changes none of its handles. For every other operation, the
// further identities of the contacts that it can find are read. So the result does not
// depend on which further identities were left out.
func (b *Book) ToRead(ops []*Op, holders map[Claim][]ID) []*Contact {
	need := map[ID]bool{}
	for claim, ids := range holders {
		for _, id := range ids {
			if c := b.Contact(id); c != nil && !slices.Contains(c.Claims(), claim) { // the claim is of a further identity, which was not read
				need[id] = true
			}
		}
	}
	for _, op := range ops {
		if b.leavesHandles(op, holders) {
			continue
		}
		for _, id := range op.IDs() {
			need[id] = true
		}
		for _, i := range op.Identities() {
			for _, id := range holders[i.Claim()] {
				need[id] = true
			}
		}
	}
	var list []*Contact
	for _, c := range b.brief {
		if need[c.ID] {
			list = append(list, c)
		}
	}
	return list
}

// leavesHandles tells whether an operation needs no further identities of the contacts
// that it names.
func (b *Book) leavesHandles(op *Op, holders map[Claim][]ID) bool {
	w := &op.Write
	if !op.Brief || op.Kind == OpDelete || op.Kind == OpRemoveIdentity || w.Identities.Set {
		return false
	}
	target, found := op.Target, op.ByID
	for _, i := range op.Identities() {
		ids := holders[i.Claim()]
		if len(ids) != 1 || found && ids[0] != target {
			return false
		}
		target, found = ids[0], true
	}
	c := b.Contact(target)
	leaves := func(f Field[string], value string) bool { return !f.Set || f.Value == value }
	return c == nil || leaves(w.ExternalID, c.ExternalID) && leaves(w.Email, c.Email) && leaves(w.Phone, c.Phone)
}

// Read adds the further identities of a contact that was loaded without them.
func (b *Book) Read(c *Contact, further []Identity) {
	before := c.Size()
	c.Further, c.Brief = further, false
	b.hold(c)
	b.bytes += c.Size() - before
}

// HasBrief tells whether contacts were loaded without their further identities.
func (b *Book) HasBrief() bool { return len(b.brief) > 0 }
