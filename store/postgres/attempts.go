package postgres

import (
	"context"
	"slices"
	"strings"

	"parley/desk"
	"parley/store"
	"parley/store/internal/stored"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

const attemptColumns = `a.id, a.key, a.hash, a.actor_kind, a.actor_id, a.phase, a.created_at, a.lease_until, a.settled_at, a.plan,
	a.external_id, a.response, a.refusal, a.notes, a.erased, a.broadcast_id,
	CASE WHEN a.settled_at > 0 THEN ` + thisHour + ` - a.settled_hour ELSE 0 END`

func readAttempt(row pgx.Row) (*desk.Attempt, error) {
	var a desk.Attempt
	err := row.Scan(into(&a.ID), &a.Key, (*hash)(&a.Hash), (*string)(&a.Actor.Kind), into(&a.Actor.ID), (*string)(&a.Phase), (*int64)(&a.CreatedAt), (*int64)(&a.Lease),
		(*int64)(&a.SettledAt), document{&a.Plan}, &a.ExternalID, &a.Response, document{&a.Refusal}, document{&a.Notes}, &a.Erased, into(&a.Broadcast), &a.Age)
	return &a, err
}

// unsettled is the condition of the index attempts_unsettled. A query must contain it in
// exactly the same words.
const unsettled = `a.phase IN ('dispatching', 'in_doubt')`

const (
	attemptQuery      = `SELECT ` + attemptColumns + ` FROM attempts a WHERE a.workspace_id = $1 AND a.id = $2`
	untouchedQuery    = `SELECT 1 FROM attempts a WHERE a.workspace_id = $1 AND a.id = $2 AND a.phase = 'dispatching' AND NOT a.erased`
	attemptOfKeyQuery = `SELECT ` + attemptColumns + ` FROM send_keys k
	JOIN attempts a ON a.workspace_id = k.workspace_id AND a.id = k.attempt_id WHERE k.workspace_id = $1 AND k.key = $2`
	attemptsQuery          = `SELECT ` + attemptColumns + ` FROM attempts a WHERE a.workspace_id = $1 AND a.id < $2 ORDER BY a.id DESC LIMIT $3`
	broadcastAttemptsQuery = `SELECT ` + attemptColumns + ` FROM attempts a WHERE a.workspace_id = $1 AND a.broadcast_id = $2 AND a.id < $3 ORDER BY a.broadcast_id DESC, a.id DESC LIMIT $4`
	inDoubtQuery           = `SELECT ` + attemptColumns + ` FROM attempts a
	WHERE ` + unsettled + ` AND (a.phase, a.id) < ('in_doubt', $2) AND a.phase >= 'in_doubt' AND a.workspace_id = $1 ORDER BY a.phase DESC, a.id DESC LIMIT $3`  // only the index has this order
	oldestInDoubtQuery = `SELECT a.id, a.created_at FROM attempts a
	WHERE ` + unsettled + ` AND (a.phase, a.id) > ('in_doubt', $2) AND a.phase <= 'in_doubt' AND a.workspace_id = $1 ORDER BY a.phase, a.id LIMIT $3`
	dispatchingQuery = `SELECT ` + attemptColumns + ` FROM attempts a
	WHERE ` + unsettled + ` AND (a.phase, a.id) < ('dispatching', $2) AND a.phase >= 'dispatching' AND a.workspace_id = $1 ORDER BY a.phase DESC, a.id DESC LIMIT $3`
	phasesQuery       = `SELECT id, phase FROM attempts WHERE workspace_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3`
	attemptsByIDQuery = `SELECT ` + attemptColumns + ofEach2 + `(SELECT * FROM attempts WHERE workspace_id = $1 AND id = u.i OFFSET 0) a ORDER BY a.id DESC`
	// All attempts that are being sent are looked at (see migration 27). Attempts in doubt
	// are looked up by their indexes (see wantedContacts). All are locked in the order of
	// ids.
	attemptsToQuery = `SELECT ` + attemptColumns + ` FROM (` + attemptIDsTo + ` ORDER BY 1) w` + unsettledByID
	attemptIDsTo    = `SELECT d.id FROM (SELECT * FROM attempts a WHERE ` + unsettled + ` AND a.phase = 'dispatching' OFFSET 0) d
			WHERE d.workspace_id = $1 AND (d.contact_id = ANY($2::uuid[]) OR d.number <> '' AND d.number = ANY($3::text[]))
		UNION SELECT l.id FROM unnest($2::uuid[]) u (contact) CROSS JOIN LATERAL
			(SELECT a.id FROM attempts a WHERE a.phase = 'in_doubt' AND a.workspace_id = $1 AND a.contact_id = u.contact OFFSET 0) l
		UNION SELECT l.id FROM unnest($3::text[]) u (number) CROSS JOIN LATERAL
			(SELECT a.id FROM attempts a WHERE a.phase = 'in_doubt' AND a.workspace_id = $1 AND a.number = u.number AND a.number <> '' OFFSET 0) l`
	unsettledByID = ` CROSS JOIN LATERAL (SELECT * FROM attempts WHERE workspace_id = $1 AND id = w.id OFFSET 0) a
	WHERE ` + unsettled + ``
	attemptsOfQuery = `SELECT ` + attemptColumns + ` FROM (SELECT t.id FROM (` + attemptIDsTo + `) t WHERE t.id > $4 ORDER BY 1 LIMIT $5) w` + unsettledByID + ` ORDER BY a.id`
	unsentToQuery   = `SELECT l.id FROM unnest($2::uuid[]) u (contact) CROSS JOIN LATERAL
		(SELECT a.id FROM attempts a WHERE a.phase IN ('refused', 'released') AND NOT a.erased AND a.workspace_id = $1 AND a.contact_id = u.contact OFFSET 0) l LIMIT $3`
	eraseSettledQuery = `UPDATE attempts SET erased = true, external_id = $3, plan = $4, notes = $5 WHERE workspace_id = $1 AND id = $2`
	lapsedQuery       = `SELECT a.workspace_id, a.id FROM attempts a
	WHERE ` + unsettled + ` AND a.phase = 'dispatching' AND (a.lease_until < ` + databaseNow + ` - $1::bigint OR a.lease_until > ` + databaseNow + ` + $2::bigint) LIMIT $3`
)

// AttemptOfKey returns the attempt that holds an Idempotency-Key, or nil.
func (s *Store) AttemptOfKey(ctx context.Context, ws desk.ID, key string) (*desk.Attempt, error) {
	return readOne(ctx, s, "attempt of key", readAttempt, attemptOfKeyQuery, uuid(ws), key)
}

// Attempt returns an attempt, or nil.
func (s *Store) Attempt(ctx context.Context, ws, id desk.ID) (*desk.Attempt, error) {
	return readOne(ctx, s, "attempt", readAttempt, attemptQuery, uuid(ws), uuid(id))
}

// Attempts returns a page of attempts (see store.Attempts). Settled attempts have no
// index by phase, so they are searched for.
func (s *Store) Attempts(ctx context.Context, ws desk.ID, phase desk.Phase, before *desk.ID, limit int) (found []*desk.Attempt, next *desk.ID, err error) {
	if before == nil {
		before = &lastID
	}
	err = s.read(ctx, func(p *pipe) error {
		page := stored.AttemptPage{Size: desk.NewPageSize(limit)}
		query, args, last := attemptsQuery, []any{uuid(ws), uuid(*before), limit + 1}, (*desk.ID)(nil)
		switch phase {
		case "":
		case desk.InDoubt:
			query = inDoubtQuery
		case desk.Dispatching:
			query = dispatchingQuery
		default:
			var ids []uuid
			if ids, last, err = inPhase(p, ws, phase, *before, limit); err != nil {
				return err
			}
			query, args = attemptsByIDQuery, []any{uuid(ws), ids}
		}
		each(p, readAttempt, func(a *desk.Attempt) { page.Add(a) }, query, args...)
		err := p.send("attempts")
		if found, next = page.List, page.Next; next == nil {
			next = last
		}
		return err
	})
	return found, next, err
}

// BroadcastAttempts returns a page of the attempts of a broadcast.
func (s *Store) BroadcastAttempts(ctx context.Context, ws, broadcast desk.ID, before *desk.ID, limit int) (found []*desk.Attempt, next *desk.ID, err error) {
	if before == nil {
		before = &lastID
	}
	err = s.read(ctx, func(p *pipe) error {
		page := stored.AttemptPage{Size: desk.NewPageSize(limit)}
		each(p, readAttempt, func(a *desk.Attempt) { page.Add(a) }, broadcastAttemptsQuery, uuid(ws), uuid(broadcast), uuid(*before), limit+1)
		err := p.send("attempts of a broadcast")
		found, next = page.List, page.Next
		return err
	})
	return found, next, err
}

// inPhase searches for attempts in a phase, and returns the id before which the search
// continues.
func inPhase(p *pipe, ws desk.ID, phase desk.Phase, before desk.ID, limit int) (ids []uuid, next *desk.ID, err error) {
	var last desk.ID
	looked := 0
	p.each(func(row pgx.Row) error {
		var id desk.ID
		var at desk.Phase
		err := row.Scan(into(&id), (*string)(&at))
		switch {
		case next != nil:
		case looked == desk.MaxLooked || len(ids) == limit:
			next = &last
		default:
			if looked, last = looked+1, id; at == phase {
				ids = append(ids, uuid(id))
			}
		}
		return err
	}, phasesQuery, uuid(ws), uuid(before), desk.MaxLooked+1)
	return ids, next, p.send("attempts in a phase")
}

// OldestInDoubt returns up to limit attempts in doubt after the given one, oldest first.
func (s *Store) OldestInDoubt(ctx context.Context, ws, after desk.ID, limit int) ([]store.AttemptRef, error) {
	return readAll(ctx, s, "oldest attempts in doubt", func(row pgx.Row) (a store.AttemptRef, err error) {
		err = row.Scan(into(&a.ID), (*int64)(&a.CreatedAt))
		return a, err
	}, oldestInDoubtQuery, uuid(ws), uuid(after), limit)
}

// Lapsed returns up to limit attempts of all workspaces that are still dispatching
// although their lease ended more than margin milliseconds ago. It also returns those
// whose lease ends later than any lease can.
func (s *Store) Lapsed(ctx context.Context, length, margin desk.Time, limit int) ([]store.LapsedAttempt, error) {
	return readAll(ctx, s, "lapsed attempts", func(row pgx.Row) (a store.LapsedAttempt, err error) {
		err = row.Scan(into(&a.Workspace), into(&a.ID))
		return a, err
	}, lapsedQuery, int64(margin), int64(length+margin), limit)
}

const forgetAttemptsQuery = `WITH forgotten AS (
		SELECT id, key FROM attempts WHERE workspace_id = $1 AND settled_at > 0 AND settled_hour <= ` + thisHour + ` - $2::bigint
		ORDER BY settled_hour, id LIMIT $3),
	keys AS (DELETE FROM send_keys k USING forgotten f WHERE k.workspace_id = $1 AND k.key = f.key AND k.attempt_id = f.id)
	DELETE FROM attempts a USING forgotten f WHERE a.workspace_id = $1 AND a.id = f.id`

// ForgetAttempts deletes up to limit attempts of a workspace that were settled at least
// this many hours ago, by the counter of hours. It also deletes the keys that these
// attempts still hold. It returns the number of deleted attempts.
func (s *Store) ForgetAttempts(ctx context.Context, ws desk.ID, hours int64, limit int) (n int, err error) {
	tag, err := s.exec(ctx, "forget attempts", forgetAttemptsQuery, uuid(ws), hours, limit)
	return int(tag.RowsAffected()), err
}

// A stored response never changes.
const putAttemptQuery = `INSERT INTO attempts (workspace_id, id, key, hash, actor_kind, actor_id, phase, created_at, lease_until, settled_at, plan,
	external_id, response, refusal, notes, erased, contact_id, number, media_id, settled_hour, broadcast_id)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)
	ON CONFLICT (workspace_id, id) DO UPDATE SET key = excluded.key, hash = excluded.hash, actor_kind = excluded.actor_kind, actor_id = excluded.actor_id,
	phase = excluded.phase, created_at = excluded.created_at, lease_until = excluded.lease_until, settled_at = excluded.settled_at,
	plan = excluded.plan, external_id = excluded.external_id, response = coalesce(attempts.response, excluded.response),
	refusal = excluded.refusal, notes = excluded.notes, erased = excluded.erased, contact_id = excluded.contact_id, number = excluded.number, media_id = excluded.media_id,
	settled_hour = CASE WHEN attempts.settled_at > 0 AND excluded.settled_at > 0 THEN attempts.settled_hour ELSE excluded.settled_hour END`

func putAttempt(t *tx, a *desk.Attempt) error {
	hour := int64(0)
	if a.SettledAt > 0 {
		hour = t.thisHour()
	}
	t.put(putAttemptQuery, uuid(t.ws), uuid(a.ID), a.Key, slices.Clone(a.Hash[:]), string(a.Actor.Kind), uuid(a.Actor.ID), string(a.Phase), int64(a.CreatedAt), int64(a.Lease),
		int64(a.SettledAt), asJSON(a.Plan), a.ExternalID, a.Response, asJSON(a.Refusal), asJSON(a.Notes), a.Erased,
		uuid(a.Plan.Contact), a.Plan.Canonical(), orNull(a.Holds()), hour, orNull(a.Broadcast))
	return t.fail
}

// eraseSettled removes the data of deleted contacts from settled attempts. It writes
// only the columns that change.
func eraseSettled(p *pipe, ws desk.ID, ids pgtype.FlatArray[uuid]) error {
	if len(ids) == 0 {
		return p.fail
	}
	attempts, err := all(p, "attempts to erase", readAttempt, attemptsByIDQuery+` FOR UPDATE OF a`, uuid(ws), ids)
	for _, a := range attempts {
		if a.Phase.Settled() && !a.Erased {
			a.Erase()
			p.put(eraseSettledQuery, uuid(ws), uuid(a.ID), a.ExternalID, asJSON(a.Plan), asJSON(a.Notes))
		}
	}
	return err
}

// settledPage is how many settled attempts are erased in one step.
const settledPage = 100

// attemptsTo returns attemptsToQuery, or its form for a cluster; attemptsOf does the same for
// attemptsOfQuery. On a single server, the queries make the planner choose the index of all
// unsettled attempts.
func attemptsTo(p *pipe) string {
	return form(p.citus, attemptsToQuery, inOneWorkspace(attemptsToQuery))
}

func attemptsOf(p *pipe) string {
	return form(p.citus, attemptsOfQuery, inOneWorkspace(attemptsOfQuery))
}

func inOneWorkspace(query string) string {
	return strings.Replace(query, `SELECT * FROM attempts a WHERE `, `SELECT * FROM attempts a WHERE a.workspace_id = $1 AND `, 1)
}

// eraseAttempts removes the data of deleted contacts from attempts that are not settled,
// or that sent nothing.
func eraseAttempts(t *tx, deleted []*desk.Contact) error {
	p, ws := t.pipe, t.ws
	ids, numbers := pgtype.FlatArray[uuid]{}, []string{}
	for _, d := range deleted {
		ids, numbers = append(ids, uuid(d.ID)), append(numbers, d.Numbers()...)
	}
	var unsent pgtype.FlatArray[uuid]
	find := func() {
		unsent = nil
		p.each(func(row pgx.Row) error {
			var id uuid
			err := row.Scan(&id)
			unsent = append(unsent, id)
			return err
		}, unsentToQuery, uuid(ws), ids, settledPage)
	}
	find()
	attempts, err := all(p, "attempts to contacts", readAttempt, attemptsTo(p)+` FOR UPDATE OF a`, uuid(ws), ids, numbers)
	for _, a := range attempts {
		if err == nil && !a.Erased {
			a.Erase()
			err = putAttempt(t, a)
		}
	}
	for more := true; more && err == nil; {
		more = len(unsent) == settledPage
		if err = eraseSettled(p, ws, unsent); more && err == nil {
			find()
			err = p.send("unsent attempts to contacts")
		}
	}
	return err
}
