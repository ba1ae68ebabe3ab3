-- +goose Up

-- When the newest of a channel's callbacks came that were deleted since. 0: none.
ALTER TABLE channel_signs ADD COLUMN called_at INTEGER NOT NULL DEFAULT 0;
