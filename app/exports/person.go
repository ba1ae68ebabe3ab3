package exports

import (
	"context"

	"parley/desk"
	"parley/store"
)

// MaxPeople is how many exports of contacts a workspace has on a node at a time (contract-data
// §7).
const MaxPeople = 4

// Begin takes a place for the export of a contact. It returns RateLimited if all places of the
// workspace are taken. The caller must call end.
func (a *Service) Begin(ws desk.ID) (end func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.people[ws] == MaxPeople {
		return nil, desk.Errorf(desk.RateLimited, "%d exports of this workspace are under way on this server, and no more are allowed: wait for one to end", MaxPeople)
	}
	a.people[ws]++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.people[ws]--; a.people[ws] == 0 {
			delete(a.people, ws)
		}
	}, nil
}

// BeginAll is Begin for a file of all contacts, or of the people of a broadcast. It also returns RateLimited if too many of
// these are under way, of all workspaces.
func (a *Service) BeginAll(ws desk.ID) (end func(), err error) {
	one, err := a.Begin(ws)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	full := a.here == desk.MaxExportsHere
	if !full {
		a.here++
	}
	a.mu.Unlock()
	if full {
		one()
		return nil, desk.Errorf(desk.RateLimited, "too many exports are under way: wait for one to end")
	}
	return func() {
		one()
		a.mu.Lock()
		defer a.mu.Unlock()
		a.here--
	}, nil
}

// Still returns the contact as it is now, if its export may go on. It returns NotFound if the
// contact was deleted, and Unauthorized or Forbidden if the caller may not read it any more.
func (a *Service) Still(ctx context.Context, p desk.Principal, contact desk.ID) (*desk.Contact, error) {
	c, settings, err := a.Store.Contact(ctx, p.Workspace(), contact)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, store.NoContact(ctx, a.Store, p.Workspace(), contact)
	}
	for _, needs := range []desk.Permission{desk.ContactsRead, desk.ConversationsRead} {
		if err := p.Still(settings, needs, a.Now()); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// OptOutsOf returns the opt-outs of a contact's numbers.
func (a *Service) OptOutsOf(ctx context.Context, p desk.Principal, c *desk.Contact) ([]desk.OptOutRow, error) {
	rows, _, err := a.optOutsOf(ctx, p.Workspace(), []*desk.Contact{c})
	return rows, err
}

// Attempts calls do for pages of the unsettled attempts to a contact.
func (a *Service) Attempts(ctx context.Context, p desk.Principal, c *desk.Contact, do func([]*desk.Attempt) error) error {
	return each(ctx, func(after desk.ID) ([]*desk.Attempt, bool, error) {
		return a.Store.AttemptsOf(ctx, p.Workspace(), c.ID, c.Numbers(), after, some)
	}, func(at *desk.Attempt) desk.ID { return at.ID }, do)
}

// Rows calls do for pages of the rows of broadcasts that name a contact or only its number.
func (a *Service) Rows(ctx context.Context, p desk.Principal, c *desk.Contact, do func([]*desk.BroadcastRow) error) error {
	return each(ctx, func(after desk.RowRef) ([]*desk.BroadcastRow, bool, error) {
		return a.Store.RowsOf(ctx, p.Workspace(), c.ID, c.Numbers(), after, few)
	}, func(r *desk.BroadcastRow) desk.RowRef { return desk.RowRef{Broadcast: r.Broadcast, Row: r.ID} }, do)
}

// few is how many short records of a contact a page has, and some how many that may be longer.
const few, some = 500, 50

// Responses calls do for pages of the responses of endpoints to events of a contact.
func (a *Service) Responses(ctx context.Context, p desk.Principal, c *desk.Contact, do func([]desk.EventResponse) error) error {
	parts, err := a.Store.MergedInto(ctx, p.Workspace(), c.ID)
	if err != nil {
		return err
	}
	for _, id := range append(parts, c.ID) {
		if err := each(ctx, func(after desk.EventResponse) ([]desk.EventResponse, bool, error) {
			list, err := a.Store.ResponsesOf(ctx, p.Workspace(), id, after, few)
			return list, len(list) == few, err
		}, func(r desk.EventResponse) desk.EventResponse { return r }, do); err != nil {
			return err
		}
	}
	return nil
}

// Callbacks calls do for pages of the callbacks that name a contact and are still stored.
func (a *Service) Callbacks(ctx context.Context, p desk.Principal, c *desk.Contact, do func([]desk.HeldCallback) error) error {
	people := desk.ProviderHandles([]*desk.Contact{c})
	return each(ctx, func(after desk.HeldCallback) ([]desk.HeldCallback, bool, error) {
		list, err := a.Store.CallbacksOf(ctx, p.Workspace(), people, after, few)
		return list, len(list) == few, err
	}, func(h desk.HeldCallback) desk.HeldCallback { return h }, do)
}
