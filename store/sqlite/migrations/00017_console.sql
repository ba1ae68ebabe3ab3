-- +goose Up

-- The lists of unassigned conversations, and of those of a channel. The first is also
-- looked through for the unassigned ones of a channel or a contact, which its last two
-- columns decide.
CREATE INDEX conversations_unassigned ON conversations
    (workspace_id, status, last_message_at, created_at, id, channel_id, contact_id, assigned_member_id)
    WHERE assigned_member_id IS NULL;
CREATE INDEX conversations_channel ON conversations
    (workspace_id, channel_id, status, last_message_at, created_at, id);

-- Which member asserted the opt-in; NULL if a key did.
ALTER TABLE messages ADD COLUMN opt_in_member BLOB;
