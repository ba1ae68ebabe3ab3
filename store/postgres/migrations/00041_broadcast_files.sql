-- +goose Up

-- The file that a broadcast needs until its end; NULL otherwise.
ALTER TABLE broadcasts ADD COLUMN media_id uuid;
CREATE INDEX broadcasts_media ON broadcasts (workspace_id, media_id) WHERE media_id IS NOT NULL;
UPDATE broadcasts SET media_id = (SELECT (v ->> 'Value')::uuid FROM json_array_elements(CASE json_typeof(body::json -> 'Values') WHEN 'array' THEN body::json -> 'Values' END) v
        WHERE v ->> 'Address' = 'header.media' AND v ->> 'Value' ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$')
    WHERE state IN ('draft', 'scheduled', 'running', 'paused');
