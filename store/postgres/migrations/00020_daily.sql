-- +goose Up

-- Messages counted by day, and up to which event they are counted. They name no person.
CREATE TABLE daily (
    workspace_id uuid             NOT NULL,
    day          bigint           NOT NULL, -- since 1970, in UTC
    kind         text COLLATE "C" NOT NULL,
    key          text COLLATE "C" NOT NULL, -- a template, or the provider's code of a failure
    label        text             NOT NULL,
    n            bigint           NOT NULL,
    PRIMARY KEY (workspace_id, day, kind, key)
);

CREATE TABLE daily_places (
    workspace_id uuid   NOT NULL PRIMARY KEY,
    seq          bigint NOT NULL,
    tag          bigint NOT NULL
);

-- NAME/LANGUAGE of the template that was sent; '' for others and for older messages.
ALTER TABLE messages ADD COLUMN template text NOT NULL DEFAULT '';
