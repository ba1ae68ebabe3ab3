-- +goose Up

-- Reply policies as JSON: a channel's own; of the zero id the workspace's.
CREATE TABLE policies (
    workspace_id BLOB    NOT NULL,
    channel_id   BLOB    NOT NULL,
    policy       TEXT    NOT NULL,
    updated_at   INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, channel_id)
) WITHOUT ROWID;
