package app

import (
	"context"
	"encoding/binary"
	"fmt"

	"parley/desk"
)

// Write carries out one operation and returns its outcome once it is durable. It
// returns what Book.Apply does; Unauthorized or Forbidden when the key was changed
// meanwhile; and ErrStale.
func (a *App) Write(ctx context.Context, p Principal, op *desk.Op) (desk.Outcome, error) {
	outcomes, errs, err := a.WriteAll(ctx, p, []*desk.Op{op})
	if err != nil {
		return desk.Outcome{}, err
	}
	return outcomes[0], errs[0]
}

// WriteAll carries out operations in order, each answering for itself: errs holds
// nil for those that succeeded. err is of the whole, and then nothing is stored.
// The context does not matter: a write that was taken runs to its end.
func (a *App) WriteAll(_ context.Context, p Principal, ops []*desk.Op) (outcomes []desk.Outcome, errs []error, err error) {
	if len(ops) == 0 && !p.presumed {
		return nil, nil, nil
	}
	r := &request{ops: ops, check: func(s *desk.Settings, now desk.Time) error {
		if p.stale(s) {
			return ErrStale
		}
		return p.still(s, desk.ContactsWrite, now)
	}, actor: p.Key.ID}
	a.writer.write(p.Workspace(), r)
	return r.outcomes, r.errs, r.err
}

// Contact returns a contact of the principal's workspace, or NotFound or ErrStale.
func (a *App) Contact(ctx context.Context, p Principal, id desk.ID) (*desk.Contact, error) {
	c, settings, err := a.store.Contact(ctx, p.Workspace(), id)
	if err == nil && p.stale(settings) {
		err = ErrStale
	}
	return c, err
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
