-- +goose Up

-- Members who get no conversations from the reply policy now.
ALTER TABLE members ADD COLUMN away boolean NOT NULL DEFAULT false;
