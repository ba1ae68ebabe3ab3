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

	// Contacts returns a page of the contacts that match the filter, in export order: up to
	// limit contacts that come after the given position. It also returns the position at
	// which the next page begins, nil if this page is the last.
	//
	// Lists of contacts, conversations and messages are read page by page. A page ends when
	// it is as large as a desk.PageSize allows. A page of a filtered list also ends when
	// desk.MaxLooked records were read, or the number of records that the filter sets. So a
	// page may be short, or even empty, although the list continues.
	Contacts(ctx context.Context, ws desk.ID, f desk.ContactFilter, after desk.ContactPlace, limit int) ([]*desk.Contact, *desk.ContactPlace, error)

	// NewestContacts returns a page of the contacts of an owner (zero: of all owners),
	// newest change first: up to limit contacts that come before the given position in
	// export order (nil: the page begins with the last contact). It also returns the
	// position at which the next page begins, nil if this page is the last.
	NewestContacts(ctx context.Context, ws, owner desk.ID, before *desk.ContactPlace, limit int) ([]*desk.Contact, *desk.ContactPlace, error)

	// UpdateContacts loads all contacts that ops can change into a Book, calls apply for
	// it, and stores the changes, all or nothing. When it returns nil, the changes are
	// durable. If the contacts do not fit into one Book (Book.Full), it works in parts, in
	// order, in one transaction: each call of apply is for ops[from:to], on a Book that
	// includes the changes of the earlier parts. If a call ends the group (Book.End), the
	// changes so far are stored and the later parts are left out. UpdateContacts calls
	// apply at least once. It may run everything again, from the first operation on. It
	// returns NotFound if there is no such workspace. If only brief operations name a
	// contact, the Book may lack the contact's further identities (Book.ToRead).
	UpdateContacts(ctx context.Context, ws desk.ID, ops []*desk.Op, apply func(book *desk.Book, from, to int)) error

	// FlushesAbreast returns how many calls of UpdateContacts for one workspace should run
	// at the same time. More calls would not be faster.
	FlushesAbreast() int

	// Book loads the contacts of a look-up, to read them or to try operations. It stores
	// nothing and takes no lock.
	Book(ctx context.Context, ws desk.ID, l desk.Lookup) (*desk.Book, error)
}

// A ContactTx reads and writes contacts.
type ContactTx interface {
	// Book loads the contacts of a look-up. Flush stores the changes of a Book.
	Book(l desk.Lookup) (*desk.Book, error)
	Flush(*desk.Book) error

	// Contact loads one contact.
	Contact(id desk.ID) (*desk.Contact, error)

	// KeepContacts tells which of these contacts there are. Until the transaction ends, no other
	// one deletes or merges them.
	KeepContacts(ids []desk.ID) (map[desk.ID]bool, error)

	// KeepContactsNext is KeepContacts in the round trip of the next read: what it returns is
	// complete once that has returned.
	KeepContactsNext(ids []desk.ID) (map[desk.ID]bool, error)
}
