-- +goose Up

-- The terms by which a text finds contacts.
CREATE TABLE search_terms (
    workspace_id uuid             NOT NULL,
    contact_id   uuid             NOT NULL,
    term         text COLLATE "C" NOT NULL, -- a letter, then the folded text
    PRIMARY KEY (workspace_id, contact_id, term)
);

CREATE UNIQUE INDEX search_terms_found ON search_terms (workspace_id, term, contact_id DESC);

-- How far the contacts of a workspace are indexed: the changes up to an event, and while the
-- terms are first built, the contacts up to an id.
CREATE TABLE search_places (
    workspace_id uuid   NOT NULL PRIMARY KEY,
    rules        bigint NOT NULL, -- the version of the rules by which terms are made
    seq          bigint NOT NULL,
    tag          bigint NOT NULL,
    built        uuid             -- NULL: all contacts are indexed
);
