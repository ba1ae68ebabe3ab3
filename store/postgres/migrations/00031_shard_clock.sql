-- +goose Up

-- The clock of the server that holds a workspace's rows, in microseconds. In a statement
-- that changes rows, Citus would evaluate clock_timestamp() at the server that the client
-- is connected to. Citus sends a function of a column to the rows, if the function claims
-- to be IMMUTABLE.
CREATE FUNCTION shard_micros(workspace uuid) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS 'SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint';
