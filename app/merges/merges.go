// Package merges makes two contacts of one person one, and undoes that. merges.go is the
// service with its lists, merge.go merges, undo.go undoes, conflicts.go is
// what becomes of conflicts of the two.
package merges

import (
	"context"

	"parley/app/cursors"
	"parley/desk"
	"parley/store"
)

// Deps are the parts of a Service. All are required.
type Deps struct {
	Store   store.Store
	Cursors cursors.Sealer
	Now     func() desk.Time
	NewID   func() desk.ID
}

// A Service merges contacts. Its methods are safe for concurrent use.
type Service struct{ Deps }

// New builds a Service.
func New(d Deps) *Service { return &Service{d} }

// Merge returns a merge, or NotFound.
func (a *Service) Merge(ctx context.Context, p desk.Principal, id desk.ID) (*desk.Merge, error) {
	if err := p.Allow(desk.ContactsRead); err != nil {
		return nil, err
	}
	m, err := a.merge(ctx, p.Workspace(), id)
	if err != nil {
		return nil, err
	}
	return a.shown(m), nil
}

func (a *Service) merge(ctx context.Context, ws, id desk.ID) (*desk.Merge, error) {
	found, err := a.Store.MergesByID(ctx, ws, []desk.ID{id})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, noMerge()
	}
	return found[0], nil
}

func noMerge() error { return desk.NotFoundf("no merge in this workspace has this id") }

// shown returns a merge without the values that are kept for an undo, and without all values
// once it can't be undone any more.
func (a *Service) shown(m *desk.Merge) *desk.Merge { return m.Shown(a.Now()) }

// Merges returns a page of merges, newest first, and the cursor of the next page, "" if there
// is none. If a contact is given, they are the merges into it, of it, and of all contacts that
// are part of it. It returns InvalidRequest for a cursor that it did not give out.
func (a *Service) Merges(ctx context.Context, p desk.Principal, contact desk.ID, cursor string, limit int) ([]*desk.Merge, string, error) {
	if err := p.Allow(desk.ContactsRead); err != nil {
		return nil, "", err
	}
	list := cursors.List{Workspace: p.Workspace(), Name: "merges", Filter: contact.String()}
	before, err := a.Cursors.OpenID(list, cursor)
	if err != nil {
		return nil, "", err
	}
	page, next, err := a.Store.Merges(ctx, p.Workspace(), contact, before, limit)
	for i, m := range page {
		page[i] = a.shown(m)
	}
	return page, a.Cursors.SealID(list, next), err
}

// newest returns the newest merge in force of the contact that survived m.
func (a *Service) newest(ctx context.Context, ws desk.ID, m *desk.Merge) (desk.ID, error) {
	var before *desk.ID
	for {
		list, next, err := a.Store.Merges(ctx, ws, m.Into, before, desk.MaxLimit)
		if err != nil {
			return desk.ID{}, err
		}
		for _, other := range list {
			if !other.Survivor.IsZero() && (other.Into == m.Into || other.From == m.Into) {
				return other.ID, nil
			}
		}
		if next == nil {
			return m.ID, nil
		}
		before = next
	}
}

// Forget takes the values of contacts from merges that can't be undone any more, up to limit.
// It returns how many there were.
func (a *Service) Forget(ctx context.Context, ws desk.ID, limit int) (int, error) {
	now, _, err := a.Store.Clock(ctx)
	if err != nil {
		return 0, err
	}
	return a.Store.ForgetMerges(ctx, ws, desk.Ago(desk.UndoMerge, now, a.Now()), limit)
}

// moveAttempts makes unsettled attempts of a contact another one's.
func moveAttempts(tx store.Tx, from, into desk.ID, which func(*desk.Attempt) bool) error {
	list, err := tx.AttemptsTo(from)
	if err != nil {
		return err
	}
	for _, found := range list {
		at, err := tx.Attempt(found.ID) // locks it: another transaction may be settling it
		if err != nil {
			return err
		}
		if at == nil || at.Phase.Settled() || at.Erased || at.Plan.Contact != from || !which(at) {
			continue
		}
		at.Plan.Contact = into
		if err := tx.PutAttempt(at); err != nil {
			return err
		}
	}
	return nil
}

func conversationEvent(id, contact desk.ID, changed []string, actor desk.Actor, now desk.Time) desk.Event {
	return desk.Event{Type: desk.ConversationUpdated, Subject: id, Contact: contact, Actor: actor, At: now, Changed: changed}
}
