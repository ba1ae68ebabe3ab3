-- +goose Up

-- Imports of files: how far they are, and what became of the rows. They have no value of a
-- person.
CREATE TABLE imports (
    workspace_id BLOB    NOT NULL,
    id           BLOB    NOT NULL,
    key          BLOB    NOT NULL, -- SHA-256 of the file and the options
    started_at   INTEGER NOT NULL,
    ended_at     INTEGER NOT NULL, -- 0: it has not ended
    read         INTEGER NOT NULL, -- rows
    created      INTEGER NOT NULL,
    updated      INTEGER NOT NULL,
    unchanged    INTEGER NOT NULL,
    rejected     INTEGER NOT NULL,
    error_bytes  INTEGER NOT NULL, -- size of the file of rejected rows
    PRIMARY KEY (workspace_id, id)
) WITHOUT ROWID;
