-- +goose Up

-- The provider's id of the recipient; '': it did not say. A deletion of the contact finds
-- the status by it.
ALTER TABLE early_statuses ADD COLUMN user_id TEXT NOT NULL DEFAULT '';

CREATE INDEX early_statuses_user ON early_statuses (workspace_id, user_id) WHERE user_id <> '';
