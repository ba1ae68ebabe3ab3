-- +goose Up

-- Members who get no conversations from the reply policy now.
ALTER TABLE members ADD COLUMN away boolean NOT NULL DEFAULT false;

-- Saved replies.
CREATE TABLE snippets (
    workspace_id uuid   NOT NULL,
    shortcut     text   COLLATE "C" NOT NULL,
    text         text   NOT NULL,
    updated_at   bigint NOT NULL,
    PRIMARY KEY (workspace_id, shortcut)
);

-- The log of settings has the events about the reply policy and saved replies, too.
DROP INDEX events_settings;
CREATE INDEX events_settings ON events (workspace_id, seq DESC NULLS LAST)
    WHERE (kind COLLATE "C" < 'con' OR kind COLLATE "C" >= 'k' AND kind COLLATE "C" < 'mes' OR kind COLLATE "C" >= 'po' AND kind COLLATE "C" < 'pp'
        OR kind COLLATE "C" >= 'sn' AND kind COLLATE "C" < 'so' OR kind COLLATE "C" >= 'w');
