-- +goose Up

-- Deliveries of events to webhooks, from their first attempt on: which event, by number
-- and tag, and whose data an answer may repeat. due_at is when the next attempt is due by
-- the schedule, of which steps are used; settled_at is 0 while the delivery is pending.
-- attempts are the newest ones as JSON, without the answers.
CREATE TABLE deliveries (
    workspace_id BLOB    NOT NULL,
    webhook_id   BLOB    NOT NULL,
    id           BLOB    NOT NULL,
    seq          INTEGER NOT NULL,
    tag          INTEGER NOT NULL,
    type         TEXT    NOT NULL,
    contact_id   BLOB,
    status       TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    due_at       INTEGER NOT NULL,
    tried_at     INTEGER NOT NULL,
    steps        INTEGER NOT NULL,
    settled_at   INTEGER NOT NULL,
    attempts     TEXT    NOT NULL,
    PRIMARY KEY (workspace_id, webhook_id, id)
) WITHOUT ROWID;
CREATE INDEX deliveries_status ON deliveries (workspace_id, webhook_id, status, id);
CREATE INDEX deliveries_event ON deliveries (workspace_id, webhook_id, seq, id);

-- The answers to attempts that failed, by the contact that the event is about, with whom
-- they go; the zero id is of events about nobody. at is when the attempt began.
CREATE TABLE delivery_responses (
    workspace_id BLOB    NOT NULL,
    contact_id   BLOB    NOT NULL,
    delivery_id  BLOB    NOT NULL,
    at           INTEGER NOT NULL,
    response     TEXT    NOT NULL,
    PRIMARY KEY (workspace_id, contact_id, delivery_id, at)
) WITHOUT ROWID;

-- Who has a lease that is extended, and how often others called its holder.
ALTER TABLE leases ADD COLUMN holder BLOB;
ALTER TABLE leases ADD COLUMN calls INTEGER NOT NULL DEFAULT 0;
