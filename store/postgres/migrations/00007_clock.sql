-- +goose Up

-- The counter of hours by which keys, attempts and early statuses age. A server raises it
-- by one when it has seen it unchanged for an hour of its monotonic clock: so no clock
-- that is set moves it.
CREATE TABLE uptime (
    one  integer PRIMARY KEY CHECK (one = 1),
    hour bigint  NOT NULL
);

INSERT INTO uptime (one, hour) VALUES (1, 1);

-- In which hour an attempt was settled. What was settled before counts from now. Of an
-- unsettled one, for whom it is: a deletion finds it by both. The number is the canonical
-- one; '': it is settled or erased.
ALTER TABLE attempts ADD COLUMN settled_hour bigint NOT NULL DEFAULT 1, ADD COLUMN contact_id uuid,
    ADD COLUMN number text COLLATE "C" NOT NULL DEFAULT '';

CREATE INDEX attempts_settled ON attempts (workspace_id, settled_hour, id) WHERE settled_at > 0;

UPDATE attempts SET contact_id = (plan::json ->> 'Contact')::uuid, number = coalesce(plan::json ->> 'Number', '')
WHERE phase IN ('dispatching', 'in_doubt');

-- Three countries write a mobile number in two ways. One form stands for both.
UPDATE attempts SET number = CASE
    WHEN number ~ '^55\d\d[6-9]\d{7}$' THEN substr(number, 1, 4) || '9' || substr(number, 5)
    WHEN number ~ '^521\d{10}$' THEN '52' || substr(number, 4)
    WHEN number ~ '^549\d{10}$' THEN '54' || substr(number, 4)
    ELSE number END
WHERE phase IN ('dispatching', 'in_doubt');

-- The further conditions keep the planner from using these two for other look-ups.
CREATE INDEX attempts_contact ON attempts (workspace_id, contact_id) WHERE phase IN ('dispatching', 'in_doubt') AND contact_id IS NOT NULL;
CREATE INDEX attempts_number ON attempts (workspace_id, number) WHERE phase IN ('dispatching', 'in_doubt') AND number <> '';

-- In which hour it came.
ALTER TABLE early_statuses ADD COLUMN hour bigint NOT NULL DEFAULT 1;

DROP INDEX early_statuses_at;

CREATE INDEX early_statuses_hour ON early_statuses (workspace_id, hour);

-- Whether the provider lets the channel's account send, as JSON; '': nothing was said.
ALTER TABLE channels ADD COLUMN status text NOT NULL DEFAULT '';

UPDATE channels SET status = json_build_object('Blocked', account::json -> 'Blocked', 'Until', account::json -> 'BlockedUntil',
    'Since', account::json -> 'StandingAt')::text
WHERE account <> '' AND account::json -> 'StandingAt' IS NOT NULL;

-- Signs of life of a channel: when its templates were fetched last, and when the provider
-- last asked for the address that it reports to. 0: never. They were kept as leases.
CREATE TABLE channel_signs (
    workspace_id uuid   NOT NULL,
    channel_id   uuid   NOT NULL,
    synced_at    bigint NOT NULL DEFAULT 0,
    asked_at     bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (workspace_id, channel_id)
);

INSERT INTO channel_signs (workspace_id, channel_id, synced_at)
SELECT workspace_id, substr(task, length('synced ') + 1)::uuid, until FROM leases WHERE task LIKE 'synced %';

INSERT INTO channel_signs (workspace_id, channel_id, asked_at)
SELECT workspace_id, substr(task, length('handshake ') + 1)::uuid, until FROM leases WHERE task LIKE 'handshake %'
ON CONFLICT (workspace_id, channel_id) DO UPDATE SET asked_at = excluded.asked_at;

DELETE FROM leases WHERE task LIKE 'synced %' OR task LIKE 'handshake %';

-- Whether the secrets that the first release sealed were sealed anew.
ALTER TABLE installation ADD COLUMN resealed boolean NOT NULL DEFAULT false;
