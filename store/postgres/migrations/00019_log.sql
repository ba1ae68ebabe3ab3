-- +goose Up

-- The events about settings, which are few, for the log of them. Those of contacts,
-- conversations, messages and templates are not in it, so their writes do not touch it.
CREATE INDEX events_settings ON events (workspace_id, seq DESC NULLS LAST)
    WHERE (kind COLLATE "C" < 'con' OR kind COLLATE "C" >= 'k' AND kind COLLATE "C" < 'mes' OR kind COLLATE "C" >= 'w');
