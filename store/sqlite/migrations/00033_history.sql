-- +goose Up

-- The history of contacts: the event of a contact's creation, and its newest changes. It
-- outlives the events of the feed. Like events, it has no value of a person.
CREATE TABLE history (
    workspace_id BLOB    NOT NULL,
    contact_id   BLOB    NOT NULL,
    seq          INTEGER NOT NULL, -- of the event
    tag          INTEGER NOT NULL,
    at           INTEGER NOT NULL,
    kind         TEXT    NOT NULL,
    actor_kind   TEXT    NOT NULL,
    actor_id     BLOB    NOT NULL,
    changed      TEXT    NOT NULL,
    PRIMARY KEY (workspace_id, contact_id, seq)
) WITHOUT ROWID;

-- Up to which event of the feed the history is kept.
CREATE TABLE history_places (
    workspace_id BLOB    NOT NULL PRIMARY KEY,
    seq          INTEGER NOT NULL,
    tag          INTEGER NOT NULL
) WITHOUT ROWID;
