-- +goose Up

-- What a team writes down about a conversation. The author's name is the one of that time.
CREATE TABLE notes (
    workspace_id    BLOB    NOT NULL,
    conversation_id BLOB    NOT NULL,
    id              BLOB    NOT NULL,
    text            TEXT    NOT NULL,
    author_type     TEXT    NOT NULL,
    author_id       BLOB    NOT NULL,
    author_name     TEXT    NOT NULL,
    created_at      INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, conversation_id, id)
) WITHOUT ROWID;
