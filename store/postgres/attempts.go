package postgres

import (
	"context"
	"slices"

	"parley/app"
	"parley/desk"

	"github.com/jackc/pgx/v5"
)

const attemptColumns = `a.id, a.key, a.hash, a.actor_id, a.phase, a.created_at, a.lease_until, a.settled_at, a.plan,
	a.external_id, a.response, a.refusal, a.notes, a.erased`

func readAttempt(row pgx.Row) (*desk.Attempt, error) {
	var a desk.Attempt
	err := row.Scan(into(&a.ID), &a.Key, (*hash)(&a.Hash), into(&a.Actor), (*string)(&a.Phase), (*int64)(&a.CreatedAt), (*int64)(&a.LeaseUntil),
		(*int64)(&a.SettledAt), document{&a.Plan}, &a.ExternalID, &a.Response, document{&a.Refusal}, document{&a.Notes}, &a.Erased)
	return &a, err
}

// unsettled stands in a query as it stands in the index attempts_unsettled.
const unsettled = `a.phase IN ('dispatching', 'in_doubt')`

const (
	attemptQuery      = `SELECT ` + attemptColumns + ` FROM attempts a WHERE a.workspace_id = $1 AND a.id = $2`
	attemptOfKeyQuery = `SELECT ` + attemptColumns + ` FROM send_keys k
	JOIN attempts a ON a.workspace_id = k.workspace_id AND a.id = k.attempt_id WHERE k.workspace_id = $1 AND k.key = $2`
	attemptsQuery = `SELECT ` + attemptColumns + ` FROM attempts a WHERE a.workspace_id = $1 ORDER BY a.id DESC LIMIT $2`
	inDoubtQuery  = `SELECT ` + attemptColumns + ` FROM attempts a
	WHERE ` + unsettled + ` AND a.phase = 'in_doubt' AND a.workspace_id = $1 ORDER BY a.id DESC LIMIT $2`
	unsettledQuery = `SELECT ` + attemptColumns + ` FROM attempts a WHERE ` + unsettled + ` AND a.workspace_id = $1 ORDER BY a.id`
	lapsedQuery    = `SELECT a.workspace_id, a.id FROM attempts a
	WHERE ` + unsettled + ` AND a.phase = 'dispatching' AND a.lease_until < ` + databaseNow + ` - $1::bigint LIMIT $2`
)

// AttemptOfKey returns the attempt that holds an Idempotency-Key, or nil.
func (s *Store) AttemptOfKey(ctx context.Context, ws desk.ID, key string) (found *desk.Attempt, err error) {
	err = s.read(ctx, func(p *pipe) error {
		found, err = one(p, "attempt of key", readAttempt, attemptOfKeyQuery, uuid(ws), key)
		return err
	})
	return found, err
}

// Attempt returns an attempt, or nil.
func (s *Store) Attempt(ctx context.Context, ws, id desk.ID) (found *desk.Attempt, err error) {
	err = s.read(ctx, func(p *pipe) error {
		found, err = one(p, "attempt", readAttempt, attemptQuery, uuid(ws), uuid(id))
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
	err = s.read(ctx, func(p *pipe) error {
		found, err = all(p, "attempts", readAttempt, query, uuid(ws), limit)
		return err
	})
	return found, err
}

// Lapsed returns up to limit attempts of all workspaces that are still dispatching
// although their lease ended more than margin milliseconds ago.
func (s *Store) Lapsed(ctx context.Context, margin desk.Time, limit int) (found []app.LapsedAttempt, err error) {
	err = s.read(ctx, func(p *pipe) error {
		found, err = all(p, "lapsed attempts", func(row pgx.Row) (a app.LapsedAttempt, err error) {
			err = row.Scan(into(&a.Workspace), into(&a.ID))
			return a, err
		}, lapsedQuery, int64(margin), limit)
		return err
	})
	return found, err
}

// An attempt was made before it was settled, and its id tells when: so of a long log
// only the old end is read.
const forgetAttemptsQuery = `WITH forgotten AS (
		SELECT id, key FROM attempts WHERE workspace_id = $1 AND id < $2 AND settled_at > 0 AND settled_at < $3 ORDER BY id LIMIT $4),
	keys AS (DELETE FROM send_keys k USING forgotten f WHERE k.workspace_id = $1 AND k.key = f.key AND k.attempt_id = f.id)
	DELETE FROM attempts a USING forgotten f WHERE a.workspace_id = $1 AND a.id = f.id`

// ForgetAttempts deletes up to limit attempts of a workspace that were settled before
// a time, with the keys that they still hold, and returns how many.
func (s *Store) ForgetAttempts(ctx context.Context, ws desk.ID, before desk.Time, limit int) (n int, err error) {
	tag, err := s.exec(ctx, "forget attempts", forgetAttemptsQuery, uuid(ws), uuid(desk.FirstID(before)), int64(before), limit)
	return int(tag.RowsAffected()), err
}

// A response never changes once it is there.
const putAttemptQuery = `INSERT INTO attempts (workspace_id, id, key, hash, actor_id, phase, created_at, lease_until, settled_at, plan,
	external_id, response, refusal, notes, erased) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
	ON CONFLICT (workspace_id, id) DO UPDATE SET key = excluded.key, hash = excluded.hash, actor_id = excluded.actor_id,
	phase = excluded.phase, created_at = excluded.created_at, lease_until = excluded.lease_until, settled_at = excluded.settled_at,
	plan = excluded.plan, external_id = excluded.external_id, response = coalesce(attempts.response, excluded.response),
	refusal = excluded.refusal, notes = excluded.notes, erased = excluded.erased`

func putAttempt(p *pipe, ws desk.ID, a *desk.Attempt) error {
	p.put(putAttemptQuery, uuid(ws), uuid(a.ID), a.Key, slices.Clone(a.Hash[:]), uuid(a.Actor), string(a.Phase), int64(a.CreatedAt), int64(a.LeaseUntil),
		int64(a.SettledAt), asJSON(a.Plan), a.ExternalID, a.Response, asJSON(a.Refusal), asJSON(a.Notes), a.Erased)
	return p.fail
}

// eraseAttempts drops what unsettled attempts know of contacts that are deleted.
func eraseAttempts(p *pipe, ws desk.ID, deleted []*desk.Contact) error {
	attempts, err := all(p, "unsettled attempts", readAttempt, unsettledQuery+forUpdate, uuid(ws))
	for _, a := range attempts {
		if err == nil && !a.Erased && slices.ContainsFunc(deleted, a.Concerns) {
			a.Erase()
			err = putAttempt(p, ws, a)
		}
	}
	return err
}
