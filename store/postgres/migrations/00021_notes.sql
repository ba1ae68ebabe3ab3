-- +goose Up

-- What a team writes down about a conversation. The author's name is the one of that time.
CREATE TABLE notes (
    workspace_id    uuid   NOT NULL,
    conversation_id uuid   NOT NULL,
    id              uuid   NOT NULL,
    text            text   NOT NULL,
    author_type     text   NOT NULL,
    author_id       uuid   NOT NULL,
    author_name     text   NOT NULL,
    created_at      bigint NOT NULL,
    PRIMARY KEY (workspace_id, conversation_id, id)
);
