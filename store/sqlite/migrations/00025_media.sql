-- +goose Up

-- Files: uploads, and what people sent. Their content is in files beside the database.
CREATE TABLE media (
    workspace_id BLOB    NOT NULL,
    id           BLOB    NOT NULL,
    contact_id   BLOB,             -- who sent it; NULL: an upload
    kind         TEXT    NOT NULL,
    mime         TEXT    NOT NULL, -- this, the trait, the size and the hash are of the content: '' and 0 unless it is stored
    trait        TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    size         INTEGER NOT NULL,
    sha256       BLOB    NOT NULL,
    status       TEXT    NOT NULL,
    reason       TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    used         INTEGER NOT NULL, -- an upload that was found in a message when it was old
    PRIMARY KEY (workspace_id, id)
) WITHOUT ROWID;
CREATE INDEX media_contact ON media (workspace_id, contact_id) WHERE contact_id IS NOT NULL;
CREATE INDEX media_content ON media (workspace_id, sha256) WHERE status = 'ready';
CREATE INDEX media_failed ON media (workspace_id, id) WHERE status = 'failed';
CREATE INDEX media_age ON media (workspace_id, created_at, id) WHERE status = 'ready';
CREATE INDEX media_uploads ON media (workspace_id, created_at, id) WHERE contact_id IS NULL AND used = 0;

-- The content that is stored, once for all files of a workspace that have it.
CREATE TABLE media_contents (
    workspace_id BLOB    NOT NULL,
    sha256       BLOB    NOT NULL,
    size         INTEGER NOT NULL,
    unused       INTEGER NOT NULL, -- 1: it is deleted unless a file has it
    pins         INTEGER NOT NULL, -- uploads that ended and whose files are not stored yet; they count until pinned_until
    pinned_until INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, sha256)
) WITHOUT ROWID;
CREATE INDEX media_contents_unused ON media_contents (workspace_id, sha256) WHERE unused = 1;

-- Files that are to be fetched from the provider.
CREATE TABLE media_jobs (
    workspace_id    BLOB    NOT NULL,
    media_id        BLOB    NOT NULL,
    channel_id      BLOB    NOT NULL,
    contact_id      BLOB    NOT NULL,
    conversation_id BLOB    NOT NULL, -- this and the next two: of the message
    message_id      BLOB    NOT NULL,
    message_ts      INTEGER NOT NULL,
    ref             TEXT    NOT NULL, -- the provider's id of the file
    mime            TEXT    NOT NULL, -- this and the next two: as the provider tells; '' and 0: it does not
    size            INTEGER NOT NULL,
    sha256          BLOB    NOT NULL,
    tries           INTEGER NOT NULL,
    due_at          INTEGER NOT NULL, -- while a process fetches it, the end of its lease
    holder          BLOB    NOT NULL,
    ended           INTEGER NOT NULL, -- 1: it has failed for good, and can be begun again by hand
    PRIMARY KEY (workspace_id, media_id)
) WITHOUT ROWID;
CREATE INDEX media_jobs_due ON media_jobs (workspace_id, due_at, media_id) WHERE ended = 0;

-- The ids that providers gave to files that were handed to them.
CREATE TABLE media_refs (
    workspace_id BLOB    NOT NULL,
    media_id     BLOB    NOT NULL,
    channel_id   BLOB    NOT NULL,
    ref          TEXT    NOT NULL,
    at           INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, media_id, channel_id)
) WITHOUT ROWID;

ALTER TABLE messages ADD COLUMN media_id BLOB;
CREATE INDEX messages_media ON messages (workspace_id, media_id) WHERE media_id IS NOT NULL;
