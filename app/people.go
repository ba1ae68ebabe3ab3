package app

import (
	"slices"

	"parley/desk"
)

// A person is whom a provider tells of: by a number, by an id of its own, or by both.
type person struct{ number, userID string }

// identities are those by which the person is looked for, the surest first.
func (p person) identities() []desk.Identity {
	var list []desk.Identity
	if p.userID != "" {
		list = append(list, desk.Identity{Kind: desk.KindWhatsAppUser, Value: p.userID})
	}
	if p.number != "" {
		list = append(list, desk.Identity{Kind: desk.KindWhatsApp, Value: p.number})
	}
	return list
}

// find is the operation that loads whoever the person may be.
func (p person) find() *desk.Op {
	op := &desk.Op{Kind: desk.OpDelete, Find: p.identities()} // it is never applied
	for _, n := range desk.NumberVariants(p.number) {
		op.Find = append(op.Find, desk.Identity{Kind: desk.KindWhatsApp, Value: n})
	}
	return op
}

// known returns the person's contact, or nil. What the provider says exactly counts
// first; another spelling of the number does when it leads to one contact only.
func (p person) known(book *desk.Book) *desk.Contact {
	for _, i := range p.identities() {
		if c := book.Holder(i.Claim()); c != nil {
			return c
		}
	}
	var found *desk.Contact
	for _, n := range desk.NumberVariants(p.number) {
		c := book.Holder(desk.Identity{Kind: desk.KindPhone, Value: n})
		if c != nil && found != nil && c.ID != found.ID {
			return nil
		}
		if c != nil {
			found = c
		}
	}
	return found
}

// learn gives a contact of the book those of the identities that nobody holds, unless it
// holds as many as it may: what is to be stored with them counts more.
func learn(book *desk.Book, contact *desk.Contact, identities []desk.Identity, now desk.Time) error {
	free := slices.DeleteFunc(slices.Clone(identities), func(i desk.Identity) bool { return book.Holder(i.Claim()) != nil })
	if len(free) == 0 {
		return nil
	}
	_, err := book.Apply(&desk.Op{Kind: desk.OpPatch, ByID: true, Target: contact.ID, Write: desk.ContactWrite{
		Identities: desk.Field[[]desk.Identity]{Set: true, Value: free}, Sent: free,
	}}, desk.ID{}, now, nil)
	if desk.IsType(err, desk.InvalidRequest) {
		return nil
	}
	return err
}

// remember has a contact found by what the provider calls the person.
func (a *App) remember(tx Tx, contact desk.ID, p person) error {
	if p == (person{}) {
		return nil
	}
	book, err := tx.Book(p.find(), &desk.Op{Kind: desk.OpPatch, ByID: true, Target: contact})
	if err != nil {
		return err
	}
	c := book.Contact(contact)
	if c == nil {
		return nil
	}
	if err := learn(book, c, p.identities(), a.now()); err != nil {
		return err
	}
	return tx.Flush(book)
}

// move takes in that a person is known by another number or id. An identity that
// another contact holds stays there: contacts are never merged.
func (a *App) move(tx Tx, m *Move) error {
	before, after := person{m.Number, m.UserID}, person{m.NewNumber, m.NewUserID}
	book, err := tx.Book(before.find(), after.find())
	if err != nil {
		return err
	}
	contact := before.known(book)
	if contact == nil {
		return nil // nobody whom we know
	}
	now := a.now()
	if m.NewNumber != "" && m.Number != "" && sameNumber(contact.Phone, m.Number) && book.Holder(desk.Identity{Kind: desk.KindPhone, Value: m.NewNumber}) == nil {
		phone := []desk.Identity{{Kind: desk.KindPhone, Value: m.NewNumber}}
		if _, err := book.Apply(&desk.Op{Kind: desk.OpPatch, ByID: true, Target: contact.ID, Write: desk.ContactWrite{
			Phone: desk.Field[string]{Set: true, Value: m.NewNumber}, Sent: phone,
		}}, desk.ID{}, now, nil); err != nil {
			return err
		}
	}
	if err := learn(book, book.Contact(contact.ID), after.identities(), now); err != nil {
		return err
	}
	for _, gone := range book.Contact(contact.ID).Further {
		switch gone.Kind {
		case desk.KindWhatsApp:
			if m.NewNumber == "" || gone.Value == m.NewNumber || !sameNumber(gone.Value, m.Number) {
				continue
			}
		case desk.KindWhatsAppUser:
			if m.NewUserID == "" || gone.Value == m.NewUserID || gone.Value != m.UserID {
				continue
			}
		default:
			continue
		}
		if _, err := book.Apply(&desk.Op{Kind: desk.OpRemoveIdentity, ByID: true, Target: contact.ID, Remove: []desk.Identity{gone}}, desk.ID{}, now, nil); err != nil {
			return err
		}
	}
	return tx.Flush(book)
}

// sameNumber tells whether two numbers are one, however they are spelled.
func sameNumber(a, b string) bool { return desk.DialledNumber(a) == desk.DialledNumber(b) }

// heed stores what a person wants of marketing, unless something newer is known. It
// follows the number and the provider's ids of the person: of one whose number is hidden,
// all numbers of the contact.
func (a *App) heed(tx Tx, ws desk.ID, p person, change desk.OptChange, at desk.Time) error {
	if change == desk.OptNone {
		return nil
	}
	handles := []string{p.number, p.userID}
	book, err := tx.Book(p.find())
	if err != nil {
		return err
	}
	if c := p.known(book); c != nil {
		for _, i := range c.Identities() {
			kind := i.Claim().Kind
			if kind == desk.KindWhatsAppUser || kind == desk.KindPhone && p.number == "" {
				handles = append(handles, i.Value)
			}
		}
	}
	slices.Sort(handles)
	for _, handle := range slices.Compact(handles) {
		if handle == "" {
			continue
		}
		if err := heedOne(tx, a.handleHash(ws, handle), change, at); err != nil {
			return err
		}
	}
	return nil
}

func heedOne(tx Tx, hash NumberHash, change desk.OptChange, at desk.Time) error {
	known, err := tx.OptOut(hash)
	if err != nil || known.At > at {
		return err
	}
	wish := OptOut{At: at}
	if change == desk.OptOut {
		if wish.Since = known.Since; wish.Since == 0 {
			wish.Since = at
		}
	}
	return tx.SetOptOut(hash, wish)
}

// handleHash stands for a number, however it is spelled, or for a provider's id of a
// person, in one workspace.
func (a *App) handleHash(ws desk.ID, handle string) NumberHash {
	return NumberHash(a.derive("number", ws[:], []byte(desk.DialledNumber(handle))))
}
