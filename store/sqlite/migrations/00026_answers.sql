-- +goose Up

-- When a person last replied, and the automatic replies since.
ALTER TABLE windows ADD COLUMN replied_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE windows ADD COLUMN auto_reply_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE windows ADD COLUMN auto_replies INTEGER NOT NULL DEFAULT 0;

-- The order in which a reply policy chose members: a channel's own; of the zero id the
-- workspace's.
CREATE TABLE turns (
    workspace_id BLOB    NOT NULL,
    channel_id   BLOB    NOT NULL,
    member_id    BLOB    NOT NULL,
    number       INTEGER NOT NULL, -- of the last choice
    PRIMARY KEY (workspace_id, channel_id, member_id)
) WITHOUT ROWID;

-- Automatic replies to be sent, by the message that they answer.
CREATE TABLE auto_replies (
    workspace_id    BLOB    NOT NULL,
    contact_id      BLOB    NOT NULL,
    message_id      BLOB    NOT NULL,
    channel_id      BLOB    NOT NULL,
    conversation_id BLOB    NOT NULL,
    kind            TEXT    NOT NULL,
    text            TEXT    NOT NULL,
    decided_at      INTEGER NOT NULL,
    due_at          INTEGER NOT NULL,
    tries           INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, contact_id, message_id)
) WITHOUT ROWID;
CREATE INDEX auto_replies_due ON auto_replies (workspace_id, due_at, message_id);

-- Those who wait and whom nobody has, the longest wait first.
CREATE INDEX conversations_pool ON conversations (workspace_id, channel_id, waiting_since, created_at, id)
    WHERE assigned_member_id IS NULL AND status = 'open' AND waiting_since > 0;
