-- +goose Up

-- One row for the whole installation: which secret key it was made with.
CREATE TABLE installation (
    one         INTEGER PRIMARY KEY CHECK (one = 1),
    fingerprint TEXT NOT NULL
);

CREATE TABLE workspaces (
    id        BLOB    NOT NULL PRIMARY KEY,
    name      TEXT    NOT NULL,
    country   TEXT    NOT NULL,
    version   INTEGER NOT NULL  -- of the configuration: this row, attributes, members, keys
) WITHOUT ROWID;

-- The only table that is not a workspace's: what leads to one from outside.
CREATE TABLE directory (
    kind         TEXT NOT NULL, -- key (by public id), key_id, member
    ref          TEXT NOT NULL,
    workspace_id BLOB NOT NULL,
    PRIMARY KEY (kind, ref)
) WITHOUT ROWID;

CREATE TABLE members (
    workspace_id BLOB NOT NULL,
    id           BLOB NOT NULL,
    name         TEXT NOT NULL,
    email        TEXT NOT NULL,
    email_folded TEXT NOT NULL,
    role         TEXT NOT NULL,
    PRIMARY KEY (workspace_id, id),
    UNIQUE (workspace_id, email_folded)
) WITHOUT ROWID;

CREATE TABLE api_keys (
    workspace_id BLOB    NOT NULL,
    id           BLOB    NOT NULL,
    public_id    TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    permissions  TEXT    NOT NULL,
    secret_hash  BLOB    NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL, -- 0: never
    revoked_at   INTEGER NOT NULL, -- 0: not revoked
    PRIMARY KEY (workspace_id, id)
) WITHOUT ROWID;

CREATE TABLE attributes (
    workspace_id BLOB    NOT NULL,
    key          TEXT    NOT NULL,
    label        TEXT    NOT NULL,
    description  TEXT    NOT NULL,
    type         TEXT    NOT NULL,
    options      TEXT    NOT NULL, -- a JSON array of strings
    position     INTEGER NOT NULL,
    archived     INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, key)
) WITHOUT ROWID;

CREATE TABLE contacts (
    workspace_id BLOB    NOT NULL,
    id           BLOB    NOT NULL,
    external_id  TEXT    NOT NULL, -- '' is null, here and below
    name         TEXT    NOT NULL,
    email        TEXT    NOT NULL,
    phone        TEXT    NOT NULL, -- digits
    note         TEXT    NOT NULL,
    attributes   TEXT    NOT NULL, -- a JSON object, as the API answers it
    further      TEXT    NOT NULL, -- a JSON array of kind, value, kind, value...
    owner_id     BLOB,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    version      INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, id)
) WITHOUT ROWID;

-- The export order of GET /contacts.
CREATE INDEX contacts_updated ON contacts (workspace_id, updated_at, id);

-- The same for one owner; contacts of the shared pool cost nothing here.
CREATE INDEX contacts_owned ON contacts (workspace_id, owner_id, updated_at, id) WHERE owner_id IS NOT NULL;

-- Who holds an identity. The key is what makes one person one contact.
CREATE TABLE identities (
    workspace_id BLOB NOT NULL,
    kind         TEXT NOT NULL, -- phone stands for whatsapp too
    value        TEXT NOT NULL,
    contact_id   BLOB NOT NULL,
    PRIMARY KEY (workspace_id, kind, value)
) WITHOUT ROWID;

-- Accepted changes, in commit order within a workspace.
CREATE TABLE events (
    workspace_id BLOB    NOT NULL,
    seq          INTEGER NOT NULL,
    at           INTEGER NOT NULL,
    kind         TEXT    NOT NULL,
    subject_id   BLOB    NOT NULL,
    actor_id     BLOB    NOT NULL,
    changed      TEXT    NOT NULL, -- names of fields, comma-separated; never values
    PRIMARY KEY (workspace_id, seq)
) WITHOUT ROWID;
