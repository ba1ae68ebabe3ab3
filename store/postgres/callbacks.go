package postgres

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"time"

	"parley/desk"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

const (
	callbackQuery    = `SELECT body FROM callbacks WHERE workspace_id = $1 AND received_at = $2 AND id = $3`
	putCallbackQuery = `INSERT INTO callbacks (workspace_id, received_at, id, channel_id, body) VALUES ($1, $2, $3, $4, $5)
	ON CONFLICT (workspace_id, received_at, id) DO UPDATE SET channel_id = excluded.channel_id, body = excluded.body`
	putCallbackPeopleQuery = `INSERT INTO callback_people (workspace_id, value, received_at, id) SELECT c.workspace_id, u.value, c.received_at, c.id
	FROM callbacks c CROSS JOIN unnest($4::text[]) u (value) WHERE c.workspace_id = $1 AND c.received_at = $2 AND c.id = $3 ON CONFLICT DO NOTHING`
	newestCallbackQuery = `SELECT ` + newestCallback + ` FROM (SELECT $1::uuid AS workspace_id, $2::uuid AS id) c`
	// newestCallback is an expression for the time of the newest callback of a channel c,
	// even if the callback was deleted.
	newestCallback = `greatest((SELECT received_at FROM callbacks WHERE workspace_id = c.workspace_id AND channel_id = c.id ORDER BY received_at DESC LIMIT 1),
		(SELECT called_at FROM channel_signs WHERE workspace_id = c.workspace_id AND channel_id = c.id), 0)`
	// noteCallQuery keeps the time of a channel's newest callback.
	noteCallQuery = `INSERT INTO channel_signs (workspace_id, channel_id, called_at) VALUES ($1, $2, $3)
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
	return one(t.pipe, "callback", scanned[[]byte], callbackQuery+forUpdate, uuid(t.ws), int64(n.ReceivedAt), uuid(n.ID))
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
func (s *Store) NewestCallback(ctx context.Context, ws, channel desk.ID) (desk.Time, error) {
	return readOne(ctx, s, "newest callback", readTime, newestCallbackQuery, uuid(ws), uuid(channel))
}

const (
	outdatedCallbacksQuery = `SELECT channel_id, received_at, id FROM callbacks w WHERE workspace_id = $1 AND received_at < ` + statementNow + ` - $2::bigint
		AND NOT EXISTS (SELECT 1 FROM inbound_items WHERE workspace_id = $1 AND received_at > 0 AND received_at = w.received_at AND id = w.id)
		ORDER BY received_at, id LIMIT $3 FOR UPDATE OF w SKIP LOCKED`
	eachCallback         = ` USING unnest($2::bigint[], $3::uuid[]) u (received_at, id) CROSS JOIN LATERAL `
	forgetCallbackPeople = `DELETE FROM callback_people p` + eachCallback +
		`(SELECT ctid AS place FROM callback_people WHERE workspace_id = $1 AND received_at = u.received_at AND id = u.id OFFSET 0) l WHERE p.ctid = l.place`
	forgetCallbacks = `DELETE FROM callbacks w` + eachCallback +
		`(SELECT ctid AS place FROM callbacks WHERE workspace_id = $1 AND received_at = u.received_at AND id = u.id LIMIT 1) l WHERE w.ctid = l.place`
	forgetCallbackPeopleOnCitus = `DELETE FROM callback_people p USING unnest($2::bigint[], $3::uuid[]) u (received_at, id)
	WHERE p.workspace_id = $1 AND p.received_at = u.received_at AND p.id = u.id`
	forgetCallbacksOnCitus = `DELETE FROM callbacks w USING unnest($2::bigint[], $3::uuid[]) u (received_at, id)
	WHERE w.workspace_id = $1 AND w.received_at = u.received_at AND w.id = u.id`
)

// lockedCallbacks are callbacks that the transaction has locked.
type lockedCallbacks struct {
	at       []int64
	ids      pgtype.FlatArray[uuid]
	channels map[desk.ID]int64 // the newest callback of each channel
}

// lock queues a query for callbacks, which locks them.
func (l *lockedCallbacks) lock(p *pipe, query string, args ...any) {
	l.channels = map[desk.ID]int64{}
	p.each(func(row pgx.Row) error {
		var channel desk.ID
		var at int64
		var id uuid
		err := row.Scan(into(&channel), &at, &id)
		l.at, l.ids = append(l.at, at), append(l.ids, id)
		l.channels[channel] = max(l.channels[channel], at)
		return err
	}, query, args...)
}

// drop queues the deletion of the callbacks, with the lists of people whom they name. It
// keeps the time of each channel's newest callback.
func (l *lockedCallbacks) drop(p *pipe, ws desk.ID) {
	if l.at == nil {
		return
	}
	for _, channel := range slices.SortedFunc(maps.Keys(l.channels), func(x, y desk.ID) int { return bytes.Compare(x[:], y[:]) }) {
		p.put(noteCallQuery, uuid(ws), uuid(channel), l.channels[channel])
	}
	p.put(form(p.citus, forgetCallbackPeople, forgetCallbackPeopleOnCitus), uuid(ws), l.at, l.ids)
	p.put(form(p.citus, forgetCallbacks, forgetCallbacksOnCitus), uuid(ws), l.at, l.ids)
}

// ForgetCallbacks deletes up to limit processed callbacks of a workspace that are older
// than age, the oldest first. With each callback it deletes the list of the people whom
// the callback names. It skips a callback that is being processed.
func (s *Store) ForgetCallbacks(ctx context.Context, ws desk.ID, age time.Duration, limit int) (n int, err error) {
	err = s.write(ctx, ws, false, func(t *tx) error {
		var old lockedCallbacks
		old.lock(t.pipe, outdatedCallbacksQuery, uuid(ws), age.Milliseconds(), limit)
		if n = 0; t.send("callbacks to forget") == nil {
			n = len(old.at)
			old.drop(t.pipe, ws)
		}
		return failed("forget callbacks", t.fail)
	})
	return n, err
}

// Callbacks and statuses are looked up by the person whom they name. OFFSET 0 leaves the
// planner no other way (see wantedContacts).
const (
	lockCallbacksOf = `SELECT l.channel_id, l.received_at, l.id FROM (SELECT DISTINCT p.received_at, p.id FROM unnest($2::text[]) u (value) CROSS JOIN LATERAL
			(SELECT received_at, id FROM callback_people WHERE workspace_id = $1 AND value = u.value OFFSET 0) p ORDER BY 1, 2) p CROSS JOIN LATERAL
		(SELECT channel_id, received_at, id FROM callbacks w WHERE workspace_id = $1 AND received_at = p.received_at AND id = p.id
			AND NOT EXISTS (SELECT 1 FROM inbound_items WHERE workspace_id = $1 AND received_at > 0 AND received_at = w.received_at AND id = w.id) FOR UPDATE) l`
	eraseStatusesQuery = `DELETE FROM early_statuses WHERE workspace_id = $1 AND user_id = ANY ($2::text[]) AND user_id <> ''`
)

// lockCallbacks queues a query that locks the processed callbacks which name deleted
// contacts. Later statements see the people whom they name.
func lockCallbacks(p *pipe, ws desk.ID, deleted []*desk.Contact) *lockedCallbacks {
	named := &lockedCallbacks{}
	if people := desk.ProviderHandles(deleted); people != nil {
		named.lock(p, lockCallbacksOf, uuid(ws), people)
	}
	return named
}

// eraseStatuses deletes the early statuses that name deleted contacts.
func eraseStatuses(p *pipe, ws desk.ID, deleted []*desk.Contact) {
	if users := desk.UserIDs(deleted); users != nil {
		p.put(eraseStatusesQuery, uuid(ws), users)
	}
}
