-- +goose Up

-- Messages of deleted people, by a keyed hash of channel and provider's id. A message that is
-- delivered again is known by it.
CREATE TABLE erased_messages (
    workspace_id uuid   NOT NULL,
    hash         bytea  NOT NULL,
    erased_at    bigint NOT NULL,
    PRIMARY KEY (workspace_id, hash)
);
CREATE INDEX erased_messages_at ON erased_messages (workspace_id, erased_at, hash);

-- The attempt that sent the message; NULL of an older release. A deletion finds the attempts
-- that are settled by it, and those that have no message by the index.
ALTER TABLE messages ADD COLUMN attempt_id uuid;
CREATE INDEX attempts_unsent ON attempts (workspace_id, contact_id) WHERE phase IN ('refused', 'released') AND NOT erased;

-- A status with the id of an attempt is for a message that is stored, or that never will be,
-- because the person was deleted.
DELETE FROM early_statuses WHERE attempt_id <> '00000000-0000-0000-0000-000000000000';
