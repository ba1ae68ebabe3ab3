-- +goose Up

-- Of an event: the id of a record without a UUID (NULL in an event that an older release
-- wrote, which is not in the feed), the conversation and the contact concerned, and a
-- message's time, which finds its row.
ALTER TABLE events ADD COLUMN subject_key text;
ALTER TABLE events ADD COLUMN conversation_id uuid;
ALTER TABLE events ADD COLUMN contact_id uuid;
ALTER TABLE events ADD COLUMN message_ts bigint;

-- The newest event that has left the feed, by number and tag (desk.Event.Tag). The feed
-- begins with this migration.
CREATE TABLE event_floors (
    workspace_id uuid   NOT NULL PRIMARY KEY,
    seq          bigint NOT NULL,
    tag          bigint NOT NULL
);
INSERT INTO event_floors SELECT workspace_id, seq, 0 FROM event_counters;
