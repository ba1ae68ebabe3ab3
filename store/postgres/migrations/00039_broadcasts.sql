-- +goose Up

-- Broadcasts: one template to each person of their rows.
CREATE TABLE broadcasts (
    workspace_id uuid   NOT NULL,
    id           uuid   NOT NULL,
    state        text   COLLATE "C" NOT NULL,
    due_at       bigint,          -- when the driver has to look at it; NULL: never
    ended_at     bigint NOT NULL, -- 0: it has not ended
    size         bigint NOT NULL, -- rows
    driven_at    bigint NOT NULL, -- when it was known to be driven
    body         text   NOT NULL, -- JSON: the rest
    PRIMARY KEY (workspace_id, id)
);

CREATE INDEX broadcasts_state ON broadcasts (workspace_id, state, id);
CREATE INDEX broadcasts_due ON broadcasts (due_at, workspace_id) WHERE due_at IS NOT NULL;

CREATE TABLE broadcast_rows (
    workspace_id    uuid   NOT NULL,
    broadcast_id    uuid   NOT NULL,
    id              uuid   NOT NULL,
    contact_id      uuid,            -- NULL: no contact is known
    number          text   COLLATE "C" NOT NULL, -- canonical; '': not known, or erased
    address         text   NOT NULL, -- digits
    status          text   COLLATE "C" NOT NULL,
    reason          text   NOT NULL,
    failure         text   NOT NULL, -- JSON
    attempt_id      uuid,
    message_id      uuid,
    conversation_id uuid,
    at              bigint NOT NULL,
    due_at          bigint NOT NULL, -- of a pending one; 0: in its turn
    data            text   NOT NULL, -- JSON: variables, the person of a new contact
    PRIMARY KEY (workspace_id, broadcast_id, id)
);

CREATE INDEX broadcast_rows_turn ON broadcast_rows (workspace_id, broadcast_id, due_at, id) WHERE status = 'pending';
CREATE INDEX broadcast_rows_claimed ON broadcast_rows (workspace_id, broadcast_id, status, id) WHERE status IN ('sending', 'in_doubt');
CREATE INDEX broadcast_rows_contact ON broadcast_rows (workspace_id, contact_id, broadcast_id) WHERE contact_id IS NOT NULL;
CREATE INDEX broadcast_rows_number ON broadcast_rows (workspace_id, number, broadcast_id) WHERE number <> '';
CREATE INDEX broadcast_rows_message ON broadcast_rows (workspace_id, message_id) WHERE message_id IS NOT NULL;

-- Keyed hashes of the numbers that were claimed, until the broadcast's end.
CREATE TABLE broadcast_numbers (
    workspace_id uuid  NOT NULL,
    broadcast_id uuid  NOT NULL,
    hash         bytea NOT NULL,
    row_id       uuid  NOT NULL,
    PRIMARY KEY (workspace_id, broadcast_id, hash)
);

-- Numbers of rows, in shares, so that many transactions can count at the same time.
CREATE TABLE broadcast_counts (
    workspace_id uuid   NOT NULL,
    broadcast_id uuid   NOT NULL,
    share        bigint NOT NULL,
    status       text   COLLATE "C" NOT NULL,
    reason       text   COLLATE "C" NOT NULL,
    code         bigint NOT NULL, -- of the provider; 0: none
    title        text   NOT NULL,
    n            bigint NOT NULL,
    PRIMARY KEY (workspace_id, broadcast_id, share, status, reason, code)
);

-- How far the follower of deliveries has read the events.
CREATE TABLE broadcast_places (
    workspace_id uuid   NOT NULL PRIMARY KEY,
    seq          bigint NOT NULL,
    tag          bigint NOT NULL
);

ALTER TABLE attempts ADD COLUMN broadcast_id uuid;
CREATE INDEX attempts_broadcast ON attempts (workspace_id, broadcast_id, id) WHERE broadcast_id IS NOT NULL;

-- A dormant conversation was made by a broadcast, and its status has not changed since.
ALTER TABLE conversations ADD COLUMN dormant boolean NOT NULL DEFAULT false;
