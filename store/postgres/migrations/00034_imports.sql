-- +goose Up

-- Imports of files: how far they are, and what became of the rows. They have no value of a
-- person.
CREATE TABLE imports (
    workspace_id uuid   NOT NULL,
    id           uuid   NOT NULL,
    key          bytea  NOT NULL, -- SHA-256 of the file and the options
    started_at   bigint NOT NULL,
    ended_at     bigint NOT NULL, -- 0: it has not ended
    read         bigint NOT NULL, -- rows
    created      bigint NOT NULL,
    updated      bigint NOT NULL,
    unchanged    bigint NOT NULL,
    rejected     bigint NOT NULL,
    error_bytes  bigint NOT NULL, -- size of the file of rejected rows
    PRIMARY KEY (workspace_id, id)
);
