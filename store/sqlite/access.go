package sqlite

import (
	"context"
	"errors"

	"parley/desk"
	"parley/store"
	"parley/store/internal/stored"
)

// These conditions select sessions and links. They fit a table and the directory.
const (
	oneSession     = `workspace_id = ?1 AND hash = ?2`
	sessionsBeyond = `workspace_id = ?1 AND hash IN (SELECT hash FROM sessions WHERE workspace_id = ?1 AND member_id = ?2 ORDER BY begun_at DESC, hash LIMIT -1 OFFSET ?3)`
	theirs         = `workspace_id = ?1 AND member_id = ?2`
	expired        = `workspace_id = ?1 AND expires_at <= ?2`
)

const (
	sessionQuery = `SELECT s.workspace_id, s.member_id, s.begun_at, s.expires_at, s.data
	FROM directory d JOIN sessions s ON s.workspace_id = d.workspace_id AND s.hash = d.ref WHERE d.kind = 'session' AND d.ref = ?`
	loginLinkQuery = `SELECT l.workspace_id, l.member_id, l.expires_at
	FROM directory d JOIN login_links l ON l.workspace_id = d.workspace_id AND l.hash = d.ref WHERE d.kind = 'login_link' AND d.ref = ?`
	membersByEmailQuery = `SELECT d.workspace_id, m.id, m.sessions_from, coalesce(a.password, '')
	FROM directory d JOIN members m ON m.workspace_id = d.workspace_id AND m.id = unhex(substr(d.ref, -36), '-')
	LEFT JOIN member_access a ON a.workspace_id = m.workspace_id AND a.member_id = m.id
	WHERE d.kind = 'email' AND d.ref >= ? AND d.ref < ? ORDER BY d.ref LIMIT +?`
	mostRecipesQuery = `SELECT coalesce(max(n), 0) FROM (SELECT count(DISTINCT substr(a.password, 1, length(a.password) - ?1)) AS n
	FROM directory d JOIN member_access a ON a.workspace_id = d.workspace_id AND a.member_id = unhex(substr(d.ref, -36), '-')
	WHERE d.kind = 'email' AND a.password <> '' GROUP BY substr(d.ref, 1, length(d.ref) - 37))`
	heldQuery = `SELECT (SELECT count(*) FROM (SELECT 1 FROM contacts WHERE workspace_id = ?1 AND owner_id = ?2 LIMIT +?3)),
	(SELECT count(*) FROM (SELECT 1 FROM conversations WHERE workspace_id = ?1 AND assigned_member_id = ?2 AND status = 'open' LIMIT +?3))`
)

// Session returns a session with the settings of its workspace, or nil.
func (s *Store) Session(ctx context.Context, hash string) (session *store.Session, settings *desk.Settings, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		session, err = one("session", c.stmt(sessionQuery).text(hash), func(s *stmt) *store.Session {
			return &store.Session{Workspace: s.readID(), Member: s.readID(), BegunAt: s.readTime(), ExpiresAt: s.readTime(), Data: s.readBlob()}
		})
		if err != nil || session == nil {
			return err
		}
		settings, err = s.currentSettings(c, session.Workspace)
		return err
	})
	if err != nil {
		return nil, nil, unlessGone(err)
	}
	return session, settings, nil
}

// LoginLink returns a link with the settings of its workspace, or nil.
func (s *Store) LoginLink(ctx context.Context, hash string) (link *store.LoginLink, settings *desk.Settings, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		link, err = one("login link", c.stmt(loginLinkQuery).text(hash), readLoginLink)
		if err != nil || link == nil {
			return err
		}
		settings, err = s.currentSettings(c, link.Workspace)
		return err
	})
	if err != nil {
		return nil, nil, unlessGone(err)
	}
	return link, settings, nil
}

// unlessGone returns err, or nil for NotFound: the workspace was deleted between two
// reads.
func unlessGone(err error) error {
	if desk.IsType(err, desk.NotFound) {
		return nil
	}
	return err
}

func readLoginLink(s *stmt) *store.LoginLink {
	return &store.LoginLink{Workspace: s.readID(), Member: s.readID(), ExpiresAt: s.readTime()}
}

// MembersByEmail returns the members of all workspaces who have this e-mail.
func (s *Store) MembersByEmail(ctx context.Context, canonical string, most int) (list []store.MemberAccess, err error) {
	from, to := stored.EmailRange(canonical)
	err = s.read(ctx, pointRead, func(c conn) error {
		list, err = all("members by e-mail", c.stmt(membersByEmailQuery).text(from).text(to).int(int64(most)), func(s *stmt) store.MemberAccess {
			return store.MemberAccess{MemberRef: store.MemberRef{Workspace: s.readID(), ID: s.readID()}, SessionsFrom: s.readTime(), Password: s.readText()}
		})
		return err
	})
	return list, err
}

// MostRecipes returns the largest number of recipes among the passwords of one e-mail.
func (s *Store) MostRecipes(ctx context.Context, tail int) (most int, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		n, err := one("most recipes", c.stmt(mostRecipesQuery).int(int64(tail)), (*stmt).readInt)
		most = int(n)
		return err
	})
	return most, err
}

// MovePassword replaces a hash by another one of the same password, unless the password
// was changed meanwhile.
func (s *Store) MovePassword(ctx context.Context, ws, member desk.ID, from, to string) error {
	return s.write(ctx, func(c conn) error {
		return failed("move password", c.stmt(`UPDATE member_access SET password = ? WHERE workspace_id = ? AND member_id = ? AND password = ?`).text(to).id(ws).id(member).text(from).run())
	})
}

// Password returns the hash of a member's password, or "".
func (s *Store) Password(ctx context.Context, ws, member desk.ID) (hash string, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		hash, err = one("password", c.stmt(`SELECT password FROM member_access WHERE workspace_id = ? AND member_id = ?`).id(ws).id(member), (*stmt).readText)
		return err
	})
	return hash, err
}

// LastSeen returns when members of a workspace were last seen.
func (s *Store) LastSeen(ctx context.Context, ws desk.ID) (seen map[desk.ID]desk.Time, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		seen = map[desk.ID]desk.Time{}
		row := c.stmt(`SELECT member_id, seen_at FROM member_access WHERE workspace_id = ? AND seen_at > 0`).id(ws)
		for row.next() {
			id := row.readID()
			seen[id] = row.readTime()
		}
		return failed("last seen", row.done())
	})
	return seen, err
}

// Held returns how many contacts a member owns, and how many open conversations the
// member holds. Neither number is counted beyond most.
func (s *Store) Held(ctx context.Context, ws, member desk.ID, most int) (contacts, conversations int, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		row := c.stmt(heldQuery).id(ws).id(member).int(int64(most))
		if row.next() {
			contacts, conversations = int(row.readInt()), int(row.readInt())
		}
		return failed("held by a member", row.done())
	})
	return contacts, conversations, err
}

// ForgetAccess deletes expired sessions and links of a workspace.
func (s *Store) ForgetAccess(ctx context.Context, ws desk.ID, before desk.Time) error {
	return s.write(ctx, func(c conn) error {
		for _, of := range [][2]string{{stored.Session, "sessions"}, {stored.LoginLink, "login_links"}} {
			if err := dropListed(of[0], of[1], expired, func(query string) error { return c.stmt(query).id(ws).time(before).run() }); err != nil {
				return failed("forget access", err)
			}
		}
		return nil
	})
}

// dropListed deletes rows of a table, and their entries in the directory.
func dropListed(kind, table, where string, run func(query string) error) error {
	return errors.Join(
		run(`DELETE FROM directory WHERE kind = '`+kind+`' AND ref IN (SELECT hash FROM `+table+` WHERE `+where+`)`),
		run(`DELETE FROM `+table+` WHERE `+where))
}

// putAccess stores the data of a member that is not in the member's record. old is nil
// for a new member.
func putAccess(c conn, ws desk.ID, old, m *desk.Member, password string) error {
	if old != nil && stored.EmailRef(old) != stored.EmailRef(m) {
		if err := leave(c, stored.Email, stored.EmailRef(old)); err != nil {
			return err
		}
	}
	err := enter(c, stored.Email, stored.EmailRef(m), ws)
	if err == nil && old != nil && m.SessionsFrom > old.SessionsFrom {
		of := func(query string) error { return c.stmt(query).id(ws).id(m.ID).run() }
		err = errors.Join(dropListed(stored.Session, "sessions", theirs, of), dropListed(stored.LoginLink, "login_links", theirs, of))
	}
	if err == nil && password != "" {
		err = c.stmt(`INSERT INTO member_access (workspace_id, member_id, password) VALUES (?, ?, ?)
			ON CONFLICT (workspace_id, member_id) DO UPDATE SET password = excluded.password`).id(ws).id(m.ID).text(password).run()
	}
	return err
}

func removeAccess(c conn, ws desk.ID, m *desk.Member) error {
	of := func(query string) error { return c.stmt(query).id(ws).id(m.ID).run() }
	return errors.Join(
		leave(c, stored.Email, stored.EmailRef(m)),
		dropListed(stored.Session, "sessions", theirs, of),
		dropListed(stored.LoginLink, "login_links", theirs, of),
		of(`DELETE FROM member_access WHERE workspace_id = ? AND member_id = ?`))
}

func (t *tx) BeginSession(hash string, s store.Session, most int) error {
	err := errors.Join(
		t.c.stmt(`INSERT INTO sessions (workspace_id, hash, member_id, begun_at, expires_at, data) VALUES (?, ?, ?, ?, ?, ?)`).
			id(t.ws).text(hash).id(s.Member).time(s.BegunAt).time(s.ExpiresAt).bytes(s.Data).run(),
		enter(t.c, stored.Session, hash, t.ws),
		dropListed(stored.Session, "sessions", sessionsBeyond, func(query string) error { return t.c.stmt(query).id(t.ws).id(s.Member).int(int64(most)).run() }))
	return failed("begin session", err)
}

func (t *tx) KeepSession(hash string, s store.Session) (bool, error) {
	there, err := one("keep session", t.c.stmt(`UPDATE sessions SET expires_at = ?3, data = ?4 WHERE `+oneSession+` RETURNING 1`).
		id(t.ws).text(hash).time(s.ExpiresAt).bytes(s.Data), (*stmt).readInt)
	return there != 0, err
}

func (t *tx) EndSession(hash string) error {
	return failed("end session", dropListed(stored.Session, "sessions", oneSession, func(query string) error { return t.c.stmt(query).id(t.ws).text(hash).run() }))
}

func (t *tx) PutLoginLink(hash string, l store.LoginLink) error {
	return failed("put login link", errors.Join(
		t.c.stmt(`INSERT INTO login_links (workspace_id, hash, member_id, expires_at) VALUES (?, ?, ?, ?)`).id(t.ws).text(hash).id(l.Member).time(l.ExpiresAt).run(),
		enter(t.c, stored.LoginLink, hash, t.ws)))
}

func (t *tx) TakeLoginLink(hash string) (*store.LoginLink, error) {
	link, err := one("take login link", t.c.stmt(`DELETE FROM login_links WHERE `+oneSession+` RETURNING workspace_id, member_id, expires_at`).id(t.ws).text(hash), readLoginLink)
	if err == nil && link != nil {
		err = failed("take login link", leave(t.c, stored.LoginLink, hash))
	}
	return link, err
}

func (t *tx) NoteSeen(member desk.ID, at desk.Time) error {
	return failed("note seen", t.c.stmt(`INSERT INTO member_access (workspace_id, member_id, seen_at) VALUES (?, ?, ?)
		ON CONFLICT (workspace_id, member_id) DO UPDATE SET seen_at = max(seen_at, excluded.seen_at)`).id(t.ws).id(member).time(at).run())
}
