-- +goose Up

-- The endpoints to which events are delivered. Their secrets are encrypted.
CREATE TABLE webhooks (
    workspace_id    uuid    NOT NULL,
    id              uuid    NOT NULL,
    url             text COLLATE "C" NOT NULL,
    types           text    NOT NULL, -- comma-separated
    enabled         boolean NOT NULL,
    disabled_reason text    NOT NULL, -- '': it is enabled
    sealed          bytea   NOT NULL,
    created_at      bigint  NOT NULL,
    updated_at      bigint  NOT NULL,
    PRIMARY KEY (workspace_id, id),
    UNIQUE (workspace_id, url)
);

-- How far the deliveries of each webhook are. This changes with every delivery, so it is
-- not in the row above, which belongs to the settings.
CREATE TABLE webhook_states (
    workspace_id  uuid   NOT NULL,
    webhook_id    uuid   NOT NULL,
    seq           bigint NOT NULL, -- of the last event whose delivery has begun
    tag           bigint NOT NULL,
    failing_since bigint NOT NULL, -- 0: not failing
    failures      bigint NOT NULL,
    probes        bigint NOT NULL,
    held_until    bigint NOT NULL, -- 0: not held
    PRIMARY KEY (workspace_id, webhook_id)
);
