package postgres

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"parley/desk"
	"parley/store"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"golang.org/x/sync/errgroup"
)

// EnabledWebhooks lists the enabled webhooks of all workspaces.
func (s *Store) EnabledWebhooks(ctx context.Context) ([]store.EnabledWebhook, error) {
	return readAll(ctx, s, "enabled webhooks", func(row pgx.Row) (w store.EnabledWebhook, err error) {
		err = row.Scan(into(&w.Workspace), into(&w.ID), &w.Busy)
		return w, err
	}, `SELECT h.workspace_id, h.id, l.task IS NOT NULL OR coalesce(s.seq < e.seq, true)
		OR EXISTS (SELECT 1 FROM deliveries d WHERE d.workspace_id = h.workspace_id AND d.webhook_id = h.id AND d.status = 'pending') FROM webhooks h
		JOIN workspaces w ON w.id = h.workspace_id AND NOT w.deleted
		LEFT JOIN webhook_states s ON s.workspace_id = h.workspace_id AND s.webhook_id = h.id
		LEFT JOIN event_counters e ON e.workspace_id = h.workspace_id
		LEFT JOIN leases l ON l.workspace_id = h.workspace_id AND l.task = $1 || h.id::text
		WHERE h.enabled`, store.WebhookTasks)
}

const holdLeasesQuery = `INSERT INTO leases (workspace_id, task, until, holder)
	SELECT u.workspace_id, u.task, ` + databaseNow + ` + $4::bigint, $3 FROM unnest($1::uuid[], $2::text[]) u (workspace_id, task) ORDER BY 1, 2
	ON CONFLICT (workspace_id, task) DO UPDATE SET until = excluded.until, holder = excluded.holder,
		calls = leases.calls + (leases.holder IS DISTINCT FROM excluded.holder)::integer
	WHERE leases.holder = excluded.holder OR leases.until < ` + databaseNow + ` OR leases.until > excluded.until
	RETURNING workspace_id, task, calls`

const extendLeasesQuery = `UPDATE leases l SET until = shard_micros(l.workspace_id) / 1000 + $4 FROM unnest($1::uuid[], $2::text[]) u (workspace_id, task)
	WHERE l.workspace_id = ANY ($1::uuid[]) AND l.workspace_id = u.workspace_id AND l.task = u.task AND l.holder = $3 RETURNING l.workspace_id, l.task, l.calls`

// HoldLeases gives the tasks to a holder, or extends the holder's leases.
func (s *Store) HoldLeases(ctx context.Context, list []store.LeaseRef, holder desk.ID, length desk.Time) (map[store.LeaseRef]int64, error) {
	if s.citus {
		return s.leasesOnCluster(ctx, true, list, holder, length)
	}
	return s.leases(ctx, holdLeasesQuery, list, holder, length)
}

// ExtendLeases extends the holder's leases.
func (s *Store) ExtendLeases(ctx context.Context, list []store.LeaseRef, holder desk.ID, length desk.Time) (map[store.LeaseRef]int64, error) {
	if s.citus {
		return s.leasesOnCluster(ctx, false, list, holder, length)
	}
	return s.leases(ctx, extendLeasesQuery, list, holder, length)
}

func (s *Store) leases(ctx context.Context, query string, list []store.LeaseRef, holder desk.ID, length desk.Time) (held map[store.LeaseRef]int64, err error) {
	workspaces, tasks := make(pgtype.FlatArray[uuid], len(list)), make([]string, len(list))
	for i, ref := range list {
		workspaces[i], tasks[i] = uuid(ref.Workspace), ref.Task
	}
	held = map[store.LeaseRef]int64{}
	err = s.atOnce(ctx, "hold leases", func(p *pipe) {
		p.each(func(row pgx.Row) error {
			var ref store.LeaseRef
			var calls int64
			err := row.Scan(into(&ref.Workspace), &ref.Task, &calls)
			held[ref] = calls
			return err
		}, query, workspaces, tasks, uuid(holder), int64(length))
	})
	if err != nil {
		return nil, err // the rows came before the commit
	}
	return held, nil
}

const (
	// newLeasesQuery creates leases that have ended. They name the holder, so that the first
	// hold is no change of holders.
	newLeasesQuery = `INSERT INTO leases (workspace_id, task, until, holder) SELECT w.id, u.task, 0, $3
	FROM unnest($1::uuid[], $2::text[]) u (workspace_id, task) JOIN workspaces w ON w.id = u.workspace_id WHERE w.id = ANY ($1::uuid[]) ON CONFLICT DO NOTHING`
	shardsQuery = `SELECT get_shard_id_for_distribution_column('leases', u.id) FROM unnest($1::uuid[]) WITH ORDINALITY u (id, n) ORDER BY n`
)

var holdLeasesOfQuery = `UPDATE leases l SET until = ` + shardNow("l.workspace_id") + ` + $4, holder = $3, calls = l.calls + (l.holder IS DISTINCT FROM $3)::integer
	FROM unnest($1::uuid[], $2::text[]) u (workspace_id, task) WHERE l.workspace_id = ANY ($1::uuid[]) AND l.workspace_id = u.workspace_id AND l.task = u.task
	AND (l.holder = $3 OR l.until < ` + shardNow("l.workspace_id") + ` OR l.until > ` + shardNow("l.workspace_id") + ` + $4) RETURNING l.workspace_id, l.task, l.calls`

// groupsAtOnce is how many groups of leases are held at the same time.
const groupsAtOnce = 4

// leasesOnCluster is HoldLeases or ExtendLeases on a cluster. The leases of the workspaces in one shard are
// held together, in one transaction on one server. If that fails for some, held has the
// others.
func (s *Store) leasesOnCluster(ctx context.Context, take bool, list []store.LeaseRef, holder desk.ID, length desk.Time) (held map[store.LeaseRef]int64, err error) {
	ids := make(pgtype.FlatArray[uuid], len(list))
	for i, ref := range list {
		ids[i] = uuid(ref.Workspace)
	}
	groups := map[int64][]store.LeaseRef{}
	err = s.read(ctx, func(p *pipe) error {
		clear(groups)
		shards, err := all(p, "shards of leases", func(row pgx.Row) (n int64, err error) { return n, row.Scan(&n) }, shardsQuery, ids)
		for i, shard := range shards {
			groups[shard] = append(groups[shard], list[i])
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	held = map[store.LeaseRef]int64{}
	var group errgroup.Group
	group.SetLimit(groupsAtOnce)
	for _, refs := range groups {
		group.Go(func() error {
			slices.SortFunc(refs, func(a, b store.LeaseRef) int {
				return cmp.Or(bytes.Compare(a.Workspace[:], b.Workspace[:]), strings.Compare(a.Task, b.Task))
			})
			workspaces, tasks := make(pgtype.FlatArray[uuid], len(refs)), make([]string, len(refs))
			for i, ref := range refs {
				workspaces[i], tasks[i] = uuid(ref.Workspace), ref.Task
			}
			ours := map[store.LeaseRef]int64{}
			err := s.atOnce(ctx, "hold leases", func(p *pipe) {
				query := extendLeasesQuery
				if take {
					query = holdLeasesOfQuery
					p.put(newLeasesQuery, workspaces, tasks, uuid(holder))
				}
				p.each(func(row pgx.Row) error {
					var ref store.LeaseRef
					var calls int64
					err := row.Scan(into(&ref.Workspace), &ref.Task, &calls)
					ours[ref] = calls
					return err
				}, query, workspaces, tasks, uuid(holder), int64(length))
			})
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				maps.Copy(held, ours)
			}
			return err
		})
	}
	return held, group.Wait()
}

// EndLease ends the holder's lease.
func (s *Store) EndLease(ctx context.Context, ref store.LeaseRef, holder desk.ID) error {
	_, err := s.exec(ctx, "end lease", `UPDATE leases SET until = 0, holder = NULL WHERE workspace_id = $1 AND task = $2 AND holder = $3`,
		uuid(ref.Workspace), ref.Task, uuid(holder))
	return err
}

// DropLease ends the holder's lease and forgets the task, unless the holder was called.
func (s *Store) DropLease(ctx context.Context, ref store.LeaseRef, holder desk.ID, calls int64) (bool, error) {
	tag, err := s.exec(ctx, "drop lease", `DELETE FROM leases WHERE workspace_id = $1 AND task = $2 AND holder = $3 AND calls = $4`,
		uuid(ref.Workspace), ref.Task, uuid(holder), calls)
	return err == nil && tag.RowsAffected() == 1, err
}

const deliveryColumns = `id, seq, tag, type, contact_id, status, created_at, due_at, tried_at, steps, settled_at, attempts`

func readDelivery(row pgx.Row) (*desk.WebhookDelivery, error) {
	var d desk.WebhookDelivery
	err := row.Scan(into(&d.ID), &d.Event.Seq, &d.Event.Tag, (*string)(&d.Type), into(&d.Contact), (*string)(&d.Status), (*int64)(&d.CreatedAt),
		(*int64)(&d.DueAt), (*int64)(&d.TriedAt), &d.Steps, (*int64)(&d.SettledAt), document{&d.Tries})
	return &d, err
}

const (
	deliveryQuery   = `SELECT ` + deliveryColumns + ` FROM deliveries WHERE workspace_id = $1 AND webhook_id = $2 AND id = $3`
	deliveriesQuery = `SELECT ` + deliveryColumns + ` FROM deliveries WHERE workspace_id = $1 AND webhook_id = $2 AND id < $3`
	newestDelivery  = ` ORDER BY id DESC LIMIT $4`

	deliveryResponsesQuery = `SELECT r.delivery_id, r.at, r.response FROM unnest($2::uuid[], $3::uuid[]) u (contact_id, id) CROSS JOIN LATERAL
		(SELECT * FROM delivery_responses WHERE workspace_id = $1 AND contact_id = u.contact_id AND delivery_id = u.id OFFSET 0) r`
)

// Deliveries returns up to limit deliveries of a webhook, newest first.
func (s *Store) Deliveries(ctx context.Context, ws, webhook desk.ID, f desk.DeliveryFilter, after *desk.ID, limit int) (list []*desk.WebhookDelivery, next *desk.ID, err error) {
	if after == nil {
		after = &lastID
	}
	query, args := deliveriesQuery, []any{uuid(ws), uuid(webhook), uuid(*after), limit + 1}
	switch {
	case f.Event != nil && f.Status != "":
		query += ` AND seq = $5 AND tag = $6 AND status = $7`
		args = append(args, f.Event.Seq, f.Event.Tag, string(f.Status))
	case f.Event != nil:
		query += ` AND seq = $5 AND tag = $6`
		args = append(args, f.Event.Seq, f.Event.Tag)
	case f.Status != "":
		query += ` AND status = $5`
		args = append(args, string(f.Status))
	}
	err = s.read(ctx, func(p *pipe) error {
		list, next = nil, nil
		found, err := all(p, "deliveries", readDelivery, query+newestDelivery, args...)
		if err == nil {
			err = readResponses(p, ws, found)
		}
		size := desk.NewPageSize(limit)
		for _, d := range found {
			if !size.Add(d.ListBytes()) {
				next = &list[len(list)-1].ID
				break
			}
			list = append(list, d)
		}
		return err
	})
	return list, next, err
}

// readResponses adds the responses of the deliveries' tries.
func readResponses(p *pipe, ws desk.ID, list []*desk.WebhookDelivery) error {
	byID := map[desk.ID]*desk.WebhookDelivery{}
	var contacts, ids pgtype.FlatArray[uuid]
	for _, d := range list {
		if d.Status == desk.DeliveryDelivered && len(d.Tries) == 1 {
			continue // no try has failed, so there is no response
		}
		byID[d.ID] = d
		contacts, ids = append(contacts, uuid(d.Contact)), append(ids, uuid(d.ID))
	}
	if ids == nil {
		return nil
	}
	p.each(func(row pgx.Row) error {
		var id desk.ID
		var at desk.Time
		var response string
		err := row.Scan(into(&id), (*int64)(&at), &response)
		byID[id].Respond(at, response)
		return err
	}, deliveryResponsesQuery, uuid(ws), contacts, ids)
	return p.send("responses")
}

// Delivery returns a delivery of a webhook, or nil.
func (s *Store) Delivery(ctx context.Context, ws, webhook, id desk.ID) (d *desk.WebhookDelivery, err error) {
	err = s.read(ctx, func(p *pipe) error {
		if d, err = one(p, "delivery", readDelivery, deliveryQuery, uuid(ws), uuid(webhook), uuid(id)); err != nil || d == nil {
			return err
		}
		return readResponses(p, ws, []*desk.WebhookDelivery{d})
	})
	return d, err
}

// PendingDeliveries returns all pending deliveries of a webhook, without the
// responses of their tries.
func (s *Store) PendingDeliveries(ctx context.Context, ws, webhook desk.ID) ([]*desk.WebhookDelivery, error) {
	return readAll(ctx, s, "pending deliveries", readDelivery, `SELECT `+deliveryColumns+`
		FROM deliveries WHERE workspace_id = $1 AND webhook_id = $2 AND status = 'pending' ORDER BY id`, uuid(ws), uuid(webhook))
}

// dropDeliveries deletes the deliveries in gone, with their responses. It names the
// smallest and the largest id, because the plan may have been made while there were no
// deliveries. Such a plan compares each delivery of the range with all of gone.
const dropDeliveries = `,
	answers AS (DELETE FROM delivery_responses r USING gone WHERE r.workspace_id = $1 AND r.contact_id = gone.contact_id AND r.delivery_id = gone.id)
	DELETE FROM deliveries d USING gone WHERE d.workspace_id = $1 AND d.webhook_id = $2 AND d.id = gone.id
		AND d.id >= (SELECT id FROM gone ORDER BY id LIMIT 1) AND d.id <= (SELECT id FROM gone ORDER BY id DESC LIMIT 1)`

const (
	nobody = `'00000000-0000-0000-0000-000000000000'::uuid`

	forgetDeliveriesQuery = `WITH gone AS (
		SELECT id, coalesce(contact_id, ` + nobody + `) AS contact_id FROM deliveries
		WHERE workspace_id = $1 AND webhook_id = $2 AND ($4::bigint = 0 OR settled_at > 0 AND (settled_at < $3 OR
			id <= (SELECT id FROM deliveries WHERE workspace_id = $1 AND webhook_id = $2 ORDER BY id DESC LIMIT 1 OFFSET $4)))
		ORDER BY id LIMIT $5)` + dropDeliveries
	dropPendingQuery = `WITH gone AS (
		SELECT id, coalesce(contact_id, ` + nobody + `) AS contact_id FROM deliveries
		WHERE workspace_id = $1 AND webhook_id = $2 AND status = 'pending' AND seq > $3)` + dropDeliveries
)

// ForgetDeliveries deletes up to limit old deliveries of a webhook (see
// store.Deliveries).
func (s *Store) ForgetDeliveries(ctx context.Context, ws, webhook desk.ID, before desk.Time, keep, limit int) (int, error) {
	tag, err := s.exec(ctx, "forget deliveries", forgetDeliveriesQuery, uuid(ws), uuid(webhook), int64(before), keep, limit)
	return int(tag.RowsAffected()), err
}

const nextDeliveredQuery = `SELECT webhook_id FROM deliveries WHERE workspace_id = $1 AND webhook_id > $2 ORDER BY webhook_id LIMIT 1`

// DeliveredWebhooks lists the webhooks that have deliveries. It goes from one webhook to
// the next, and does not read all deliveries in between.
func (s *Store) DeliveredWebhooks(ctx context.Context, ws desk.ID) (list []desk.ID, err error) {
	err = s.read(ctx, func(p *pipe) error {
		list = nil
		for last := (desk.ID{}); ; {
			next, err := one(p, "webhooks of deliveries", func(row pgx.Row) (*desk.ID, error) {
				id := new(desk.ID)
				return id, row.Scan(into(id))
			}, nextDeliveredQuery, uuid(ws), uuid(last))
			if err != nil || next == nil {
				return err
			}
			last = *next
			list = append(list, last)
		}
	})
	return list, err
}

// eraseResponses deletes the responses of endpoints to events of deleted contacts. It
// runs after the contacts were deleted, so no transaction can add a response afterwards.
func eraseResponses(p *pipe, ws desk.ID, contacts pgtype.FlatArray[uuid]) {
	p.put(`DELETE FROM delivery_responses WHERE workspace_id = $1 AND contact_id = ANY ($2::uuid[])`, uuid(ws), contacts)
}

func (t *tx) Leased(task string, holder desk.ID) (calls int64, ours bool, err error) {
	t.lease(task, holder, func(n int64) { calls, ours = n, true })
	return calls, ours, t.send("lease")
}

// lease is Leased as a queued statement: if the task is the holder's, it calls has.
func (t *tx) lease(task string, holder desk.ID, has func(calls int64)) {
	t.each(func(row pgx.Row) error {
		var calls int64
		err := row.Scan(&calls)
		has(calls)
		return err
	}, `SELECT calls FROM leases WHERE workspace_id = $1 AND task = $2 AND holder = $3 FOR SHARE`, uuid(t.ws), task, uuid(holder))
}

// passedExpr is true for the place ($2, $3) of an event that is in the feed or has
// expired. The tag is that of desk.Event.Tag.
const passedExpr = `(EXISTS (SELECT 1 FROM events WHERE workspace_id = $1 AND seq = $2
		AND (at # ('x' || right(translate(subject_id::text, '-', ''), 16))::bit(64)::bigint) & 281474976710655 = $3)
	OR $2 <= coalesce((SELECT seq FROM event_floors WHERE workspace_id = $1), 0))`

func (t *tx) Passed(place desk.EventPlace) (bool, error) {
	return one(t.pipe, "place of an event", func(row pgx.Row) (passed bool, err error) { return passed, row.Scan(&passed) },
		`SELECT `+passedExpr, uuid(t.ws), place.Seq, place.Tag)
}

// Each of these statements fails if its condition no longer holds. Then everything that
// was sent together with the statement is not stored either.
const (
	stillHeld     = `SELECT 1 / count(*) FROM (SELECT 1 FROM leases WHERE workspace_id = $1 AND task = $2 AND holder = $3 AND calls = $4 FOR SHARE) l`
	stillSettings = `SELECT 1 / count(*) FROM workspaces WHERE id = $1 AND NOT deleted AND settings_version = $2`
	stillPassed   = `SELECT 1 / ` + passedExpr + `::integer`
)

// StoreDeliveries stores deliveries and the webhook's state.
func (s *Store) StoreDeliveries(ctx context.Context, hold store.DeliveryHold, state desk.WebhookState, list []*desk.WebhookDelivery) (bool, error) {
	if err := s.rules.Check(); err != nil {
		return false, err
	}
	ws, changed := hold.Workspace, false
	err := s.atOnceIn(ctx, ws, "store deliveries", func(p *pipe) {
		if p.citus {
			p.put(pinShards, uuid(ws))
		}
		p.put(lockShared, uuid(ws), lockOf(ws))
		p.put(stillHeld, uuid(ws), hold.Task, uuid(hold.Holder), hold.Calls)
		p.put(stillSettings, uuid(ws), hold.Settings)
		p.put(stillPassed, uuid(ws), state.Cursor.Seq, state.Cursor.Tag)
		putWebhookState(p, ws, hold.ID, state)
		putDeliveries(p, ws, hold.ID, list)
	})
	var failure *pgconn.PgError
	if errors.As(err, &failure) {
		switch changed = failure.Code == divisionByZero || conflicts(err); {
		case changed:
			return false, nil
		case failure.Code == readOnlyTransaction:
			s.pool.Reset() // as in transact
		}
	}
	return err == nil, err
}

func (t *tx) CallHolder(task string) error {
	t.put(`INSERT INTO leases (workspace_id, task, until, calls) VALUES ($1, $2, 0, 1)
		ON CONFLICT (workspace_id, task) DO UPDATE SET calls = leases.calls + 1`, uuid(t.ws), task)
	return t.send("call holder")
}

func (t *tx) DeliveriesOf(webhook desk.ID, ids []desk.ID) ([]*desk.WebhookDelivery, error) {
	return all(t.pipe, "deliveries", readDelivery, `SELECT `+deliveryColumns+` FROM (SELECT DISTINCT unnest($3::uuid[]) ORDER BY 1) u (i) CROSS JOIN LATERAL
		(SELECT * FROM deliveries WHERE workspace_id = $1 AND webhook_id = $2 AND id = u.i`+forUpdate+`) d`, uuid(t.ws), uuid(webhook), uuids(ids))
}

const (
	putDeliveryQuery = `INSERT INTO deliveries (workspace_id, webhook_id, ` + deliveryColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
	ON CONFLICT (workspace_id, webhook_id, id) DO UPDATE SET seq = excluded.seq, tag = excluded.tag, type = excluded.type, contact_id = excluded.contact_id,
	status = excluded.status, created_at = excluded.created_at, due_at = excluded.due_at, tried_at = excluded.tried_at, steps = excluded.steps,
	settled_at = excluded.settled_at, attempts = excluded.attempts`

	putResponse    = `INSERT INTO delivery_responses (workspace_id, contact_id, delivery_id, at, response) `
	putAnyResponse = ` ON CONFLICT (workspace_id, contact_id, delivery_id, at) DO UPDATE SET response = excluded.response`
	// If the contact is being deleted, this statement waits for the deletion. After the
	// deletion, it finds no row of the contact.
	putContactsResponse = putResponse + `SELECT c.workspace_id, c.id, $3::uuid, $4, $5 FROM
		(SELECT workspace_id, id FROM contacts WHERE workspace_id = $1 AND id >= $2 AND id <= $2 ORDER BY id FOR KEY SHARE) c` + putAnyResponse
)

func (t *tx) PutDeliveries(webhook desk.ID, list []*desk.WebhookDelivery) error {
	putDeliveries(t.pipe, t.ws, webhook, list)
	return t.fail
}

// putDeliveries locks the contacts in the order of their ids, like all other
// transactions.
func putDeliveries(p *pipe, ws, webhook desk.ID, list []*desk.WebhookDelivery) {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b *desk.WebhookDelivery) int { return bytes.Compare(a.Contact[:], b.Contact[:]) })
	for _, d := range list {
		p.put(putDeliveryQuery, uuid(ws), uuid(webhook), uuid(d.ID), d.Event.Seq, d.Event.Tag, string(d.Type), orNull(d.Contact), string(d.Status),
			int64(d.CreatedAt), int64(d.DueAt), int64(d.TriedAt), d.Steps, int64(d.SettledAt), asJSON(d.Tries))
		query := putContactsResponse
		if d.Contact.IsZero() {
			query = putResponse + `VALUES ($1, $2, $3, $4, $5)` + putAnyResponse
		}
		for _, a := range d.Tries {
			if a.Response != "" {
				p.put(query, uuid(ws), uuid(d.Contact), uuid(d.ID), int64(a.At), a.Response)
			}
		}
		if d.Dropped() {
			p.put(`DELETE FROM delivery_responses WHERE workspace_id = $1 AND contact_id = $2 AND delivery_id = $3 AND at < $4`,
				uuid(ws), uuid(d.Contact), uuid(d.ID), int64(d.Tries[0].At))
		}
	}
}

func (t *tx) DropPending(webhook desk.ID, after int64) error {
	t.put(dropPendingQuery, uuid(t.ws), uuid(webhook), after)
	return t.fail
}

func (t *tx) DuePending(webhook desk.ID, at desk.Time) error {
	t.put(`UPDATE deliveries SET due_at = $3 WHERE workspace_id = $1 AND webhook_id = $2 AND status = 'pending'`, uuid(t.ws), uuid(webhook), int64(at))
	return t.fail
}
