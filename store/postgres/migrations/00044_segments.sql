-- +goose Up

-- Filters of contacts, with names.
CREATE TABLE segments (
    workspace_id uuid   NOT NULL,
    key          text   COLLATE "C" NOT NULL,
    name         text   NOT NULL,
    filter       text   NOT NULL, -- JSON
    updated_at   bigint NOT NULL,
    PRIMARY KEY (workspace_id, key)
);
