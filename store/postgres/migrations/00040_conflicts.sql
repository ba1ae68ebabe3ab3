-- +goose Up

-- Refused writes whose identities belong to different contacts. A set of contacts has one row.
CREATE TABLE conflicts (
    workspace_id uuid   NOT NULL,
    id           uuid   NOT NULL,
    contacts_key bytea  NOT NULL, -- SHA-256 of their sorted ids
    contacts     text   NOT NULL, -- a JSON array of ids
    identities   text   NOT NULL, -- JSON, the newest last
    refusals     bigint NOT NULL,
    first_at     bigint NOT NULL,
    last_at      bigint NOT NULL,
    actor_kind   text   NOT NULL,
    actor_id     uuid   NOT NULL,
    status       text COLLATE "C" NOT NULL,
    resolution   text   NOT NULL, -- JSON; '': it is open
    PRIMARY KEY (workspace_id, id)
);

CREATE UNIQUE INDEX conflicts_key ON conflicts (workspace_id, contacts_key);
CREATE INDEX conflicts_status ON conflicts (workspace_id, status, last_at, id);
CREATE INDEX conflicts_last ON conflicts (workspace_id, last_at, id);

-- The contacts of conflicts, to find these by them.
CREATE TABLE conflict_contacts (
    workspace_id uuid NOT NULL,
    contact_id   uuid NOT NULL,
    conflict_id  uuid NOT NULL,
    PRIMARY KEY (workspace_id, contact_id, conflict_id)
);

CREATE INDEX conflict_contacts_conflict ON conflict_contacts (workspace_id, conflict_id);
