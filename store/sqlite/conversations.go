package sqlite

import (
	"bytes"
	"context"
	"fmt"
	"math"

	"parley/desk"
)

// Lists that run newest first begin before this place.
const endOfTime = desk.Time(math.MaxInt64)

var lastID = desk.ID(bytes.Repeat([]byte{0xff}, len(desk.ID{})))

const conversationColumns = `id, channel_id, contact_id, status, assigned_member_id, assigned_via, preview, last_message_at, created_at`

func readConversation(s *stmt) *desk.Conversation {
	return &desk.Conversation{
		ID: s.readID(), ChannelID: s.readID(), ContactID: s.readID(), Status: desk.ConversationStatus(s.readText()),
		AssignedMember: s.readID(), AssignedVia: desk.AssignedVia(s.readText()),
		Preview: s.readText(), LastMessageAt: s.readTime(), CreatedAt: s.readTime(),
	}
}

const (
	conversationQuery     = `SELECT ` + conversationColumns + ` FROM conversations WHERE workspace_id = ? AND id = ?`
	openConversationQuery = `SELECT ` + conversationColumns + ` FROM conversations
	WHERE workspace_id = ? AND channel_id = ? AND contact_id = ? AND status = 'open'`
)

// Conversation returns a conversation, or NotFound.
func (s *Store) Conversation(ctx context.Context, ws, id desk.ID) (found *desk.Conversation, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		found, err = one("conversation", c.stmt(conversationQuery).id(ws).id(id), readConversation)
		return err
	})
	if err == nil && found == nil {
		err = desk.NoConversation()
	}
	return found, err
}

// byContact names the index, since SQLite, which has no figures, takes a whole
// workspace to be hardly more rows than one contact.
const byContact = ` INDEXED BY conversations_contact`

// conversationsQuery is the list's query, and the ids to bind from its sixth
// parameter on, before the status.
func conversationsQuery(f desk.ConversationFilter) (query string, ids []desk.ID) {
	query = `SELECT ` + conversationColumns + ` FROM conversations`
	if !f.Contact.IsZero() {
		query += byContact
	}
	query += ` WHERE workspace_id = ?1 AND (last_message_at, created_at, id) < (?2, ?3, ?4)`
	for _, by := range []struct {
		column string
		id     desk.ID
	}{{"assigned_member_id", f.Assignee}, {"channel_id", f.Channel}, {"contact_id", f.Contact}} {
		if !by.id.IsZero() {
			ids = append(ids, by.id)
			query += fmt.Sprintf(` AND %s = ?%d`, by.column, 5+len(ids))
		}
	}
	if f.Unassigned {
		query += ` AND assigned_member_id IS NULL`
	}
	switch {
	case f.Status != "":
		query += fmt.Sprintf(` AND status = ?%d`, 6+len(ids))
	case f.Contact.IsZero(): // the indexes are ordered within a status
		query = query + ` AND status = 'open' UNION ALL ` + query + ` AND status = 'closed' UNION ALL ` + query + ` AND status = 'archived'`
	}
	return query + ` ORDER BY last_message_at DESC, created_at DESC, id DESC LIMIT ?5`, ids
}

// Conversations returns up to limit conversations that pass the filter and stand
// after the place given, newest first.
func (s *Store) Conversations(ctx context.Context, ws desk.ID, f desk.ConversationFilter, after *desk.ConversationPlace, limit int) (found []*desk.Conversation, err error) {
	if after == nil {
		after = &desk.ConversationPlace{LastMessageAt: endOfTime, CreatedAt: endOfTime, ID: lastID}
	}
	query, ids := conversationsQuery(f)
	err = s.read(ctx, int64(pointRead*limit), func(c conn) error {
		rows := c.stmt(query).id(ws).time(after.LastMessageAt).time(after.CreatedAt).id(after.ID).int(int64(limit))
		for _, id := range ids {
			rows = rows.id(id)
		}
		if f.Status != "" {
			rows = rows.text(string(f.Status))
		}
		found, err = all("conversations", rows, readConversation)
		return err
	})
	return found, err
}

// putConversation inserts or replaces a conversation. A second open one of a contact
// on a channel is an error.
func putConversation(c conn, ws desk.ID, v *desk.Conversation) error {
	return failed("store conversation", c.stmt(`INSERT INTO conversations (workspace_id, `+conversationColumns+`)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (workspace_id, id) DO UPDATE SET channel_id = excluded.channel_id, contact_id = excluded.contact_id,
		status = excluded.status, assigned_member_id = excluded.assigned_member_id, assigned_via = excluded.assigned_via,
		preview = excluded.preview, last_message_at = excluded.last_message_at, created_at = excluded.created_at`).
		id(ws).id(v.ID).id(v.ChannelID).id(v.ContactID).text(string(v.Status)).idOrNull(v.AssignedMember).text(string(v.AssignedVia)).
		text(v.Preview).time(v.LastMessageAt).time(v.CreatedAt).run())
}

const messageColumns = `conversation_id, ts, id, channel_id, direction, external_id, text, delivery, failure,
	opt_in_key, opt_in_at, opt_in_request`

func readMessage(s *stmt) *desk.Message {
	m := &desk.Message{
		ConversationID: s.readID(), TS: s.readTime(), ID: s.readID(), ChannelID: s.readID(), Direction: desk.Direction(s.readText()),
		ExternalID: s.readText(), Text: s.readText(), Delivery: desk.Delivery(s.readText()),
	}
	s.readJSON(&m.Failure)
	if o := (desk.OptIn{Key: s.readID(), At: s.readTime(), Request: s.readID()}); o.At != 0 {
		m.OptIn = &o
	}
	return m
}

const (
	messagesQuery = `SELECT ` + messageColumns + ` FROM messages
	WHERE workspace_id = ? AND conversation_id = ? AND (ts, id) < (?, ?) ORDER BY ts DESC, id DESC LIMIT ?`
	// A message that is looked for is a late one of its conversation.
	messageQuery = `SELECT ` + messageColumns + ` FROM messages
	WHERE workspace_id = ? AND conversation_id = ? AND id = ? ORDER BY ts DESC LIMIT 1`
	messageByQuery = `SELECT ` + messageColumns + ` FROM messages
	WHERE workspace_id = ? AND channel_id = ? AND external_id = ? AND external_id <> ''`
)

// Messages returns up to limit messages of a conversation that stand after the place
// given, newest first.
func (s *Store) Messages(ctx context.Context, ws, conversation desk.ID, after *desk.MessagePlace, limit int) (found []*desk.Message, err error) {
	if after == nil {
		after = &desk.MessagePlace{TS: endOfTime, ID: lastID}
	}
	err = s.read(ctx, int64(pointRead+limit/4), func(c conn) error { // they lie side by side
		found, err = all("messages", c.stmt(messagesQuery).id(ws).id(conversation).time(after.TS).id(after.ID).int(int64(limit)), readMessage)
		return err
	})
	return found, err
}

// putMessage inserts or replaces a message. A second one of the same provider's id is
// an error.
func putMessage(c conn, ws desk.ID, m *desk.Message) error {
	var o desk.OptIn
	if m.OptIn != nil {
		o = *m.OptIn
	}
	return failed("store message", c.stmt(`INSERT INTO messages (workspace_id, `+messageColumns+`)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (workspace_id, conversation_id, ts, id) DO UPDATE SET channel_id = excluded.channel_id,
		direction = excluded.direction, external_id = excluded.external_id, text = excluded.text, delivery = excluded.delivery,
		failure = excluded.failure, opt_in_key = excluded.opt_in_key, opt_in_at = excluded.opt_in_at, opt_in_request = excluded.opt_in_request`).
		id(ws).id(m.ConversationID).time(m.TS).id(m.ID).id(m.ChannelID).text(string(m.Direction)).text(m.ExternalID).text(m.Text).
		text(string(m.Delivery)).json(m.Failure).idOrNull(o.Key).time(o.At).idOrNull(o.Request).run())
}

const (
	eraseMessagesQuery = `DELETE FROM messages WHERE workspace_id = ?1 AND conversation_id IN
	(SELECT id FROM conversations` + byContact + ` WHERE workspace_id = ?1 AND contact_id = ?2)`
	eraseConversationsQuery = `DELETE FROM conversations` + byContact + ` WHERE workspace_id = ? AND contact_id = ?`
)

// eraseConversations deletes a contact's conversations with all that was said.
func eraseConversations(c conn, ws, contact desk.ID) error {
	if err := c.stmt(eraseMessagesQuery).id(ws).id(contact).run(); err != nil {
		return err
	}
	return c.stmt(eraseConversationsQuery).id(ws).id(contact).run()
}
