-- +goose Up

-- Text that is a key or is ordered compares by its bytes, whatever the database's
-- own collation: COLLATE "C". Moments are milliseconds since 1970 UTC.

-- One row for the whole installation: which secret key it was made with.
CREATE TABLE installation (
    one         integer PRIMARY KEY CHECK (one = 1),
    fingerprint text NOT NULL
);

CREATE TABLE workspaces (
    id        uuid   NOT NULL PRIMARY KEY,
    name      text   NOT NULL,
    country   text   NOT NULL,
    version   bigint NOT NULL -- of the configuration: this row, attributes, members, keys, channels
);

-- The only table that is not a workspace's: what leads to one from outside.
CREATE TABLE directory (
    kind         text COLLATE "C" NOT NULL, -- key (by public id), key_id, member, channel
    ref          text COLLATE "C" NOT NULL,
    workspace_id uuid NOT NULL,
    PRIMARY KEY (kind, ref)
);

CREATE TABLE members (
    workspace_id uuid NOT NULL,
    id           uuid NOT NULL,
    name         text NOT NULL,
    email        text NOT NULL,
    email_folded text COLLATE "C" NOT NULL,
    role         text NOT NULL,
    PRIMARY KEY (workspace_id, id),
    UNIQUE (workspace_id, email_folded)
);

CREATE TABLE api_keys (
    workspace_id uuid   NOT NULL,
    id           uuid   NOT NULL,
    public_id    text   NOT NULL,
    name         text   NOT NULL,
    permissions  text   NOT NULL,
    secret_hash  bytea  NOT NULL,
    created_at   bigint NOT NULL,
    expires_at   bigint NOT NULL, -- 0: never
    revoked_at   bigint NOT NULL, -- 0: not revoked
    PRIMARY KEY (workspace_id, id)
);

CREATE TABLE attributes (
    workspace_id uuid    NOT NULL,
    key          text COLLATE "C" NOT NULL,
    label        text    NOT NULL,
    description  text    NOT NULL,
    type         text    NOT NULL,
    options      text    NOT NULL, -- a JSON array of strings
    position     bigint  NOT NULL,
    archived     boolean NOT NULL,
    PRIMARY KEY (workspace_id, key)
);

CREATE TABLE contacts (
    workspace_id uuid   NOT NULL,
    id           uuid   NOT NULL,
    external_id  text   NOT NULL, -- '' is null, here and below
    name         text   NOT NULL,
    email        text   NOT NULL,
    phone        text   NOT NULL, -- digits
    note         text   NOT NULL,
    attributes   text   NOT NULL, -- a JSON object, as the API answers it; jsonb would reorder it
    further      text   NOT NULL, -- a JSON array of kind, value, kind, value...
    owner_id     uuid,
    created_at   bigint NOT NULL,
    updated_at   bigint NOT NULL,
    version      bigint NOT NULL, -- what a flush has loaded must still be what it replaces
    PRIMARY KEY (workspace_id, id)
);

-- The export order of GET /contacts.
CREATE INDEX contacts_updated ON contacts (workspace_id, updated_at, id);

-- The same for one owner; contacts of the shared pool cost nothing here.
CREATE INDEX contacts_owned ON contacts (workspace_id, owner_id, updated_at, id) WHERE owner_id IS NOT NULL;

-- Who holds an identity. The key is what makes one person one contact.
CREATE TABLE identities (
    workspace_id uuid NOT NULL,
    kind         text COLLATE "C" NOT NULL, -- phone stands for whatsapp too
    value        text COLLATE "C" NOT NULL,
    contact_id   uuid NOT NULL,
    PRIMARY KEY (workspace_id, kind, value)
);

-- Accepted changes, in commit order within a workspace.
CREATE TABLE events (
    workspace_id uuid   NOT NULL,
    seq          bigint NOT NULL,
    at           bigint NOT NULL,
    kind         text   NOT NULL,
    subject_id   uuid   NOT NULL,
    actor_id     uuid   NOT NULL,
    changed      text   NOT NULL, -- names of fields, comma-separated; never values
    PRIMARY KEY (workspace_id, seq)
);

-- The number of each workspace's newest event. Whoever raises it commits before the
-- next one may: that makes the numbers grow in commit order. The rows are rewritten
-- all the time, so each page keeps room to do it in place.
CREATE TABLE event_counters (
    workspace_id uuid   NOT NULL PRIMARY KEY,
    seq          bigint NOT NULL
) WITH (fillfactor = 20);
