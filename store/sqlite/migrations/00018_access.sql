-- +goose Up

-- Sessions that began before are void; 0: none.
ALTER TABLE members ADD COLUMN sessions_from INTEGER NOT NULL DEFAULT 0;

-- Sessions of members, by the hash of what the browser has. The directory knows them
-- as the kind session.
CREATE TABLE sessions (
    workspace_id BLOB    NOT NULL,
    hash         TEXT    NOT NULL,
    member_id    BLOB    NOT NULL,
    begun_at     INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    data         BLOB    NOT NULL,
    PRIMARY KEY (workspace_id, hash)
) WITHOUT ROWID;
CREATE INDEX sessions_member ON sessions (workspace_id, member_id, begun_at);

-- Sign-in links, by their hash. The directory knows them as the kind login_link.
CREATE TABLE login_links (
    workspace_id BLOB    NOT NULL,
    hash         TEXT    NOT NULL,
    member_id    BLOB    NOT NULL,
    expires_at   INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, hash)
) WITHOUT ROWID;

-- Apart from the member, whose row has the settings' version.
CREATE TABLE member_access (
    workspace_id BLOB    NOT NULL,
    member_id    BLOB    NOT NULL,
    password     TEXT    NOT NULL DEFAULT '', -- its hash; '': none
    seen_at      INTEGER NOT NULL DEFAULT 0,  -- 0: never
    PRIMARY KEY (workspace_id, member_id)
) WITHOUT ROWID;

-- Members by their e-mails: its canonical form, a space, the id. Where members share an
-- e-mail, email_folded has the id already.
INSERT INTO directory (kind, ref, workspace_id)
SELECT 'email', CASE WHEN instr(email_folded, ' ') > 0 THEN email_folded
    ELSE email_folded || ' ' || lower(substr(hex(id), 1, 8) || '-' || substr(hex(id), 9, 4) || '-' || substr(hex(id), 13, 4) || '-' || substr(hex(id), 17, 4) || '-' || substr(hex(id), 21)) END,
    workspace_id FROM members;
