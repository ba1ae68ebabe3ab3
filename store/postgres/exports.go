package postgres

import (
	"context"

	"parley/desk"
	"parley/store"

	"github.com/jackc/pgx/v5"
)

const (
	contactsAfterLimit      = `SELECT *, octet_length(note) + octet_length(attributes) + octet_length(further) AS bytes FROM contacts WHERE workspace_id = $1 AND id > $2 ORDER BY id LIMIT $3`
	conversationsAfterQuery = `SELECT ` + conversationColumns + ` FROM conversations WHERE workspace_id = $1 AND id > $2 ORDER BY id LIMIT $3`
	messagesAfterLimit      = `SELECT *, octet_length(text) + octet_length(failure) + coalesce(octet_length(author), 0) + coalesce(octet_length(content), 0) AS bytes FROM messages
	WHERE workspace_id = $1 AND (conversation_id, ts, id) > ($2, $3, $4) ORDER BY conversation_id, ts, id LIMIT $5`
	notesAfterLimit   = `SELECT *, octet_length(text) AS bytes FROM notes WHERE workspace_id = $1 AND id > $2 ORDER BY id LIMIT $3`
	countOptOutsQuery = `SELECT count(*) FROM opt_outs WHERE workspace_id = $1 AND since > 0`
)

var (
	contactsAfterQuery = `SELECT ` + contactColumns + `, c.there FROM (` + upToPage(contactsAfterLimit, `id`) + `) c JOIN workspaces w ON w.id = $1 ORDER BY c.id`
	messagesAfterQuery = `SELECT ` + messageColumns + contactOfMessage + `, there FROM (` + upToPage(messagesAfterLimit, `conversation_id, ts, id`) + `) m ORDER BY conversation_id, ts, id`
	notesAfterQuery    = `SELECT ` + noteColumns + `, (SELECT contact_id FROM conversations c WHERE c.workspace_id = n.workspace_id AND c.id = n.conversation_id), there
	FROM (` + upToPage(notesAfterLimit, `id`) + `) n ORDER BY id`
)

// ContactsAfter returns contacts in the order of ids.
func (s *Store) ContactsAfter(ctx context.Context, ws, after desk.ID, limit int) (list []*desk.Contact, more bool, err error) {
	list, next, err := s.contactPage(ctx, ws, limit, contactsAfterQuery, []any{uuid(ws), uuid(after), limit + 1})
	return list, next != nil, err
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
func (s *Store) CountOptOuts(ctx context.Context, ws desk.ID) (n int, err error) {
	err = s.read(ctx, func(p *pipe) error {
		n, err = one(p, "count opt-outs", func(row pgx.Row) (n int, err error) { return n, row.Scan(&n) }, countOptOutsQuery, uuid(ws))
		return err
	})
	return n, err
}
