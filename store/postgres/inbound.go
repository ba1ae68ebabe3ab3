package postgres

import (
	"context"
	"time"

	"parley/desk"
	"parley/store"
	"parley/store/internal/stored"

	"github.com/jackc/pgx/v5"
)

const (
	optOutQuery  = `SELECT since, at FROM opt_outs WHERE workspace_id = $1 AND number_hash = $2`
	choicesQuery = `SELECT number_hash, since, at FROM opt_outs WHERE workspace_id = $1 AND number_hash = ANY ($2::bytea[])`
)

func readOptOut(row pgx.Row) (*store.OptOut, error) {
	var o store.OptOut
	err := row.Scan((*int64)(&o.Since), (*int64)(&o.At))
	return &o, err
}

// Choices returns the newest marketing choices of the holders of numbers.
func (s *Store) Choices(ctx context.Context, ws desk.ID, numbers []store.NumberHash) (found map[store.NumberHash]store.OptOut, err error) {
	err = s.read(ctx, func(p *pipe) error {
		found = map[store.NumberHash]store.OptOut{}
		addChoices(p, found, ws, numbers)
		return p.send("opt-outs")
	})
	return found, err
}

// addChoices reads choices with the next round trip.
func addChoices(p *pipe, found map[store.NumberHash]store.OptOut, ws desk.ID, numbers []store.NumberHash) {
	p.each(func(row pgx.Row) error {
		var h hash
		var o store.OptOut
		err := row.Scan(&h, (*int64)(&o.Since), (*int64)(&o.At))
		found[store.NumberHash(h)] = o
		return err
	}, choicesQuery, uuid(ws), hashes(numbers))
}

// hashes returns hashes as a parameter.
func hashes(list []store.NumberHash) [][]byte {
	values := make([][]byte, len(list))
	for i := range list {
		values[i] = list[i][:]
	}
	return values
}

const (
	// statusLock locks a message by the provider's id. If two ids share a lock, the only
	// effect is that one transaction waits.
	statusLock = `SELECT pg_advisory_xact_lock(hashtextextended($1::uuid::text || $2::uuid::text || $3::text, 0))` + ofWorkspace

	takeStatusesQuery = `DELETE FROM early_statuses WHERE workspace_id = $1 AND channel_id = $2 AND external_id = $3
	RETURNING external_id, attempt_id, delivery, failure, user_id, at`
)

func readStatus(row pgx.Row) (n desk.StatusUpdate, err error) {
	err = row.Scan(&n.ExternalID, into(&n.Attempt), (*string)(&n.Delivery), document{&n.Failure}, &n.UserID, (*int64)(&n.At))
	return n, err
}

const inboundColumns = `due_at, id, channel_id, received_at, skip, body`

func readInbound(row pgx.Row) (n desk.InboundItem, err error) {
	err = row.Scan((*int64)(&n.Due), into(&n.ID), into(&n.Channel), (*int64)(&n.ReceivedAt), &n.Skip, &n.Body)
	if len(n.Body) == 0 {
		n.Body = nil
	}
	return n, err
}

// readInboundAt reads an item and the database's clock.
func readInboundAt(row pgx.Row) (n desk.InboundItem, now desk.Time, err error) {
	err = row.Scan((*int64)(&n.Due), into(&n.ID), into(&n.Channel), (*int64)(&n.ReceivedAt), &n.Skip, &n.Body, (*int64)(&now))
	if len(n.Body) == 0 {
		n.Body = nil
	}
	return n, now, err
}

const putInboundQuery = `INSERT INTO inbound_items (workspace_id, ` + inboundColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7)
	ON CONFLICT (workspace_id, due_at, id) DO UPDATE SET channel_id = excluded.channel_id, received_at = excluded.received_at,
	skip = excluded.skip, body = excluded.body`

// inboundArgs leaves out the body of a callback, which PutCallback stores.
func inboundArgs(ws desk.ID, n desk.InboundItem) []any {
	if n.ReceivedAt != 0 {
		n.Body = nil
	}
	return []any{uuid(ws), int64(n.Due), uuid(n.ID), uuid(n.Channel), int64(n.ReceivedAt), n.Skip, notNull(n.Body)}
}

// notNull returns an empty slice for nil.
func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

func putInbound(p *pipe, ws desk.ID, n desk.InboundItem) error {
	p.put(putInboundQuery, inboundArgs(ws, n)...)
	return p.fail
}

const takeInboundQuery = `WITH wanted AS (
		SELECT u.n, l.place FROM unnest($2::bigint[], $3::uuid[]) WITH ORDINALITY u (due_at, id, n) CROSS JOIN LATERAL
			(SELECT ctid AS place FROM inbound_items WHERE workspace_id = $1 AND due_at = u.due_at AND id = u.id FOR UPDATE SKIP LOCKED) l),
	taken AS (DELETE FROM inbound_items USING wanted WHERE inbound_items.ctid = wanted.place RETURNING wanted.n, ` + inboundColumns + `)
	SELECT ` + inboundColumns + ` FROM taken ORDER BY n`

const takeInboundOnCitus = `WITH wanted AS (
		SELECT u.n, i.due_at, i.id FROM unnest($2::bigint[], $3::uuid[]) WITH ORDINALITY u (due_at, id, n)
			JOIN inbound_items i ON i.workspace_id = $1 AND i.due_at = u.due_at AND i.id = u.id FOR UPDATE OF i SKIP LOCKED),
	taken AS (DELETE FROM inbound_items i USING wanted WHERE i.workspace_id = $1 AND i.due_at = wanted.due_at AND i.id = wanted.id
		RETURNING wanted.n, i.due_at, i.id, i.channel_id, i.received_at, i.skip, i.body)
	SELECT ` + inboundColumns + ` FROM taken ORDER BY n`

const (
	// statementNow is the database's clock at the start of the statement. Unlike
	// databaseNow, it can be used to search an index.
	statementNow = `(extract(epoch FROM statement_timestamp()) * 1000)::bigint`

	// inboundQuery selects the items whose due time is at most the longest wait ahead.
	// farInboundQuery selects the items with a later due time: such a time is impossible,
	// so these items are due, too.
	inboundQuery = `SELECT ` + inboundColumns + `, ` + statementNow + ` FROM inbound_items
	WHERE workspace_id = $1 AND due_at <= ` + statementNow + ` + $2::bigint ORDER BY due_at, id LIMIT $3`
	farInboundQuery = `SELECT ` + inboundColumns + `, 0 FROM inbound_items
	WHERE workspace_id = $1 AND due_at > ` + statementNow + ` + $2::bigint ORDER BY due_at, id LIMIT $3`
)

// InboundItems returns up to limit due inbound items of a workspace, and how long to
// wait for the next one.
func (s *Store) InboundItems(ctx context.Context, ws desk.ID, longest time.Duration, limit int) (list []desk.InboundItem, next time.Duration, err error) {
	var due stored.Due
	err = s.read(ctx, func(p *pipe) error {
		due = stored.Due{Limit: limit}
		for _, query := range []string{inboundQuery, farInboundQuery} {
			p.each(func(row pgx.Row) error {
				n, now, err := readInboundAt(row)
				due.Add(n, now)
				return err
			}, query, uuid(ws), longest.Milliseconds(), limit+1)
		}
		return p.send("inbound items")
	})
	return due.List, due.Next(), err
}

const inboundDueQuery = `SELECT workspace_id, min(CASE WHEN due_at > ` + statementNow + ` + $1::bigint THEN 0 ELSE greatest(due_at - ` + statementNow + `, 0) END)
	FROM inbound_items GROUP BY workspace_id`

// InboundDue returns the workspaces with inbound items, and how long to wait until the
// first item of each is due.
func (s *Store) InboundDue(ctx context.Context, longest time.Duration) (map[desk.ID]time.Duration, error) {
	return s.due(ctx, "inbound items due", inboundDueQuery, longest)
}

// due returns the workspaces that a query finds, and how long each of them has to wait.
func (s *Store) due(ctx context.Context, doing, query string, longest time.Duration) (due map[desk.ID]time.Duration, err error) {
	err = s.read(ctx, func(p *pipe) error {
		due = map[desk.ID]time.Duration{}
		p.each(func(row pgx.Row) error {
			var ws desk.ID
			var wait int64
			err := row.Scan(into(&ws), &wait)
			due[ws] = time.Duration(wait) * time.Millisecond
			return err
		}, query, longest.Milliseconds())
		return p.send(doing)
	})
	return due, err
}

// Lease gives a task to the caller for some milliseconds of the database's clock. It
// returns false while another caller holds a valid lease. A lease is not valid if it ends
// later than a new lease would end.
func (s *Store) Lease(ctx context.Context, ws desk.ID, task string, length desk.Time) (bool, error) {
	given := false
	err := s.atOnce(ctx, "lease", func(p *pipe) {
		p.put(newLeaseQuery, uuid(ws), task)
		p.each(func(pgx.Row) error { given = true; return nil }, giveLeaseQuery, uuid(ws), task, int64(length))
	})
	return given && err == nil, err
}

var (
	newLeaseQuery  = `INSERT INTO leases (workspace_id, task, until) VALUES ($1, $2, 0) ON CONFLICT DO NOTHING`
	giveLeaseQuery = `UPDATE leases SET until = ` + shardNow("workspace_id") + ` + $3 WHERE workspace_id = $1 AND task = $2
	AND (until < ` + shardNow("workspace_id") + ` OR until > ` + shardNow("workspace_id") + ` + $3) RETURNING 1`
)
