package conflicts

import (
	"context"
	"slices"

	"parley/app/merges"
	"parley/desk"
	"parley/store"
)

// Resolve carries out a decision about a conflict, and returns the conflict. The same decision
// again returns it as it is. Resolve returns InvalidRequest, NotFound, ConflictClosed if it was
// decided otherwise, and the errors of Principal.Still. The refused write is not repeated.
func (a *Service) Resolve(ctx context.Context, p desk.Principal, id desk.ID, d desk.ConflictDecision) (*Named, error) {
	seen, err := a.Store.ConflictsByID(ctx, p.Workspace(), []desk.ID{id})
	if err != nil {
		return nil, err
	}
	err = a.Store.InTx(ctx, p.Workspace(), func(tx store.Tx) error {
		now := a.Now()
		if err := p.Still(tx.Settings(), desk.ContactsMerge, now); err != nil {
			return err
		}
		if len(seen) == 0 {
			return noConflict()
		}
		// As a merge does, this locks the contacts first, then the conflict. Else the two would
		// wait for each other.
		if _, err := tx.Book(desk.Lookup{IDs: seen[0].Contacts, Merges: true}); err != nil {
			return err
		}
		c, err := tx.Conflict(id)
		if err != nil {
			return err
		}
		if done, err := decided(c, &d); done || err != nil {
			return err
		}
		if err := d.Check(c, tx.Settings()); err != nil {
			return err
		}
		c.Status, c.Resolution = desk.ConflictResolved, &desk.Resolution{Decision: d, At: now, Actor: p.Actor}
		var events []desk.Event
		switch d.Action {
		case desk.ConflictDismiss:
			c.Status = desk.ConflictDismissed
		case desk.ConflictMove:
			err = moveIdentity(tx, c, &d, p.Actor, now)
		case desk.ConflictMerge:
			events, err = a.mergeAll(tx, c, &d, p.Actor)
		}
		if err != nil {
			return err
		}
		if err := tx.PutConflict(c); err != nil {
			return err
		}
		return tx.Append(append(events, c.Event(desk.ConflictUpdated, p.Actor, now, "status"))...)
	})
	if err != nil {
		return nil, err
	}
	return a.conflict(ctx, p, id)
}

// decided tells whether the decision was carried out already.
func decided(c *desk.Conflict, d *desk.ConflictDecision) (bool, error) {
	switch {
	case c == nil: // a merge has made it part of another one
		return false, noConflict()
	case c.Status == desk.ConflictOpen:
		return false, nil
	case c.Resolution != nil && c.Resolution.Decision.Equal(d):
		return true, nil
	}
	return false, desk.Errorf(desk.ConflictClosed, "somebody has decided about this conflict already: it is %s", c.Status)
}

// moveIdentity gives an identity to another contact of the conflict.
func moveIdentity(tx store.Tx, c *desk.Conflict, d *desk.ConflictDecision, actor desk.Actor, now desk.Time) error {
	op := &desk.Op{Kind: desk.OpMove, ByID: true, Target: d.To, Remove: []desk.Identity{d.Identity}}
	book, err := tx.Book(op.Lookup())
	if err != nil {
		return err
	}
	if err := held(book, c, d.Identity); err != nil {
		return err
	}
	if _, err := book.Apply(op, actor, now, nil); err != nil {
		return err
	}
	return tx.Flush(book)
}

// Move gives the identity of one contact to another. If an open conflict of the two names the
// identity, this is the decision about it. The same move again changes nothing. Move returns
// InvalidRequest if neither of the two holds the identity, NotFound, and the errors of
// Principal.Still.
func (a *Service) Move(ctx context.Context, p desk.Principal, i desk.Identity, from, to desk.ID) error {
	d := desk.ConflictDecision{Action: desk.ConflictMove, Identity: i, To: to}
	id, err := a.openAbout(ctx, p.Workspace(), &d, from)
	if err != nil {
		return err
	}
	if !id.IsZero() {
		if _, err := a.Resolve(ctx, p, id, d); !desk.IsType(err, desk.ConflictClosed) {
			return err
		}
	}
	return a.Store.InTx(ctx, p.Workspace(), func(tx store.Tx) error {
		now := a.Now()
		if err := p.Still(tx.Settings(), desk.ContactsMerge, now); err != nil {
			return err
		}
		return moveIdentity(tx, &desk.Conflict{Contacts: []desk.ID{from, to}}, &d, p.Actor, now)
	})
}

// openAbout returns the newest open conflict that a move from a contact would resolve, or the
// zero ID.
func (a *Service) openAbout(ctx context.Context, ws desk.ID, d *desk.ConflictDecision, from desk.ID) (found desk.ID, err error) {
	const page = 100
	for after, more := (desk.ID{}), true; more; {
		list, err := a.Store.ConflictsOf(ctx, ws, d.To, after, page)
		if err != nil {
			return found, err
		}
		for _, c := range list {
			if c.Status == desk.ConflictOpen && slices.Contains(c.Contacts, from) && d.Check(c, nil) == nil {
				found = c.ID
			}
			after = c.ID
		}
		more = len(list) == page
	}
	return found, nil
}

// held refuses an identity that no contact of the conflict holds now.
func held(book *desk.Book, c *desk.Conflict, i desk.Identity) error {
	holder := book.Oldest(i)
	if book.Free(i) || holder == nil || !slices.Contains(c.Contacts, holder.ID) {
		return desk.InvalidAt("/identity", "none of these contacts holds it now")
	}
	return nil
}

// mergeAll merges all contacts of the conflict into one, and returns the events.
func (a *Service) mergeAll(tx store.Tx, c *desk.Conflict, d *desk.ConflictDecision, actor desk.Actor) ([]desk.Event, error) {
	if err := tx.PutConflict(c); err != nil { // so that the merges leave it as it is
		return nil, err
	}
	var events []desk.Event
	var last *desk.Merge
	for _, from := range c.Contacts {
		if from == d.Into {
			continue
		}
		m, more, err := a.Merges.In(tx, actor, merges.Request{Into: d.Into, From: from, Take: d.Take})
		if err != nil {
			return nil, err
		}
		events, last = append(events, more...), m
		c.Resolution.Merges = append(c.Resolution.Merges, m.ID)
	}
	last.Undo.Conflicts = append(last.Undo.Conflicts, c.ID)
	if err := tx.PutMerge(last); err != nil {
		return nil, err
	}
	slices.SortStableFunc(events, func(x, y desk.Event) int { return order(x.Type) - order(y.Type) })
	return events, nil
}

// order is the place of an event in one change (contract-events §1).
func order(t desk.EventType) int {
	return slices.Index([]string{"conversation", "merge", "conflict"}, t.Kind())
}

// Try is Resolve as a dry run: it stores nothing and takes no lock. The resolution has no time,
// and no merges.
func (a *Service) Try(ctx context.Context, p desk.Principal, id desk.ID, d desk.ConflictDecision) (*Named, error) {
	c, err := a.conflict(ctx, p, id)
	if err != nil {
		return nil, err
	}
	if done, err := decided(c.Conflict, &d); done || err != nil {
		return c, err
	}
	if err := d.Check(c.Conflict, p.Settings); err != nil {
		return nil, err
	}
	switch d.Action {
	case desk.ConflictMove:
		op := &desk.Op{Kind: desk.OpMove, ByID: true, Target: d.To, Remove: []desk.Identity{d.Identity}}
		book, err := a.Store.Book(ctx, p.Workspace(), op.Lookup())
		if err != nil {
			return nil, err
		}
		if err := held(book, c.Conflict, d.Identity); err != nil {
			return nil, err
		}
		if _, err := book.Apply(op, p.Actor, a.Now(), nil); err != nil {
			return nil, err
		}
	case desk.ConflictMerge:
		var list []merges.Request
		for _, from := range c.Contacts {
			if from != d.Into {
				list = append(list, merges.Request{Into: d.Into, From: from, Take: d.Take})
			}
		}
		book, err := a.Merges.TryAll(ctx, p, list)
		if err != nil {
			return nil, err
		}
		clear(c.Names) // those that are merged have none
		if into := book.Contact(d.Into); into != nil {
			c.Names[into.ID] = into.Name
		}
	}
	c.Status, c.Resolution = desk.ConflictResolved, &desk.Resolution{Decision: d, Actor: p.Actor}
	if d.Action == desk.ConflictDismiss {
		c.Status = desk.ConflictDismissed
	}
	return c, nil
}
