-- +goose Up

-- The file that a broadcast needs until its end; NULL otherwise.
ALTER TABLE broadcasts ADD COLUMN media_id BLOB;
CREATE INDEX broadcasts_media ON broadcasts (workspace_id, media_id) WHERE media_id IS NOT NULL;
UPDATE broadcasts SET media_id = (SELECT unhex(json_extract(v.value, '$.Value'), '-') FROM json_each(body, '$.Values') v WHERE json_extract(v.value, '$.Address') = 'header.media')
    WHERE state IN ('draft', 'scheduled', 'running', 'paused');
