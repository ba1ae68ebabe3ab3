-- +goose Up

-- What a conversation's messages say of it: what nobody has read, who waits, and whose the
-- message in the preview is. A conversation without id that was answered or heard has NULL.
ALTER TABLE conversations ADD COLUMN last_direction TEXT NOT NULL DEFAULT '';
ALTER TABLE conversations ADD COLUMN unread INTEGER NOT NULL DEFAULT 0;
ALTER TABLE conversations ADD COLUMN read_ts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE conversations ADD COLUMN read_id BLOB;
ALTER TABLE conversations ADD COLUMN waiting_since INTEGER NOT NULL DEFAULT 0; -- 0: nobody waits
ALTER TABLE conversations ADD COLUMN answered_id BLOB;
ALTER TABLE conversations ADD COLUMN heard_id BLOB;

-- '' in kind is a message of an older release; author and content are JSON, NULL for none.
ALTER TABLE messages ADD COLUMN kind TEXT NOT NULL DEFAULT '';
ALTER TABLE messages ADD COLUMN author TEXT;
ALTER TABLE messages ADD COLUMN reply_to BLOB;
ALTER TABLE messages ADD COLUMN content TEXT;
ALTER TABLE messages ADD COLUMN unread INTEGER NOT NULL DEFAULT 0;

-- Until when a contact can be answered freely on a channel.
CREATE TABLE windows (
    workspace_id BLOB    NOT NULL,
    contact_id   BLOB    NOT NULL,
    channel_id   BLOB    NOT NULL,
    opened_at    INTEGER NOT NULL, -- of the newest message that the contact wrote
    number       TEXT    NOT NULL,
    user_id      TEXT    NOT NULL,
    shut_at      INTEGER NOT NULL, -- messages up to then open nothing; 0: none
    shut_by      TEXT    NOT NULL,
    PRIMARY KEY (workspace_id, contact_id, channel_id)
) WITHOUT ROWID;

UPDATE conversations SET
    last_direction = coalesce((SELECT direction FROM messages m WHERE m.workspace_id = conversations.workspace_id AND m.conversation_id = conversations.id
        ORDER BY ts DESC, id DESC LIMIT 1), ''),
    answered_id = (SELECT max(m.id) FROM messages m WHERE m.workspace_id = conversations.workspace_id AND m.conversation_id = conversations.id
        AND direction = 'outbound' AND delivery <> 'failed'),
    heard_id = (SELECT max(m.id) FROM messages m WHERE m.workspace_id = conversations.workspace_id AND m.conversation_id = conversations.id
        AND direction = 'inbound');
UPDATE conversations SET waiting_since = coalesce((SELECT min(ts) FROM messages m WHERE m.workspace_id = conversations.workspace_id
    AND m.conversation_id = conversations.id AND direction = 'inbound' AND (conversations.answered_id IS NULL OR m.id > conversations.answered_id)), 0)
    WHERE heard_id IS NOT NULL AND (answered_id IS NULL OR heard_id > answered_id);
INSERT INTO windows (workspace_id, contact_id, channel_id, opened_at, number, user_id, shut_at, shut_by)
    SELECT m.workspace_id, c.contact_id, c.channel_id, max(m.ts), '', '', 0, ''
    FROM messages m JOIN conversations c ON c.workspace_id = m.workspace_id AND c.id = m.conversation_id
    WHERE m.direction = 'inbound' GROUP BY m.workspace_id, c.contact_id, c.channel_id;

-- Those who wait, the longest wait first.
CREATE INDEX conversations_waiting ON conversations (workspace_id, status, waiting_since, created_at, id) WHERE waiting_since > 0;
