package desk

import (
	"bytes"
	"slices"
)

// A Book holds all contacts that a group of operations can change: the contacts that they
// name, and the contacts that hold an identity of the operations. The store loads it, Apply
// changes it, and the store flushes the changes. A Book is used once, by one goroutine.
type Book struct {
	settings *Settings
	entries  map[ID]*Entry
	holders  map[Claim]ID
	sharers  map[Claim][]ID // all holders of claims that contacts share since an older release; usually nil
	brief    []*Contact     // loaded without their further identities; usually nil
	merged   map[ID]Merged  // where named contacts are that were merged; usually nil
	bytes    int            // approximate size of the loaded contacts
	room     int            // space left for the details of the current operation's error
	ended    bool
	changed  []*Entry
	events   []Event
	erasures []Erasure // usually nil
}

// An Entry is one contact of the Book: as it is stored, and as it is now.
type Entry struct {
	Stored *Contact // nil: not stored yet
	Now    *Contact // nil: deleted, or not created
	held   []Claim  // the claims of Now or, after a deletion, of the last contact before it

	MergedInto ID      // of a contact that was merged, not deleted: the one that has its data now
	Passes     []Claim // those of its claims that pass to MergedInto, also if others share them since an older release
	passed     []Claim // the claims that pass to this contact
}

// NewBook opens an empty Book over a workspace's settings, sized for n contacts.
func NewBook(s *Settings, n int) *Book {
	return &Book{settings: s, entries: make(map[ID]*Entry, n), holders: make(map[Claim]ID, 4*n)}
}

// Settings returns the settings of the Book's workspace.
func (b *Book) Settings() *Settings { return b.settings }

// As lets the Book judge operations by other settings, for a dry run of what also changes
// settings.
func (b *Book) As(settings *Settings) { b.settings = settings }

// Load adds a stored contact.
func (b *Book) Load(c *Contact) {
	b.entries[c.ID] = &Entry{Stored: c, Now: c}
	b.hold(c)
	b.bytes += c.Size()
	if c.Brief {
		b.brief = append(b.brief, c)
	}
}

// MaxBookBytes is the greatest size of the contacts that a Book loads, in bytes. The
// contacts of one operation may exceed it.
const MaxBookBytes = 8 << 20

// Full tells whether the loaded contacts exceed MaxBookBytes, so that the operations
// must be processed in parts.
func (b *Book) Full() bool { return b.Over(MaxBookBytes) }

// Over tells whether the loaded contacts have more bytes than the limit most.
func (b *Book) Over(most int) bool { return b.bytes > most }

// End tells the store that this Book has the last operations: no other operation follows.
func (b *Book) End() { b.ended = true }

// Ended tells whether End was called.
func (b *Book) Ended() bool { return b.ended }

// Len returns the number of contacts that the Book has loaded.
func (b *Book) Len() int { return len(b.entries) }

// Changed lists the changed entries, in the order of their first change. If a contact
// was created and deleted again, its entry has neither Stored nor Now.
func (b *Book) Changed() []*Entry { return b.changed }

// Events lists the recorded events, in order.
func (b *Book) Events() []Event { return b.events }

// Erasures lists the deleted contacts, in order.
func (b *Book) Erasures() []Erasure { return b.erasures }

// Apply runs one operation for actor at now. If it refuses the operation, the Book does
// not change. It checks in the contract's order (§2): the record, the owner, the
// attributes, the identities. It returns InvalidRequest, NotFound, InvalidAttributes or
// IdentityConflict.
func (b *Book) Apply(op *Op, actor Actor, now Time, newID func() ID) (Outcome, error) {
	b.room = op.DetailBytes
	if err := op.Check(); err != nil {
		return Outcome{}, err
	}
	switch op.Kind {
	case OpUpsert:
		return b.upsert(op, actor, now, newID)
	case OpPatch:
		return b.patch(op, actor, now)
	case OpRemoveIdentity:
		return b.removeIdentity(op, actor, now)
	case OpAssign:
		return b.assign(op, actor, now)
	case OpDelete:
		return b.delete(op, actor, now)
	case OpMerge:
		return b.merge(op, actor, now)
	case OpMove:
		return b.move(op, actor, now)
	case OpUnmerge:
		return b.unmerge(op, actor, now)
	}
	panic("desk: an operation of no kind")
}

// Stored returns an outcome for the answer to a dry run. It keeps only ids and times that
// are stored. A contact that exists only in the Book has neither (contract-data §1).
func (b *Book) Stored(o Outcome) Outcome {
	e := b.entries[o.ID]
	if e == nil {
		return o
	}
	var stored Contact
	if e.Stored != nil {
		stored = *e.Stored
	}
	o.ID = stored.ID
	if o.Contact != nil {
		c := *o.Contact
		c.ID, c.CreatedAt, c.UpdatedAt = stored.ID, stored.CreatedAt, stored.UpdatedAt
		o.Contact = &c
	}
	return o
}

func (b *Book) upsert(op *Op, actor Actor, now Time, newID func() ID) (Outcome, error) {
	var current *Contact
	w, conflict := &op.Write, false
	for _, i := range w.Sent {
		held, ambiguous := b.holder(i)
		conflict = conflict || ambiguous || op.New && held != nil
		if held != nil {
			conflict = conflict || current != nil && current != held
			current = held
		}
	}
	owner, attributes, err := b.meaning(w)
	if err != nil {
		return Outcome{}, err
	}
	if conflict { // contacts are never merged automatically: a person has to decide whether they are one
		return Outcome{}, b.conflict(w.Sent, nil)
	}
	if err := w.checkSize(current, attributes, b.room); err != nil {
		return Outcome{}, err
	}
	if current != nil {
		if err := b.takeover(current, w); err != nil {
			return Outcome{}, err
		}
		return b.write(StatusUpdated, current, b.fixed(current, w), owner, attributes, actor, now)
	}
	c, _ := Contact{}.apply(w, owner, attributes)
	c.ID, c.CreatedAt, c.UpdatedAt = newID(), now, now
	b.put(&Entry{}, &c, Event{Type: ContactCreated, Subject: c.ID, Actor: actor, At: now})
	b.hold(&c)
	return Outcome{Status: StatusCreated, ID: c.ID, Contact: &c}, nil
}

// takeover applies the rule of fixed external ids (contract §3). It refuses a write
// whose external id no contact holds and whose other handles match a contact with
// another external id.
func (b *Book) takeover(current *Contact, w *ContactWrite) error {
	sent := Identity{Kind: KindExternalID, Value: w.ExternalID.Value}
	if !b.settings.FixedExternalIDs || !w.ExternalID.Has() || current.ExternalID == "" || !b.Free(sent) {
		return nil
	}
	clash := details[Identity]{room: b.room}
	for _, i := range w.Sent {
		if i == sent || !b.Free(i) {
			clash.add(Identity{Kind: i.Kind, Value: i.Value}, i.Kind, i.Value)
		}
	}
	return clash.seen(Errorf(IdentityConflict, "a contact with another external_id holds these identities, and external ids are fixed in this workspace"))
}

// fixed returns the write of a workspace with fixed external ids: if the contact holds the sent
// external id as a further handle, because another contact was merged into it, the field stays
// (contract-data §6).
func (b *Book) fixed(current *Contact, w *ContactWrite) *ContactWrite {
	sent, own := Identity{Kind: KindExternalID, Value: w.ExternalID.Value}, Identity{Kind: KindExternalID, Value: current.ExternalID}
	if !b.settings.FixedExternalIDs || !w.ExternalID.Has() || current.ExternalID == "" || b.Free(sent) || own.Same(sent) {
		return w
	}
	kept := *w
	kept.ExternalID = Field[string]{}
	return &kept
}

func (b *Book) patch(op *Op, actor Actor, now Time) (Outcome, error) {
	current, err := b.byID(op.Target)
	if err != nil {
		return Outcome{}, err
	}
	if e := b.entries[op.Target]; op.Version != 0 && (e.Now != e.Stored || current.Version != op.Version) {
		return Outcome{}, Errorf(Changed, "the contact has changed meanwhile: nothing was stored")
	}
	owner, attributes, err := b.meaning(&op.Write)
	if err != nil {
		return Outcome{}, err
	}
	if err := op.Write.checkSize(current, attributes, b.room); err != nil {
		return Outcome{}, err
	}
	for _, i := range op.Write.Sent {
		if held, ambiguous := b.holder(i); ambiguous || held != nil && held != current {
			return Outcome{}, b.conflict(op.Write.Sent, current)
		}
	}
	return b.write(StatusUpdated, current, &op.Write, owner, attributes, actor, now)
}

func (b *Book) assign(op *Op, actor Actor, now Time) (Outcome, error) {
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

func (b *Book) delete(op *Op, actor Actor, now Time) (Outcome, error) {
	current, conflict, err := b.find(op)
	if err != nil {
		return Outcome{}, err
	}
	if conflict {
		return Outcome{}, b.conflict(op.Find, nil)
	}
	b.release(current)
	at := max(now, current.UpdatedAt)
	b.put(b.entries[current.ID], nil, Event{Type: ContactDeleted, Subject: current.ID, Actor: actor, At: at})
	b.erasures = append(b.erasures, Erasure{current.ID, at})
	return Outcome{Status: StatusDeleted, ID: current.ID, Contact: current}, nil
}

func (b *Book) removeIdentity(op *Op, actor Actor, now Time) (Outcome, error) {
	current, err := b.byID(op.Target)
	if err != nil {
		return Outcome{}, err
	}
	held, primary := -1, current.primary()
	for _, reading := range op.Remove {
		if held = slices.Index(current.Further, reading); held >= 0 {
			break
		}
		if slices.ContainsFunc(primary, reading.Same) {
			return Outcome{}, InvalidAt("/value", "this is the contact's %s field", reading.Kind).Advise(ClearField, reading.Kind)
		}
		if held = slices.IndexFunc(current.Further, reading.Same); held >= 0 {
			break
		}
	}
	if held < 0 {
		return Outcome{}, NotFoundf("the contact holds no such identity").Advise(ListIdentities)
	}
	c := *current
	c.Further = slices.Delete(slices.Clone(c.Further), held, held+1)
	b.replace(current, &c, []string{"identities"}, actor, now)
	return Outcome{Status: StatusUpdated, ID: c.ID, Contact: &c}, nil
}

// meaning returns the owner and the attribute values that a write stands for. It resolves
// the owner first.
func (b *Book) meaning(w *ContactWrite) (*Member, []attributeValue, error) {
	var owner *Member
	if w.Owner.Has() {
		if owner = b.settings.ResolveMember(w.Owner.Value); owner == nil {
			return nil, nil, InvalidAt("/owner", "no member of this workspace has this id or e-mail").Advise(ListMembers)
		}
	}
	attributes, err := w.judge(b.settings.Attributes, b.room)
	return owner, attributes, err
}

// find returns the contact to which all identifiers of an operation belong, or conflict
// if they belong to several. It returns NotFound if any of them belongs to none.
func (b *Book) find(op *Op) (found *Contact, conflict bool, err error) {
	if op.ByID {
		if found, err = b.byID(op.Target); err != nil {
			return nil, false, err
		}
	}
	for _, i := range op.Find {
		held, ambiguous := b.holder(i)
		if ambiguous {
			conflict = true
			continue
		}
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
	if e := b.entries[id]; e != nil {
		return e.Now
	}
	return nil
}

// Missing lists the ids for which the Book has no contact, each once.
func (b *Book) Missing(ids []ID) (missing []ID) {
	for _, id := range ids {
		if b.entries[id] == nil && !slices.Contains(missing, id) {
			missing = append(missing, id)
		}
	}
	return missing
}

// LoadMerged tells the Book which contact has the data of one that was merged.
func (b *Book) LoadMerged(id ID, m Merged) {
	if b.merged == nil {
		b.merged = map[ID]Merged{}
	}
	b.merged[id] = m
}

// CheckMeaning refuses a write that names an owner who is no member, or that has attributes that
// can't be stored.
func (b *Book) CheckMeaning(w *ContactWrite) error {
	_, _, err := b.meaning(w)
	return err
}

// ByID returns the contact with this id as it is now, or NotFound.
func (b *Book) ByID(id ID) (*Contact, error) { return b.byID(id) }

func (b *Book) byID(id ID) (*Contact, error) {
	if c := b.Contact(id); c != nil {
		return c, nil
	}
	return nil, NoContactBut(b.merged[id])
}

// Holder returns the contact that holds an identity now, or nil. If several contacts
// share the identity since an older release, it returns the one with exactly this
// spelling, or IdentityConflict if there is none.
func (b *Book) Holder(i Identity) (*Contact, error) {
	held, ambiguous := b.holder(i)
	if ambiguous {
		return nil, b.conflict([]Identity{i}, nil)
	}
	return held, nil
}

// holder is like Holder, without an error. Instead, ambiguous tells whether several
// contacts share the identity and none of them has this spelling.
func (b *Book) holder(i Identity) (held *Contact, ambiguous bool) {
	claim := i.Claim()
	id, ok := b.holders[claim]
	if !ok {
		return nil, false
	}
	others := b.sharers[claim]
	if len(others) == 0 {
		return b.entries[id].Now, false
	}
	for _, id := range append([]ID{id}, others...) {
		if c := b.entries[id].Now; c.Spells(i) {
			return c, false
		}
	}
	return nil, true
}

// Holding returns all contacts that hold one of the identities in any spelling. They are
// sorted by id, so the oldest is first.
func (b *Book) Holding(list []Identity) (found []*Contact) {
	for _, i := range list {
		claim := i.Claim()
		if id, held := b.holders[claim]; held {
			for _, id := range append([]ID{id}, b.sharers[claim]...) {
				found = append(found, b.entries[id].Now)
			}
		}
	}
	slices.SortFunc(found, func(x, y *Contact) int { return bytes.Compare(x.ID[:], y.ID[:]) })
	return slices.Compact(found)
}

// Oldest returns the contact that holds an identity in any spelling, or nil. If there
// are several, it returns the oldest.
func (b *Book) Oldest(i Identity) *Contact {
	if held, ambiguous := b.holder(i); !ambiguous {
		return held
	}
	claim := i.Claim()
	ids := append([]ID{b.holders[claim]}, b.sharers[claim]...)
	return b.entries[slices.MinFunc(ids, func(x, y ID) int { return bytes.Compare(x[:], y[:]) })].Now
}

// Free tells whether no contact holds an identity.
func (b *Book) Free(i Identity) bool {
	_, held := b.holders[i.Claim()]
	return !held
}

// conflict returns an error with the sent identities that another contact holds, in the
// order in which they were sent. The contact except is not another contact.
func (b *Book) conflict(sent []Identity, except *Contact) error {
	held := details[Identity]{room: b.room}
	var known []Identity // each once, in any spelling
	for _, i := range sent {
		holder, ambiguous := b.holder(i)
		if (ambiguous || holder != nil && holder != except) && !slices.ContainsFunc(known, i.Same) {
			known = append(known, i)
			held.add(Identity{Kind: i.Kind, Value: i.Value}, i.Kind, i.Value)
		}
	}
	holders := b.Holding(sent)
	message := "these identities belong to different contacts, and contacts are never merged automatically"
	if except != nil || len(holders) == 1 {
		message = "another contact holds these identities, and contacts are never merged automatically"
	}
	e := held.seen(Errorf(IdentityConflict, "%s", message))
	for _, c := range holders {
		e.Between = append(e.Between, c.ID)
	}
	if except != nil && !slices.Contains(e.Between, except.ID) {
		e.Between = append(e.Between, except.ID)
		slices.SortFunc(e.Between, ID.Compare)
	}
	return e
}

// write applies w to a contact and returns the result. A write that changes nothing
// returns the same contact and changes nothing in the Book.
func (b *Book) write(status Status, current *Contact, w *ContactWrite, owner *Member, attributes []attributeValue, actor Actor, now Time) (Outcome, error) {
	c, changed := current.apply(b.keepSpelling(current, w), owner, attributes)
	if changed == nil {
		return Outcome{Status: status, ID: current.ID, Contact: current}, nil
	}
	if len(c.Further) > MaxFurther && len(c.Further) > len(current.Further) {
		return Outcome{}, InvalidAt("/identities", "a contact holds at most %d further handles, and this one has %d", MaxFurther, len(current.Further)).Advise(RemoveIdentities)
	}
	b.replace(current, &c, changed, actor, now)
	return Outcome{Status: status, ID: c.ID, Contact: &c}, nil
}

// keepSpelling leaves the phone out of a write if the contact has held it in exactly this
// spelling since the first release, and other contacts share the number. If the phone were
// stored in today's form, no request could find the contact any more (contract §3, Shared
// from before).
func (b *Book) keepSpelling(current *Contact, w *ContactWrite) *ContactWrite {
	if len(b.sharers) == 0 || !w.Phone.Has() {
		return w
	}
	i := slices.IndexFunc(w.Sent, func(i Identity) bool {
		return i.Kind == KindPhone && i.Value == w.Phone.Value && i.spelled() == current.Phone
	})
	if i < 0 || len(b.sharers[w.Sent[i].Claim()]) == 0 {
		return w
	}
	kept := *w
	kept.Phone = Field[string]{}
	return &kept
}

func (b *Book) replace(current, next *Contact, changed []string, actor Actor, now Time) {
	next.UpdatedAt = max(now, current.UpdatedAt) // never decreases, even if the clock does
	b.put(b.entries[current.ID], next, Event{Type: ContactUpdated, Subject: next.ID, Actor: actor, At: next.UpdatedAt, Changed: changed})
	if !sameIdentities(current, next) {
		b.release(current)
		b.hold(next)
	}
}

// put records the contact's new state (nil when deleted) and the event.
func (b *Book) put(e *Entry, c *Contact, event Event) {
	if was := e.Now; was != nil && was.Brief && (c == nil || !sameIdentities(was, c)) {
		panic("desk: handles change of a contact whose further identities were not read")
	}
	if e.Now == e.Stored { // contacts are never changed in place, so this is the first change
		b.changed = append(b.changed, e)
	}
	if e.Now = c; c != nil {
		b.entries[c.ID] = e
	}
	b.events = append(b.events, event)
}

// hold records which claims the contact of an entry has.
func (b *Book) hold(c *Contact) {
	claims := c.Claims()
	b.entries[c.ID].held = claims
	for _, claim := range claims {
		switch holder, held := b.holders[claim]; {
		case !held:
			b.holders[claim] = c.ID
		case holder != c.ID && !slices.Contains(b.sharers[claim], c.ID):
			if b.sharers == nil {
				b.sharers = map[Claim][]ID{}
			}
			b.sharers[claim] = append(b.sharers[claim], c.ID)
		}
	}
}

func (b *Book) release(c *Contact) {
	for _, claim := range c.Claims() {
		others := b.sharers[claim]
		switch {
		case len(others) > 0 && b.holders[claim] != c.ID:
			b.sharers[claim] = slices.DeleteFunc(others, func(id ID) bool { return id == c.ID })
		case len(others) > 0:
			b.holders[claim], b.sharers[claim] = others[0], others[1:]
		default:
			delete(b.holders, claim)
		}
	}
}

func sameIdentities(a, b *Contact) bool {
	return a.ExternalID == b.ExternalID && a.Email == b.Email && a.Phone == b.Phone && slices.Equal(a.Further, b.Further)
}

// Claims returns how the workspace's claims change when the entry is flushed: the claims
// that the contact gives up, and those that it gets. The store deletes the released claims
// of all entries first, because another contact of the group may have taken them. Claims that
// pass to another contact are in neither list.
func (e *Entry) Claims() (released, taken []Claim) {
	switch {
	case e.Stored == nil && e.Now == nil:
		return nil, nil
	case e.Stored == nil:
		return nil, e.held
	case e.Now == nil:
		return without(e.Stored.Claims(), e.Passes), nil
	case sameIdentities(e.Stored, e.Now):
		return nil, nil
	}
	before, after := e.Stored.Claims(), e.held
	return without(before, after), without(without(after, before), e.passed)
}

// without returns the claims of list that the other list does not have.
func without(list, others []Claim) (rest []Claim) {
	known := make(map[Claim]bool, len(others))
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
