-- +goose Up

-- When a person last replied, and the automatic replies since.
ALTER TABLE windows ADD COLUMN replied_at bigint NOT NULL DEFAULT 0;
ALTER TABLE windows ADD COLUMN auto_reply_at bigint NOT NULL DEFAULT 0;
ALTER TABLE windows ADD COLUMN auto_replies bigint NOT NULL DEFAULT 0;

-- The order in which a reply policy chose members: a channel's own; of the zero id the
-- workspace's.
CREATE TABLE turns (
    workspace_id uuid   NOT NULL,
    channel_id   uuid   NOT NULL,
    member_id    uuid   NOT NULL,
    number       bigint NOT NULL, -- of the last choice
    PRIMARY KEY (workspace_id, channel_id, member_id)
);

-- Automatic replies to be sent, by the message that they answer.
CREATE TABLE auto_replies (
    workspace_id    uuid   NOT NULL,
    contact_id      uuid   NOT NULL,
    message_id      uuid   NOT NULL,
    channel_id      uuid   NOT NULL,
    conversation_id uuid   NOT NULL,
    kind            text   NOT NULL,
    text            text   NOT NULL,
    decided_at      bigint NOT NULL,
    due_at          bigint NOT NULL,
    tries           bigint NOT NULL,
    PRIMARY KEY (workspace_id, contact_id, message_id)
);
CREATE INDEX auto_replies_due ON auto_replies (workspace_id, due_at, message_id);

-- Those who wait and whom nobody has, the longest wait first.
CREATE INDEX conversations_pool ON conversations (workspace_id, channel_id, waiting_since, created_at, id)
    WHERE assigned_member_id IS NULL AND status = 'open' AND waiting_since > 0;
