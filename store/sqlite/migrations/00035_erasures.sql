-- +goose Up

-- The ids of deleted contacts, for ever: after a restore, these contacts are deleted again. They
-- have no other value of a person.
CREATE TABLE erasures (
    workspace_id BLOB    NOT NULL,
    id           BLOB    NOT NULL, -- of the contact
    at           INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, id)
) WITHOUT ROWID;

INSERT INTO erasures (workspace_id, id, at) SELECT workspace_id, subject_id, min(at) FROM events WHERE kind = 'contact.deleted' GROUP BY workspace_id, subject_id;

-- Notes are exported in the order of their ids.
CREATE UNIQUE INDEX notes_exported ON notes (workspace_id, id, conversation_id);
