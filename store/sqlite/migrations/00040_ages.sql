-- +goose Up

-- Messages and notes by age, for servers that delete old ones (--keep-messages).
CREATE INDEX messages_age ON messages (workspace_id, ts);
CREATE INDEX notes_age ON notes (workspace_id, created_at);
