-- +goose Up

-- Deliveries of events to webhooks, from their first attempt on: which event, by number
-- and tag, and whose data an answer may repeat. due_at is when the next attempt is due by
-- the schedule, of which steps are used; settled_at is 0 while the delivery is pending.
-- attempts are the newest ones as JSON, without the answers.
CREATE TABLE deliveries (
    workspace_id uuid   NOT NULL,
    webhook_id   uuid   NOT NULL,
    id           uuid   NOT NULL,
    seq          bigint NOT NULL,
    tag          bigint NOT NULL,
    type         text   NOT NULL,
    contact_id   uuid,
    status       text   COLLATE "C" NOT NULL,
    created_at   bigint NOT NULL,
    due_at       bigint NOT NULL,
    tried_at     bigint NOT NULL,
    steps        bigint NOT NULL,
    settled_at   bigint NOT NULL,
    attempts     text   NOT NULL,
    PRIMARY KEY (workspace_id, webhook_id, id)
);
CREATE INDEX deliveries_status ON deliveries (workspace_id, webhook_id, status, id);
CREATE INDEX deliveries_event ON deliveries (workspace_id, webhook_id, seq, id);

-- The answers to attempts that failed, by the contact that the event is about, with whom
-- they go; the zero id is of events about nobody. at is when the attempt began.
CREATE TABLE delivery_responses (
    workspace_id uuid   NOT NULL,
    contact_id   uuid   NOT NULL,
    delivery_id  uuid   NOT NULL,
    at           bigint NOT NULL,
    response     text   NOT NULL,
    PRIMARY KEY (workspace_id, contact_id, delivery_id, at)
);

-- Who has a lease that is extended, and how often others called its holder.
ALTER TABLE leases ADD COLUMN holder uuid;
ALTER TABLE leases ADD COLUMN calls bigint NOT NULL DEFAULT 0;
