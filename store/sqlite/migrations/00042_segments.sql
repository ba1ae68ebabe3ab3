-- +goose Up

-- Filters of contacts, with names.
CREATE TABLE segments (
    workspace_id BLOB    NOT NULL,
    key          TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    filter       TEXT    NOT NULL, -- JSON
    updated_at   INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, key)
) WITHOUT ROWID;
