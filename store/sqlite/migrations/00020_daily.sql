-- +goose Up

-- Messages counted by day, and up to which event they are counted. They name no person.
CREATE TABLE daily (
    workspace_id BLOB    NOT NULL,
    day          INTEGER NOT NULL, -- since 1970, in UTC
    kind         TEXT    NOT NULL,
    key          TEXT    NOT NULL, -- a template, or the provider's code of a failure
    label        TEXT    NOT NULL,
    n            INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, day, kind, key)
) WITHOUT ROWID;

CREATE TABLE daily_places (
    workspace_id BLOB    NOT NULL PRIMARY KEY,
    seq          INTEGER NOT NULL,
    tag          INTEGER NOT NULL
) WITHOUT ROWID;

-- NAME/LANGUAGE of the template that was sent; '' for others and for older messages.
ALTER TABLE messages ADD COLUMN template TEXT NOT NULL DEFAULT '';
