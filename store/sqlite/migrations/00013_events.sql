-- +goose Up

-- Of an event: the id of a record without a UUID (NULL in an event that an older release
-- wrote, which is not in the feed), the conversation and the contact concerned, and a
-- message's time, which finds its row.
ALTER TABLE events ADD COLUMN subject_key TEXT;
ALTER TABLE events ADD COLUMN conversation_id BLOB;
ALTER TABLE events ADD COLUMN contact_id BLOB;
ALTER TABLE events ADD COLUMN message_ts INTEGER;

-- The newest event that has left the feed, by number and tag (desk.Event.Tag). Numbers
-- go on after it even if no event is left. The feed begins with this migration.
CREATE TABLE event_floors (
    workspace_id BLOB    NOT NULL PRIMARY KEY,
    seq          INTEGER NOT NULL,
    tag          INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO event_floors SELECT workspace_id, max(seq), 0 FROM events GROUP BY workspace_id;
