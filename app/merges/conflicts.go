package merges

import (
	"slices"

	"parley/desk"
	"parley/store"
)

// renameConflicts puts the surviving contact in the place of the merged one in all conflicts. A
// conflict of just these two is resolved by the merge; two that are of one set now become one. A
// conflict that a merge has resolved stays as it was decided.
func renameConflicts(tx store.Tx, m *desk.Merge, now desk.Time) (events []desk.Event, err error) {
	list, err := tx.ConflictsWith(m.From)
	if err != nil {
		return nil, err
	}
	for _, c := range list {
		if mergeDecided(c) {
			continue
		}
		both := slices.Contains(c.Contacts, m.Into)
		alone := c.Rename(m.From, m.Into)
		if alone {
			if c.Status != desk.ConflictOpen {
				continue
			}
			c.Status = desk.ConflictResolved
			c.Resolution = &desk.Resolution{Decision: desk.ConflictDecision{Action: desk.ConflictMerge, Into: m.Into}, At: now, Actor: m.Actor, Merges: []desk.ID{m.ID}}
			m.Undo.Conflicts = append(m.Undo.Conflicts, c.ID)
			events = append(events, c.Event(desk.ConflictUpdated, m.Actor, now, "status"))
		}
		kept, more, err := putRenamed(tx, c, m.Actor, now)
		if err != nil {
			return nil, err
		}
		if !alone {
			m.Undo.Renamed = append(m.Undo.Renamed, desk.Renamed{Conflict: kept, Both: both || kept != c.ID})
		}
		events = append(events, more...)
	}
	return events, nil
}

// mergeDecided tells whether a conflict was resolved by a merge.
func mergeDecided(c *desk.Conflict) bool {
	return c.Status == desk.ConflictResolved && c.Resolution.Decision.Action == desk.ConflictMerge
}

// putRenamed stores a conflict whose set has changed. If there is one of this set already, they
// become one. It returns the id of the conflict that stays.
func putRenamed(tx store.Tx, c *desk.Conflict, actor desk.Actor, now desk.Time) (kept desk.ID, events []desk.Event, err error) {
	other, err := tx.ConflictOf(c.Key())
	if err != nil {
		return kept, nil, err
	}
	if other == nil || other.ID == c.ID {
		return c.ID, nil, tx.PutConflict(c)
	}
	if other.Add(c) {
		events = append(events, other.Event(desk.ConflictUpdated, actor, now, "status"))
	}
	if err := tx.DropConflict(c.ID); err != nil {
		return kept, nil, err
	}
	return other.ID, events, tx.PutConflict(other)
}

// returnConflicts gives an undone merge's contact its conflicts back, and opens those again that
// the merge has resolved. Conflicts of the other contact with refusals since the merge, or that one of
// from's may have become part of, name both, if they name an identity that from has again.
func returnConflicts(tx store.Tx, m *desk.Merge, from *desk.Contact, actor desk.Actor, now desk.Time) (events []desk.Event, err error) {
	give := func(c *desk.Conflict, both bool) error {
		c.Return(m, both)
		_, more, err := putRenamed(tx, c, actor, now)
		events = append(events, more...)
		return err
	}
	joined := false // a conflict that named from has become one with another conflict
	for _, r := range m.Undo.Renamed {
		c, err := tx.Conflict(r.Conflict)
		if err == nil && c != nil {
			err = give(c, r.Both)
		} else {
			joined = true
		}
		if err != nil {
			return nil, err
		}
	}
	list, err := tx.ConflictsWith(m.Into)
	if err != nil {
		return nil, err
	}
	held := map[desk.Claim]bool{}
	for _, i := range from.Identities() {
		held[i.Claim()] = true
	}
	ofFrom := func(i desk.Identity) bool { return held[i.Claim()] }
	for _, c := range list {
		if c.LastAt < m.At && !joined || mergeDecided(c) || slices.Contains(c.Contacts, m.From) || !slices.ContainsFunc(c.Identities, ofFrom) {
			continue
		}
		if err := give(c, true); err != nil {
			return nil, err
		}
	}
	for _, id := range m.Undo.Conflicts {
		c, err := tx.Conflict(id)
		if err != nil {
			return nil, err
		}
		if c == nil || c.Status != desk.ConflictResolved {
			continue
		}
		var parts []*desk.Merge // of contacts that are still part of another one
		for _, contact := range c.Contacts {
			part, err := tx.MergeOf(contact)
			if err != nil {
				return nil, err
			}
			if part != nil {
				parts = append(parts, part)
				c.Rename(contact, part.Survivor)
			}
		}
		c.Status, c.Resolution = desk.ConflictOpen, nil
		kept, more, err := putRenamed(tx, c, actor, now)
		if err != nil {
			return nil, err
		}
		for _, part := range parts {
			if part.Undo == nil { // it can't be undone any more
				continue
			}
			part.Undo.Renamed = append(part.Undo.Renamed, desk.Renamed{Conflict: kept, Both: true})
			if err := tx.PutMerge(part); err != nil {
				return nil, err
			}
		}
		if kept == c.ID { // otherwise it is gone
			events = append(events, c.Event(desk.ConflictUpdated, actor, now, "status"))
		}
		events = append(events, more...)
	}
	return events, nil
}
