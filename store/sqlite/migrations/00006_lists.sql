-- +goose Up

-- The lists of conversations judge their filters by the index alone, so that those which
-- look at 5,000 records for one page do not fetch 5,000 rows. No index is added.
DROP INDEX conversations_recent;
CREATE INDEX conversations_recent ON conversations
    (workspace_id, status, last_message_at, created_at, id, channel_id, contact_id, assigned_member_id);

DROP INDEX conversations_held;
CREATE INDEX conversations_held ON conversations
    (workspace_id, assigned_member_id, status, last_message_at, created_at, id, channel_id, contact_id)
    WHERE assigned_member_id IS NOT NULL;

-- A workspace that is being deleted: nothing of it is found any more, and what is left of
-- it goes bit by bit.
ALTER TABLE workspaces ADD COLUMN deleted INTEGER NOT NULL DEFAULT 0;
