-- +goose Up

-- Files that are imported in the console. name and problem may hold values of people; they go
-- with the record.
CREATE TABLE import_uploads (
    workspace_id BLOB    NOT NULL,
    id           BLOB    NOT NULL,
    slot         INTEGER NOT NULL, -- 1 to 4: it has a file; 0: it has ended
    media_id     BLOB    NOT NULL,
    member_id    BLOB    NOT NULL,
    name         TEXT    NOT NULL,
    size         INTEGER NOT NULL,
    total        INTEGER NOT NULL, -- rows of the file; 0: not known yet
    options      TEXT    NOT NULL, -- JSON
    state        TEXT    NOT NULL,
    problem      TEXT    NOT NULL,
    problem_at   TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    queued_at    INTEGER NOT NULL, -- 0: nothing is to be done
    ended_at     INTEGER NOT NULL, -- 0: it has not ended
    run_id       BLOB    NOT NULL, -- of imports
    PRIMARY KEY (workspace_id, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX import_uploads_slot ON import_uploads (workspace_id, slot) WHERE slot > 0;
CREATE INDEX import_uploads_queued ON import_uploads (workspace_id, queued_at, id) WHERE queued_at > 0;

-- The rejected rows of uploads, as their file has them: a group of rows at its place in it.
-- They stay when a contact is deleted, and go a week after the upload's end.
CREATE TABLE import_rejects (
    workspace_id BLOB    NOT NULL,
    run_id       BLOB    NOT NULL,
    at           INTEGER NOT NULL,
    body         BLOB    NOT NULL,
    PRIMARY KEY (workspace_id, run_id, at)
);
