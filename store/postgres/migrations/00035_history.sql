-- +goose Up

-- The history of contacts: the event of a contact's creation, and its newest changes. It
-- outlives the events of the feed. Like events, it has no value of a person.
CREATE TABLE history (
    workspace_id uuid   NOT NULL,
    contact_id   uuid   NOT NULL,
    seq          bigint NOT NULL, -- of the event
    tag          bigint NOT NULL,
    at           bigint NOT NULL,
    kind         text   NOT NULL,
    actor_kind   text   NOT NULL,
    actor_id     uuid   NOT NULL,
    changed      text   NOT NULL,
    PRIMARY KEY (workspace_id, contact_id, seq)
);

-- Up to which event of the feed the history is kept.
CREATE TABLE history_places (
    workspace_id uuid   NOT NULL PRIMARY KEY,
    seq          bigint NOT NULL,
    tag          bigint NOT NULL
);
