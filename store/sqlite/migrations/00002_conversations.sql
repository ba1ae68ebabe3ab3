-- +goose Up

-- Connections to providers. They are part of the configuration that
-- workspaces.version counts, and the directory knows them as the kind channel.
CREATE TABLE channels (
    workspace_id BLOB    NOT NULL,
    id           BLOB    NOT NULL,
    kind         TEXT    NOT NULL,
    external_id  TEXT    NOT NULL,
    enabled      INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    library      INTEGER NOT NULL, -- version of its templates
    bindings     TEXT    NOT NULL, -- a JSON array of [template, language, address, binding]
    PRIMARY KEY (workspace_id, id),
    UNIQUE (workspace_id, kind, external_id)
) WITHOUT ROWID;

-- The mirror of each channel's library. The sources are several kilobytes each, and
-- a table WITHOUT ROWID would move most of a row to a page of its own.
CREATE TABLE templates (
    workspace_id BLOB NOT NULL,
    channel_id   BLOB NOT NULL,
    name         TEXT NOT NULL,
    language     TEXT NOT NULL,
    source       TEXT NOT NULL, -- the provider's JSON
    PRIMARY KEY (workspace_id, channel_id, name, language)
);

-- The same at the provider that a sandbox channel plays.
CREATE TABLE sandbox_templates (
    workspace_id BLOB NOT NULL,
    channel_id   BLOB NOT NULL,
    name         TEXT NOT NULL,
    language     TEXT NOT NULL,
    source       TEXT NOT NULL,
    PRIMARY KEY (workspace_id, channel_id, name, language)
);

CREATE TABLE conversations (
    workspace_id       BLOB    NOT NULL,
    id                 BLOB    NOT NULL,
    channel_id         BLOB    NOT NULL,
    contact_id         BLOB    NOT NULL,
    status             TEXT    NOT NULL,
    assigned_member_id BLOB,
    assigned_via       TEXT    NOT NULL, -- '' when unassigned
    preview            TEXT    NOT NULL,
    last_message_at    INTEGER NOT NULL,
    created_at         INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, id)
) WITHOUT ROWID;

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
    workspace_id    BLOB    NOT NULL,
    conversation_id BLOB    NOT NULL,
    ts              INTEGER NOT NULL,
    id              BLOB    NOT NULL,
    channel_id      BLOB    NOT NULL,
    direction       TEXT    NOT NULL,
    external_id     TEXT    NOT NULL, -- '': not known
    text            TEXT    NOT NULL,
    delivery        TEXT    NOT NULL, -- '' of an inbound one
    failure         TEXT    NOT NULL, -- JSON; '': none
    opt_in_key      BLOB,
    opt_in_at       INTEGER NOT NULL, -- 0: no opt-in
    opt_in_request  BLOB,
    PRIMARY KEY (workspace_id, conversation_id, ts, id)
) WITHOUT ROWID;

-- The provider's reports name messages by its own id.
CREATE UNIQUE INDEX messages_external ON messages (workspace_id, channel_id, external_id) WHERE external_id <> '';

-- Which attempt holds an Idempotency-Key.
CREATE TABLE send_keys (
    workspace_id BLOB NOT NULL,
    key          TEXT NOT NULL,
    attempt_id   BLOB NOT NULL,
    PRIMARY KEY (workspace_id, key)
) WITHOUT ROWID;

-- The log of sends. Ids grow with time, so new rows share the last pages of the table
-- and of its key; WITHOUT ROWID, each row of some kilobytes would take a page more.
CREATE TABLE attempts (
    workspace_id BLOB    NOT NULL,
    id           BLOB    NOT NULL,
    key          TEXT    NOT NULL,
    hash         BLOB    NOT NULL,
    actor_id     BLOB    NOT NULL,
    phase        TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    lease_until  INTEGER NOT NULL,
    settled_at   INTEGER NOT NULL, -- 0: not settled
    plan         TEXT    NOT NULL, -- JSON
    external_id  TEXT    NOT NULL,
    refusal      TEXT    NOT NULL, -- JSON; '': none
    notes        TEXT    NOT NULL, -- a JSON array of strings; '': none
    erased       INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, id)
);

-- The stored answers of those that are done. In the attempt's own row one would make it
-- grow, and split its page, with every send.
CREATE TABLE send_answers (
    workspace_id BLOB NOT NULL,
    attempt_id   BLOB NOT NULL,
    response     BLOB NOT NULL,
    PRIMARY KEY (workspace_id, attempt_id)
);

-- The few that are not settled. The sweeper looks through those of all workspaces, so
-- the phase leads.
CREATE INDEX attempts_unsettled ON attempts (phase, workspace_id, id) WHERE phase IN ('dispatching', 'in_doubt');

-- Who takes no marketing. It outlives the contact, so it holds a hash of the number.
CREATE TABLE opt_outs (
    workspace_id BLOB    NOT NULL,
    number_hash  BLOB    NOT NULL,
    since        INTEGER NOT NULL, -- 0: takes it
    at           INTEGER NOT NULL, -- when that was said
    PRIMARY KEY (workspace_id, number_hash)
) WITHOUT ROWID;

-- Reports on messages that are not known yet. A report is its own key: one that comes
-- twice is kept once.
CREATE TABLE early_statuses (
    workspace_id BLOB    NOT NULL,
    channel_id   BLOB    NOT NULL,
    external_id  TEXT    NOT NULL,
    at           INTEGER NOT NULL,
    delivery     TEXT    NOT NULL,
    attempt_id   BLOB    NOT NULL,
    failure      TEXT    NOT NULL, -- JSON; '': none
    PRIMARY KEY (workspace_id, channel_id, external_id, at, delivery, attempt_id, failure)
) WITHOUT ROWID;

CREATE INDEX early_statuses_at ON early_statuses (workspace_id, at);

-- What providers said and nobody has taken in yet, by when that is due.
CREATE TABLE notices (
    workspace_id BLOB    NOT NULL,
    due_at       INTEGER NOT NULL,
    id           BLOB    NOT NULL,
    channel_id   BLOB    NOT NULL,
    body         BLOB    NOT NULL,
    PRIMARY KEY (workspace_id, due_at, id)
) WITHOUT ROWID;
