-- +goose Up

-- Connections to providers. They are part of the configuration that
-- workspaces.version counts, and the directory knows them as the kind channel.
CREATE TABLE channels (
    workspace_id uuid    NOT NULL,
    id           uuid    NOT NULL,
    kind         text COLLATE "C" NOT NULL,
    external_id  text COLLATE "C" NOT NULL,
    enabled      boolean NOT NULL,
    created_at   bigint  NOT NULL,
    library      bigint  NOT NULL, -- version of its templates
    bindings     text    NOT NULL, -- a JSON array of [template, language, address, binding]
    PRIMARY KEY (workspace_id, id),
    UNIQUE (workspace_id, kind, external_id)
);

-- The mirror of each channel's library.
CREATE TABLE templates (
    workspace_id uuid NOT NULL,
    channel_id   uuid NOT NULL,
    name         text COLLATE "C" NOT NULL,
    language     text COLLATE "C" NOT NULL,
    source       text NOT NULL, -- the provider's JSON
    PRIMARY KEY (workspace_id, channel_id, name, language)
);

-- The same at the provider that a sandbox channel plays.
CREATE TABLE sandbox_templates (
    workspace_id uuid NOT NULL,
    channel_id   uuid NOT NULL,
    name         text COLLATE "C" NOT NULL,
    language     text COLLATE "C" NOT NULL,
    source       text NOT NULL,
    PRIMARY KEY (workspace_id, channel_id, name, language)
);

CREATE TABLE conversations (
    workspace_id       uuid   NOT NULL,
    id                 uuid   NOT NULL,
    channel_id         uuid   NOT NULL,
    contact_id         uuid   NOT NULL,
    status             text COLLATE "C" NOT NULL,
    assigned_member_id uuid,
    assigned_via       text   NOT NULL, -- '' when unassigned
    preview            text   NOT NULL,
    last_message_at    bigint NOT NULL,
    created_at         bigint NOT NULL,
    PRIMARY KEY (workspace_id, id)
);

-- What keeps a contact's open conversation on a channel the only one.
CREATE UNIQUE INDEX conversations_open ON conversations (workspace_id, channel_id, contact_id) WHERE status = 'open';

-- A contact's conversations, few enough to be sorted when they are read: so a
-- message, which moves its conversation up in the lists, has nothing to write here.
CREATE INDEX conversations_contact ON conversations (workspace_id, contact_id);

-- The list, newest first. With the status in front, the few open ones are found among
-- however many archived ones; the list of all is merged from the three.
CREATE INDEX conversations_recent ON conversations (workspace_id, status, last_message_at, created_at, id);

-- The same for one holder; unassigned ones cost nothing here.
CREATE INDEX conversations_held ON conversations (workspace_id, assigned_member_id, status, last_message_at, created_at, id)
    WHERE assigned_member_id IS NOT NULL;

CREATE TABLE messages (
    workspace_id    uuid   NOT NULL,
    conversation_id uuid   NOT NULL,
    ts              bigint NOT NULL,
    id              uuid   NOT NULL,
    channel_id      uuid   NOT NULL,
    direction       text   NOT NULL,
    external_id     text COLLATE "C" NOT NULL, -- '': not known
    text            text   NOT NULL,
    delivery        text   NOT NULL, -- '' of an inbound one
    failure         text   NOT NULL, -- JSON; '': none
    opt_in_key      uuid,
    opt_in_at       bigint NOT NULL, -- 0: no opt-in
    opt_in_request  uuid,
    PRIMARY KEY (workspace_id, conversation_id, ts, id)
);

-- The provider's reports name messages by its own id.
CREATE UNIQUE INDEX messages_external ON messages (workspace_id, channel_id, external_id) WHERE external_id <> '';

-- Which attempt holds an Idempotency-Key.
CREATE TABLE send_keys (
    workspace_id uuid NOT NULL,
    key          text COLLATE "C" NOT NULL,
    attempt_id   uuid NOT NULL,
    PRIMARY KEY (workspace_id, key)
);

-- The log of sends. The answer stands in the row: a transaction that has waited for a
-- row's lock sees the row as it is then, but what is joined to it as it was before.
CREATE TABLE attempts (
    workspace_id uuid    NOT NULL,
    id           uuid    NOT NULL,
    key          text    NOT NULL,
    hash         bytea   NOT NULL,
    actor_id     uuid    NOT NULL,
    phase        text COLLATE "C" NOT NULL,
    created_at   bigint  NOT NULL,
    lease_until  bigint  NOT NULL,
    settled_at   bigint  NOT NULL, -- 0: not settled
    plan         text    NOT NULL, -- JSON
    external_id  text    NOT NULL,
    response     bytea,            -- the stored answer of one that is done
    refusal      text    NOT NULL, -- JSON; '': none
    notes        text    NOT NULL, -- a JSON array of strings; '': none
    erased       boolean NOT NULL,
    PRIMARY KEY (workspace_id, id)
);

-- The few that are not settled. The sweeper looks through those of all workspaces, so
-- the phase leads.
CREATE INDEX attempts_unsettled ON attempts (phase, workspace_id, id) WHERE phase IN ('dispatching', 'in_doubt');

-- Who takes no marketing. It outlives the contact, so it holds a hash of the number.
CREATE TABLE opt_outs (
    workspace_id uuid   NOT NULL,
    number_hash  bytea  NOT NULL,
    since        bigint NOT NULL, -- 0: takes it
    at           bigint NOT NULL, -- when that was said
    PRIMARY KEY (workspace_id, number_hash)
);

-- Reports on messages that are not known yet. A report is its own key: one that comes
-- twice is kept once.
CREATE TABLE early_statuses (
    workspace_id uuid   NOT NULL,
    channel_id   uuid   NOT NULL,
    external_id  text COLLATE "C" NOT NULL,
    at           bigint NOT NULL,
    delivery     text COLLATE "C" NOT NULL,
    attempt_id   uuid   NOT NULL,
    failure      text COLLATE "C" NOT NULL, -- JSON; '': none
    PRIMARY KEY (workspace_id, channel_id, external_id, at, delivery, attempt_id, failure)
);

CREATE INDEX early_statuses_at ON early_statuses (workspace_id, at);

-- What providers said and nobody has taken in yet, by when that is due.
CREATE TABLE notices (
    workspace_id uuid   NOT NULL,
    due_at       bigint NOT NULL,
    id           uuid   NOT NULL,
    channel_id   uuid   NOT NULL,
    body         bytea  NOT NULL,
    PRIMARY KEY (workspace_id, due_at, id)
);
