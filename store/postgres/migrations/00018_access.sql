-- +goose Up

-- Sessions that began before are void; 0: none.
ALTER TABLE members ADD COLUMN sessions_from bigint NOT NULL DEFAULT 0;

-- Sessions of members, by the hash of what the browser has. The directory knows them
-- as the kind session.
CREATE TABLE sessions (
    workspace_id uuid   NOT NULL,
    hash         text COLLATE "C" NOT NULL,
    member_id    uuid   NOT NULL,
    begun_at     bigint NOT NULL,
    expires_at   bigint NOT NULL,
    data         bytea  NOT NULL,
    PRIMARY KEY (workspace_id, hash)
);
CREATE INDEX sessions_member ON sessions (workspace_id, member_id, begun_at);

-- Sign-in links, by their hash. The directory knows them as the kind login_link.
CREATE TABLE login_links (
    workspace_id uuid   NOT NULL,
    hash         text COLLATE "C" NOT NULL,
    member_id    uuid   NOT NULL,
    expires_at   bigint NOT NULL,
    PRIMARY KEY (workspace_id, hash)
);

-- Apart from the member, whose row has the settings' version.
CREATE TABLE member_access (
    workspace_id uuid   NOT NULL,
    member_id    uuid   NOT NULL,
    password     text   NOT NULL DEFAULT '', -- its hash; '': none
    seen_at      bigint NOT NULL DEFAULT 0,  -- 0: never
    PRIMARY KEY (workspace_id, member_id)
);

-- Members by their e-mails: its canonical form, a space, the id. Where members share an
-- e-mail, email_folded has the id already.
INSERT INTO directory (kind, ref, workspace_id)
SELECT 'email', CASE WHEN email_folded LIKE '% %' THEN email_folded ELSE email_folded || ' ' || id::text END, workspace_id FROM members;
