-- +goose Up

-- The provider's side of a channel, as JSON; '': there is none.
ALTER TABLE channels ADD COLUMN account text NOT NULL DEFAULT '';

-- All channels of a kind, whosever they are.
CREATE INDEX channels_kind ON channels (kind, workspace_id, id);

-- When it came as a webhook, whose body is in webhooks; 0: it did not. And how much of
-- what it tells is taken in already.
ALTER TABLE notices ADD COLUMN webhook_at bigint NOT NULL DEFAULT 0, ADD COLUMN skip bigint NOT NULL DEFAULT 0;

-- Which webhooks are still to be taken in.
CREATE INDEX notices_webhook ON notices (workspace_id, webhook_at, id) WHERE webhook_at > 0;

-- The bodies of webhooks, which outlast their notices.
CREATE TABLE webhooks (
    workspace_id uuid   NOT NULL,
    at           bigint NOT NULL, -- when it came
    id           uuid   NOT NULL, -- the notice's
    channel_id   uuid   NOT NULL,
    body         bytea  NOT NULL,
    PRIMARY KEY (workspace_id, at, id)
);

CREATE INDEX webhooks_channel ON webhooks (workspace_id, channel_id, at);

-- Of whom a webhook tells, by the values of their identities. It goes with any of them.
CREATE TABLE webhook_people (
    workspace_id uuid   NOT NULL,
    value        text COLLATE "C" NOT NULL,
    at           bigint NOT NULL,
    id           uuid   NOT NULL,
    PRIMARY KEY (workspace_id, value, at, id)
);

CREATE INDEX webhook_people_webhook ON webhook_people (workspace_id, at, id);

-- Until when a bucket's places are taken, in microseconds since 1970 UTC. The rows are
-- rewritten all the time, so each page keeps room to do it in place.
CREATE TABLE pace (
    workspace_id uuid   NOT NULL,
    bucket       text COLLATE "C" NOT NULL,
    until_us     bigint NOT NULL,
    PRIMARY KEY (workspace_id, bucket)
) WITH (fillfactor = 50);
