package merges

import (
	"context"
	"maps"
	"slices"

	"parley/desk"
	"parley/store"
)

// Undo undoes a merge, and returns its record. An undone merge is returned as it is. Undo
// returns NotFound, UndoExpired after desk.UndoMerge, UndoBlocked if another merge has to be
// undone first, and the errors of Principal.Still.
func (a *Service) Undo(ctx context.Context, p desk.Principal, id desk.ID) (m *desk.Merge, err error) {
	seen, err := a.Store.MergesByID(ctx, p.Workspace(), []desk.ID{id})
	if err != nil {
		return nil, err
	}
	err = a.Store.InTx(ctx, p.Workspace(), func(tx store.Tx) error {
		if err := p.Still(tx.Settings(), desk.ContactsMerge, a.Now()); err != nil {
			return err
		}
		if len(seen) == 0 {
			return noMerge()
		}
		// As a merge does, this locks the contacts first, then the record. Else the two would
		// wait for each other.
		book, err := tx.Book(seen[0].UndoLookup())
		if err != nil {
			return err
		}
		if m, err = tx.Merge(id); err != nil {
			return err
		}
		switch {
		case m == nil:
			return noMerge()
		case m.UndoneAt != 0:
			return nil
		case m.Expired(desk.Ago(0, tx.Now(), a.Now())):
			return expired()
		}
		op := undoOp(m)
		newest, err := tx.NewestMerge(m.Into)
		if err != nil {
			return err
		}
		if newest != m.ID {
			return blocked(newest)
		}
		now := a.Now()
		outcome, err := book.Apply(op, p.Actor, now, nil)
		if err != nil {
			return err
		}
		m = outcome.Merge
		if err := tx.Flush(book); err != nil {
			return err
		}
		from := book.Contact(m.From)
		events, err := moveBack(tx, m, from, p.Actor, now)
		if err != nil {
			return err
		}
		m.UndoneAt, m.Survivor = now, desk.ID{}
		kept := *m
		kept.Undo = &desk.Undo{} // the values are needed no more
		if err := tx.PutMerge(&kept); err != nil {
			return err
		}
		conflicts, err := returnConflicts(tx, m, from, p.Actor, now)
		if err != nil {
			return err
		}
		return tx.Append(append(append(events, m.Event(desk.MergeUndone, p.Actor, now)), conflicts...)...)
	})
	if err != nil {
		return nil, err
	}
	return a.shown(m), nil
}

// Separate undoes the merges by which a contact is part of another one, so that it is there again.
// Merges that are newer are undone first. It returns UndoExpired if one can't be undone any more.
func (a *Service) Separate(ctx context.Context, p desk.Principal, contact desk.ID) error {
	for {
		of, err := a.Store.Merged(ctx, p.Workspace(), []desk.ID{contact})
		next := of[contact].Merge
		if err != nil || next.IsZero() {
			return err
		}
		_, err = a.Undo(ctx, p, next)
		for desk.IsType(err, desk.UndoBlocked) {
			_, err = a.Undo(ctx, p, desk.AsError(err).Details.(desk.BlockedUndo).Merge)
		}
		if desk.IsType(err, desk.UndoExpired) {
			return desk.Errorf(desk.UndoExpired, "the contact %s is part of %s, and a merge can't be undone any more after %d days: delete that contact, which has its data", contact, of[contact].Into, int(desk.UndoMerge.Hours()/24))
		}
		if err != nil {
			return err
		}
	}
}

func undoOp(m *desk.Merge) *desk.Op {
	return &desk.Op{Kind: desk.OpUnmerge, ByID: true, Target: m.Into, Unmerge: m}
}

func expired() error {
	return desk.Errorf(desk.UndoExpired, "a merge can be undone for %d days, and these are over", int(desk.UndoMerge.Hours()/24))
}

func blocked(by desk.ID) error {
	e := desk.Errorf(desk.UndoBlocked, "a newer merge of this contact comes first: undo it")
	e.Details = desk.BlockedUndo{Merge: by}
	return e
}

// moveBack gives the merged contact back what it brought, and returns the events of the
// conversations.
func moveBack(tx store.Tx, m *desk.Merge, from *desk.Contact, actor desk.Actor, now desk.Time) ([]desk.Event, error) {
	u := m.Undo
	if err := moveAttempts(tx, m.Into, m.From, func(at *desk.Attempt) bool { return belongs(at, from, u.Conversations) }); err != nil {
		return nil, err
	}
	if err := tx.ReturnRows(u.Rows, m.From); err != nil {
		return nil, err
	}
	moved, err := tx.MoveConversations(m.Into, m.From, u.Conversations, from.Numbers(), u.Merges)
	if err != nil {
		return nil, err
	}
	if len(moved) < len(u.Conversations) {
		m.NotRestored = append(m.NotRestored, desk.NotRestored{Field: "conversations", Reason: desk.RestoreGone})
	}
	changed := map[desk.ID][]string{}
	for _, id := range moved {
		changed[id] = []string{"contact_id"}
	}
	contacts := map[desk.ID]desk.ID{}
	for _, id := range m.Moved.Closed {
		c, err := reopen(tx, id)
		if err != nil {
			return nil, err
		}
		if c == nil {
			m.NotRestored = addOnce(m.NotRestored, desk.NotRestored{Field: "conversations", Reason: desk.RestoreChanged})
			continue
		}
		changed[id], contacts[id] = append(changed[id], "status"), c.ContactID
	}
	if err := separateAll(tx, m); err != nil {
		return nil, err
	}
	var events []desk.Event
	for _, id := range sorted(changed) {
		contact, known := contacts[id]
		if !known {
			contact = m.From
		}
		events = append(events, conversationEvent(id, contact, changed[id], actor, now))
	}
	return events, nil
}

// belongs tells whether an unsettled attempt is of the merged contact: a reply by its
// conversation, a template by the number.
func belongs(at *desk.Attempt, from *desk.Contact, conversations []desk.ID) bool {
	if at.Plan.Reply != nil {
		return slices.Contains(conversations, at.Plan.Conversation)
	}
	return slices.Contains(from.Numbers(), at.Plan.Canonical())
}

// reopen opens a conversation that a merge has closed. It returns nil if the conversation is
// not closed any more, or if another one is open.
func reopen(tx store.Tx, id desk.ID) (*desk.Conversation, error) {
	c, err := tx.Conversation(id)
	if err != nil || c == nil || c.Status != desk.StatusClosed {
		return nil, err
	}
	other, err := tx.OpenConversation(c.ChannelID, c.ContactID)
	if err != nil || other != nil {
		return nil, err
	}
	c.Status = desk.StatusOpen
	if tx.Settings().Member(c.AssignedMember) == nil {
		c.Unassign() // its assignee was removed meanwhile
	}
	return c, tx.PutConversation(c)
}

// separateAll gives both contacts their windows: on the channels of the merge, and on those on
// which somebody has written for the first time since.
func separateAll(tx store.Tx, m *desk.Merge) error {
	now, err := tx.WindowsOf(m.Into)
	if err != nil {
		return err
	}
	for _, w := range m.Undo.Windows {
		delete(now, w.Channel)
		if err := separate(tx, m, &w); err != nil {
			return err
		}
	}
	for _, channel := range sorted(now) {
		if err := separate(tx, m, &desk.MergedWindow{Channel: channel}); err != nil {
			return err
		}
	}
	return nil
}

// separate gives both contacts their windows of a channel.
func separate(tx store.Tx, m *desk.Merge, w *desk.MergedWindow) error {
	now, err := tx.Window(w.Channel, m.Into)
	if err != nil {
		return err
	}
	var heard [2]desk.Time
	if now.OpenedAt > w.Both.OpenedAt {
		for i, contact := range []desk.ID{m.Into, m.From} {
			if heard[i], err = tx.HeardSince(w.Channel, contact, w.Both.OpenedAt); err != nil {
				return err
			}
		}
	}
	into, from := w.Apart(now, heard[0], heard[1])
	if from != (desk.Window{}) {
		if err := tx.PutWindow(w.Channel, m.From, from); err != nil {
			return err
		}
	}
	if into == (desk.Window{}) {
		return tx.DropWindow(w.Channel, m.Into)
	}
	return tx.PutWindow(w.Channel, m.Into, into)
}

func addOnce(list []desk.NotRestored, v desk.NotRestored) []desk.NotRestored {
	if slices.Contains(list, v) {
		return list
	}
	return append(list, v)
}

// sorted returns the keys of a map in order.
func sorted[V any](m map[desk.ID]V) []desk.ID {
	return slices.SortedFunc(maps.Keys(m), desk.ID.Compare)
}

// TryUndo is Undo as a dry run: it stores nothing and takes no lock.
func (a *Service) TryUndo(ctx context.Context, p desk.Principal, id desk.ID) (*desk.Merge, error) {
	ws := p.Workspace()
	m, err := a.merge(ctx, ws, id)
	switch {
	case err != nil:
		return nil, err
	case m.UndoneAt != 0:
		return a.shown(m), nil
	case m.Expired(a.Now()):
		return nil, expired()
	}
	newest, err := a.newest(ctx, ws, m)
	if err != nil {
		return nil, err
	}
	if newest != m.ID {
		return nil, blocked(newest)
	}
	book, err := a.Store.Book(ctx, ws, m.UndoLookup())
	if err != nil {
		return nil, err
	}
	outcome, err := book.Apply(undoOp(m), p.Actor, a.Now(), nil)
	if err != nil {
		return nil, err
	}
	tried := outcome.Merge
	there, err := a.Store.CountConversationsOf(ctx, ws, m.Into, m.Undo.Conversations)
	if err != nil {
		return nil, err
	}
	if there < len(m.Undo.Conversations) {
		tried.NotRestored = append(tried.NotRestored, desk.NotRestored{Field: "conversations", Reason: desk.RestoreGone})
	}
	for _, id := range m.Moved.Closed {
		reopens, err := a.wouldReopen(ctx, ws, m, id)
		if err != nil {
			return nil, err
		}
		if !reopens {
			tried.NotRestored = addOnce(tried.NotRestored, desk.NotRestored{Field: "conversations", Reason: desk.RestoreChanged})
		}
	}
	return a.shown(tried), nil
}

// wouldReopen tells whether an undo would open a conversation that the merge has closed.
func (a *Service) wouldReopen(ctx context.Context, ws desk.ID, m *desk.Merge, id desk.ID) (bool, error) {
	c, err := a.Store.Conversation(ctx, ws, id)
	if err != nil || c == nil || c.Status != desk.StatusClosed {
		return false, err
	}
	open, err := store.OpenConversation(ctx, a.Store, ws, c.ChannelID, m.Into)
	if err != nil || open == nil {
		return err == nil, err
	}
	returns := func(id desk.ID) bool { return slices.Contains(m.Undo.Conversations, id) }
	return returns(open.ID) != returns(id), nil // they will be of different contacts
}
