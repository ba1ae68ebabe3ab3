package postgres

import (
	"context"

	"parley/desk"
	"parley/store"
	"parley/store/internal/stored"

	"github.com/jackc/pgx/v5"
)

const (
	sessionColumns      = `SELECT s.workspace_id, s.member_id, s.begun_at, s.expires_at, s.data`
	linkColumns         = `SELECT l.workspace_id, l.member_id, l.expires_at`
	sessionQuery        = sessionColumns + ` FROM directory d JOIN sessions s ON s.workspace_id = d.workspace_id AND s.hash = d.ref WHERE d.kind = 'session' AND d.ref = $1`
	loginLinkQuery      = linkColumns + ` FROM directory d JOIN login_links l ON l.workspace_id = d.workspace_id AND l.hash = d.ref WHERE d.kind = 'login_link' AND d.ref = $1`
	membersByEmailQuery = memberColumns + ` FROM directory d JOIN members m ON m.workspace_id = d.workspace_id AND m.id = right(d.ref, 36)::uuid` + accessOfMember + `
	WHERE d.kind = 'email' AND d.ref >= $1 AND d.ref < $2 ORDER BY d.ref LIMIT $3`
	memberColumns    = `SELECT m.workspace_id, m.id, m.sessions_from, coalesce(a.password, '')`
	accessOfMember   = ` LEFT JOIN member_access a ON a.workspace_id = m.workspace_id AND a.member_id = m.id`
	mostRecipesQuery = `SELECT coalesce(max(n), 0) FROM (SELECT count(DISTINCT left(a.password, -$1::int)) AS n
	FROM directory d JOIN member_access a ON a.workspace_id = d.workspace_id AND a.member_id = right(d.ref, 36)::uuid
	WHERE d.kind = 'email' AND a.password <> '' GROUP BY left(d.ref, -37)) spread`
	heldQuery = `SELECT (SELECT count(*) FROM (SELECT 1 FROM contacts WHERE workspace_id = $1 AND owner_id = $2 LIMIT $3) c),
	(SELECT count(*) FROM (SELECT 1 FROM conversations WHERE workspace_id = $1 AND assigned_member_id = $2 AND status = 'open' LIMIT $3) v)`
)

// Session returns a session with the settings of its workspace, or nil.
func (s *Store) Session(ctx context.Context, hash string) (session *store.Session, settings *desk.Settings, err error) {
	err = s.read(ctx, func(p *pipe) error {
		session, err = located(s, p, "session", stored.Session, hash, func(row pgx.Row) (*store.Session, error) {
			var v store.Session
			err := row.Scan(into(&v.Workspace), into(&v.Member), (*int64)(&v.BegunAt), (*int64)(&v.ExpiresAt), &v.Data)
			return &v, err
		}, sessionQuery, sessionColumns+` FROM sessions s WHERE s.workspace_id = $1 AND s.hash = $2`)
		if err != nil || session == nil {
			return err
		}
		settings, err = s.currentSettings(p, session.Workspace)
		return err
	})
	if err != nil {
		return nil, nil, unlessGone(err)
	}
	return session, settings, nil
}

// LoginLink returns a link with the settings of its workspace, or nil.
func (s *Store) LoginLink(ctx context.Context, hash string) (link *store.LoginLink, settings *desk.Settings, err error) {
	err = s.read(ctx, func(p *pipe) error {
		link, err = located(s, p, "login link", stored.LoginLink, hash, readLoginLink, loginLinkQuery, linkColumns+` FROM login_links l WHERE l.workspace_id = $1 AND l.hash = $2`)
		if err != nil || link == nil {
			return err
		}
		settings, err = s.currentSettings(p, link.Workspace)
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

func readLoginLink(row pgx.Row) (*store.LoginLink, error) {
	var l store.LoginLink
	err := row.Scan(into(&l.Workspace), into(&l.Member), (*int64)(&l.ExpiresAt))
	return &l, err
}

// MembersByEmail returns the members of all workspaces who have this e-mail.
func (s *Store) MembersByEmail(ctx context.Context, canonical string, most int) (list []store.MemberAccess, err error) {
	from, to := stored.EmailRange(canonical)
	read := func(row pgx.Row) (m store.MemberAccess, err error) {
		err = row.Scan(into(&m.Workspace), into(&m.ID), (*int64)(&m.SessionsFrom), &m.Password)
		return m, err
	}
	err = s.read(ctx, func(p *pipe) error {
		if s.citus {
			list, err = membersOn(p, read, from, to, most)
		} else {
			list, err = all(p, "members by e-mail", read, membersByEmailQuery, from, to, most)
		}
		return err
	})
	return list, err
}

// MostRecipes returns the largest number of recipes among the passwords of one e-mail.
func (s *Store) MostRecipes(ctx context.Context, tail int) (most int, err error) {
	err = s.read(ctx, func(p *pipe) error {
		p.each(func(row pgx.Row) error { return row.Scan(&most) }, mostRecipesQuery, tail)
		return p.send("most recipes")
	})
	return most, err
}

// MovePassword replaces a hash by another one of the same password, unless the password
// was changed meanwhile.
func (s *Store) MovePassword(ctx context.Context, ws, member desk.ID, from, to string) error {
	return s.atOnce(ctx, "move password", func(p *pipe) {
		p.put(`UPDATE member_access SET password = $4 WHERE workspace_id = $1 AND member_id = $2 AND password = $3`, uuid(ws), uuid(member), from, to)
	})
}

// Password returns the hash of a member's password, or "".
func (s *Store) Password(ctx context.Context, ws, member desk.ID) (string, error) {
	return readOne(ctx, s, "password", scanned[string], `SELECT password FROM member_access WHERE workspace_id = $1 AND member_id = $2`, uuid(ws), uuid(member))
}

// LastSeen returns when members of a workspace were last seen.
func (s *Store) LastSeen(ctx context.Context, ws desk.ID) (seen map[desk.ID]desk.Time, err error) {
	err = s.read(ctx, func(p *pipe) error {
		seen = map[desk.ID]desk.Time{}
		p.each(func(row pgx.Row) error {
			var id desk.ID
			var at desk.Time
			err := row.Scan(into(&id), (*int64)(&at))
			seen[id] = at
			return err
		}, `SELECT member_id, seen_at FROM member_access WHERE workspace_id = $1 AND seen_at > 0`, uuid(ws))
		return p.send("last seen")
	})
	return seen, err
}

// Held returns how many contacts a member owns, and how many open conversations the
// member holds. Neither number is counted beyond most.
func (s *Store) Held(ctx context.Context, ws, member desk.ID, most int) (contacts, conversations int, err error) {
	err = s.read(ctx, func(p *pipe) error {
		p.each(func(row pgx.Row) error { return row.Scan(&contacts, &conversations) }, heldQuery, uuid(ws), uuid(member), most)
		return p.send("held by a member")
	})
	return contacts, conversations, err
}

// ForgetAccess deletes expired sessions and links of a workspace.
func (s *Store) ForgetAccess(ctx context.Context, ws desk.ID, before desk.Time) error {
	return s.atOnce(ctx, "forget access", func(p *pipe) {
		const expired = `workspace_id = $1 AND expires_at <= $2`
		p.dropListed(stored.Session, expired, uuid(ws), int64(before))
		p.dropListed(stored.LoginLink, expired, uuid(ws), int64(before))
	})
}

// dropListed deletes sessions or links, and their entries in the directory. Citus can't
// delete both in one statement.
func (p *pipe) dropListed(kind, where string, args ...any) {
	table := map[string]string{stored.Session: "sessions", stored.LoginLink: "login_links"}[kind]
	if !p.citus {
		p.put(`WITH gone AS (DELETE FROM `+table+` WHERE `+where+` RETURNING hash)
			DELETE FROM directory WHERE kind = '`+kind+`' AND ref IN (SELECT hash FROM gone)`, args...)
		return
	}
	hashes, err := all(p, "sessions to end", func(row pgx.Row) (hash string, err error) { return hash, row.Scan(&hash) },
		`DELETE FROM `+table+` WHERE `+where+` RETURNING hash`, args...)
	if err == nil && hashes != nil {
		p.put(`DELETE FROM directory WHERE kind = $1 AND ref = ANY ($2::text[])`, kind, hashes)
	}
}

const theirs = `workspace_id = $1 AND member_id = $2`

// putAccess stores the data of a member that is not in the member's record. old is nil
// for a new member.
func putAccess(p *pipe, ws desk.ID, old, m *desk.Member, password string) {
	if old != nil && stored.EmailRef(old) != stored.EmailRef(m) {
		leave(p, stored.Email, stored.EmailRef(old))
	}
	enter(p, stored.Email, stored.EmailRef(m), ws)
	if old != nil && m.SessionsFrom > old.SessionsFrom {
		p.dropListed(stored.Session, theirs, uuid(ws), uuid(m.ID))
		p.dropListed(stored.LoginLink, theirs, uuid(ws), uuid(m.ID))
	}
	if password != "" {
		p.put(`INSERT INTO member_access (workspace_id, member_id, password) VALUES ($1, $2, $3)
			ON CONFLICT (workspace_id, member_id) DO UPDATE SET password = excluded.password`, uuid(ws), uuid(m.ID), password)
	}
}

func removeAccess(p *pipe, ws desk.ID, m *desk.Member) {
	leave(p, stored.Email, stored.EmailRef(m))
	p.dropListed(stored.Session, theirs, uuid(ws), uuid(m.ID))
	p.dropListed(stored.LoginLink, theirs, uuid(ws), uuid(m.ID))
	p.put(`DELETE FROM member_access WHERE `+theirs, uuid(ws), uuid(m.ID))
}

func (t *tx) BeginSession(hash string, s store.Session, most int) error {
	t.put(`INSERT INTO sessions (workspace_id, hash, member_id, begun_at, expires_at, data) VALUES ($1, $2, $3, $4, $5, $6)`,
		uuid(t.ws), hash, uuid(s.Member), int64(s.BegunAt), int64(s.ExpiresAt), append([]byte{}, s.Data...))
	enter(t.pipe, stored.Session, hash, t.ws)
	t.dropListed(stored.Session, `workspace_id = $1 AND hash IN
		(SELECT hash FROM sessions WHERE workspace_id = $1 AND member_id = $2 ORDER BY begun_at DESC, hash OFFSET $3)`, uuid(t.ws), uuid(s.Member), most)
	return t.fail
}

func (t *tx) KeepSession(hash string, s store.Session) (bool, error) {
	return one(t.pipe, "keep session", readTrue, `UPDATE sessions SET expires_at = $3, data = $4 WHERE workspace_id = $1 AND hash = $2 RETURNING true`,
		uuid(t.ws), hash, int64(s.ExpiresAt), append([]byte{}, s.Data...))
}

func readTrue(row pgx.Row) (v bool, err error) {
	err = row.Scan(&v)
	return v, err
}

func (t *tx) EndSession(hash string) error {
	t.dropListed(stored.Session, `workspace_id = $1 AND hash = $2`, uuid(t.ws), hash)
	return t.fail
}

func (t *tx) PutLoginLink(hash string, l store.LoginLink) error {
	t.put(`INSERT INTO login_links (workspace_id, hash, member_id, expires_at) VALUES ($1, $2, $3, $4)`, uuid(t.ws), hash, uuid(l.Member), int64(l.ExpiresAt))
	enter(t.pipe, stored.LoginLink, hash, t.ws)
	return t.fail
}

func (t *tx) TakeLoginLink(hash string) (*store.LoginLink, error) {
	link, err := one(t.pipe, "take login link", readLoginLink, `DELETE FROM login_links WHERE workspace_id = $1 AND hash = $2
		RETURNING workspace_id, member_id, expires_at`, uuid(t.ws), hash)
	if link != nil {
		leave(t.pipe, stored.LoginLink, hash)
	}
	return link, err
}

func (t *tx) NoteSeen(member desk.ID, at desk.Time) error {
	t.put(`INSERT INTO member_access (workspace_id, member_id, seen_at) VALUES ($1, $2, $3)
		ON CONFLICT (workspace_id, member_id) DO UPDATE SET seen_at = greatest(member_access.seen_at, excluded.seen_at)`, uuid(t.ws), uuid(member), int64(at))
	return t.fail
}

// What is found by the directory is read in two steps on a cluster: the directory is on
// every server, but a join with it names no workspace, so Citus would ask all servers.

const placeQuery = `SELECT workspace_id FROM directory WHERE kind = $1 AND ref = $2`

// located returns the row of a table that is found by the directory, or the zero T. The
// query joined finds it by its reference $1, and within finds it by its workspace $1 and
// its reference $2.
func located[T any](s *Store, p *pipe, doing, kind, ref string, read func(pgx.Row) (T, error), joined, within string) (row T, err error) {
	if !s.citus {
		return one(p, doing, read, joined, ref)
	}
	ws, err := one(p, doing, readID, placeQuery, kind, ref)
	if err != nil || ws.IsZero() {
		return row, err
	}
	return one(p, doing, read, within, uuid(ws), ref)
}

// membersOn lists the members with an e-mail, on a cluster.
func membersOn(p *pipe, read func(pgx.Row) (store.MemberAccess, error), from, to string, most int) (list []store.MemberAccess, err error) {
	type entry struct {
		ws     desk.ID
		member string
	}
	entries, err := all(p, "members by e-mail", func(row pgx.Row) (e entry, err error) {
		return e, row.Scan(into(&e.ws), &e.member)
	}, `SELECT workspace_id, right(ref, 36) FROM directory WHERE kind = 'email' AND ref >= $1 AND ref < $2 ORDER BY ref LIMIT $3`, from, to, most)
	for _, e := range entries {
		p.each(func(row pgx.Row) error {
			m, err := read(row)
			list = append(list, m)
			return err
		}, memberColumns+` FROM members m`+accessOfMember+` WHERE m.workspace_id = $1 AND m.id = $2::uuid`, uuid(e.ws), e.member)
	}
	if err != nil {
		return nil, err
	}
	return list, p.send("members by e-mail")
}
