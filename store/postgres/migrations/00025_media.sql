-- +goose Up

-- Files: uploads, and what people sent.
CREATE TABLE media (
    workspace_id uuid   NOT NULL,
    id           uuid   NOT NULL,
    contact_id   uuid,             -- who sent it; NULL: an upload
    kind         text   NOT NULL,
    mime         text   NOT NULL,  -- this, the trait, the size and the hash are of the content: '' and 0 unless it is stored
    trait        text   NOT NULL,
    name         text   NOT NULL,
    size         bigint NOT NULL,
    sha256       bytea  NOT NULL,
    status       text   NOT NULL,
    reason       text   NOT NULL,
    created_at   bigint NOT NULL,
    used         bigint NOT NULL,  -- 1: an upload that was found in a message when it was old
    PRIMARY KEY (workspace_id, id)
);
CREATE INDEX media_contact ON media (workspace_id, contact_id) WHERE contact_id IS NOT NULL;
CREATE INDEX media_content ON media (workspace_id, sha256) WHERE status = 'ready';
CREATE INDEX media_failed ON media (workspace_id, id) WHERE status = 'failed';
CREATE INDEX media_age ON media (workspace_id, created_at, id) WHERE status = 'ready';
CREATE INDEX media_uploads ON media (workspace_id, created_at, id) WHERE contact_id IS NULL AND used = 0;

-- The content that is stored, once for all files of a workspace that have it.
CREATE TABLE media_contents (
    workspace_id uuid   NOT NULL,
    sha256       bytea  NOT NULL,
    size         bigint NOT NULL,
    unused       bigint NOT NULL, -- 1: it is deleted unless a file has it
    pins         bigint NOT NULL, -- uploads that ended and whose files are not stored yet; they count until pinned_until
    pinned_until bigint NOT NULL,
    chunks       uuid,            -- of media_chunks; NULL: it is in a file
    PRIMARY KEY (workspace_id, sha256)
);
CREATE INDEX media_contents_unused ON media_contents (workspace_id, sha256) WHERE unused = 1;

-- Content in parts of 1 MiB, and content that is still arriving.
CREATE TABLE media_chunks (
    workspace_id uuid   NOT NULL,
    chunks       uuid   NOT NULL,
    n            bigint NOT NULL,
    bytes        bytea  NOT NULL,
    PRIMARY KEY (workspace_id, chunks, n)
);
ALTER TABLE media_chunks ALTER COLUMN bytes SET STORAGE EXTERNAL;
CREATE TABLE media_drafts (
    workspace_id uuid   NOT NULL,
    chunks       uuid   NOT NULL,
    begun_at     bigint NOT NULL,
    PRIMARY KEY (workspace_id, chunks)
);

-- Files that are to be fetched from the provider.
CREATE TABLE media_jobs (
    workspace_id    uuid   NOT NULL,
    media_id        uuid   NOT NULL,
    channel_id      uuid   NOT NULL,
    contact_id      uuid   NOT NULL,
    conversation_id uuid   NOT NULL, -- this and the next two: of the message
    message_id      uuid   NOT NULL,
    message_ts      bigint NOT NULL,
    ref             text   NOT NULL, -- the provider's id of the file
    mime            text   NOT NULL, -- this and the next two: as the provider tells; '' and 0: it does not
    size            bigint NOT NULL,
    sha256          bytea  NOT NULL,
    tries           bigint NOT NULL,
    due_at          bigint NOT NULL, -- while a process fetches it, the end of its lease
    holder          uuid   NOT NULL,
    ended           bigint NOT NULL, -- 1: it has failed for good, and can be begun again by hand
    PRIMARY KEY (workspace_id, media_id)
);
CREATE INDEX media_jobs_due ON media_jobs (workspace_id, due_at, media_id) WHERE ended = 0;

-- The ids that providers gave to files that were handed to them.
CREATE TABLE media_refs (
    workspace_id uuid   NOT NULL,
    media_id     uuid   NOT NULL,
    channel_id   uuid   NOT NULL,
    ref          text   NOT NULL,
    at           bigint NOT NULL,
    PRIMARY KEY (workspace_id, media_id, channel_id)
);

ALTER TABLE messages ADD COLUMN media_id uuid;
CREATE INDEX messages_media ON messages (workspace_id, media_id) WHERE media_id IS NOT NULL;

-- The id of the directory that keeps the content; '': the database does.
ALTER TABLE installation ADD COLUMN media text NOT NULL DEFAULT '';
