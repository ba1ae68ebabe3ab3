package sqlite

import (
	"context"
	"errors"

	"parley/desk"
	"parley/store"
	"parley/store/internal/stored"
)

const attemptColumns = `a.id, a.key, a.hash, a.actor_kind, a.actor_id, a.phase, a.created_at, a.lease_until, a.settled_at, a.plan,
	a.external_id, r.response, a.refusal, a.notes, a.erased, a.broadcast_id,
	CASE WHEN a.settled_at > 0 THEN ` + thisHour + ` - a.settled_hour ELSE 0 END`

// answered is the join that must follow the table attempts in a query that selects
// attemptColumns.
const answered = ` LEFT JOIN send_answers r ON r.workspace_id = a.workspace_id AND r.attempt_id = a.id`

func readAttempt(s *stmt) *desk.Attempt {
	a := &desk.Attempt{ID: s.readID(), Key: s.readText()}
	s.readBytes(a.Hash[:])
	a.Actor, a.Phase = desk.Actor{Kind: desk.ActorKind(s.readText()), ID: s.readID()}, desk.Phase(s.readText())
	a.CreatedAt, a.Lease, a.SettledAt = s.readTime(), desk.Lease(s.readInt()), s.readTime()
	s.readJSON(&a.Plan)
	a.ExternalID, a.Response = s.readText(), s.readBlob()
	s.readJSON(&a.Refusal)
	s.readJSON(&a.Notes)
	a.Erased, a.Broadcast, a.Age = s.readInt() != 0, s.readID(), s.readInt()
	return a
}

// unsettled is the condition of the partial indexes. A query must contain it in exactly
// the same words. Otherwise SQLite does not use the indexes. Several indexes fit, so each
// query names its index: with old statistics of the table, SQLite would choose another
// one, and sort.
const unsettled = `a.phase IN ('dispatching', 'in_doubt')`

const (
	attemptQuery      = `SELECT ` + attemptColumns + ` FROM attempts a` + answered + ` WHERE a.workspace_id = ? AND a.id = ?`
	untouchedQuery    = `SELECT 1 FROM attempts a WHERE a.workspace_id = ? AND a.id = ? AND a.phase = 'dispatching' AND NOT a.erased`
	attemptOfKeyQuery = `SELECT ` + attemptColumns + ` FROM send_keys k
	JOIN attempts a ON a.workspace_id = k.workspace_id AND a.id = k.attempt_id` + answered + ` WHERE k.workspace_id = ? AND k.key = ?`
	attemptsQuery = `SELECT ` + attemptColumns + ` FROM attempts a` + answered + ` WHERE a.workspace_id = ? AND a.id < ? ORDER BY a.id DESC LIMIT +?`
	inDoubtQuery  = `SELECT ` + attemptColumns + ` FROM attempts a INDEXED BY attempts_in_doubt` + answered + `
	WHERE a.phase = 'in_doubt' AND a.workspace_id = ? AND a.id < ? ORDER BY a.id DESC LIMIT +?`
	oldestInDoubtQuery = `SELECT a.id, a.created_at FROM attempts a INDEXED BY attempts_in_doubt
	WHERE a.phase = 'in_doubt' AND a.workspace_id = ? AND a.id > ? ORDER BY a.id LIMIT +?`
	dispatchingQuery = `SELECT ` + attemptColumns + ` FROM attempts a INDEXED BY attempts_unsettled` + answered + `
	WHERE ` + unsettled + ` AND a.phase = 'dispatching' AND a.workspace_id = ? AND a.id < ? ORDER BY a.id DESC LIMIT +?`
	broadcastAttemptsQuery = `SELECT ` + attemptColumns + ` FROM attempts a INDEXED BY attempts_broadcast` + answered + `
	WHERE a.workspace_id = ? AND a.broadcast_id = ? AND a.id < ? ORDER BY a.id DESC LIMIT +?`
	phasesQuery = `SELECT id, phase FROM attempts WHERE workspace_id = ? AND id < ? ORDER BY id DESC LIMIT +?`
	// All attempts that are being sent are looked at (see migration 27).
	dispatchingTo = `SELECT ` + attemptColumns + ` FROM attempts a INDEXED BY attempts_unsettled` + answered + `
	WHERE ` + unsettled + ` AND a.phase = 'dispatching' AND a.workspace_id = ?1 AND `
	attemptsToContactsQuery = dispatchingTo + `a.contact_id IN (SELECT unhex(value, '-') FROM json_each(?2))
	UNION ALL SELECT ` + attemptColumns + ` FROM json_each(?2) j CROSS JOIN attempts a INDEXED BY attempts_contact` + answered + `
	WHERE a.phase = 'in_doubt' AND a.workspace_id = ?1 AND a.contact_id = unhex(j.value, '-')`
	attemptsToNumbersQuery = dispatchingTo + `a.number IN (SELECT value FROM json_each(?2))
	UNION ALL SELECT ` + attemptColumns + ` FROM json_each(?2) j CROSS JOIN attempts a INDEXED BY attempts_number` + answered + `
	WHERE a.phase = 'in_doubt' AND a.workspace_id = ?1 AND a.number = j.value`
	unsentToQuery = `SELECT ` + attemptColumns + ` FROM json_each(?2) j CROSS JOIN attempts a INDEXED BY attempts_unsent` + answered + `
	WHERE a.phase IN ('refused', 'released') AND a.erased = 0 AND a.workspace_id = ?1 AND a.contact_id = unhex(j.value, '-') LIMIT +?3`
	eraseSettledQuery = `UPDATE attempts SET erased = 1, external_id = ?, plan = ?, notes = ? WHERE workspace_id = ? AND id = ?`
	lapsedQuery       = `SELECT a.workspace_id, a.id FROM attempts a INDEXED BY attempts_unsettled
	WHERE ` + unsettled + ` AND a.phase = 'dispatching' AND (a.lease_until < ? OR a.lease_until > ?) LIMIT +?`
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

// Attempts returns a page of attempts (see store.Attempts). Settled attempts have no
// index by phase, so they are searched for.
func (s *Store) Attempts(ctx context.Context, ws desk.ID, phase desk.Phase, before *desk.ID, limit int) (found []*desk.Attempt, next *desk.ID, err error) {
	if before == nil {
		before = &lastID
	}
	query := attemptsQuery
	switch phase {
	case desk.InDoubt:
		query = inDoubtQuery
	case desk.Dispatching:
		query = dispatchingQuery
	}
	err = s.read(ctx, int64(pointRead*limit), func(c conn) error {
		return c.snapshot(func() error {
			page := stored.AttemptPage{Size: desk.NewPageSize(limit)}
			if phase == "" || !phase.Settled() {
				rows := c.stmt(query).id(ws).id(*before).int(int64(limit) + 1)
				for rows.next() && page.Add(readAttempt(&rows)) {
				}
				found, next = page.List, page.Next
				return failed("attempts", rows.done())
			}
			ids, last, err := inPhase(c, ws, phase, *before, limit)
			for _, id := range ids {
				a, e := one("attempt", c.stmt(attemptQuery).id(ws).id(id), readAttempt)
				if err = errors.Join(err, e); err != nil || !page.Add(a) {
					break
				}
			}
			if found, next = page.List, page.Next; next == nil {
				next = last
			}
			return err
		})
	})
	return found, next, err
}

// BroadcastAttempts returns a page of the attempts of a broadcast.
func (s *Store) BroadcastAttempts(ctx context.Context, ws, broadcast desk.ID, before *desk.ID, limit int) (found []*desk.Attempt, next *desk.ID, err error) {
	if before == nil {
		before = &lastID
	}
	err = s.read(ctx, int64(pointRead*limit), func(c conn) error {
		page := stored.AttemptPage{Size: desk.NewPageSize(limit)}
		rows := c.stmt(broadcastAttemptsQuery).id(ws).id(broadcast).id(*before).int(int64(limit) + 1)
		for rows.next() && page.Add(readAttempt(&rows)) {
		}
		found, next = page.List, page.Next
		return failed("attempts of a broadcast", rows.done())
	})
	return found, next, err
}

// inPhase searches for attempts in a phase, and returns the id before which the search
// continues.
func inPhase(c conn, ws desk.ID, phase desk.Phase, before desk.ID, limit int) (ids []desk.ID, next *desk.ID, err error) {
	var last desk.ID
	rows := c.stmt(phasesQuery).id(ws).id(before).int(desk.MaxLooked + 1)
	for looked := 0; rows.next(); looked++ {
		if looked == desk.MaxLooked || len(ids) == limit {
			next = &last
			break
		}
		if last = rows.readID(); desk.Phase(rows.readText()) == phase {
			ids = append(ids, last)
		}
	}
	return ids, next, failed("attempts in a phase", rows.done())
}

// OldestInDoubt returns up to limit attempts in doubt after the given one, oldest first.
func (s *Store) OldestInDoubt(ctx context.Context, ws, after desk.ID, limit int) (list []store.AttemptRef, err error) {
	err = s.read(ctx, int64(pointRead*limit), func(c conn) error {
		list, err = all("oldest attempts in doubt", c.stmt(oldestInDoubtQuery).id(ws).id(after).int(int64(limit)), func(s *stmt) store.AttemptRef {
			return store.AttemptRef{ID: s.readID(), CreatedAt: s.readTime()}
		})
		return err
	})
	return list, err
}

// Lapsed returns up to limit attempts of all workspaces that are still dispatching
// although their lease ended more than margin milliseconds ago. It also returns those
// whose lease ends later than any lease can.
func (s *Store) Lapsed(ctx context.Context, length, margin desk.Time, limit int) (found []store.LapsedAttempt, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		found, err = all("lapsed attempts", c.stmt(lapsedQuery).time(s.now()-margin).time(s.now()+length+margin).int(int64(limit)), func(s *stmt) store.LapsedAttempt {
			return store.LapsedAttempt{Workspace: s.readID(), ID: s.readID()}
		})
		return err
	})
	return found, err
}

// forgotten is the part of a query that selects the attempts for ForgetAttempts to
// delete.
const forgotten = ` FROM attempts INDEXED BY attempts_settled WHERE workspace_id = ?1 AND settled_at > 0 AND settled_hour <= ` + thisHour + ` - ?2 ORDER BY settled_hour, id LIMIT +?3`

const (
	forgetKeysQuery     = `DELETE FROM send_keys WHERE workspace_id = ?1 AND (key, attempt_id) IN (SELECT key, id` + forgotten + `)`
	forgetAnswersQuery  = `DELETE FROM send_answers WHERE workspace_id = ?1 AND attempt_id IN (SELECT id` + forgotten + `)`
	forgetAttemptsQuery = `DELETE FROM attempts WHERE workspace_id = ?1 AND id IN (SELECT id` + forgotten + `)`
)

// ForgetAttempts deletes up to limit attempts of a workspace that were settled at least
// this many hours ago, by the counter of hours. It also deletes the keys that these
// attempts still hold. It returns the number of deleted attempts.
func (s *Store) ForgetAttempts(ctx context.Context, ws desk.ID, hours int64, limit int) (n int, err error) {
	err = s.write(ctx, func(c conn) error {
		for _, query := range []string{forgetKeysQuery, forgetAnswersQuery, forgetAttemptsQuery} {
			if err := c.stmt(query).id(ws).int(hours).int(int64(limit)).run(); err != nil {
				return failed("forget attempts", err)
			}
		}
		n = c.Changes()
		return nil
	})
	return n, err
}

func putAttempt(c conn, ws desk.ID, a *desk.Attempt) error {
	err := c.stmt(`INSERT INTO attempts (key, hash, actor_kind, actor_id, phase, created_at, lease_until, settled_at, plan,
		external_id, refusal, notes, erased, contact_id, number, workspace_id, id, media_id, broadcast_id, settled_hour)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, iif(?8 > 0, ` + thisHour + `, 0))
		ON CONFLICT (workspace_id, id) DO UPDATE SET key = excluded.key, hash = excluded.hash, actor_kind = excluded.actor_kind, actor_id = excluded.actor_id,
		phase = excluded.phase, created_at = excluded.created_at, lease_until = excluded.lease_until, settled_at = excluded.settled_at,
		plan = excluded.plan, external_id = excluded.external_id, refusal = excluded.refusal,
		notes = excluded.notes, erased = excluded.erased, contact_id = excluded.contact_id, number = excluded.number, media_id = excluded.media_id,
		settled_hour = iif(attempts.settled_at > 0 AND excluded.settled_at > 0, attempts.settled_hour, excluded.settled_hour)`).
		text(a.Key).bytes(a.Hash[:]).text(string(a.Actor.Kind)).id(a.Actor.ID).text(string(a.Phase)).time(a.CreatedAt).time(desk.Time(a.Lease)).time(a.SettledAt).json(a.Plan).
		text(a.ExternalID).json(a.Refusal).json(a.Notes).int(flag(a.Erased)).id(a.Plan.Contact).text(a.Plan.Canonical()).id(ws).id(a.ID).idOrNull(a.Holds()).idOrNull(a.Broadcast).run()
	if err == nil && a.Response != nil { // a stored response never changes
		err = c.stmt(`INSERT INTO send_answers (workspace_id, attempt_id, response) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`).
			id(ws).id(a.ID).bytes(a.Response).run()
	}
	return failed("store attempt", err)
}

// eraseSettled removes the data of a deleted contact from a settled attempt.
func eraseSettled(c conn, ws, id desk.ID) error {
	a, err := one("attempt", c.stmt(attemptQuery).id(ws).id(id), readAttempt)
	if err != nil || a == nil || a.Erased || !a.Phase.Settled() {
		return err
	}
	return putErased(c, ws, a)
}

// putErased erases a settled attempt. It writes only the columns that change.
func putErased(c conn, ws desk.ID, a *desk.Attempt) error {
	a.Erase()
	return failed("erase attempt", c.stmt(eraseSettledQuery).text(a.ExternalID).json(a.Plan).json(a.Notes).id(ws).id(a.ID).run())
}

// settledPage is how many settled attempts are erased in one step.
const settledPage = 100

// attemptsTo returns the unsettled attempts to contacts, and to numbers. It may return an
// attempt twice.
func attemptsTo(c conn, ws desk.ID, contacts, numbers []string) ([]*desk.Attempt, error) {
	attempts, err := all("attempts to contacts", c.stmt(attemptsToContactsQuery).id(ws).json(contacts), readAttempt)
	if err == nil && numbers != nil {
		var more []*desk.Attempt
		more, err = all("attempts to numbers", c.stmt(attemptsToNumbersQuery).id(ws).json(numbers), readAttempt)
		attempts = append(attempts, more...)
	}
	return attempts, err
}

// eraseAttempts removes the data of deleted contacts from attempts that are not settled,
// or that sent nothing.
func eraseAttempts(c conn, ws desk.ID, deleted []*desk.Contact) error {
	var ids, numbers []string
	for _, d := range deleted {
		ids, numbers = append(ids, d.ID.String()), append(numbers, d.Numbers()...)
	}
	attempts, err := attemptsTo(c, ws, ids, numbers)
	for _, a := range attempts {
		if err == nil && !a.Erased {
			a.Erase()
			err = putAttempt(c, ws, a)
		}
	}
	for more := true; more && err == nil; {
		attempts, err = all("unsent attempts to contacts", c.stmt(unsentToQuery).id(ws).json(ids).int(settledPage), readAttempt)
		for _, a := range attempts {
			if err == nil {
				err = putErased(c, ws, a)
			}
		}
		more = len(attempts) == settledPage
	}
	return err
}
