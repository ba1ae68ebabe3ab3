-- +goose Up

-- A server of the release before that still runs must fail from here on. Each of its
-- transactions, and each look-up of a key, reads this column first.
ALTER TABLE workspaces RENAME COLUMN version TO settings_version;

-- What comes in from a provider has names of its own: a request of the provider is a
-- callback, and one thing that it told and that is still to be taken in an inbound item.
ALTER TABLE notices RENAME TO inbound_items;
ALTER TABLE inbound_items RENAME COLUMN webhook_at TO received_at; -- of the callback that has the body; 0: body is all
DROP INDEX notices_webhook;
CREATE INDEX inbound_items_received ON inbound_items (workspace_id, received_at, id) WHERE received_at > 0;

ALTER TABLE webhooks RENAME TO callbacks;
ALTER TABLE callbacks RENAME COLUMN at TO received_at;
DROP INDEX webhooks_channel;
CREATE INDEX callbacks_channel ON callbacks (workspace_id, channel_id, received_at);

ALTER TABLE webhook_people RENAME TO callback_people;
ALTER TABLE callback_people RENAME COLUMN at TO received_at;
DROP INDEX webhook_people_webhook;
CREATE INDEX callback_people_callback ON callback_people (workspace_id, received_at, id);

-- A member of the JSON, in which a quotation mark within a text has a backslash before it.
UPDATE channels SET account = replace(account, '"StandingAt":', '"StatusAt":') WHERE account <> '';
