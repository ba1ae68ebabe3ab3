package store

import (
	"context"

	"parley/desk"
)

// Exports reads all records of a kind, page by page. A page has up to limit records that come
// after a place; more tells whether others follow. It also ends at the size of a
// desk.PageSize. No transaction stays open between two pages.
type Exports interface {
	// ContactsAfter returns contacts whose ids are greater than after, in order.
	ContactsAfter(ctx context.Context, ws, after desk.ID, limit int) (list []*desk.Contact, more bool, err error)

	// CountOptOuts returns for how many handles an opt-out is stored.
	CountOptOuts(ctx context.Context, ws desk.ID) (int, error)
}
