-- +goose Up

-- Who holds an identity, by its canonical form. The key makes one person one contact. A
-- server of the release before must not write by its own rules, so the table has another
-- name. Its rows are made from the contacts when the database is opened.
DROP TABLE identities;

CREATE TABLE claims (
    workspace_id uuid    NOT NULL,
    kind         text    COLLATE "C" NOT NULL, -- phone stands for whatsapp too
    value        text    COLLATE "C" NOT NULL,
    share        bigint NOT NULL, -- 0; more when contacts have shared the form since an older release
    contact_id   uuid    NOT NULL,
    PRIMARY KEY (workspace_id, kind, value, share)
);

-- The few that are shared.
CREATE INDEX claims_shared ON claims (workspace_id, kind, value) WHERE share > 0;

-- One row: the rules by which the claims were made.
CREATE TABLE claim_rules (
    one   integer PRIMARY KEY CHECK (one = 1),
    rules text NOT NULL
);

-- Whether a contact that has an external_id takes on no other one by a match.
ALTER TABLE workspaces ADD COLUMN external_ids_fixed boolean NOT NULL DEFAULT false;
