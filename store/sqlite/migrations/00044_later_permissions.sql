-- +goose Up

-- The permissions of a key that came after the second release, whose servers fail to read them.
ALTER TABLE api_keys ADD COLUMN later TEXT NOT NULL DEFAULT '';
