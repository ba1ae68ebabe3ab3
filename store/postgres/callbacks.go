package postgres

import (
	"context"
	"time"

	"parley/desk"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

const (
	callbackQuery    = `SELECT body FROM callbacks WHERE workspace_id = $1 AND received_at = $2 AND id = $3`
	putCallbackQuery = `INSERT INTO callbacks (workspace_id, received_at, id, channel_id, body) VALUES ($1, $2, $3, $4, $5)
	ON CONFLICT (workspace_id, received_at, id) DO UPDATE SET channel_id = excluded.channel_id, body = excluded.body`
	putCallbackPeopleQuery = `INSERT INTO callback_people (workspace_id, value, received_at, id) SELECT $1, u.value, $2, $3 FROM unnest($4::text[]) u (value)
	WHERE EXISTS (SELECT FROM callbacks WHERE workspace_id = $1 AND received_at = $2 AND id = $3) ON CONFLICT DO NOTHING`
	newestCallbackQuery = `SELECT ` + newestCallback + ` FROM (SELECT $1::uuid AS workspace_id, $2::uuid AS id) c`
	// newestCallback is an expression for the time of the newest callback of a channel c,
	// even if the callback was deleted.
	newestCallback = `greatest((SELECT received_at FROM callbacks WHERE workspace_id = c.workspace_id AND channel_id = c.id ORDER BY received_at DESC LIMIT 1),
		(SELECT called_at FROM channel_signs WHERE workspace_id = c.workspace_id AND channel_id = c.id), 0)`
	// noteCalls stores for each channel the time of the newest of the callbacks that are
	// being deleted (gone).
	noteCalls = `INSERT INTO channel_signs (workspace_id, channel_id, called_at)
		SELECT $1, channel_id, max(received_at) FROM gone GROUP BY channel_id ORDER BY channel_id
		ON CONFLICT (workspace_id, channel_id) DO UPDATE SET called_at = greatest(channel_signs.called_at, excluded.called_at)`
)

func (t *tx) PutCallback(n desk.InboundItem) error {
	t.put(putCallbackQuery, uuid(t.ws), int64(n.ReceivedAt), uuid(n.ID), uuid(n.Channel), notNull(n.Body))
	return t.fail
}

func (t *tx) EraseCallback(n desk.InboundItem) error {
	n.Body = nil
	return t.PutCallback(n)
}

func (t *tx) Callback(n desk.InboundItem) ([]byte, error) {
	return one(t.pipe, "callback", func(row pgx.Row) (body []byte, err error) {
		err = row.Scan(&body)
		return body, err
	}, callbackQuery+forUpdate, uuid(t.ws), int64(n.ReceivedAt), uuid(n.ID))
}

// PutCallbackPeople first locks the callback, as a deletion does. If the callback was
// deleted meanwhile, nothing is stored.
func (t *tx) PutCallbackPeople(n desk.InboundItem, people []string) error {
	if len(people) == 0 {
		return t.fail
	}
	key := []any{uuid(t.ws), int64(n.ReceivedAt), uuid(n.ID)}
	t.put(`SELECT 1 FROM callbacks WHERE workspace_id = $1 AND received_at = $2 AND id = $3`+forUpdate, key...)
	t.put(putCallbackPeopleQuery, append(key, people)...)
	return t.fail
}

// NewestCallback returns when the newest callback of a channel came, 0 for none.
func (s *Store) NewestCallback(ctx context.Context, ws, channel desk.ID) (at desk.Time, err error) {
	err = s.read(ctx, func(p *pipe) error {
		at, err = one(p, "newest callback", readTime, newestCallbackQuery, uuid(ws), uuid(channel))
		return err
	})
	return at, err
}

// A separate statement deletes the rows of people, so that it sees the rows that were
// stored before the callbacks were locked.
const (
	outdatedCallbacksQuery = `SELECT received_at, id FROM callbacks w WHERE workspace_id = $1 AND received_at < ` + statementNow + ` - $2::bigint
		AND NOT EXISTS (SELECT FROM inbound_items WHERE workspace_id = $1 AND received_at > 0 AND received_at = w.received_at AND id = w.id)
		ORDER BY received_at, id LIMIT $3 FOR UPDATE OF w SKIP LOCKED`
	eachCallback         = ` USING unnest($2::bigint[], $3::uuid[]) u (received_at, id) CROSS JOIN LATERAL `
	forgetCallbackPeople = `DELETE FROM callback_people p` + eachCallback +
		`(SELECT ctid AS place FROM callback_people WHERE workspace_id = $1 AND received_at = u.received_at AND id = u.id OFFSET 0) l WHERE p.ctid = l.place`
	forgetCallbacks = `WITH gone AS (DELETE FROM callbacks w` + eachCallback +
		`(SELECT ctid AS place FROM callbacks WHERE workspace_id = $1 AND received_at = u.received_at AND id = u.id LIMIT 1) l WHERE w.ctid = l.place RETURNING w.channel_id, w.received_at) ` + noteCalls
)

// ForgetCallbacks deletes up to limit processed callbacks of a workspace that are older
// than age, the oldest first. With each callback it deletes the list of the people whom
// the callback names. It skips a callback that is being processed.
func (s *Store) ForgetCallbacks(ctx context.Context, ws desk.ID, age time.Duration, limit int) (n int, err error) {
	err = s.write(ctx, ws, false, func(t *tx) error {
		var at []int64
		ids := pgtype.FlatArray[uuid]{}
		t.each(func(row pgx.Row) error {
			var a int64
			var id uuid
			err := row.Scan(&a, &id)
			at, ids = append(at, a), append(ids, id)
			return err
		}, outdatedCallbacksQuery, uuid(ws), age.Milliseconds(), limit)
		if n = 0; t.send("callbacks to forget") == nil && at != nil {
			n = len(at)
			t.put(forgetCallbackPeople, uuid(ws), at, ids)
			t.put(forgetCallbacks, uuid(ws), at, ids)
		}
		return failed("forget callbacks", t.fail)
	})
	return n, err
}

// Callbacks and statuses are looked up by the person whom they name. OFFSET 0 leaves the
// planner no other way (see wantedContacts).
const (
	toldCallbacks = `(SELECT DISTINCT p.received_at, p.id FROM unnest($2::text[]) u (value) CROSS JOIN LATERAL
			(SELECT received_at, id FROM callback_people WHERE workspace_id = $1 AND value = u.value OFFSET 0) p ORDER BY 1, 2) p CROSS JOIN LATERAL
		(SELECT ctid AS place FROM callbacks w WHERE workspace_id = $1 AND received_at = p.received_at AND id = p.id
			AND NOT EXISTS (SELECT FROM inbound_items WHERE workspace_id = $1 AND received_at > 0 AND received_at = w.received_at AND id = w.id) FOR UPDATE) l`
	lockCallbacks       = `SELECT FROM ` + toldCallbacks
	eraseCallbacksQuery = `WITH gone AS (DELETE FROM callbacks w USING ` + toldCallbacks + ` WHERE w.ctid = l.place RETURNING w.received_at, w.id, w.channel_id),
	noted AS (` + noteCalls + `)
	DELETE FROM callback_people p USING gone CROSS JOIN LATERAL
		(SELECT ctid AS place FROM callback_people WHERE workspace_id = $1 AND received_at = gone.received_at AND id = gone.id OFFSET 0) l WHERE p.ctid = l.place`
	eraseStatusesQuery = `DELETE FROM early_statuses WHERE workspace_id = $1 AND user_id = ANY ($2::text[]) AND user_id <> ''`
)

// eraseCallbacks deletes the processed callbacks and the early statuses that name
// deleted contacts. The callbacks are locked first, so that the second statement sees
// the people they name.
func eraseCallbacks(p *pipe, ws desk.ID, deleted []*desk.Contact) {
	people := desk.ProviderHandles(deleted)
	if people == nil {
		return
	}
	p.put(lockCallbacks, uuid(ws), people)
	p.put(eraseCallbacksQuery, uuid(ws), people)
	if users := desk.UserIDs(deleted); users != nil {
		p.put(eraseStatusesQuery, uuid(ws), users)
	}
}
