-- +goose Up

-- What kind of caller did something: key, member, provider, cli, system. Events of the
-- first release have none; its attempts were all of keys.
ALTER TABLE events ADD COLUMN actor_kind TEXT NOT NULL DEFAULT '';
ALTER TABLE attempts ADD COLUMN actor_kind TEXT NOT NULL DEFAULT 'key';
