-- +goose Up

-- Files that are imported in the console. name and problem may hold values of people; they go
-- with the record.
CREATE TABLE import_uploads (
    workspace_id uuid   NOT NULL,
    id           uuid   NOT NULL,
    slot         bigint NOT NULL, -- 1 to 4: it has a file; 0: it has ended
    media_id     uuid   NOT NULL,
    member_id    uuid   NOT NULL,
    name         text   NOT NULL,
    size         bigint NOT NULL,
    total        bigint NOT NULL, -- rows of the file; 0: not known yet
    options      text   NOT NULL, -- JSON
    state        text   NOT NULL,
    problem      text   NOT NULL,
    problem_at   text   NOT NULL,
    created_at   bigint NOT NULL,
    queued_at    bigint NOT NULL, -- 0: nothing is to be done
    ended_at     bigint NOT NULL, -- 0: it has not ended
    run_id       uuid   NOT NULL, -- of imports
    PRIMARY KEY (workspace_id, id)
);
CREATE UNIQUE INDEX import_uploads_slot ON import_uploads (workspace_id, slot) WHERE slot > 0;
CREATE INDEX import_uploads_queued ON import_uploads (workspace_id, queued_at, id) WHERE queued_at > 0;

-- The rejected rows of uploads, as their file has them: a group of rows at its place in it.
-- They stay when a contact is deleted, and go a week after the upload's end.
CREATE TABLE import_rejects (
    workspace_id uuid   NOT NULL,
    run_id       uuid   NOT NULL,
    at           bigint NOT NULL,
    body         bytea  NOT NULL,
    PRIMARY KEY (workspace_id, run_id, at)
);
