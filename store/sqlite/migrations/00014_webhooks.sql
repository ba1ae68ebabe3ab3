-- +goose Up

-- The endpoints to which events are delivered. Their secrets are encrypted.
CREATE TABLE webhooks (
    workspace_id    BLOB    NOT NULL,
    id              BLOB    NOT NULL,
    url             TEXT    NOT NULL,
    types           TEXT    NOT NULL, -- comma-separated
    enabled         INTEGER NOT NULL,
    disabled_reason TEXT    NOT NULL, -- '': it is enabled
    sealed          BLOB    NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, id),
    UNIQUE (workspace_id, url)
) WITHOUT ROWID;

-- How far the deliveries of each webhook are. This changes with every delivery, so it is
-- not in the row above, which belongs to the settings.
CREATE TABLE webhook_states (
    workspace_id  BLOB    NOT NULL,
    webhook_id    BLOB    NOT NULL,
    seq           INTEGER NOT NULL, -- of the last event whose delivery has begun
    tag           INTEGER NOT NULL,
    failing_since INTEGER NOT NULL, -- 0: not failing
    failures      INTEGER NOT NULL,
    probes        INTEGER NOT NULL,
    held_until    INTEGER NOT NULL, -- 0: not held
    PRIMARY KEY (workspace_id, webhook_id)
) WITHOUT ROWID;
