package storetest

import (
	"fmt"
	"testing"

	"parley/desk"
	"parley/store"
)

// oldMessages: the oldest messages of a workspace are found by their time. Deleted ones are
// known by their ids at the provider, and rows of broadcasts no longer name them. A
// conversation is deleted only if it is empty.
func oldMessages(t *testing.T, s store.Store) {
	ctx := t.Context()
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	first, second := newConversation(newID(), newID()), newConversation(newID(), newID())
	first.Status, second.Status = desk.StatusClosed, desk.StatusClosed
	var said []*desk.Message
	for n := range 7 {
		c := first
		if n%2 == 1 {
			c = second
		}
		m := newMessage(c)
		m.ExternalID = fmt.Sprint("said ", n)
		if n == 4 {
			m.ExternalID = "" // it is not known
		}
		c.LastMessageAt = m.TS
		said = append(said, m)
	}
	said[1].Direction, said[1].Delivery = desk.Outbound, desk.Sent
	note := &desk.Note{ID: idAt(now()), ConversationID: second.ID, Text: "a note", Author: desk.Author{Type: desk.AuthorMember, ID: newID(), Name: "Ada"}, CreatedAt: now()}
	b := aBroadcast()
	row, beside := aRow(b, "905321112233"), aRow(b, "905321112244")
	for r, m := range map[*desk.BroadcastRow]*desk.Message{row: said[1], beside: said[5]} {
		r.Status, r.Message, r.Conversation = desk.RowSent, m.ID, second.ID
	}
	putBroadcast(t, s, ws, b)
	putRow(t, s, ws, b, row, beside)
	for _, w := range []desk.ID{ws, other} {
		commit(t, s, w, func(tx store.Tx) error {
			if err := tx.PutConversation(first, second); err != nil {
				return err
			}
			for _, m := range said {
				if err := tx.PutMessage(m); err != nil {
					return err
				}
			}
			return tx.PutNote(note)
		})
	}
	old := func(ws desk.ID, before desk.Time, limit int, want ...*desk.Message) {
		t.Helper()
		list, err := s.OldMessages(ctx, ws, before, limit)
		must(t, err)
		equal(t, "old messages", list, want)
	}
	old(ws, said[0].TS, 10)
	old(ws, said[3].TS, 10, said[:3]...)
	old(ws, said[3].TS, 2, said[:2]...)
	old(newID(), said[3].TS, 10)
	conversations := func(status desk.ConversationStatus, before desk.Time, after desk.ConversationPlace, limit int, want ...*desk.Conversation) {
		t.Helper()
		list, err := s.OldConversations(ctx, ws, status, before, after, limit)
		must(t, err)
		equal(t, "old conversations", list, want)
	}
	begin := desk.ConversationPlace{}
	conversations(desk.StatusClosed, said[5].TS, begin, 10)
	conversations(desk.StatusClosed, said[6].TS, begin, 10, second)
	conversations(desk.StatusClosed, said[6].TS+1, begin, 1, second)
	conversations(desk.StatusClosed, said[6].TS+1, second.Place(), 10, first)
	conversations(desk.StatusClosed, said[6].TS+1, first.Place(), 10)
	conversations(desk.StatusArchived, said[6].TS+1, begin, 10)

	drop := func(list ...*desk.Message) {
		t.Helper()
		commit(t, s, ws, func(tx store.Tx) error { return tx.DropMessages(list) })
	}
	empty := func(c *desk.Conversation, want bool) {
		t.Helper()
		commit(t, s, ws, func(tx store.Tx) error {
			if _, err := tx.Conversation(c.ID); err != nil {
				return err
			}
			got, err := tx.DropEmpty(c.ID)
			equal(t, "the conversation was empty", got, want)
			return err
		})
	}
	drop()
	drop(said[:4]...)
	drop(said[0]) // it is deleted already
	old(ws, said[6].TS+1, 10, said[4:]...)
	old(other, said[6].TS+1, 10, said...)
	commit(t, s, ws, func(tx store.Tx) error {
		for n, m := range said {
			known, erased, err := tx.ReceivedMessage(desk.MessageRef{Channel: m.ChannelID, ExternalID: m.ExternalID})
			if err != nil {
				return err
			}
			if erased != (n < 4) || (known != nil) != (n > 4) {
				t.Errorf("message %d is delivered again: %v, deleted %v", n, known, erased)
			}
		}
		rows, err := tx.RowsToChange(b.ID, []desk.ID{row.ID, beside.ID, b.ID})
		if err != nil || len(rows) != 2 {
			t.Errorf("%d rows: %v", len(rows), err)
		}
		for r, named := range map[*desk.BroadcastRow]bool{row: false, beside: true} {
			if now := rows[r.ID]; now == nil || now.Message.IsZero() == named || now.Conversation.IsZero() == named || now.Status != desk.RowSent {
				t.Errorf("row: %+v", now)
			}
		}
		return nil
	})
	empty(first, false)
	empty(second, false)
	drop(said[4:]...)
	empty(first, true)
	empty(first, false)
	empty(second, false) // it has a note
	commit(t, s, ws, func(tx store.Tx) error { _, err := tx.DeleteNote(second.ID, note.ID); return err })
	empty(second, true)
	missing(s.Conversation(ctx, ws, second.ID))(t)
	if c, err := s.Conversation(ctx, other, second.ID); c == nil || err != nil {
		t.Errorf("of another workspace: %v, %v", c, err)
	}
}

// oldNotes: the oldest notes of a workspace are found by the time when they were written.
func oldNotes(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	var written []*desk.Note
	for range 5 {
		n := &desk.Note{ID: newID(), ConversationID: newID(), Text: "a note", Author: desk.Author{Type: desk.AuthorMember, ID: newID(), Name: "Ada"}, CreatedAt: now()}
		written = append(written, n)
		commit(t, s, ws, func(tx store.Tx) error { return tx.PutNote(n) })
	}
	for _, c := range []struct {
		before desk.Time
		limit  int
		want   []*desk.Note
	}{{written[0].CreatedAt, 9, nil}, {written[3].CreatedAt, 9, written[:3]}, {written[4].CreatedAt + 1, 2, written[:2]}} {
		list, err := s.OldNotes(t.Context(), ws, c.before, c.limit)
		must(t, err)
		equal(t, "old notes", list, c.want)
	}
	list, err := s.OldNotes(t.Context(), newID(), now(), 9)
	must(t, err)
	equal(t, "old notes of no workspace", list, []*desk.Note(nil))
}

// unreadAfter: unread messages are counted after a position in their conversation.
func unreadAfter(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	c, beside := newConversation(newID(), newID()), newConversation(newID(), newID())
	var said []*desk.Message
	at := now()
	for n := range 6 {
		m := newMessage(c)
		m.ID, m.TS = desk.ID{byte(n + 1)}, at+desk.Time(n/2)
		if n == 3 {
			m.Direction, m.Delivery = desk.Outbound, desk.Sent
		}
		said = append(said, m)
	}
	commit(t, s, ws, func(tx store.Tx) error {
		for _, m := range append(said[:6:6], newMessage(beside)) {
			if err := tx.PutMessage(m); err != nil {
				return err
			}
		}
		n, err := tx.MarkRead(c.ID, said[1].Place(), 9)
		if err != nil {
			return err
		}
		equal(t, "marked", n, 2)
		for after, want := range map[desk.MessagePlace]int{{}: 3, said[0].Place(): 3, said[1].Place(): 3, said[2].Place(): 2, said[4].Place(): 1, said[5].Place(): 0} {
			got, err := tx.CountUnread(c.ID, after)
			if err != nil {
				return err
			}
			equal(t, fmt.Sprint("unread after ", after), got, want)
		}
		return nil
	})
}
