-- +goose Up

-- Who does what one process at a time shall do, by until when. A task of the whole
-- installation has the zero workspace.
CREATE TABLE leases (
    workspace_id BLOB    NOT NULL,
    task         TEXT    NOT NULL,
    until        INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, task)
) WITHOUT ROWID;
