-- +goose Up

-- When the message of a row was sent, and on which channel: what the person writes after it counts
-- for the broadcast. 0: no message is known.
ALTER TABLE broadcast_rows ADD COLUMN sent_at bigint NOT NULL DEFAULT 0;
ALTER TABLE broadcast_rows ADD COLUMN channel_id uuid;
CREATE INDEX broadcast_rows_sent ON broadcast_rows (workspace_id, contact_id, channel_id, sent_at) WHERE sent_at > 0;
