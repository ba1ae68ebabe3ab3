-- +goose Up

-- The provider's side of a channel, as JSON; '': there is none.
ALTER TABLE channels ADD COLUMN account TEXT NOT NULL DEFAULT '';

-- All channels of a kind, whosever they are.
CREATE INDEX channels_kind ON channels (kind, workspace_id, id);

-- When it came as a webhook, whose body is in webhooks; 0: it did not. And how much of
-- what it tells is taken in already.
ALTER TABLE notices ADD COLUMN webhook_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE notices ADD COLUMN skip INTEGER NOT NULL DEFAULT 0;

-- Which webhooks are still to be taken in.
CREATE INDEX notices_webhook ON notices (workspace_id, webhook_at, id) WHERE webhook_at > 0;

-- The bodies of webhooks, which outlast their notices. They may have megabytes, so the
-- key is apart from them.
CREATE TABLE webhooks (
    workspace_id BLOB    NOT NULL,
    at           INTEGER NOT NULL, -- when it came
    id           BLOB    NOT NULL, -- the notice's
    channel_id   BLOB    NOT NULL,
    body         BLOB    NOT NULL,
    PRIMARY KEY (workspace_id, at, id)
);

CREATE INDEX webhooks_channel ON webhooks (workspace_id, channel_id, at);

-- Of whom a webhook tells, by the values of their identities. It goes with any of them.
CREATE TABLE webhook_people (
    workspace_id BLOB    NOT NULL,
    value        TEXT    NOT NULL,
    at           INTEGER NOT NULL,
    id           BLOB    NOT NULL,
    PRIMARY KEY (workspace_id, value, at, id)
) WITHOUT ROWID;

CREATE INDEX webhook_people_webhook ON webhook_people (workspace_id, at, id);

-- Until when a bucket's places are taken, in microseconds since 1970 UTC.
CREATE TABLE pace (
    workspace_id BLOB    NOT NULL,
    bucket       TEXT    NOT NULL,
    until_us     INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, bucket)
) WITHOUT ROWID;
