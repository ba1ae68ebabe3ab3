package merges

import (
	"context"
	"slices"

	"parley/desk"
	"parley/store"
)

// A Request asks to merge the contact From into another one. Take names the fields whose value
// is From's, if both have one.
type Request struct {
	Into, From desk.ID
	Take       []string
}

func (r *Request) op() *desk.Op {
	return &desk.Op{Kind: desk.OpMerge, ByID: true, Target: r.Into, From: r.From, Take: r.Take}
}

// check refuses a request that is wrong whatever is stored.
func (r *Request) check(s *desk.Settings) error {
	if r.Into == r.From && !r.Into.IsZero() { // two ids that can't be read are not the same
		return desk.InvalidAt("/from", "this is the contact itself: name another one")
	}
	return desk.CheckTake(r.Take, s)
}

// Do merges one contact into another, and returns the record. The same merge again, while it
// is in force, returns the same record. It returns InvalidRequest, NotFound if one of the
// contacts does not exist, and the errors of Principal.Still.
func (a *Service) Do(ctx context.Context, p desk.Principal, r Request) (m *desk.Merge, err error) {
	err = a.Store.InTx(ctx, p.Workspace(), func(tx store.Tx) error {
		if err := p.Still(tx.Settings(), desk.ContactsMerge, a.Now()); err != nil {
			return err
		}
		var events []desk.Event
		if m, events, err = a.In(tx, p.Actor, r); err != nil {
			return err
		}
		return tx.Append(events...)
	})
	if err != nil {
		return nil, err
	}
	return a.shown(m), nil
}

// In is Do within a transaction. It also returns the events that the caller appends; those of
// the contacts are in the feed already.
func (a *Service) In(tx store.Tx, actor desk.Actor, r Request) (*desk.Merge, []desk.Event, error) {
	if err := r.check(tx.Settings()); err != nil {
		return nil, nil, err
	}
	op, now := r.op(), a.Now()
	book, err := tx.Book(op.Lookup())
	if err != nil {
		return nil, nil, err
	}
	if known, err := inForce(tx, book, r); known != nil || err != nil {
		return known, nil, err
	}
	outcome, err := book.Apply(op, actor, now, nil)
	if err != nil {
		return nil, nil, err
	}
	parts, files, err := tx.Parts(r.From, desk.MaxMerged+1)
	if err != nil {
		return nil, nil, err
	}
	if err := few(len(parts), files); err != nil {
		return nil, nil, err
	}
	m := outcome.Merge
	m.ID = a.NewID()
	if err := tx.Flush(book); err != nil {
		return nil, nil, err
	}
	events, err := move(tx, m, parts, now)
	if err != nil {
		return nil, nil, err
	}
	conflicts, err := renameConflicts(tx, m, now)
	if err != nil {
		return nil, nil, err
	}
	if err := tx.PutMerge(m); err != nil {
		return nil, nil, err
	}
	return m, append(append(events, m.Event(desk.MergeCreated, actor, now)), conflicts...), nil
}

// inForce returns the merge that the request asks for, if it was made already.
func inForce(tx store.Tx, book *desk.Book, r Request) (*desk.Merge, error) {
	if book.Contact(r.Into) == nil || book.Contact(r.From) != nil {
		return nil, nil
	}
	m, err := tx.MergeOf(r.From)
	if err != nil || m == nil || m.Into != r.Into {
		return nil, err
	}
	return m, nil
}

// few refuses to merge a contact that has too much.
func few(conversations, files int) error {
	if conversations > desk.MaxMerged || files > desk.MaxMerged {
		return desk.InvalidAt("/from", "a contact with more than %d conversations or %d files can't be merged into another one: merge the other one into it", desk.MaxMerged, desk.MaxMerged)
	}
	return nil
}

// move makes everything of the merged contact the surviving one's, and returns the events of
// the conversations.
func move(tx store.Tx, m *desk.Merge, parts []store.Part, now desk.Time) ([]desk.Event, error) {
	closed := map[desk.ID]bool{}
	var events []desk.Event
	for _, part := range parts {
		m.Undo.Conversations = append(m.Undo.Conversations, part.ID)
		if !part.Open {
			continue
		}
		loser, err := closeOne(tx, part.Channel, m)
		if err != nil {
			return nil, err
		}
		if loser != nil {
			m.Moved.Closed, closed[loser.ID] = append(m.Moved.Closed, loser.ID), true
			if loser.ContactID == m.Into {
				events = append(events, conversationEvent(loser.ID, m.Into, []string{"status"}, m.Actor, now))
			}
		}
	}
	m.Moved.Conversations = len(parts)
	if err := moveWindows(tx, m); err != nil {
		return nil, err
	}
	if err := moveAttempts(tx, m.From, m.Into, func(*desk.Attempt) bool { return true }); err != nil {
		return nil, err
	}
	var err error
	if m.Undo.Merges, err = tx.MoveContact(m.From, m.Into); err != nil {
		return nil, err
	}
	if m.Undo.Rows, err = tx.MoveRows(m.From, m.Into); err != nil {
		return nil, err
	}
	for _, part := range parts {
		changed := []string{"contact_id"}
		if closed[part.ID] {
			changed = append(changed, "status")
		}
		events = append(events, conversationEvent(part.ID, m.Into, changed, m.Actor, now))
	}
	return events, nil
}

// closeOne closes one of the two open conversations that the contacts have on a channel, and
// returns it; nil if only one of them has an open one.
func closeOne(tx store.Tx, channel desk.ID, m *desk.Merge) (*desk.Conversation, error) {
	one, err := tx.OpenConversation(channel, m.From)
	if err != nil || one == nil {
		return nil, err
	}
	other, err := tx.OpenConversation(channel, m.Into)
	if err != nil || other == nil {
		return nil, err
	}
	if one.StaysOpen(other) {
		one = other
	}
	one.Status = desk.StatusClosed
	return one, tx.PutConversation(one)
}

// moveWindows gives the surviving contact the windows of both.
func moveWindows(tx store.Tx, m *desk.Merge) error {
	from, err := tx.WindowsOf(m.From)
	if err != nil {
		return err
	}
	into, err := tx.WindowsOf(m.Into)
	if err != nil {
		return err
	}
	for channel := range into {
		if _, both := from[channel]; !both {
			from[channel] = desk.Window{}
		}
	}
	for _, channel := range sorted(from) {
		w := desk.MergedWindow{Channel: channel, Into: into[channel], From: from[channel]}
		w.Both = w.Into.With(w.From)
		m.Undo.Windows = append(m.Undo.Windows, w)
		if w.Both != w.Into {
			if err := tx.PutWindow(channel, m.Into, w.Both); err != nil {
				return err
			}
		}
		if w.From != (desk.Window{}) {
			if err := tx.DropWindow(channel, m.From); err != nil {
				return err
			}
		}
	}
	return nil
}

// Try is Do as a dry run (contract-data §1): it stores nothing and takes no lock. The record
// has neither an id nor a time, unless the merge is in force already.
func (a *Service) Try(ctx context.Context, p desk.Principal, r Request) (*desk.Merge, error) {
	if err := r.check(p.Settings); err != nil {
		return nil, err
	}
	op, ws := r.op(), p.Workspace()
	book, err := a.Store.Book(ctx, ws, op.Lookup())
	if err != nil {
		return nil, err
	}
	if book.Contact(r.Into) != nil && book.Contact(r.From) == nil {
		of, err := a.Store.Merged(ctx, ws, []desk.ID{r.From})
		if err != nil {
			return nil, err
		}
		if known := of[r.From]; !known.Merge.IsZero() {
			m, err := a.merge(ctx, ws, known.Merge)
			if err != nil {
				return nil, err
			}
			if m.Into == r.Into {
				return a.shown(m), nil
			}
		}
	}
	outcome, err := book.Apply(op, p.Actor, a.Now(), nil)
	if err != nil {
		return nil, err
	}
	conversations, files, err := a.Store.CountParts(ctx, ws, r.From, desk.MaxMerged+1)
	if err != nil {
		return nil, err
	}
	if err := few(conversations, files); err != nil {
		return nil, err
	}
	m := *outcome.Merge
	m.At, m.Undo, m.Moved.Conversations = 0, nil, conversations
	var open []*desk.Conversation
	for _, channel := range p.Settings.Channels() {
		one, err := store.OpenConversation(ctx, a.Store, ws, channel.ID, r.From)
		if err != nil {
			return nil, err
		}
		if one != nil {
			open = append(open, one)
		}
	}
	slices.SortFunc(open, func(one, other *desk.Conversation) int { return one.ID.Compare(other.ID) }) // as a merge goes through them
	for _, one := range open {
		other, err := store.OpenConversation(ctx, a.Store, ws, one.ChannelID, r.Into)
		if err != nil {
			return nil, err
		}
		if other == nil {
			continue
		}
		if one.StaysOpen(other) {
			one = other
		}
		m.Moved.Closed = append(m.Moved.Closed, one.ID)
	}
	return &m, nil
}

// TryAll tries several merges, one after the other: each has what those before it brought.
func (a *Service) TryAll(ctx context.Context, p desk.Principal, list []Request) (*desk.Book, error) {
	var all desk.Lookup
	var ops []*desk.Op
	for _, r := range list {
		m, err := a.Try(ctx, p, r)
		if err != nil {
			return nil, err
		}
		if m.ID.IsZero() { // it is not in force yet
			op := r.op()
			named := op.Lookup()
			all.IDs, all.Identities, ops = append(all.IDs, named.IDs...), append(all.Identities, named.Identities...), append(ops, op)
		}
	}
	book, err := a.Store.Book(ctx, p.Workspace(), all)
	if err != nil {
		return nil, err
	}
	for _, op := range ops {
		if _, err := book.Apply(op, p.Actor, a.Now(), nil); err != nil {
			return nil, err
		}
	}
	return book, nil
}
