package sqlite

import (
	"context"

	"parley/desk"
	"parley/store/internal/stored"
)

const (
	oldMessagesQuery = `SELECT ` + messageColumns + ` FROM messages INDEXED BY messages_age WHERE workspace_id = ? AND ts < ? ORDER BY ts LIMIT +?`
	oldNotesQuery    = `SELECT ` + noteColumns + ` FROM notes INDEXED BY notes_age WHERE workspace_id = ? AND created_at < ? ORDER BY created_at LIMIT +?`
	// The order is the one of the index.
	oldConversationsQuery = `SELECT ` + conversationColumns + ` FROM conversations INDEXED BY conversations_recent
		WHERE workspace_id = ?1 AND status = ?2 AND last_message_at < ?3 AND (last_message_at, created_at, id) > (?4, ?5, ?6)
		ORDER BY last_message_at, created_at, id LIMIT +?7`

	dropMessageQuery = `DELETE FROM messages WHERE workspace_id = ? AND conversation_id = ? AND ts = ? AND id = ?`
	unnameRowQuery   = `UPDATE broadcast_rows INDEXED BY broadcast_rows_message SET message_id = NULL, conversation_id = NULL
		WHERE workspace_id = ? AND message_id = ? AND message_id IS NOT NULL`
	dropEmptyQuery = `DELETE FROM conversations WHERE workspace_id = ?1 AND id = ?2
		AND NOT EXISTS (SELECT 1 FROM messages WHERE workspace_id = ?1 AND conversation_id = ?2)
		AND NOT EXISTS (SELECT 1 FROM notes WHERE workspace_id = ?1 AND conversation_id = ?2)`
)

// OldMessages returns messages that are older than a time, oldest first.
func (s *Store) OldMessages(ctx context.Context, ws desk.ID, before desk.Time, limit int) (list []*desk.Message, err error) {
	err = s.read(ctx, int64(pointRead+limit), func(c conn) error {
		list, err = all("old messages", c.stmt(oldMessagesQuery).id(ws).time(before).int(int64(limit)), readMessage)
		return err
	})
	return list, err
}

// OldNotes returns notes that are older than a time, oldest first.
func (s *Store) OldNotes(ctx context.Context, ws desk.ID, before desk.Time, limit int) (list []*desk.Note, err error) {
	err = s.read(ctx, int64(pointRead+limit), func(c conn) error {
		list, err = all("old notes", c.stmt(oldNotesQuery).id(ws).time(before).int(int64(limit)), readNote)
		return err
	})
	return list, err
}

// OldConversations returns conversations without a new message, oldest first.
func (s *Store) OldConversations(ctx context.Context, ws desk.ID, status desk.ConversationStatus, before desk.Time, after desk.ConversationPlace, limit int) (list []*desk.Conversation, err error) {
	err = s.read(ctx, int64(pointRead+limit), func(c conn) error {
		list, err = all("old conversations", c.stmt(oldConversationsQuery).id(ws).text(string(status)).time(before).
			time(after.LastMessageAt).time(after.CreatedAt).id(after.ID).int(int64(limit)), readConversation)
		return err
	})
	return list, err
}

// DropMessages deletes messages. A scrub clears their copies in the file.
func (t *tx) DropMessages(list []*desk.Message) error {
	var hashes []stored.ErasedHash
	for _, m := range list {
		if m.ExternalID != "" {
			hashes = append(hashes, stored.HashErased(t.c.forgets.key, t.ws, desk.MessageRef{Channel: m.ChannelID, ExternalID: m.ExternalID}))
		}
		if err := t.c.stmt(dropMessageQuery).id(t.ws).id(m.ConversationID).time(m.TS).id(m.ID).run(); err != nil {
			return failed("drop message", err)
		}
		if m.Direction != desk.Outbound {
			continue
		}
		if err := t.c.stmt(unnameRowQuery).id(t.ws).id(m.ID).run(); err != nil {
			return failed("drop message", err)
		}
	}
	if err := keepHashes(t.c, t.ws, hashes); err != nil {
		return failed("drop messages", err)
	}
	return wantScrub(t.c)
}

// DropEmpty deletes a conversation that has no message and no note.
func (t *tx) DropEmpty(conversation desk.ID) (bool, error) {
	err := t.c.stmt(dropEmptyQuery).id(t.ws).id(conversation).run()
	return err == nil && t.c.Changes() > 0, failed("drop conversation", err)
}
