package sqlite

import (
	"context"
	"errors"

	"parley/desk"
	"parley/store"
	"parley/store/internal/stored"
)

const (
	attemptIDsOfQuery = `SELECT a.id FROM attempts a INDEXED BY attempts_unsettled
		WHERE ` + unsettled + ` AND a.phase = 'dispatching' AND a.workspace_id = ?1 AND a.id > ?4 AND (a.contact_id = ?2 OR a.number IN (SELECT value FROM json_each(?3)))
		UNION SELECT a.id FROM attempts a INDEXED BY attempts_contact WHERE a.phase = 'in_doubt' AND a.workspace_id = ?1 AND a.contact_id = ?2 AND a.id > ?4
		UNION SELECT a.id FROM json_each(?3) j CROSS JOIN attempts a INDEXED BY attempts_number
		WHERE a.phase = 'in_doubt' AND a.workspace_id = ?1 AND a.number = j.value AND a.id > ?4 ORDER BY 1 LIMIT +?5`
	rowsOfContactQuery = `SELECT ` + rowColumns + ` FROM broadcast_rows WHERE workspace_id = ?1 AND (broadcast_id, id) IN (
		SELECT broadcast_id, id FROM broadcast_rows INDEXED BY broadcast_rows_contact WHERE workspace_id = ?1 AND contact_id = ?2 AND (broadcast_id, id) > (?4, ?5)
		UNION SELECT r.broadcast_id, r.id FROM json_each(?3) j CROSS JOIN broadcast_rows r INDEXED BY broadcast_rows_number
		WHERE r.workspace_id = ?1 AND r.number = j.value AND r.number <> '' AND r.contact_id IS NULL AND (r.broadcast_id, r.id) > (?4, ?5)
		ORDER BY 1, 2 LIMIT +?6) ORDER BY broadcast_id, id`
)

const (
	contactsAfterQuery = `SELECT w.settings_version, ` + contactColumns + ` FROM contacts c JOIN workspaces w ON w.id = c.workspace_id
		WHERE c.workspace_id = ? AND c.id > ? ORDER BY c.id LIMIT +?`
	lastContactQuery        = `SELECT id FROM contacts WHERE workspace_id = ? ORDER BY id DESC LIMIT 1`
	conversationsAfterQuery = `SELECT ` + conversationColumns + ` FROM conversations WHERE workspace_id = ? AND id > ? ORDER BY id LIMIT +?`
	messagesAfterQuery      = `SELECT ` + messageColumns + contactOfMessage + ` FROM messages m
		WHERE workspace_id = ? AND (conversation_id, ts, id) > (?, ?, ?) ORDER BY conversation_id, ts, id LIMIT +?`
	notesAfterQuery = `SELECT ` + noteColumns + `, (SELECT contact_id FROM conversations c WHERE c.workspace_id = n.workspace_id AND c.id = n.conversation_id)
		FROM notes n INDEXED BY notes_exported WHERE workspace_id = ? AND id > ? ORDER BY id LIMIT +?`
	responsesOfQuery = `SELECT delivery_id, at, response FROM delivery_responses
		WHERE workspace_id = ? AND contact_id = ? AND (delivery_id, at) > (?, ?) ORDER BY delivery_id, at LIMIT +?`
	callbacksOfQuery = `SELECT w.received_at, w.id, w.channel_id, length(w.body) FROM
		(SELECT DISTINCT p.received_at, p.id FROM json_each(?2) j CROSS JOIN callback_people p ON p.workspace_id = ?1 AND p.value = j.value
			WHERE (p.received_at, p.id) > (?3, ?4) ORDER BY 1, 2 LIMIT +?5) p
		CROSS JOIN callbacks w ON w.workspace_id = ?1 AND w.received_at = p.received_at AND w.id = p.id ORDER BY 1, 2`
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

// LastContact returns the greatest id of a contact.
func (s *Store) LastContact(ctx context.Context, ws desk.ID) (id desk.ID, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		id, err = one("last contact", c.stmt(lastContactQuery).id(ws), (*stmt).readID)
		return err
	})
	return id, err
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

// AttemptsOf returns a page of the unsettled attempts to a contact.
func (s *Store) AttemptsOf(ctx context.Context, ws, contact desk.ID, numbers []string, after desk.ID, limit int) (list []*desk.Attempt, more bool, err error) {
	err = s.read(ctx, int64(pointRead*limit), func(c conn) error {
		return c.snapshot(func() error {
			page := stored.AttemptPage{Size: desk.NewPageSize(limit)}
			ids, err := all("attempts to a contact", c.stmt(attemptIDsOfQuery).id(ws).id(contact).json(append([]string{}, numbers...)).id(after).int(int64(limit)+1), (*stmt).readID)
			for _, id := range ids {
				a, e := one("attempt", c.stmt(attemptQuery).id(ws).id(id), readAttempt)
				if err = errors.Join(err, e); err != nil || !page.Add(a) {
					break
				}
			}
			list, more = page.List, page.Next != nil
			return err
		})
	})
	return list, more, err
}

// RowsOf returns a page of the rows of broadcasts that name a contact.
func (s *Store) RowsOf(ctx context.Context, ws, contact desk.ID, numbers []string, after store.RowRef, limit int) (list []*desk.BroadcastRow, more bool, err error) {
	err = s.read(ctx, int64(pointRead*limit), func(c conn) error {
		rows := c.stmt(rowsOfContactQuery).id(ws).id(contact).json(append([]string{}, numbers...)).id(after.Broadcast).id(after.Row).int(int64(limit) + 1)
		page := stored.RowPage{Size: desk.NewPageSize(limit)}
		for rows.next() && page.Add(readRow(&rows)) {
		}
		list, more = page.List, page.Next != nil
		return failed("rows of a contact", rows.done())
	})
	return list, more, err
}

// ResponsesOf returns responses of endpoints to events of a contact.
func (s *Store) ResponsesOf(ctx context.Context, ws, contact desk.ID, after desk.EventResponse, limit int) (list []desk.EventResponse, err error) {
	err = s.read(ctx, int64(limit), func(c conn) error {
		list, err = all("responses", c.stmt(responsesOfQuery).id(ws).id(contact).id(after.Delivery).time(after.At).int(int64(limit)), func(s *stmt) desk.EventResponse {
			return desk.EventResponse{Delivery: s.readID(), At: s.readTime(), Response: s.readText()}
		})
		return err
	})
	return list, err
}

// CallbacksOf returns the callbacks that name one of the people.
func (s *Store) CallbacksOf(ctx context.Context, ws desk.ID, people []string, after desk.HeldCallback, limit int) (list []desk.HeldCallback, err error) {
	if len(people) == 0 {
		return nil, nil
	}
	err = s.read(ctx, int64(pointRead*limit), func(c conn) error {
		list, err = all("callbacks", c.stmt(callbacksOfQuery).id(ws).json(people).time(after.ReceivedAt).id(after.ID).int(int64(limit)), func(s *stmt) desk.HeldCallback {
			return desk.HeldCallback{ReceivedAt: s.readTime(), ID: s.readID(), Channel: s.readID(), Bytes: int(s.readInt())}
		})
		return err
	})
	return list, err
}
