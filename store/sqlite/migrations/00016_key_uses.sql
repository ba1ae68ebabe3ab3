-- +goose Up

-- When a key was last used. Apart from the key, whose row has the settings' version.
CREATE TABLE key_uses (
    workspace_id BLOB    NOT NULL,
    key_id       BLOB    NOT NULL,
    used_at      INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, key_id)
) WITHOUT ROWID;
