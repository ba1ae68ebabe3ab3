-- +goose Up

-- Members who get no conversations from the reply policy now.
ALTER TABLE members ADD COLUMN away INTEGER NOT NULL DEFAULT 0;

-- Saved replies.
CREATE TABLE snippets (
    workspace_id BLOB    NOT NULL,
    shortcut     TEXT    NOT NULL,
    text         TEXT    NOT NULL,
    updated_at   INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, shortcut)
) WITHOUT ROWID;

-- The log of settings has the events about the reply policy and saved replies, too.
DROP INDEX events_settings;
CREATE INDEX events_settings ON events (workspace_id, seq)
    WHERE (kind < 'con' OR kind >= 'k' AND kind < 'mes' OR kind >= 'po' AND kind < 'pp' OR kind >= 'sn' AND kind < 'so' OR kind >= 'w');
