package postgres

import (
	"bytes"
	"context"
	"fmt"
	"math"

	"parley/desk"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// Lists that run newest first begin before this place.
const endOfTime = desk.Time(math.MaxInt64)

var lastID = desk.ID(bytes.Repeat([]byte{0xff}, len(desk.ID{})))

const conversationColumns = `id, channel_id, contact_id, status, assigned_member_id, assigned_via, preview, last_message_at, created_at`

func readConversation(row pgx.Row) (*desk.Conversation, error) {
	var v desk.Conversation
	err := row.Scan(into(&v.ID), into(&v.ChannelID), into(&v.ContactID), (*string)(&v.Status), into(&v.AssignedMember),
		(*string)(&v.AssignedVia), &v.Preview, (*int64)(&v.LastMessageAt), (*int64)(&v.CreatedAt))
	return &v, err
}

const (
	conversationQuery     = `SELECT ` + conversationColumns + ` FROM conversations WHERE workspace_id = $1 AND id = $2`
	openConversationQuery = `SELECT ` + conversationColumns + ` FROM conversations
	WHERE workspace_id = $1 AND channel_id = $2 AND contact_id = $3 AND status = 'open'`
)

// Conversation returns a conversation, or NotFound.
func (s *Store) Conversation(ctx context.Context, ws, id desk.ID) (found *desk.Conversation, err error) {
	err = s.read(ctx, func(p *pipe) error {
		found, err = one(p, "conversation", readConversation, conversationQuery, uuid(ws), uuid(id))
		return err
	})
	if err == nil && found == nil {
		err = desk.NoConversation()
	}
	return found, err
}

// conversationsQuery is the list's query with its arguments.
func conversationsQuery(ws desk.ID, f desk.ConversationFilter, after *desk.ConversationPlace, limit int) (string, []any) {
	args := []any{uuid(ws), int64(after.LastMessageAt), int64(after.CreatedAt), uuid(after.ID), limit}
	query := `SELECT ` + conversationColumns + ` FROM conversations WHERE workspace_id = $1 AND (last_message_at, created_at, id) < ($2, $3, $4)`
	for _, by := range []struct {
		column string
		id     desk.ID
	}{{"assigned_member_id", f.Assignee}, {"channel_id", f.Channel}, {"contact_id", f.Contact}} {
		if !by.id.IsZero() {
			args = append(args, uuid(by.id))
			query += fmt.Sprintf(` AND %s = $%d`, by.column, len(args))
		}
	}
	if f.Unassigned {
		query += ` AND assigned_member_id IS NULL`
	}
	const ordered = ` ORDER BY last_message_at DESC, created_at DESC, id DESC LIMIT $5`
	switch {
	case f.Status != "":
		args = append(args, string(f.Status))
		query += fmt.Sprintf(` AND status = $%d`, len(args))
	case f.Contact.IsZero(): // the indexes are ordered within a status
		each := func(status string) string { return `(` + query + ` AND status = '` + status + `'` + ordered + `)` }
		query = each("open") + ` UNION ALL ` + each("closed") + ` UNION ALL ` + each("archived")
	}
	return query + ordered, args
}

// Conversations returns up to limit conversations that pass the filter and stand
// after the place given, newest first.
func (s *Store) Conversations(ctx context.Context, ws desk.ID, f desk.ConversationFilter, after *desk.ConversationPlace, limit int) (found []*desk.Conversation, err error) {
	if after == nil {
		after = &desk.ConversationPlace{LastMessageAt: endOfTime, CreatedAt: endOfTime, ID: lastID}
	}
	query, args := conversationsQuery(ws, f, after, limit)
	err = s.read(ctx, func(p *pipe) error {
		found, err = all(p, "conversations", readConversation, query, args...)
		return err
	})
	return found, err
}

const putConversationQuery = `INSERT INTO conversations (workspace_id, ` + conversationColumns + `)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
	ON CONFLICT (workspace_id, id) DO UPDATE SET channel_id = excluded.channel_id, contact_id = excluded.contact_id,
	status = excluded.status, assigned_member_id = excluded.assigned_member_id, assigned_via = excluded.assigned_via,
	preview = excluded.preview, last_message_at = excluded.last_message_at, created_at = excluded.created_at`

// putConversation inserts or replaces a conversation. A second open one of a contact
// on a channel is an error.
func putConversation(p *pipe, ws desk.ID, v *desk.Conversation) error {
	p.put(putConversationQuery, uuid(ws), uuid(v.ID), uuid(v.ChannelID), uuid(v.ContactID), string(v.Status), orNull(v.AssignedMember),
		string(v.AssignedVia), v.Preview, int64(v.LastMessageAt), int64(v.CreatedAt))
	return p.fail
}

const messageColumns = `conversation_id, ts, id, channel_id, direction, external_id, text, delivery, failure,
	opt_in_key, opt_in_at, opt_in_request`

func readMessage(row pgx.Row) (*desk.Message, error) {
	var m desk.Message
	var o desk.OptIn
	err := row.Scan(into(&m.ConversationID), (*int64)(&m.TS), into(&m.ID), into(&m.ChannelID), (*string)(&m.Direction), &m.ExternalID, &m.Text,
		(*string)(&m.Delivery), document{&m.Failure}, into(&o.Key), (*int64)(&o.At), into(&o.Request))
	if o.At != 0 {
		m.OptIn = &o
	}
	return &m, err
}

const (
	messagesQuery = `SELECT ` + messageColumns + ` FROM messages
	WHERE workspace_id = $1 AND conversation_id = $2 AND (ts, id) < ($3, $4) ORDER BY ts DESC, id DESC LIMIT $5`
	// A message that is looked for is a late one of its conversation.
	messageQuery = `SELECT ` + messageColumns + ` FROM messages
	WHERE workspace_id = $1 AND conversation_id = $2 AND id = $3 ORDER BY ts DESC LIMIT 1`
	messageByQuery = `SELECT ` + messageColumns + ` FROM messages
	WHERE workspace_id = $1 AND channel_id = $2 AND external_id = $3 AND external_id <> ''`
)

// Messages returns up to limit messages of a conversation that stand after the place
// given, newest first.
func (s *Store) Messages(ctx context.Context, ws, conversation desk.ID, after *desk.MessagePlace, limit int) (found []*desk.Message, err error) {
	if after == nil {
		after = &desk.MessagePlace{TS: endOfTime, ID: lastID}
	}
	err = s.read(ctx, func(p *pipe) error {
		found, err = all(p, "messages", readMessage, messagesQuery, uuid(ws), uuid(conversation), int64(after.TS), uuid(after.ID), limit)
		return err
	})
	return found, err
}

const putMessageQuery = `INSERT INTO messages (workspace_id, ` + messageColumns + `)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
	ON CONFLICT (workspace_id, conversation_id, ts, id) DO UPDATE SET channel_id = excluded.channel_id,
	direction = excluded.direction, external_id = excluded.external_id, text = excluded.text, delivery = excluded.delivery,
	failure = excluded.failure, opt_in_key = excluded.opt_in_key, opt_in_at = excluded.opt_in_at, opt_in_request = excluded.opt_in_request`

// putMessage inserts or replaces a message. A second one of the same provider's id is
// an error.
func putMessage(p *pipe, ws desk.ID, m *desk.Message) error {
	var o desk.OptIn
	if m.OptIn != nil {
		o = *m.OptIn
	}
	p.put(putMessageQuery, uuid(ws), uuid(m.ConversationID), int64(m.TS), uuid(m.ID), uuid(m.ChannelID), string(m.Direction), m.ExternalID, m.Text,
		string(m.Delivery), asJSON(m.Failure), orNull(o.Key), int64(o.At), orNull(o.Request))
	return p.fail
}

// eraseConversations deletes contacts' conversations with all that was said. Each
// statement sees what was committed before it, so whoever writes into one of them is
// waited for first.
func eraseConversations(p *pipe, ws desk.ID, contacts pgtype.FlatArray[uuid]) {
	const of = ` FROM conversations WHERE workspace_id = $1 AND contact_id = ANY ($2::uuid[])`
	p.put(`SELECT 1`+of+` ORDER BY id FOR UPDATE`, uuid(ws), contacts)
	p.put(`DELETE FROM messages WHERE workspace_id = $1 AND conversation_id IN (SELECT id`+of+`)`, uuid(ws), contacts)
	p.put(`DELETE`+of, uuid(ws), contacts)
}
