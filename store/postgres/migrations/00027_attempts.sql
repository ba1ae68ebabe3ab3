-- +goose Up

-- Of those that are being sent there are few at any time: a deletion looks at them all. So
-- a send does not write these two indexes, unless its outcome is unknown.
DROP INDEX attempts_contact;
DROP INDEX attempts_number;
CREATE INDEX attempts_contact ON attempts (workspace_id, contact_id) WHERE phase = 'in_doubt';
CREATE INDEX attempts_number ON attempts (workspace_id, number) WHERE phase = 'in_doubt' AND number <> '';
