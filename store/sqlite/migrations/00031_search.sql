-- +goose Up

-- The terms by which a text finds contacts.
CREATE TABLE search_terms (
    workspace_id BLOB NOT NULL,
    contact_id   BLOB NOT NULL,
    term         TEXT NOT NULL, -- a letter, then the folded text
    PRIMARY KEY (workspace_id, contact_id, term)
) WITHOUT ROWID;

CREATE UNIQUE INDEX search_terms_found ON search_terms (workspace_id, term, contact_id DESC);

-- How far the contacts of a workspace are indexed: the changes up to an event, and while the
-- terms are first built, the contacts up to an id.
CREATE TABLE search_places (
    workspace_id BLOB    NOT NULL PRIMARY KEY,
    rules        INTEGER NOT NULL, -- the version of the rules by which terms are made
    seq          INTEGER NOT NULL,
    tag          INTEGER NOT NULL,
    built        BLOB              -- NULL: all contacts are indexed
) WITHOUT ROWID;
