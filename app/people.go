package app

import (
	"bytes"
	"maps"
	"slices"

	"parley/desk"
	"parley/provider"
	"parley/store"
)

// A person is how a provider names somebody: by a number, by the provider's own id, or by
// both.
type person struct {
	number, userID string
	identities     []desk.Identity // the contact is found by these; the most reliable first
}

// person returns the person whom the provider of a channel names.
func (a *App) person(tx store.Tx, channel desk.ID, number, userID string) person {
	provider := a.providers[tx.Settings().Channel(channel).Kind]
	return person{number, userID, provider.Identities(number, userID)}
}

// lookup returns the lookup of every contact that may be this person.
func (p person) lookup() desk.Lookup { return desk.Lookup{Identities: p.identities} }

// known returns the person's contact, or nil. If several contacts share the number since an
// earlier release and none has this spelling, it returns the oldest, because the message
// must have a contact.
func (p person) known(book *desk.Book) *desk.Contact {
	for _, i := range p.identities {
		if c := book.Oldest(i); c != nil {
			return c
		}
	}
	return nil
}

// learn adds identities to a contact of the book. It leaves out those that another contact
// holds. If the contact has the greatest number of identities already, it adds none: this
// must not prevent the rest of the update. It also adds a chat account that has another
// spelling of the contact's number.
func learn(book *desk.Book, contact *desk.Contact, identities []desk.Identity, actor desk.Actor, now desk.Time) error {
	free := slices.DeleteFunc(slices.Clone(identities), func(i desk.Identity) bool {
		held, err := book.Holder(i)
		return err != nil || held != nil && (held != contact || contact.Spells(i))
	})
	if len(free) == 0 {
		return nil
	}
	_, err := book.Apply(&desk.Op{Kind: desk.OpPatch, ByID: true, Target: contact.ID, Write: desk.ContactWrite{
		Identities: desk.Field[[]desk.Identity]{Set: true, Value: free}, Sent: free,
	}}, actor, now, nil)
	if desk.IsType(err, desk.InvalidRequest) {
		return nil
	}
	return err
}

// rename sets the name of the person's profile on a contact that has no name.
func rename(book *desk.Book, contact desk.ID, name string, actor desk.Actor, now desk.Time) error {
	if name == "" || book.Contact(contact).Name != "" {
		return nil
	}
	_, err := book.Apply(&desk.Op{Kind: desk.OpPatch, ByID: true, Target: contact, Write: desk.ContactWrite{
		Name: desk.Field[string]{Set: true, Value: name},
	}}, actor, now, nil)
	return err
}

// remember adds a person's identities at the provider to a contact.
func (a *App) remember(tx store.Tx, contact desk.ID, p person, actor desk.Actor) error {
	if len(p.identities) == 0 {
		return nil
	}
	book, err := tx.Book(desk.Lookup{IDs: []desk.ID{contact}, Identities: p.identities})
	if err != nil {
		return err
	}
	c := book.Contact(contact)
	if c == nil {
		return nil
	}
	if err := learn(book, c, p.identities, actor, a.now()); err != nil {
		return err
	}
	return tx.Flush(book)
}

// rememberRecipient adds the provider's id of the recipient of a message to the contact,
// because the person's next message may have only that id. All reports but the first find
// that somebody has it, and need not look who the recipient is.
func (a *App) rememberRecipient(tx store.Tx, m *desk.Message, userID string) error {
	if userID == "" || m.Direction != desk.Outbound {
		return nil
	}
	p := a.person(tx, m.ChannelID, "", userID)
	book, err := tx.Book(p.lookup())
	unknown := func(i desk.Identity) bool { held := book.Oldest(i); return held == nil || !held.Spells(i) }
	if err != nil || !slices.ContainsFunc(p.identities, unknown) {
		return err
	}
	c, err := tx.Conversation(m.ConversationID)
	if err != nil || c == nil {
		return err
	}
	return a.remember(tx, c.ContactID, p, byProvider(m.ChannelID))
}

// move processes the report that a person has another number or id. An identity that
// another contact holds stays there.
func (a *App) move(tx store.Tx, channel desk.ID, m *provider.Move) error {
	actor := byProvider(channel)
	before, after := a.person(tx, channel, m.Number, m.UserID), a.person(tx, channel, m.NewNumber, m.NewUserID)
	book, err := tx.Book(desk.Lookup{Identities: slices.Concat(before.identities, after.identities)})
	if err != nil {
		return err
	}
	contact := before.known(book)
	if contact == nil {
		return nil // an unknown person
	}
	now := a.now()
	if m.NewNumber != "" && m.Number != "" && sameNumber(contact.Phone, m.Number) && book.Free(desk.Identity{Kind: desk.KindPhone, Value: m.NewNumber}) {
		phone := []desk.Identity{{Kind: desk.KindPhone, Value: m.NewNumber}}
		if _, err := book.Apply(&desk.Op{Kind: desk.OpPatch, ByID: true, Target: contact.ID, Write: desk.ContactWrite{
			Phone: desk.Field[string]{Set: true, Value: m.NewNumber}, Sent: phone,
		}}, actor, now, nil); err != nil {
			return err
		}
	}
	if err := learn(book, book.Contact(contact.ID), after.identities, actor, now); err != nil {
		return err
	}
	for _, gone := range book.Contact(contact.ID).Further {
		replaces := func(i desk.Identity) bool { return i.Kind == gone.Kind && i.Value != gone.Value }
		if !slices.ContainsFunc(before.identities, gone.Same) || !slices.ContainsFunc(after.identities, replaces) {
			continue
		}
		if _, err := book.Apply(&desk.Op{Kind: desk.OpRemoveIdentity, ByID: true, Target: contact.ID, Remove: []desk.Identity{gone}}, actor, now, nil); err != nil {
			return err
		}
	}
	if err := shut(tx, channel, contact.ID, m.At, desk.NumberChanged); err != nil {
		return err
	}
	return tx.Flush(book)
}

// sameNumber tells whether two spellings are one number.
func sameNumber(a, b string) bool { return desk.CanonicalNumber(a) == desk.CanonicalNumber(b) }

// recordChoice stores a person's marketing choice for the number and for the provider's ids
// of the person, unless a newer choice is stored. If the provider hides the number, the
// choice is stored for all numbers of the contact. There is no event if no contact has the
// number. notice tells that the provider reports the choice without a message; then the event
// has its time, for broadcasts.
func (a *App) recordChoice(tx store.Tx, p person, change desk.OptChange, at desk.Time, notice bool, by desk.Actor) error {
	if change == desk.OptNone {
		return nil
	}
	// Two spellings of a number have one hash.
	ofNumber := map[store.NumberHash]bool{}
	add := func(handle string, number bool) {
		if handle != "" {
			hash := a.handleHash(tx.Settings().ID, handle)
			ofNumber[hash] = ofNumber[hash] || number
		}
	}
	add(p.number, true)
	add(p.userID, false)
	book, err := tx.Book(p.lookup())
	if err != nil {
		return err
	}
	contact := p.known(book)
	if c := contact; c != nil {
		for _, i := range c.Identities() {
			if number := i.Claim().Kind == desk.KindPhone; i.OfProvider() || number && p.number == "" {
				add(i.Value, number)
			}
		}
	}
	// The wish has changed if that of a number has, or that of the person, by whatever handle. That
	// of a handle which was learned since the same wish is no change.
	changed, wasOut, numberChanged := false, false, false
	for _, hash := range slices.SortedFunc(maps.Keys(ofNumber), func(a, b store.NumberHash) int { return bytes.Compare(a[:], b[:]) }) {
		known, err := tx.OptOut(hash)
		if err != nil {
			return err
		}
		one, err := recordOne(tx, hash, known, change, at)
		if err != nil {
			return err
		}
		changed, wasOut, numberChanged = changed || one, wasOut || known.Since != 0, numberChanged || one && ofNumber[hash]
	}
	if contact == nil || !numberChanged && (!changed || wasOut == (change == desk.OptOut)) {
		return nil
	}
	e := desk.Event{Type: desk.ContactOptedIn, Subject: contact.ID, Actor: by, At: a.now()}
	if change == desk.OptOut {
		e.Type = desk.ContactOptedOut
	}
	if notice {
		e.TS = at
	}
	return tx.Append(e)
}

// recordOne stores a choice for one handle, and reports whether it differs from the known one.
func recordOne(tx store.OptOutTx, hash store.NumberHash, known store.OptOut, change desk.OptChange, at desk.Time) (changed bool, err error) {
	if known.At > at {
		return false, nil
	}
	choice := store.OptOut{At: at}
	if change == desk.OptOut {
		if choice.Since = known.Since; choice.Since == 0 {
			choice.Since = at
		}
	}
	return (known.Since == 0) != (choice.Since == 0), tx.SetOptOut(hash, choice)
}

// importChoice stores a marketing choice of a file, unless a newer one is known.
func (a *App) importChoice(tx store.OptOutTx, hash store.NumberHash, o desk.OptOutRow) (changed bool, err error) {
	change, at := desk.OptInAgain, o.Since
	if o.OptedOut {
		change = desk.OptOut
	}
	if at == 0 {
		at = a.now()
	}
	known, err := tx.OptOut(hash)
	if err != nil {
		return false, err
	}
	return recordOne(tx, hash, known, change, at)
}

// handleHash returns a keyed hash of a number in canonical form, or of a provider's id of a
// person. It differs between workspaces.
func (a *App) handleHash(ws desk.ID, handle string) store.NumberHash {
	return store.NumberHash(a.derive("number", ws[:], []byte(desk.CanonicalNumber(handle))))
}
