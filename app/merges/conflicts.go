package merges

import (
	"parley/desk"
	"parley/store"
)

// renameConflicts puts the surviving contact in the place of the merged one in all conflicts. A
// conflict of just these two is resolved by the merge; two that are of one set now become one.
func renameConflicts(tx store.Tx, m *desk.Merge, now desk.Time) (events []desk.Event, err error) {
	list, err := tx.ConflictsWith(m.From)
	if err != nil {
		return nil, err
	}
	for _, c := range list {
		if c.Status == desk.ConflictResolved {
			continue
		}
		if c.Rename(m.From, m.Into) {
			if c.Status != desk.ConflictOpen {
				continue
			}
			c.Status = desk.ConflictResolved
			c.Resolution = &desk.Resolution{Decision: desk.ConflictDecision{Action: desk.ConflictMerge, Into: m.Into}, At: now, Actor: m.Actor, Merges: []desk.ID{m.ID}}
			m.Undo.Conflicts = append(m.Undo.Conflicts, c.ID)
			events = append(events, c.Event(desk.ConflictUpdated, m.Actor, now, "status"))
		}
		more, err := putRenamed(tx, c, m.Actor, now)
		if err != nil {
			return nil, err
		}
		events = append(events, more...)
	}
	return events, nil
}

// putRenamed stores a conflict whose set has changed. If there is one of this set already, they
// become one.
func putRenamed(tx store.Tx, c *desk.Conflict, actor desk.Actor, now desk.Time) (events []desk.Event, err error) {
	other, err := tx.ConflictOf(c.Key())
	if err != nil {
		return nil, err
	}
	if other == nil || other.ID == c.ID {
		return nil, tx.PutConflict(c)
	}
	if other.Add(c) {
		events = append(events, other.Event(desk.ConflictUpdated, actor, now, "status"))
	}
	if err := tx.DropConflict(c.ID); err != nil {
		return nil, err
	}
	return events, tx.PutConflict(other)
}

// reopenConflicts opens the conflicts again that a merge has resolved.
func reopenConflicts(tx store.Tx, m *desk.Merge, actor desk.Actor, now desk.Time) (events []desk.Event, err error) {
	for _, id := range m.Undo.Conflicts {
		c, err := tx.Conflict(id)
		if err != nil {
			return nil, err
		}
		if c == nil || c.Status != desk.ConflictResolved {
			continue
		}
		for _, contact := range c.Contacts {
			part, err := tx.MergeOf(contact)
			if err != nil {
				return nil, err
			}
			if part != nil { // it is still part of another one
				c.Rename(contact, part.Survivor)
			}
		}
		c.Status, c.Resolution = desk.ConflictOpen, nil
		more, err := putRenamed(tx, c, actor, now)
		if err != nil {
			return nil, err
		}
		events = append(append(events, c.Event(desk.ConflictUpdated, actor, now, "status")), more...)
	}
	return events, nil
}
