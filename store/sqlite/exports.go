package sqlite

import (
	"context"

	"parley/desk"
	"parley/store"
)

const (
	contactsAfterQuery = `SELECT w.settings_version, ` + contactColumns + ` FROM contacts c JOIN workspaces w ON w.id = c.workspace_id
		WHERE c.workspace_id = ? AND c.id > ? ORDER BY c.id LIMIT +?`
	conversationsAfterQuery = `SELECT ` + conversationColumns + ` FROM conversations WHERE workspace_id = ? AND id > ? ORDER BY id LIMIT +?`
	messagesAfterQuery      = `SELECT ` + messageColumns + contactOfMessage + ` FROM messages m
		WHERE workspace_id = ? AND (conversation_id, ts, id) > (?, ?, ?) ORDER BY conversation_id, ts, id LIMIT +?`
	notesAfterQuery = `SELECT ` + noteColumns + `, (SELECT contact_id FROM conversations c WHERE c.workspace_id = n.workspace_id AND c.id = n.conversation_id)
		FROM notes n INDEXED BY notes_exported WHERE workspace_id = ? AND id > ? ORDER BY id LIMIT +?`
	countOptOutsQuery = `SELECT count(*) FROM opt_outs WHERE workspace_id = ? AND since > 0`
)

// ContactsAfter returns contacts in the order of ids.
func (s *Store) ContactsAfter(ctx context.Context, ws, after desk.ID, limit int) (list []*desk.Contact, more bool, err error) {
	err = s.read(ctx, int64(pointRead+limit), func(c conn) error { // contacts with neighbouring ids lie side by side
		page, next, err := s.contactPage(c, ws, c.stmt(contactsAfterQuery).id(ws).id(after).int(int64(limit)+1), limit)
		list, more = page, next != nil
		return err
	})
	return list, more, err
}

// ConversationsAfter returns conversations in the order of ids.
func (s *Store) ConversationsAfter(ctx context.Context, ws, after desk.ID, limit int) (list []*desk.Conversation, more bool, err error) {
	err = s.read(ctx, int64(pointRead+limit), func(c conn) error {
		found, err := all("conversations", c.stmt(conversationsAfterQuery).id(ws).id(after).int(int64(limit)+1), readConversation)
		list, more = found[:min(len(found), limit)], len(found) > limit
		return err
	})
	return list, more, err
}

// MessagesAfter returns messages in the order of their keys.
func (s *Store) MessagesAfter(ctx context.Context, ws desk.ID, after store.MessageKey, limit int) (list []*desk.Message, more bool, err error) {
	err = s.read(ctx, int64(pointRead+limit), func(c conn) error {
		rows := c.stmt(messagesAfterQuery).id(ws).id(after.Conversation).time(after.TS).id(after.ID).int(int64(limit) + 1)
		size := desk.NewPageSize(limit)
		for !more && rows.next() {
			if m := readOneMessage(&rows); size.Add(m.ListBytes()) {
				list = append(list, m)
			} else {
				more = true
			}
		}
		if err := rows.done(); err != nil {
			return failed("messages", err)
		}
		return attach(c, ws, list)
	})
	return list, more, err
}

// NotesAfter returns notes in the order of ids.
func (s *Store) NotesAfter(ctx context.Context, ws, after desk.ID, limit int) (list []*desk.Note, more bool, err error) {
	err = s.read(ctx, int64(pointRead*limit), func(c conn) error {
		rows := c.stmt(notesAfterQuery).id(ws).id(after).int(int64(limit) + 1)
		size := desk.NewPageSize(limit)
		for !more && rows.next() {
			n := readNote(&rows)
			n.ContactID = rows.readID()
			if more = !size.Add(n.ListBytes()); !more {
				list = append(list, n)
			}
		}
		return failed("notes", rows.done())
	})
	return list, more, err
}

// CountOptOuts returns for how many handles an opt-out is stored.
func (s *Store) CountOptOuts(ctx context.Context, ws desk.ID) (n int, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		count, err := one("count opt-outs", c.stmt(countOptOutsQuery).id(ws), (*stmt).readInt)
		n = int(count)
		return err
	})
	return n, err
}
