-- +goose Up

-- How people tell two channels apart. An older release leaves it as it is.
ALTER TABLE channels ADD COLUMN name text NOT NULL DEFAULT '';
