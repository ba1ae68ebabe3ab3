package postgres

import (
	"context"

	"parley/desk"
	"parley/store"
	"parley/store/internal/stored"

	"github.com/jackc/pgx/v5"
)

const rowsOfContactQuery = `SELECT ` + rowColumns + ` FROM broadcast_rows WHERE workspace_id = $1 AND (broadcast_id, id) > ($4, $5) AND contact_id = $2
	UNION ALL SELECT ` + rowColumns + ` FROM (SELECT DISTINCT unnest($3::text[])) u (n) CROSS JOIN LATERAL
		(SELECT * FROM broadcast_rows WHERE workspace_id = $1 AND (broadcast_id, id) > ($4, $5) AND contact_id IS NULL AND number <> '' AND number = u.n OFFSET 0) r
	ORDER BY broadcast_id, id LIMIT $6`

const (
	contactsAfterLimit      = `SELECT *, octet_length(note) + octet_length(attributes) + octet_length(further) AS bytes FROM contacts WHERE workspace_id = $1 AND id > $2 ORDER BY id LIMIT $3`
	lastContactQuery        = `SELECT id FROM contacts WHERE workspace_id = $1 ORDER BY id DESC LIMIT 1`
	conversationsAfterQuery = `SELECT ` + conversationColumns + ` FROM conversations WHERE workspace_id = $1 AND id > $2 ORDER BY id LIMIT $3`
	messagesAfterLimit      = `SELECT *, octet_length(text) + octet_length(failure) + coalesce(octet_length(author), 0) + coalesce(octet_length(content), 0) AS bytes FROM messages
	WHERE workspace_id = $1 AND (conversation_id, ts, id) > ($2, $3, $4) ORDER BY conversation_id, ts, id LIMIT $5`
	notesAfterLimit  = `SELECT *, octet_length(text) AS bytes FROM notes WHERE workspace_id = $1 AND id > $2 ORDER BY id LIMIT $3`
	responsesOfQuery = `SELECT delivery_id, at, response FROM delivery_responses WHERE workspace_id = $1 AND contact_id = $2 AND (delivery_id, at) > ($3, $4) ORDER BY delivery_id, at LIMIT $5`
	callbacksOfQuery = `SELECT w.received_at, w.id, w.channel_id, octet_length(w.body) FROM (SELECT DISTINCT p.received_at, p.id FROM unnest($2::text[]) u (value) CROSS JOIN LATERAL
			(SELECT received_at, id FROM callback_people WHERE workspace_id = $1 AND value = u.value AND (received_at, id) > ($3, $4) ORDER BY workspace_id, value, received_at, id LIMIT $5) p
		ORDER BY 1, 2 LIMIT $5) p CROSS JOIN LATERAL
		(SELECT * FROM callbacks WHERE workspace_id = $1 AND received_at = p.received_at AND id = p.id OFFSET 0) w ORDER BY 1, 2`
	countOptOutsQuery = `SELECT count(*) FROM opt_outs WHERE workspace_id = $1 AND since > 0`
)

var (
	contactsAfterQuery = `SELECT ` + contactColumns + `, c.there FROM (` + upToPage(contactsAfterLimit, `id`) + `) c JOIN workspaces w ON w.id = $1 ORDER BY c.id`
	messagesAfterQuery = `SELECT ` + messageColumns + contactOfMessage + `, there FROM (` + upToPage(messagesAfterLimit, `conversation_id, ts, id`) + `) m ORDER BY conversation_id, ts, id`
	notesAfterQuery    = `SELECT ` + noteColumns + `, (SELECT contact_id FROM conversations c WHERE c.workspace_id = $1 AND c.id = n.conversation_id), there
	FROM (` + upToPage(notesAfterLimit, `id`) + `) n ORDER BY id`
)

// ContactsAfter returns contacts in the order of ids.
func (s *Store) ContactsAfter(ctx context.Context, ws, after desk.ID, limit int) (list []*desk.Contact, more bool, err error) {
	list, next, err := s.contactPage(ctx, ws, limit, contactsAfterQuery, []any{uuid(ws), uuid(after), limit + 1})
	return list, next != nil, err
}

// LastContact returns the greatest id of a contact.
func (s *Store) LastContact(ctx context.Context, ws desk.ID) (desk.ID, error) {
	return readOne(ctx, s, "last contact", readID, lastContactQuery, uuid(ws))
}

// ConversationsAfter returns conversations in the order of ids.
func (s *Store) ConversationsAfter(ctx context.Context, ws, after desk.ID, limit int) (list []*desk.Conversation, more bool, err error) {
	err = s.read(ctx, func(p *pipe) error {
		found, err := all(p, "conversations", readConversation, conversationsAfterQuery, uuid(ws), uuid(after), limit+1)
		list, more = found[:min(len(found), limit)], len(found) > limit
		return err
	})
	return list, more, err
}

// within returns the records of a page that has limit records and desk.MaxPage bytes at most,
// and whether there are more.
func within[T interface{ ListBytes() int }](found []T, limit, there int) (list []T, more bool) {
	size := desk.NewPageSize(limit)
	for n, v := range found {
		if !size.Add(v.ListBytes()) {
			return found[:n], true
		}
	}
	return found, len(found) < there
}

// MessagesAfter returns messages in the order of their keys.
func (s *Store) MessagesAfter(ctx context.Context, ws desk.ID, after store.MessageKey, limit int) (list []*desk.Message, more bool, err error) {
	err = s.read(ctx, func(p *pipe) error {
		there := 0
		found, err := all(p, "messages", func(row pgx.Row) (*desk.Message, error) {
			var contact desk.ID
			m, err := readMessage(row, into(&contact), &there)
			m.ContactID = contact
			return m, err
		}, messagesAfterQuery, uuid(ws), uuid(after.Conversation), int64(after.TS), uuid(after.ID), limit+1)
		if err != nil {
			return err
		}
		list, more = within(found, limit, there)
		return attach(p, ws, list)
	})
	return list, more, err
}

// NotesAfter returns notes in the order of ids.
func (s *Store) NotesAfter(ctx context.Context, ws, after desk.ID, limit int) (list []*desk.Note, more bool, err error) {
	err = s.read(ctx, func(p *pipe) error {
		there := 0
		found, err := all(p, "notes", func(row pgx.Row) (*desk.Note, error) {
			var contact desk.ID
			n, err := readNote(row, into(&contact), &there)
			n.ContactID = contact
			return n, err
		}, notesAfterQuery, uuid(ws), uuid(after), limit+1)
		list, more = within(found, limit, there)
		return err
	})
	return list, more, err
}

// CountOptOuts returns for how many handles an opt-out is stored.
func (s *Store) CountOptOuts(ctx context.Context, ws desk.ID) (int, error) {
	return readOne(ctx, s, "count opt-outs", func(row pgx.Row) (n int, err error) { return n, row.Scan(&n) }, countOptOutsQuery, uuid(ws))
}

// AttemptsOf returns a page of the unsettled attempts to a contact.
func (s *Store) AttemptsOf(ctx context.Context, ws, contact desk.ID, numbers []string, after desk.ID, limit int) (list []*desk.Attempt, more bool, err error) {
	err = s.read(ctx, func(p *pipe) error {
		page := stored.AttemptPage{Size: desk.NewPageSize(limit)}
		each(p, readAttempt, func(a *desk.Attempt) { page.Add(a) }, attemptsOf(p), uuid(ws), uuids([]desk.ID{contact}), append([]string{}, numbers...), uuid(after), limit+1)
		err := p.send("attempts to a contact")
		list, more = page.List, page.Next != nil
		return err
	})
	return list, more, err
}

// RowsOf returns a page of the rows of broadcasts that name a contact.
func (s *Store) RowsOf(ctx context.Context, ws, contact desk.ID, numbers []string, after store.RowRef, limit int) (list []*desk.BroadcastRow, more bool, err error) {
	err = s.read(ctx, func(p *pipe) error {
		page := stored.RowPage{Size: desk.NewPageSize(limit)}
		p.each(func(row pgx.Row) error {
			r, err := readRow(row)
			if err == nil {
				page.Add(r)
			}
			return err
		}, rowsOfContactQuery, uuid(ws), uuid(contact), append([]string{}, numbers...), uuid(after.Broadcast), uuid(after.Row), limit+1)
		err := p.send("rows of a contact")
		list, more = page.List, page.Next != nil
		return err
	})
	return list, more, err
}

// ResponsesOf returns responses of endpoints to events of a contact.
func (s *Store) ResponsesOf(ctx context.Context, ws, contact desk.ID, after desk.EventResponse, limit int) ([]desk.EventResponse, error) {
	return readAll(ctx, s, "responses", func(row pgx.Row) (r desk.EventResponse, err error) {
		return r, row.Scan(into(&r.Delivery), (*int64)(&r.At), &r.Response)
	}, responsesOfQuery, uuid(ws), uuid(contact), uuid(after.Delivery), int64(after.At), limit)
}

// CallbacksOf returns the callbacks that name one of the people.
func (s *Store) CallbacksOf(ctx context.Context, ws desk.ID, people []string, after desk.HeldCallback, limit int) (list []desk.HeldCallback, err error) {
	if len(people) == 0 {
		return nil, nil
	}
	err = s.read(ctx, func(p *pipe) error {
		list, err = all(p, "callbacks", func(row pgx.Row) (h desk.HeldCallback, err error) {
			return h, row.Scan((*int64)(&h.ReceivedAt), into(&h.ID), into(&h.Channel), &h.Bytes)
		}, callbacksOfQuery, uuid(ws), people, int64(after.ReceivedAt), uuid(after.ID), limit)
		return err
	})
	return list, err
}
