-- +goose Up

-- The broadcast whose people an upload has; NULL: it has contacts. A server of the release before,
-- which knows only contacts, takes up what has a queued_at above 0: of people it is negative.
ALTER TABLE import_uploads ADD COLUMN broadcast_id BLOB CHECK (broadcast_id IS NULL OR queued_at <= 0);
