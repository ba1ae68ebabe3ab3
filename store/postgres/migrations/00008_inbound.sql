-- +goose Up

-- A server of the release before that still runs must fail from here on. Each of its
-- transactions, and each look-up of a key, reads this column first.
ALTER TABLE workspaces RENAME COLUMN version TO settings_version;

-- What comes in from a provider has names of its own: a request of the provider is a
-- callback, and one thing that it told and that is still to be taken in an inbound item.
ALTER TABLE notices RENAME TO inbound_items;
ALTER TABLE inbound_items RENAME COLUMN webhook_at TO received_at; -- of the callback that has the body; 0: body is all
ALTER INDEX notices_pkey RENAME TO inbound_items_pkey;
ALTER INDEX notices_webhook RENAME TO inbound_items_received;

ALTER TABLE webhooks RENAME TO callbacks;
ALTER TABLE callbacks RENAME COLUMN at TO received_at;
ALTER INDEX webhooks_pkey RENAME TO callbacks_pkey;
ALTER INDEX webhooks_channel RENAME TO callbacks_channel;

ALTER TABLE webhook_people RENAME TO callback_people;
ALTER TABLE callback_people RENAME COLUMN at TO received_at;
ALTER INDEX webhook_people_pkey RENAME TO callback_people_pkey;
ALTER INDEX webhook_people_webhook RENAME TO callback_people_callback;

-- A member of the JSON, in which a quotation mark within a text has a backslash before it.
UPDATE channels SET account = replace(account, '"StandingAt":', '"StatusAt":') WHERE account <> '';
