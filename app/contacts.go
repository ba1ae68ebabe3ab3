package app

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"parley/app/cursors"
	"parley/desk"
	"parley/store"
)

// Write runs one operation and returns its outcome once it is durable. It returns the
// errors of Book.Apply, Unauthorized or Forbidden if the key was changed meanwhile, and
// ErrStale.
func (a *App) Write(_ context.Context, p desk.Principal, op *desk.Op) (desk.Outcome, error) {
	r := a.request(p, []*desk.Op{op})
	a.writer.write(p.Workspace(), r)
	if r.err != nil {
		return desk.Outcome{}, r.err
	}
	a.Conflicts.NoteAll(p.Workspace(), p.Actor, r.errs)
	return r.outcomes[0], r.errs[0]
}

// WriteAll runs operations in order. errs has one element for each, nil for those that
// succeeded. Their outcomes have a status and an id but no contact, because a thousand
// contacts would take too much memory. err concerns the whole call; then nothing is
// stored. The context does not matter: a write is finished even if the caller leaves.
func (a *App) WriteAll(_ context.Context, p desk.Principal, ops []*desk.Op) (outcomes []desk.Outcome, errs []error, err error) {
	if len(ops) == 0 && !p.Presumed {
		return nil, nil, nil
	}
	for _, op := range ops {
		op.Brief = true
	}
	r := a.request(p, ops)
	a.writer.write(p.Workspace(), r)
	a.Conflicts.NoteAll(p.Workspace(), p.Actor, r.errs)
	return r.outcomes, r.errs, r.err
}

// maxTried is how many bytes of contacts a dry run of a batch loads. A dry run can't be
// processed in parts like a real batch, because it does not store the changes that later
// operations must see.
const maxTried = 8 * desk.MaxBookBytes

// Try is Write as a dry run (contract-data §1): it stores nothing and takes no lock. The
// outcome has only ids and times that are stored.
func (a *App) Try(ctx context.Context, p desk.Principal, op *desk.Op) (desk.Outcome, error) {
	outcomes, errs, err := a.try(ctx, p, []*desk.Op{op})
	if err != nil {
		return desk.Outcome{}, err
	}
	return outcomes[0], errs[0]
}

// TryAll is WriteAll as a dry run. It also returns PayloadTooLarge, if the contacts of the
// operations are very large.
func (a *App) TryAll(ctx context.Context, p desk.Principal, ops []*desk.Op) (outcomes []desk.Outcome, errs []error, err error) {
	for _, op := range ops {
		op.Brief = true
	}
	return a.try(ctx, p, ops)
}

func (a *App) try(ctx context.Context, p desk.Principal, ops []*desk.Op) (outcomes []desk.Outcome, errs []error, err error) {
	var named desk.Lookup
	for _, op := range ops {
		named.IDs, named.Identities = append(named.IDs, op.IDs()...), append(named.Identities, op.Identities()...)
	}
	if len(ops) > 1 {
		named.Most = maxTried
	}
	if len(ops) > smallRequest {
		end, err := a.writer.tryLarge(ctx, p.Workspace())
		if err != nil {
			return nil, nil, err
		}
		defer end()
	}
	book, err := a.store.Book(ctx, p.Workspace(), named)
	switch {
	case err != nil:
		return nil, nil, err
	case named.Most > 0 && book.Over(maxTried):
		return nil, nil, desk.Errorf(desk.PayloadTooLarge, "the contacts of these operations hold more than %d MiB, which is too much for a dry run: send fewer operations", maxTried>>20)
	}
	r, now := a.request(p, ops), a.now()
	if r.begin(book.Settings(), now); r.refusal != nil {
		return nil, nil, r.refusal
	}
	r.apply(book, 0, len(ops), now, a.newID)
	for i := range r.outcomes {
		r.outcomes[i] = book.Stored(r.outcomes[i])
	}
	return r.outcomes, r.errs, nil
}

func (a *App) request(p desk.Principal, ops []*desk.Op) *request {
	needs := desk.ContactsWrite
	if slices.ContainsFunc(ops, func(op *desk.Op) bool { return op.Kind == desk.OpDelete }) {
		needs = desk.ContactsDelete
	}
	return &request{ops: ops, check: func(s *desk.Settings, now desk.Time) error {
		if p.Stale(s) {
			return ErrStale
		}
		return p.Still(s, needs, now)
	}, actor: p.Actor}
}

// Contact returns a contact of the principal's workspace, or NotFound or ErrStale.
func (a *App) Contact(ctx context.Context, p desk.Principal, id desk.ID) (*desk.Contact, error) {
	c, settings, err := a.store.Contact(ctx, p.Workspace(), id)
	switch {
	case err != nil:
		return nil, err
	case c == nil:
		return nil, store.NoContact(ctx, a.store, p.Workspace(), id)
	case p.Stale(settings):
		return nil, ErrStale
	}
	return c, nil
}

// contact returns a contact of a workspace, or NotFound.
func (a *App) contact(ctx context.Context, ws, id desk.ID) (*desk.Contact, error) {
	c, _, err := a.store.Contact(ctx, ws, id)
	if err == nil && c == nil {
		err = store.NoContact(ctx, a.store, ws, id)
	}
	return c, err
}

// ContactsByID returns the contacts with these ids, without those that do not exist. Lists
// use it for names.
func (a *App) ContactsByID(ctx context.Context, p desk.Principal, ids []desk.ID) (map[desk.ID]*desk.Contact, error) {
	found := make(map[desk.ID]*desk.Contact, len(ids))
	if len(ids) == 0 {
		return found, nil
	}
	book, err := a.store.Book(ctx, p.Workspace(), desk.Lookup{IDs: ids})
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if c := book.Contact(id); c != nil {
			found[id] = c
		}
	}
	return found, nil
}

// Contacts returns a page of contacts in export order and the cursor of the next page,
// "" if there is none. It returns InvalidRequest for a cursor of another workspace or
// other filters.
func (a *App) Contacts(ctx context.Context, p desk.Principal, f desk.ContactFilter, cursor string, limit int) ([]*desk.Contact, string, error) {
	list := cursors.List{Workspace: p.Workspace(), Name: "contacts", Filter: fmt.Sprintf("%q %s %d", f.Held, f.Owner, f.UpdatedSince)}
	after := desk.ContactPlace{UpdatedAt: f.UpdatedSince - 1, ID: lastID}
	if cursor != "" {
		place, err := a.cursors.Open(list, cursor)
		if err != nil {
			return nil, "", err
		}
		after.UpdatedAt = desk.Time(binary.BigEndian.Uint64(place))
		copy(after.ID[:], place[8:])
	}
	if len(f.Held) > 0 {
		contacts, err := a.holder(ctx, p.Workspace(), f, after)
		return contacts, "", err
	}
	contacts, next, err := a.store.Contacts(ctx, p.Workspace(), f, after, limit)
	if err != nil || next == nil {
		return contacts, "", err
	}
	place := binary.BigEndian.AppendUint64(nil, uint64(next.UpdatedAt))
	return contacts, a.cursors.Seal(list, append(place, next.ID[:]...)), nil
}

// NewestContacts returns a page of an owner's contacts (zero: of all), newest change first,
// and the cursor of the next page, "" if there is none. It returns InvalidRequest for a
// cursor of another workspace or owner.
func (a *App) NewestContacts(ctx context.Context, p desk.Principal, owner desk.ID, cursor string, limit int) ([]*desk.Contact, string, error) {
	list := cursors.List{Workspace: p.Workspace(), Name: "newest contacts", Filter: owner.String()}
	var before *desk.ContactPlace
	if cursor != "" {
		place, err := a.cursors.Open(list, cursor)
		if err != nil {
			return nil, "", err
		}
		before = &desk.ContactPlace{UpdatedAt: desk.Time(binary.BigEndian.Uint64(place)), ID: desk.ID(place[8:])}
	}
	contacts, next, err := a.store.NewestContacts(ctx, p.Workspace(), owner, before, limit)
	if err != nil || next == nil {
		return contacts, "", err
	}
	return contacts, a.cursors.Seal(list, append(binary.BigEndian.AppendUint64(nil, uint64(next.UpdatedAt)), next.ID[:]...)), nil
}

// ContactsHolding returns the contacts that hold one of the identities, the oldest first.
func (a *App) ContactsHolding(ctx context.Context, p desk.Principal, list []desk.Identity) ([]*desk.Contact, error) {
	if len(list) == 0 {
		return nil, nil
	}
	book, err := a.store.Book(ctx, p.Workspace(), desk.Lookup{Identities: list})
	if err != nil {
		return nil, err
	}
	return book.Holding(list), nil
}

// holder returns the one contact that holds all the identities of a filter, if it matches
// the other filters and comes after the given position. It uses the rules of a write. So if
// several contacts share an identity, and none has exactly this spelling, it returns
// IdentityConflict.
func (a *App) holder(ctx context.Context, ws desk.ID, f desk.ContactFilter, after desk.ContactPlace) ([]*desk.Contact, error) {
	book, err := a.store.Book(ctx, ws, desk.Lookup{Identities: f.Held})
	if err != nil {
		return nil, err
	}
	var found *desk.Contact
	for _, i := range f.Held {
		c, err := book.Holder(i)
		if err != nil || c == nil || found != nil && found != c {
			return nil, err
		}
		found = c
	}
	if f.Passes(found) && found.Place().After(after) {
		return []*desk.Contact{found}, nil
	}
	return nil, nil
}

// lastID sorts after every other id, so a position with it comes after all contacts of
// its time.
var lastID = desk.ID{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}
