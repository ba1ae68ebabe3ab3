-- +goose Up

-- Attributes and further identities of contacts that are large, one row each. In place of
-- the value, the contact's row then has '>'. What a release before stored in that row moves
-- when it changes.
CREATE TABLE large_values (
    workspace_id BLOB NOT NULL,
    contact_id   BLOB NOT NULL,
    field        TEXT NOT NULL, -- attributes, further
    value        TEXT NOT NULL,
    PRIMARY KEY (workspace_id, contact_id, field)
);
