-- +goose Up

-- When a key was last used. Apart from the key, whose row has the settings' version.
CREATE TABLE key_uses (
    workspace_id uuid   NOT NULL,
    key_id       uuid   NOT NULL,
    used_at      bigint NOT NULL,
    PRIMARY KEY (workspace_id, key_id)
);
