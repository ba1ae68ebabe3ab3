-- +goose Up

-- Contacts that were merged into others. The last column has what an undo needs, with values
-- of the person; it is empty after 30 days.
CREATE TABLE merges (
    workspace_id BLOB    NOT NULL,
    id           BLOB    NOT NULL,
    into_id      BLOB    NOT NULL,
    from_id      BLOB    NOT NULL,
    survivor_id  BLOB,             -- the contact that from_id is part of now; NULL: the merge is undone
    number       INTEGER NOT NULL, -- counts the merges into a contact
    at           INTEGER NOT NULL,
    actor_kind   TEXT    NOT NULL,
    actor_id     BLOB    NOT NULL,
    undone_at    INTEGER NOT NULL, -- 0: in force
    moved        TEXT    NOT NULL, -- this and the next columns: JSON; '': nothing
    not_restored TEXT    NOT NULL,
    changes      TEXT    NOT NULL,
    undo         TEXT    NOT NULL,
    PRIMARY KEY (workspace_id, id)
);

CREATE INDEX merges_into ON merges (workspace_id, into_id, number);
CREATE INDEX merges_from ON merges (workspace_id, from_id);
CREATE INDEX merges_survivor ON merges (workspace_id, survivor_id) WHERE survivor_id IS NOT NULL;
CREATE INDEX merges_undoable ON merges (workspace_id, at) WHERE undo <> '';
CREATE INDEX merges_undone ON merges (workspace_id, undone_at) WHERE undone_at > 0;
