-- +goose Up

-- When the workspace's events were last counted, in milliseconds. A process reads only the
-- counters that have changed. Servers of the previous release do not write it.
ALTER TABLE event_counters ADD COLUMN counted_at bigint NOT NULL DEFAULT 0;
