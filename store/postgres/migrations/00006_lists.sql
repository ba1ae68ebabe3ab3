-- +goose Up

-- A workspace that is being deleted: nothing of it is found any more, and what is left of
-- it goes bit by bit.
ALTER TABLE workspaces ADD COLUMN deleted boolean NOT NULL DEFAULT false;
