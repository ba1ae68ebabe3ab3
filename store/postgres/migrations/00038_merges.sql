-- +goose Up

-- Contacts that were merged into others. The last column has what an undo needs, with values
-- of the person; it is empty after 30 days.
CREATE TABLE merges (
    workspace_id uuid   NOT NULL,
    id           uuid   NOT NULL,
    into_id      uuid   NOT NULL,
    from_id      uuid   NOT NULL,
    survivor_id  uuid,            -- the contact that from_id is part of now; NULL: the merge is undone
    number       bigint NOT NULL, -- counts the merges into a contact
    at           bigint NOT NULL,
    actor_kind   text   NOT NULL,
    actor_id     uuid   NOT NULL,
    undone_at    bigint NOT NULL, -- 0: in force
    moved        text   NOT NULL, -- this and the next columns: JSON; '': nothing
    not_restored text   NOT NULL,
    changes      text   NOT NULL,
    undo         text   NOT NULL,
    PRIMARY KEY (workspace_id, id)
);

CREATE INDEX merges_into ON merges (workspace_id, into_id, number);
CREATE INDEX merges_from ON merges (workspace_id, from_id);
CREATE INDEX merges_survivor ON merges (workspace_id, survivor_id) WHERE survivor_id IS NOT NULL;
CREATE INDEX merges_undoable ON merges (workspace_id, at) WHERE undo <> '';
CREATE INDEX merges_undone ON merges (workspace_id, undone_at) WHERE undone_at > 0;
