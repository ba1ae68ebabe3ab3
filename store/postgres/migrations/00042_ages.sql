-- +goose Up

-- Messages and notes by age, for servers that delete old ones (--keep-messages). With the plain
-- column, the planner might read the messages of a conversation by this index.
CREATE INDEX messages_age ON messages (workspace_id, (ts + 0));
CREATE INDEX notes_age ON notes (workspace_id, (created_at + 0));
