package store

import (
	"context"

	"parley/desk"
)

// Contacts keeps contacts.
type Contacts interface {
	// Contact returns a contact, or nil, together with the settings at the moment
	// of the read.
	Contact(ctx context.Context, ws, id desk.ID) (*desk.Contact, *desk.Settings, error)

	// Contacts returns up to limit contacts that match the filter and come after the
	// given position, in export order. It also returns the position after which the
	// list continues, nil at its end.
	//
	// Lists of contacts, conversations and messages are read page by page. Reading stops
	// at a desk.PageSize. In a filtered list it also stops after desk.MaxLooked records,
	// or after the number that the filter sets. So a page may be short, or even empty,
	// although the list continues.
	Contacts(ctx context.Context, ws desk.ID, f desk.ContactFilter, after desk.ContactPlace, limit int) ([]*desk.Contact, *desk.ContactPlace, error)

	// NewestContacts returns up to limit contacts of an owner (zero: of all) that come
	// before the given position in export order (nil: from the end), newest change first.
	// It also returns the position before which the list continues, nil at its end.
	NewestContacts(ctx context.Context, ws, owner desk.ID, before *desk.ContactPlace, limit int) ([]*desk.Contact, *desk.ContactPlace, error)

	// UpdateContacts loads all contacts that ops can change into a Book, calls apply for
	// it, and stores the changes, all or nothing. When it returns nil, the changes are
	// durable. If the contacts do not fit into one Book (Book.Full), it works in parts, in
	// order, in one transaction: each call of apply is for ops[from:to], on a Book that
	// includes the changes of the earlier parts. If a call ends the group (Book.End), the
	// changes so far are stored and the later parts are left out. UpdateContacts calls
	// apply at least once. It may run everything again, from the first operation on. It
	// returns NotFound if there is no such workspace. For contacts that only brief
	// operations name, the Book may lack further identities (Book.ToRead).
	UpdateContacts(ctx context.Context, ws desk.ID, ops []*desk.Op, apply func(book *desk.Book, from, to int)) error

	// FlushesAbreast is how many calls of UpdateContacts for one workspace should run at a
	// time. More calls would not be faster.
	FlushesAbreast() int

	// Book loads the contacts of a look-up, to read them or to try operations. It stores
	// nothing and takes no lock.
	Book(ctx context.Context, ws desk.ID, l desk.Lookup) (*desk.Book, error)
}

// A ContactTx reads and writes contacts.
type ContactTx interface {
	// Book loads the contacts of a look-up; Flush stores its changes.
	Book(l desk.Lookup) (*desk.Book, error)
	Flush(*desk.Book) error

	// Contact loads one contact.
	Contact(id desk.ID) (*desk.Contact, error)
}
