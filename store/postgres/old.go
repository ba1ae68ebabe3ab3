package postgres

import (
	"context"

	"parley/desk"
	"parley/store/internal/stored"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

const (
	// The sums are those of the indexes (see migration 42).
	oldMessagesQuery      = `SELECT ` + messageColumns + ` FROM messages WHERE workspace_id = $1 AND ts + 0 < $2 ORDER BY workspace_id, ts + 0 LIMIT $3`
	oldNotesQuery         = `SELECT ` + noteColumns + ` FROM notes WHERE workspace_id = $1 AND created_at + 0 < $2 ORDER BY workspace_id, created_at + 0 LIMIT $3`
	oldConversationsQuery = `SELECT ` + conversationColumns + ` FROM conversations
	WHERE workspace_id = $1 AND status = $2 AND last_message_at < $3 AND (last_message_at, created_at, id) > ($4, $5, $6)
	ORDER BY workspace_id, status, last_message_at, created_at, id LIMIT $7`

	dropMessagesQuery = `DELETE FROM messages m USING unnest($2::uuid[], $3::bigint[], $4::uuid[]) u (conversation, ts, id)
	WHERE m.workspace_id = $1 AND m.conversation_id = u.conversation AND m.ts = u.ts AND m.id = u.id`
	unnameRowsQuery = `UPDATE broadcast_rows SET message_id = NULL, conversation_id = NULL WHERE workspace_id = $1 AND message_id = ANY ($2::uuid[])`
	dropEmptyQuery  = `DELETE FROM conversations WHERE workspace_id = $1 AND id = $2
	AND NOT EXISTS (SELECT 1 FROM messages WHERE workspace_id = $1 AND conversation_id = $2)
	AND NOT EXISTS (SELECT 1 FROM notes WHERE workspace_id = $1 AND conversation_id = $2) RETURNING 1`
)

// OldMessages returns messages that are older than a time, oldest first.
func (s *Store) OldMessages(ctx context.Context, ws desk.ID, before desk.Time, limit int) ([]*desk.Message, error) {
	return readAll(ctx, s, "old messages", func(row pgx.Row) (*desk.Message, error) { return readMessage(row) }, oldMessagesQuery, uuid(ws), int64(before), limit)
}

// OldNotes returns notes that are older than a time, oldest first.
func (s *Store) OldNotes(ctx context.Context, ws desk.ID, before desk.Time, limit int) ([]*desk.Note, error) {
	return readAll(ctx, s, "old notes", readOneNote, oldNotesQuery, uuid(ws), int64(before), limit)
}

// OldConversations returns conversations without a new message, oldest first.
func (s *Store) OldConversations(ctx context.Context, ws desk.ID, status desk.ConversationStatus, before desk.Time, after desk.ConversationPlace, limit int) ([]*desk.Conversation, error) {
	return readAll(ctx, s, "old conversations", readConversation, oldConversationsQuery, uuid(ws), string(status), int64(before),
		int64(after.LastMessageAt), int64(after.CreatedAt), uuid(after.ID), limit)
}

// DropMessages deletes messages.
func (t *tx) DropMessages(list []*desk.Message) error {
	if len(list) == 0 {
		return t.fail
	}
	var hashes []stored.ErasedHash
	var conversations, ids pgtype.FlatArray[uuid]
	var times []int64
	for _, m := range list {
		if m.ExternalID != "" {
			hashes = append(hashes, stored.HashErased(t.s.key, t.ws, desk.MessageRef{Channel: m.ChannelID, ExternalID: m.ExternalID}))
		}
		conversations, times, ids = append(conversations, uuid(m.ConversationID)), append(times, int64(m.TS)), append(ids, uuid(m.ID))
	}
	t.put(dropMessagesQuery, uuid(t.ws), conversations, times, ids)
	t.put(unnameRowsQuery, uuid(t.ws), ids)
	t.keepHashes(hashes)
	return t.fail
}

// DropEmpty deletes a conversation that has no message and no note. The row is locked: so
// nobody has stored one that this statement does not see.
func (t *tx) DropEmpty(conversation desk.ID) (bool, error) {
	return one(t.pipe, "drop conversation", func(pgx.Row) (bool, error) { return true, nil }, dropEmptyQuery, uuid(t.ws), uuid(conversation))
}
