-- +goose Up

-- On SQLite, values of contacts that are large are kept apart. PostgreSQL does that by
-- itself.
SELECT 1;
