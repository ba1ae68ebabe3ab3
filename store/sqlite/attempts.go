package sqlite

import (
	"context"
	"slices"

	"parley/app"
	"parley/desk"
)

const attemptColumns = `a.id, a.key, a.hash, a.actor_id, a.phase, a.created_at, a.lease_until, a.settled_at, a.plan,
	a.external_id, r.response, a.refusal, a.notes, a.erased`

// answered must follow the attempts in a query, for attemptColumns.
const answered = ` LEFT JOIN send_answers r ON r.workspace_id = a.workspace_id AND r.attempt_id = a.id`

func readAttempt(s *stmt) *desk.Attempt {
	a := &desk.Attempt{ID: s.readID(), Key: s.readText()}
	s.readBytes(a.Hash[:])
	a.Actor, a.Phase = s.readID(), desk.Phase(s.readText())
	a.CreatedAt, a.LeaseUntil, a.SettledAt = s.readTime(), s.readTime(), s.readTime()
	s.readJSON(&a.Plan)
	a.ExternalID, a.Response = s.readText(), s.readBlob()
	s.readJSON(&a.Refusal)
	s.readJSON(&a.Notes)
	a.Erased = s.readInt() != 0
	return a
}

// unsettled must stand in a query as it stands in the index attempts_unsettled, or
// the index is not used.
const unsettled = `a.phase IN ('dispatching', 'in_doubt')`

const (
	attemptQuery      = `SELECT ` + attemptColumns + ` FROM attempts a` + answered + ` WHERE a.workspace_id = ? AND a.id = ?`
	attemptOfKeyQuery = `SELECT ` + attemptColumns + ` FROM send_keys k
	JOIN attempts a ON a.workspace_id = k.workspace_id AND a.id = k.attempt_id` + answered + ` WHERE k.workspace_id = ? AND k.key = ?`
	attemptsQuery = `SELECT ` + attemptColumns + ` FROM attempts a` + answered + ` WHERE a.workspace_id = ? ORDER BY a.id DESC LIMIT ?`
	inDoubtQuery  = `SELECT ` + attemptColumns + ` FROM attempts a` + answered + `
	WHERE ` + unsettled + ` AND a.phase = 'in_doubt' AND a.workspace_id = ? ORDER BY a.id DESC LIMIT ?`
	unsettledQuery = `SELECT ` + attemptColumns + ` FROM attempts a` + answered + ` WHERE ` + unsettled + ` AND a.workspace_id = ?`
	lapsedQuery    = `SELECT a.workspace_id, a.id FROM attempts a
	WHERE ` + unsettled + ` AND a.phase = 'dispatching' AND a.lease_until < ? LIMIT ?`
)

// AttemptOfKey returns the attempt that holds an Idempotency-Key, or nil.
func (s *Store) AttemptOfKey(ctx context.Context, ws desk.ID, key string) (found *desk.Attempt, err error) {
	err = s.read(ctx, 2*pointRead, func(c conn) error {
		found, err = one("attempt of key", c.stmt(attemptOfKeyQuery).id(ws).text(key), readAttempt)
		return err
	})
	return found, err
}

// Attempt returns an attempt, or nil.
func (s *Store) Attempt(ctx context.Context, ws, id desk.ID) (found *desk.Attempt, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		found, err = one("attempt", c.stmt(attemptQuery).id(ws).id(id), readAttempt)
		return err
	})
	return found, err
}

// Attempts returns up to limit attempts, newest first; only those in doubt when
// inDoubt is set.
func (s *Store) Attempts(ctx context.Context, ws desk.ID, inDoubt bool, limit int) (found []*desk.Attempt, err error) {
	query := attemptsQuery
	if inDoubt {
		query = inDoubtQuery
	}
	err = s.read(ctx, int64(pointRead*limit), func(c conn) error {
		found, err = all("attempts", c.stmt(query).id(ws).int(int64(limit)), readAttempt)
		return err
	})
	return found, err
}

// Lapsed returns up to limit attempts of all workspaces that are still dispatching
// although their lease ended more than margin milliseconds ago.
func (s *Store) Lapsed(ctx context.Context, margin desk.Time, limit int) (found []app.LapsedAttempt, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		found, err = all("lapsed attempts", c.stmt(lapsedQuery).time(now()-margin).int(int64(limit)), func(s *stmt) app.LapsedAttempt {
			return app.LapsedAttempt{Workspace: s.readID(), ID: s.readID()}
		})
		return err
	})
	return found, err
}

// forgotten are the attempts that ForgetAttempts deletes. One was made before it was
// settled, and its id tells when: so of a long log only the old end is read.
const forgotten = ` FROM attempts WHERE workspace_id = ?1 AND id < ?2 AND settled_at > 0 AND settled_at < ?3 ORDER BY id LIMIT ?4`

const (
	forgetKeysQuery     = `DELETE FROM send_keys WHERE workspace_id = ?1 AND (key, attempt_id) IN (SELECT key, id` + forgotten + `)`
	forgetAnswersQuery  = `DELETE FROM send_answers WHERE workspace_id = ?1 AND attempt_id IN (SELECT id` + forgotten + `)`
	forgetAttemptsQuery = `DELETE FROM attempts WHERE workspace_id = ?1 AND id IN (SELECT id` + forgotten + `)`
)

// ForgetAttempts deletes up to limit attempts of a workspace that were settled before
// a time, with the keys that they still hold, and returns how many.
func (s *Store) ForgetAttempts(_ context.Context, ws desk.ID, before desk.Time, limit int) (n int, err error) {
	err = s.write(func(c conn) error {
		for _, query := range []string{forgetKeysQuery, forgetAnswersQuery, forgetAttemptsQuery} {
			if err := c.stmt(query).id(ws).id(desk.FirstID(before)).time(before).int(int64(limit)).run(); err != nil {
				return failed("forget attempts", err)
			}
		}
		n = c.Changes()
		return nil
	})
	return n, err
}

func putAttempt(c conn, ws desk.ID, a *desk.Attempt) error {
	err := c.stmt(`INSERT INTO attempts (key, hash, actor_id, phase, created_at, lease_until, settled_at, plan,
		external_id, refusal, notes, erased, workspace_id, id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (workspace_id, id) DO UPDATE SET key = excluded.key, hash = excluded.hash, actor_id = excluded.actor_id,
		phase = excluded.phase, created_at = excluded.created_at, lease_until = excluded.lease_until, settled_at = excluded.settled_at,
		plan = excluded.plan, external_id = excluded.external_id, refusal = excluded.refusal,
		notes = excluded.notes, erased = excluded.erased`).
		text(a.Key).bytes(a.Hash[:]).id(a.Actor).text(string(a.Phase)).time(a.CreatedAt).time(a.LeaseUntil).time(a.SettledAt).json(a.Plan).
		text(a.ExternalID).json(a.Refusal).json(a.Notes).int(flag(a.Erased)).id(ws).id(a.ID).run()
	if err == nil && a.Response != nil { // which never changes
		err = c.stmt(`INSERT INTO send_answers (workspace_id, attempt_id, response) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`).
			id(ws).id(a.ID).bytes(a.Response).run()
	}
	return failed("store attempt", err)
}

// eraseAttempts drops what unsettled attempts know of contacts that are deleted.
func eraseAttempts(c conn, ws desk.ID, deleted []*desk.Contact) error {
	attempts, err := all("unsettled attempts", c.stmt(unsettledQuery).id(ws), readAttempt)
	for _, a := range attempts {
		if err == nil && !a.Erased && slices.ContainsFunc(deleted, a.Concerns) {
			a.Erase()
			err = putAttempt(c, ws, a)
		}
	}
	return err
}
