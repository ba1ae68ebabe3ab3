-- +goose Up

-- Broadcasts: one template to each person of their rows.
CREATE TABLE broadcasts (
    workspace_id BLOB    NOT NULL,
    id           BLOB    NOT NULL,
    state        TEXT    NOT NULL,
    due_at       INTEGER,          -- when the driver has to look at it; NULL: never
    ended_at     INTEGER NOT NULL, -- 0: it has not ended
    size         INTEGER NOT NULL, -- rows
    driven_at    INTEGER NOT NULL, -- when it was known to be driven
    body         TEXT    NOT NULL, -- JSON: the rest
    PRIMARY KEY (workspace_id, id)
) WITHOUT ROWID;

CREATE INDEX broadcasts_state ON broadcasts (workspace_id, state, id);
CREATE INDEX broadcasts_due ON broadcasts (due_at, workspace_id) WHERE due_at IS NOT NULL;

CREATE TABLE broadcast_rows (
    workspace_id    BLOB    NOT NULL,
    broadcast_id    BLOB    NOT NULL,
    id              BLOB    NOT NULL,
    contact_id      BLOB,             -- NULL: no contact is known
    number          TEXT    NOT NULL, -- canonical; '': not known, or erased
    address         TEXT    NOT NULL, -- digits
    status          TEXT    NOT NULL,
    reason          TEXT    NOT NULL,
    failure         TEXT    NOT NULL, -- JSON
    attempt_id      BLOB,
    message_id      BLOB,
    conversation_id BLOB,
    at              INTEGER NOT NULL,
    due_at          INTEGER NOT NULL, -- of a pending one; 0: in its turn
    data            TEXT    NOT NULL, -- JSON: variables, the person of a new contact
    PRIMARY KEY (workspace_id, broadcast_id, id)
) WITHOUT ROWID;

CREATE INDEX broadcast_rows_turn ON broadcast_rows (workspace_id, broadcast_id, due_at, id) WHERE status = 'pending';
CREATE INDEX broadcast_rows_claimed ON broadcast_rows (workspace_id, broadcast_id, status, id) WHERE status IN ('sending', 'in_doubt');
CREATE INDEX broadcast_rows_contact ON broadcast_rows (workspace_id, contact_id, broadcast_id) WHERE contact_id IS NOT NULL;
CREATE INDEX broadcast_rows_number ON broadcast_rows (workspace_id, number, broadcast_id) WHERE number <> '';
CREATE INDEX broadcast_rows_message ON broadcast_rows (workspace_id, message_id) WHERE message_id IS NOT NULL;

-- Keyed hashes of the numbers that were claimed, until the broadcast's end.
CREATE TABLE broadcast_numbers (
    workspace_id BLOB NOT NULL,
    broadcast_id BLOB NOT NULL,
    hash         BLOB NOT NULL,
    row_id       BLOB NOT NULL,
    PRIMARY KEY (workspace_id, broadcast_id, hash)
) WITHOUT ROWID;

-- Numbers of rows, in shares, so that many transactions can count at the same time.
CREATE TABLE broadcast_counts (
    workspace_id BLOB    NOT NULL,
    broadcast_id BLOB    NOT NULL,
    share        INTEGER NOT NULL,
    status       TEXT    NOT NULL,
    reason       TEXT    NOT NULL,
    code         INTEGER NOT NULL, -- of the provider; 0: none
    title        TEXT    NOT NULL,
    n            INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, broadcast_id, share, status, reason, code)
) WITHOUT ROWID;

-- How far the follower of deliveries has read the events.
CREATE TABLE broadcast_places (
    workspace_id BLOB    NOT NULL PRIMARY KEY,
    seq          INTEGER NOT NULL,
    tag          INTEGER NOT NULL
) WITHOUT ROWID;

ALTER TABLE attempts ADD COLUMN broadcast_id BLOB;
CREATE INDEX attempts_broadcast ON attempts (workspace_id, broadcast_id, id) WHERE broadcast_id IS NOT NULL;

-- A dormant conversation was made by a broadcast, and its status has not changed since.
ALTER TABLE conversations ADD COLUMN dormant INTEGER NOT NULL DEFAULT 0;
