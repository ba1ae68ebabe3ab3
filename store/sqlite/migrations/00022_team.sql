-- +goose Up

-- Members who get no conversations from the reply policy now.
ALTER TABLE members ADD COLUMN away INTEGER NOT NULL DEFAULT 0;
