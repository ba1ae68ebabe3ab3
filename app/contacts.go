package app

import (
	"context"
	"encoding/binary"
	"fmt"

	"parley/desk"
)

// Write carries out one operation and returns its outcome once it is durable. It
// returns what Book.Apply does, or Unauthorized or Forbidden when the key was
// changed meanwhile.
func (a *App) Write(_ context.Context, p Principal, op *desk.Op) (desk.Outcome, error) {
	r := &request{ops: []*desk.Op{op}, key: p.Key.ID}
	a.writer.write(p.Workspace(), r)
	if r.err != nil {
		return desk.Outcome{}, r.err
	}
	return r.outcomes[0], r.errs[0]
}

// WriteAll carries out operations in order, each answering for itself: errs holds
// nil for those that succeeded. err is of the whole, and then nothing is stored.
func (a *App) WriteAll(_ context.Context, p Principal, ops []*desk.Op) (outcomes []desk.Outcome, errs []error, err error) {
	if len(ops) == 0 {
		return nil, nil, nil
	}
	r := &request{ops: ops, key: p.Key.ID}
	a.writer.write(p.Workspace(), r)
	for _, err := range r.errs {
		if desk.IsType(err, desk.Unauthorized) || desk.IsType(err, desk.Forbidden) {
			return nil, nil, err // the key's, so the request's
		}
	}
	return r.outcomes, r.errs, r.err
}

// Contact returns a contact of the principal's workspace, or NotFound.
func (a *App) Contact(ctx context.Context, p Principal, id desk.ID) (*desk.Contact, error) {
	return a.store.Contact(ctx, p.Workspace(), id)
}

// Contacts returns a page of contacts in export order and the cursor of the next
// one, "" when there is none. It returns InvalidRequest for a cursor that was not
// given out for this workspace and these filters.
func (a *App) Contacts(ctx context.Context, p Principal, f desk.ContactFilter, cursor string, limit int) ([]*desk.Contact, string, error) {
	list := cursorList{p.Workspace(), "contacts", fmt.Sprintf("%q %s %d", f.Held, f.Owner, f.UpdatedSince)}
	after := desk.ContactPlace{UpdatedAt: f.UpdatedSince - 1, ID: lastID}
	if cursor != "" {
		place, err := a.cursors.open(list, cursor)
		if err != nil {
			return nil, "", err
		}
		after.UpdatedAt = desk.Time(binary.BigEndian.Uint64(place))
		copy(after.ID[:], place[8:])
	}
	contacts, err := a.store.Contacts(ctx, p.Workspace(), f, after, limit+1)
	if err != nil || len(contacts) <= limit {
		return contacts, "", err
	}
	last := contacts[limit-1].Place()
	place := binary.BigEndian.AppendUint64(nil, uint64(last.UpdatedAt))
	return contacts[:limit], a.cursors.seal(list, append(place, last.ID[:]...)), nil
}

// lastID sorts after every other, so that a place with it stands after all
// contacts of its time.
var lastID = desk.ID{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}
