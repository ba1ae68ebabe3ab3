-- +goose Up

-- Reply policies as JSON: a channel's own; of the zero id the workspace's.
CREATE TABLE policies (
    workspace_id uuid   NOT NULL,
    channel_id   uuid   NOT NULL,
    policy       text   NOT NULL,
    updated_at   bigint NOT NULL,
    PRIMARY KEY (workspace_id, channel_id)
);
