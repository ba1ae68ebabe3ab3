-- +goose Up

-- The counter of hours by which keys, attempts and early statuses age. A server raises it
-- by one when it has seen it unchanged for an hour of its monotonic clock: so no clock
-- that is set moves it.
CREATE TABLE uptime (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    hour INTEGER NOT NULL
);

INSERT INTO uptime (one, hour) VALUES (1, 1);

-- In which hour an attempt was settled. What was settled before counts from now.
ALTER TABLE attempts ADD COLUMN settled_hour INTEGER NOT NULL DEFAULT 1;

CREATE INDEX attempts_settled ON attempts (workspace_id, settled_hour, id) WHERE settled_at > 0;

-- Of an unsettled one, for whom it is: a deletion finds it by both. The number is the
-- canonical one; '': it is settled or erased.
ALTER TABLE attempts ADD COLUMN contact_id BLOB;
ALTER TABLE attempts ADD COLUMN number TEXT NOT NULL DEFAULT '';

UPDATE attempts SET contact_id = unhex(json_extract(plan, '$.Contact'), '-'), number = coalesce(json_extract(plan, '$.Number'), '')
WHERE phase IN ('dispatching', 'in_doubt');

-- Three countries write a mobile number in two ways. One form stands for both.
UPDATE attempts SET number = CASE
    WHEN length(number) = 12 AND number GLOB '55[0-9][0-9][6-9]*' THEN substr(number, 1, 4) || '9' || substr(number, 5)
    WHEN length(number) = 13 AND number GLOB '521*' THEN '52' || substr(number, 4)
    WHEN length(number) = 13 AND number GLOB '549*' THEN '54' || substr(number, 4)
    ELSE number END
WHERE phase IN ('dispatching', 'in_doubt');

CREATE INDEX attempts_contact ON attempts (workspace_id, contact_id) WHERE phase IN ('dispatching', 'in_doubt');
CREATE INDEX attempts_number ON attempts (workspace_id, number) WHERE phase IN ('dispatching', 'in_doubt');

-- The list of those in doubt. From attempts_unsettled, by figures of the table, SQLite
-- reads both phases and sorts.
CREATE INDEX attempts_in_doubt ON attempts (workspace_id, id) WHERE phase = 'in_doubt';

-- In which hour it came.
ALTER TABLE early_statuses ADD COLUMN hour INTEGER NOT NULL DEFAULT 1;

DROP INDEX early_statuses_at;

CREATE INDEX early_statuses_hour ON early_statuses (workspace_id, hour);

-- Whether the provider lets the channel's account send, as JSON; '': nothing was said.
ALTER TABLE channels ADD COLUMN status TEXT NOT NULL DEFAULT '';

UPDATE channels SET status = json_object('Blocked', json_extract(account, '$.Blocked'), 'Until', json_extract(account, '$.BlockedUntil'),
    'Since', json_extract(account, '$.StandingAt'))
WHERE account <> '' AND json_extract(account, '$.StandingAt') IS NOT NULL;

-- Signs of life of a channel: when its templates were fetched last, and when the provider
-- last asked for the address that it reports to. 0: never. They were kept as leases.
CREATE TABLE channel_signs (
    workspace_id BLOB    NOT NULL,
    channel_id   BLOB    NOT NULL,
    synced_at    INTEGER NOT NULL DEFAULT 0,
    asked_at     INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (workspace_id, channel_id)
) WITHOUT ROWID;

INSERT INTO channel_signs (workspace_id, channel_id, synced_at)
SELECT workspace_id, unhex(substr(task, length('synced ') + 1), '-'), until FROM leases WHERE task GLOB 'synced *';

INSERT INTO channel_signs (workspace_id, channel_id, asked_at)
SELECT workspace_id, unhex(substr(task, length('handshake ') + 1), '-'), until FROM leases WHERE task GLOB 'handshake *'
ON CONFLICT DO UPDATE SET asked_at = excluded.asked_at;

DELETE FROM leases WHERE task GLOB 'synced *' OR task GLOB 'handshake *';

-- Whether the secrets that the first release sealed were sealed anew.
ALTER TABLE installation ADD COLUMN resealed INTEGER NOT NULL DEFAULT 0;
