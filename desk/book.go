package desk

import "slices"

// A Book holds everything that a group of operations can touch: the contacts
// they name and those that hold an identity they claim. The store loads it,
// Apply changes it, the store flushes what changed. A Book is used once, by one
// goroutine.
type Book struct {
	settings *Settings
	pages    map[ID]*Page
	holders  map[Identity]ID // by claim
	changed  []*Page
	events   []Event
}

// A Page is one contact of the Book: as it is stored and as it is now.
type Page struct {
	Stored *Contact // nil: not stored yet
	Now    *Contact // nil: deleted, or never was
}

// NewBook opens an empty Book over a workspace's settings, sized for n contacts.
func NewBook(s *Settings, n int) *Book {
	return &Book{settings: s, pages: make(map[ID]*Page, n), holders: make(map[Identity]ID, 4*n)}
}

// Settings are those of the Book's workspace.
func (b *Book) Settings() *Settings { return b.settings }

// Load enters a stored contact.
func (b *Book) Load(c *Contact) {
	b.pages[c.ID] = &Page{Stored: c, Now: c}
	b.hold(c)
}

// Changed lists the pages that were touched, in the order of their first change.
// One whose contact was created and deleted again has neither Stored nor Now.
func (b *Book) Changed() []*Page { return b.changed }

// Events lists what happened, in order.
func (b *Book) Events() []Event { return b.events }

// Apply carries out one operation for actor at now, or refuses it and leaves the
// Book as it was. The order of checks is the contract's (§2): the record, the
// owner, the attributes, the identities. It returns InvalidRequest, NotFound,
// InvalidAttributes or IdentityConflict.
func (b *Book) Apply(op *Op, actor ID, now Time, newID func() ID) (Outcome, error) {
	if err := op.Check(); err != nil {
		return Outcome{}, err
	}
	switch op.Kind {
	case OpUpsert:
		return b.upsert(&op.Write, actor, now, newID)
	case OpPatch:
		return b.patch(op, actor, now)
	case OpRemoveIdentity:
		return b.removeIdentity(op, actor, now)
	case OpAssign:
		return b.assign(op, actor, now)
	case OpDelete:
		return b.delete(op, actor, now)
	}
	panic("desk: an operation of no kind")
}

func (b *Book) upsert(w *ContactWrite, actor ID, now Time, newID func() ID) (Outcome, error) {
	var current *Contact
	conflict := false
	for _, i := range w.Sent {
		if held := b.Holder(i); held != nil {
			conflict = conflict || current != nil && current != held
			current = held
		}
	}
	owner, attributes, err := b.meaning(w)
	if err != nil {
		return Outcome{}, err
	}
	if conflict { // never merged: two people who share a handle are for a person to sort out
		return Outcome{}, b.conflict(w.Sent, nil)
	}
	if current != nil {
		return b.write(StatusUpdated, current, w, owner, attributes, actor, now)
	}
	c, _ := Contact{}.apply(w, owner, attributes)
	c.ID, c.CreatedAt, c.UpdatedAt = newID(), now, now
	b.put(&Page{}, &c, Event{Kind: ContactCreated, Subject: c.ID, Actor: actor, At: now})
	b.hold(&c)
	return Outcome{StatusCreated, &c}, nil
}

func (b *Book) patch(op *Op, actor ID, now Time) (Outcome, error) {
	current, err := b.byID(op.Target)
	if err != nil {
		return Outcome{}, err
	}
	owner, attributes, err := b.meaning(&op.Write)
	if err != nil {
		return Outcome{}, err
	}
	for _, i := range op.Write.Sent {
		if held := b.Holder(i); held != nil && held != current {
			return Outcome{}, b.conflict(op.Write.Sent, current)
		}
	}
	return b.write(StatusUpdated, current, &op.Write, owner, attributes, actor, now)
}

func (b *Book) assign(op *Op, actor ID, now Time) (Outcome, error) {
	current, conflict, err := b.find(op)
	if err != nil {
		return Outcome{}, err
	}
	w := &ContactWrite{Owner: op.Owner}
	owner, _, err := b.meaning(w)
	if err != nil {
		return Outcome{}, err
	}
	if conflict {
		return Outcome{}, b.conflict(op.Find, nil)
	}
	return b.write(StatusAssigned, current, w, owner, nil, actor, now)
}

func (b *Book) delete(op *Op, actor ID, now Time) (Outcome, error) {
	current, conflict, err := b.find(op)
	if err != nil {
		return Outcome{}, err
	}
	if conflict {
		return Outcome{}, b.conflict(op.Find, nil)
	}
	b.release(current)
	b.put(b.pages[current.ID], nil, Event{Kind: ContactDeleted, Subject: current.ID, Actor: actor, At: max(now, current.UpdatedAt)})
	return Outcome{StatusDeleted, current}, nil
}

func (b *Book) removeIdentity(op *Op, actor ID, now Time) (Outcome, error) {
	current, err := b.byID(op.Target)
	if err != nil {
		return Outcome{}, err
	}
	held := -1
	for _, reading := range op.Remove {
		if slices.Contains(current.primary(), reading) {
			return Outcome{}, Invalidf("this is the contact's %s field: clear it with PATCH /contacts/{id} and %s null", reading.Kind, reading.Kind)
		}
		if held = slices.Index(current.Further, reading); held >= 0 {
			break
		}
	}
	if held < 0 {
		return Outcome{}, NotFoundf("the contact holds no such identity; GET /contacts/{id}/identities lists those it holds")
	}
	c := *current
	c.Further = slices.Delete(slices.Clone(c.Further), held, held+1)
	b.replace(current, &c, []string{"identities"}, actor, now)
	return Outcome{StatusUpdated, &c}, nil
}

// meaning resolves what a write refers to: its owner, then its attributes.
func (b *Book) meaning(w *ContactWrite) (*Member, []attributeValue, error) {
	var owner *Member
	if w.Owner.Has() {
		if owner = b.settings.ResolveMember(w.Owner.Value); owner == nil {
			return nil, nil, Invalidf("/owner: no member of this workspace has this id or e-mail; GET /members lists them")
		}
	}
	attributes, err := w.judge(b.settings.Attributes)
	return owner, attributes, err
}

// find returns the contact that all of an operation's identifiers lead to, or
// conflict when they lead to several. It is NotFound when any leads to none.
func (b *Book) find(op *Op) (found *Contact, conflict bool, err error) {
	if op.ByID {
		if found, err = b.byID(op.Target); err != nil {
			return nil, false, err
		}
	}
	for _, i := range op.Find {
		held := b.Holder(i)
		if held == nil {
			return nil, false, NotFoundf("no contact of this workspace holds the %s given", i.Kind)
		}
		conflict = conflict || found != nil && found != held
		found = held
	}
	return found, conflict, nil
}

// Contact returns the contact with this id as it is now, or nil.
func (b *Book) Contact(id ID) *Contact {
	if p := b.pages[id]; p != nil {
		return p.Now
	}
	return nil
}

func (b *Book) byID(id ID) (*Contact, error) {
	if c := b.Contact(id); c != nil {
		return c, nil
	}
	return nil, NoContact()
}

// NoContact is the answer for an id that no contact of the workspace has, which
// is also the answer for a contact of another workspace (spec, Authentication 7).
func NoContact() *Error { return NotFoundf("no contact in this workspace has this id") }

// Holder returns the contact that holds an identity now, or nil.
func (b *Book) Holder(i Identity) *Contact {
	if id, ok := b.holders[i.Claim()]; ok {
		return b.pages[id].Now
	}
	return nil
}

// conflict names each sent identity that a contact other than except holds, in
// the order sent.
func (b *Book) conflict(sent []Identity, except *Contact) error {
	var details []Identity
	for _, i := range sent {
		if held := b.Holder(i); held != nil && held != except {
			details = append(details, i)
		}
	}
	e := Errorf(IdentityConflict, "these identities belong to different contacts, and contacts are never merged: details names them")
	if except != nil {
		e.Message = "another contact holds these identities, and contacts are never merged: details names them"
	}
	e.Details = details
	return e
}

// write lays w over a contact and answers how it then stands; a write that changes
// nothing answers the same contact and touches nothing.
func (b *Book) write(status Status, current *Contact, w *ContactWrite, owner *Member, attributes []attributeValue, actor ID, now Time) (Outcome, error) {
	c, changed := current.apply(w, owner, attributes)
	if changed == nil {
		return Outcome{status, current}, nil
	}
	if len(c.Further) > MaxFurther && len(c.Further) > len(current.Further) {
		return Outcome{}, Invalidf("/identities: a contact holds at most %d further handles, and this one has %d: remove some with DELETE /contacts/{id}/identities", MaxFurther, len(current.Further))
	}
	b.replace(current, &c, changed, actor, now)
	return Outcome{status, &c}, nil
}

func (b *Book) replace(current, next *Contact, changed []string, actor ID, now Time) {
	next.UpdatedAt = max(now, current.UpdatedAt) // never decreases, whatever the clock does
	b.put(b.pages[current.ID], next, Event{ContactUpdated, next.ID, actor, next.UpdatedAt, changed})
	if !sameIdentities(current, next) {
		b.release(current)
		b.hold(next)
	}
}

// put records the contact's new state (nil when deleted) and the event.
func (b *Book) put(p *Page, c *Contact, e Event) {
	if p.Now == p.Stored { // contacts are never changed in place, so this is its first change
		b.changed = append(b.changed, p)
	}
	if p.Now = c; c != nil {
		b.pages[c.ID] = p
	}
	b.events = append(b.events, e)
}

func (b *Book) hold(c *Contact) {
	for _, i := range c.Claims() {
		b.holders[i] = c.ID
	}
}

func (b *Book) release(c *Contact) {
	for _, i := range c.Claims() {
		delete(b.holders, i)
	}
}

func sameIdentities(a, b *Contact) bool {
	return a.ExternalID == b.ExternalID && a.Email == b.Email && a.Phone == b.Phone && slices.Equal(a.Further, b.Further)
}

// Claims returns what flushing the page does to the workspace's identities: those
// the contact no longer holds and those it newly holds. Released ones go first,
// on all pages, since another contact of the group may have taken them.
func (p *Page) Claims() (released, taken []Identity) {
	switch {
	case p.Stored == nil && p.Now == nil:
		return nil, nil
	case p.Stored == nil:
		return nil, p.Now.Claims()
	case p.Now == nil:
		return p.Stored.Claims(), nil
	case sameIdentities(p.Stored, p.Now):
		return nil, nil
	}
	before, after := p.Stored.Claims(), p.Now.Claims()
	return without(before, after), without(after, before)
}

// without returns the identities of list that are not among others.
func without(list, others []Identity) (rest []Identity) {
	known := make(map[Identity]bool, len(others))
	for _, i := range others {
		known[i] = true
	}
	for _, i := range list {
		if !known[i] {
			rest = append(rest, i)
		}
	}
	return rest
}
