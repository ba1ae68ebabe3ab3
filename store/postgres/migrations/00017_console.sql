-- +goose Up

-- The lists of unassigned conversations, and of those of a channel. The order of the
-- first is written so that it is the only index that has it.
CREATE INDEX conversations_unassigned ON conversations
    (workspace_id, status, last_message_at DESC NULLS LAST, created_at DESC NULLS LAST, id DESC NULLS LAST)
    WHERE assigned_member_id IS NULL;
CREATE INDEX conversations_channel ON conversations
    (workspace_id, channel_id, status, last_message_at, created_at, id);

-- Which member asserted the opt-in; NULL if a key did.
ALTER TABLE messages ADD COLUMN opt_in_member uuid;
