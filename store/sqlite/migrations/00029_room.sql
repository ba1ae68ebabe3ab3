-- +goose Up

-- The file of a reply that is being sent, or whose outcome is unknown; NULL otherwise.
ALTER TABLE attempts ADD COLUMN media_id BLOB;
CREATE INDEX attempts_media ON attempts (workspace_id, media_id) WHERE media_id IS NOT NULL;
UPDATE attempts SET media_id = unhex(json_extract(plan, '$.Reply.media'), '-') WHERE phase IN ('dispatching', 'in_doubt') AND NOT erased AND json_extract(plan, '$.Reply.media') IS NOT NULL;

-- How many bytes of content a workspace has. It is counted anew every hour: servers of the
-- release before do not count.
CREATE TABLE media_used (
    workspace_id BLOB NOT NULL,
    bytes        INTEGER NOT NULL,
    PRIMARY KEY (workspace_id)
) WITHOUT ROWID;
INSERT INTO media_used (workspace_id, bytes) SELECT workspace_id, sum(size) FROM media_contents GROUP BY workspace_id;

-- Who may only not write first is told apart from who may send nothing.
UPDATE channels SET status = replace(status, '","Code":', '","Replies":true,"Code":') WHERE status LIKE '{"Blocked":"WhatsApp lets this business account write to nobody first%';
