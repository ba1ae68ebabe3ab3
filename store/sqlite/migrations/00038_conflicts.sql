-- +goose Up

-- Refused writes whose identities belong to different contacts. A set of contacts has one row.
CREATE TABLE conflicts (
    workspace_id BLOB    NOT NULL,
    id           BLOB    NOT NULL,
    contacts_key BLOB    NOT NULL, -- SHA-256 of their sorted ids
    contacts     TEXT    NOT NULL, -- a JSON array of ids
    identities   TEXT    NOT NULL, -- JSON, the newest last
    refusals     INTEGER NOT NULL,
    first_at     INTEGER NOT NULL,
    last_at      INTEGER NOT NULL,
    actor_kind   TEXT    NOT NULL,
    actor_id     BLOB    NOT NULL,
    status       TEXT    NOT NULL,
    resolution   TEXT    NOT NULL, -- JSON; '': it is open
    PRIMARY KEY (workspace_id, id)
);

CREATE UNIQUE INDEX conflicts_key ON conflicts (workspace_id, contacts_key);
CREATE INDEX conflicts_status ON conflicts (workspace_id, status, last_at, id);
CREATE INDEX conflicts_last ON conflicts (workspace_id, last_at, id);

-- The contacts of conflicts, to find these by them.
CREATE TABLE conflict_contacts (
    workspace_id BLOB NOT NULL,
    contact_id   BLOB NOT NULL,
    conflict_id  BLOB NOT NULL,
    PRIMARY KEY (workspace_id, contact_id, conflict_id)
) WITHOUT ROWID;

CREATE INDEX conflict_contacts_conflict ON conflict_contacts (workspace_id, conflict_id);
