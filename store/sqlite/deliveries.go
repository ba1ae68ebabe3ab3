package sqlite

import (
	"context"

	"parley/desk"
	"parley/store"
)

// EnabledWebhooks lists the enabled webhooks of all workspaces.
func (s *Store) EnabledWebhooks(ctx context.Context) (list []store.EnabledWebhook, err error) {
	version, err := s.watcher.version()
	if err != nil {
		return nil, err
	}
	if known := s.enabled.Load(); known != nil && known.version == version {
		return known.list, nil
	}
	defer func() {
		if err == nil {
			s.enabled.Store(&enabledWebhooks{version, list})
		}
	}()
	err = s.read(ctx, pointRead, func(c conn) error {
		tasks, err := all("leases of webhooks", c.stmt(`SELECT workspace_id, task FROM leases WHERE task LIKE ? || '%'`).text(store.WebhookTasks), func(s *stmt) store.LeaseRef {
			return store.LeaseRef{Workspace: s.readID(), Task: s.readText()}
		})
		if err != nil {
			return err
		}
		leased := make(map[store.LeaseRef]bool, len(tasks))
		for _, ref := range tasks {
			leased[ref] = true
		}
		list, err = all("enabled webhooks", c.stmt(enabledWebhooksQuery), func(s *stmt) store.EnabledWebhook {
			w := store.EnabledWebhook{WebhookRef: store.WebhookRef{Workspace: s.readID(), ID: s.readID()}}
			w.Busy = s.readInt() != 0 || leased[store.LeaseRef{Workspace: w.Workspace, Task: store.WebhookTask(w.ID)}]
			return w
		})
		s.touched.Add(int64(len(list)))
		return err
	})
	return list, err
}

// enabledWebhooksQuery also selects whether there are events after the cursor, or pending
// deliveries.
const enabledWebhooksQuery = `SELECT h.workspace_id, h.id,
	coalesce((SELECT seq FROM webhook_states s WHERE s.workspace_id = h.workspace_id AND s.webhook_id = h.id), -1) <
	coalesce((SELECT seq FROM events e WHERE e.workspace_id = h.workspace_id ORDER BY seq DESC LIMIT 1),
	(SELECT seq FROM event_floors f WHERE f.workspace_id = h.workspace_id), 0)
	OR EXISTS (SELECT 1 FROM deliveries d WHERE d.workspace_id = h.workspace_id AND d.webhook_id = h.id AND d.status = 'pending')
	FROM webhooks h CROSS JOIN workspaces w ON w.id = h.workspace_id AND NOT w.deleted WHERE h.enabled`

const (
	holdLeaseQuery = `INSERT INTO leases (workspace_id, task, until, holder) VALUES (?1, ?2, ?3, ?5)
	ON CONFLICT DO UPDATE SET until = excluded.until, calls = leases.calls + (leases.holder IS NOT excluded.holder), holder = excluded.holder
	WHERE leases.holder = excluded.holder OR leases.until < ?4 OR leases.until > ?3 RETURNING calls`
	extendLeaseQuery = `UPDATE leases SET until = ?3 WHERE workspace_id = ?1 AND task = ?2 AND holder = ?5 AND ?4 > 0 RETURNING calls`
)

// HoldLeases gives the tasks to a holder, or extends the holder's leases.
func (s *Store) HoldLeases(ctx context.Context, list []store.LeaseRef, holder desk.ID, length desk.Time) (map[store.LeaseRef]int64, error) {
	return s.leases(ctx, holdLeaseQuery, list, holder, length)
}

// ExtendLeases extends the holder's leases.
func (s *Store) ExtendLeases(ctx context.Context, list []store.LeaseRef, holder desk.ID, length desk.Time) (map[store.LeaseRef]int64, error) {
	return s.leases(ctx, extendLeaseQuery, list, holder, length)
}

func (s *Store) leases(ctx context.Context, query string, list []store.LeaseRef, holder desk.ID, length desk.Time) (held map[store.LeaseRef]int64, err error) {
	err = s.write(ctx, func(c conn) error {
		held = map[store.LeaseRef]int64{}
		now := s.now()
		for _, ref := range list {
			row := c.stmt(query).id(ref.Workspace).text(ref.Task).time(desk.Time(desk.LeaseFor(now, length))).time(now).id(holder)
			for row.next() {
				held[ref] = row.readInt()
			}
			if err := row.done(); err != nil {
				return failed("hold leases", err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err // the rows came before the commit
	}
	return held, nil
}

// EndLease ends the holder's lease.
func (s *Store) EndLease(ctx context.Context, ref store.LeaseRef, holder desk.ID) error {
	return s.write(ctx, func(c conn) error {
		return failed("end lease", c.stmt(`UPDATE leases SET until = 0, holder = NULL WHERE workspace_id = ? AND task = ? AND holder = ?`).
			id(ref.Workspace).text(ref.Task).id(holder).run())
	})
}

// DropLease ends the holder's lease and forgets the task, unless the holder was called.
func (s *Store) DropLease(ctx context.Context, ref store.LeaseRef, holder desk.ID, calls int64) (dropped bool, err error) {
	err = s.write(ctx, func(c conn) error {
		row := c.stmt(`DELETE FROM leases WHERE workspace_id = ? AND task = ? AND holder = ? AND calls = ? RETURNING 1`).
			id(ref.Workspace).text(ref.Task).id(holder).int(calls)
		dropped = row.next()
		return failed("drop lease", row.done())
	})
	return dropped && err == nil, err
}

const deliveryColumns = `id, seq, tag, type, contact_id, status, created_at, due_at, tried_at, steps, settled_at, attempts`

func readDelivery(s *stmt) *desk.WebhookDelivery {
	d := &desk.WebhookDelivery{
		ID: s.readID(), Event: desk.EventPlace{Seq: s.readInt(), Tag: s.readInt()}, Type: desk.EventType(s.readText()), Contact: s.readID(),
		Status: desk.WebhookDeliveryStatus(s.readText()), CreatedAt: s.readTime(), DueAt: s.readTime(), TriedAt: s.readTime(), Steps: int(s.readInt()),
		SettledAt: s.readTime(),
	}
	s.readJSON(&d.Tries)
	return d
}

const (
	deliveryQuery          = `SELECT ` + deliveryColumns + ` FROM deliveries WHERE workspace_id = ? AND webhook_id = ? AND id = ?`
	deliveriesQuery        = `SELECT ` + deliveryColumns + ` FROM deliveries WHERE workspace_id = ?1 AND webhook_id = ?2 AND id < ?3 ORDER BY id DESC LIMIT +?4`
	deliveriesOfStateQuery = `SELECT ` + deliveryColumns + ` FROM deliveries INDEXED BY deliveries_status
		WHERE workspace_id = ?1 AND webhook_id = ?2 AND id < ?3 AND status = ?5 ORDER BY id DESC LIMIT +?4`
	deliveriesOfEventQuery = `SELECT ` + deliveryColumns + ` FROM deliveries INDEXED BY deliveries_event
		WHERE workspace_id = ?1 AND webhook_id = ?2 AND id < ?3 AND seq = ?5 AND tag = ?6 AND (?7 = '' OR status = ?7) ORDER BY id DESC LIMIT +?4`
	deliveryResponsesQuery = `SELECT at, response FROM delivery_responses WHERE workspace_id = ? AND contact_id = ? AND delivery_id = ?`
)

// Deliveries returns up to limit deliveries of a webhook, newest first.
func (s *Store) Deliveries(ctx context.Context, ws, webhook desk.ID, f desk.DeliveryFilter, after *desk.ID, limit int) (list []*desk.WebhookDelivery, next *desk.ID, err error) {
	if after == nil {
		after = &lastID
	}
	query := deliveriesQuery
	switch {
	case f.Event != nil:
		query = deliveriesOfEventQuery
	case f.Status != "":
		query = deliveriesOfStateQuery
	}
	err = s.read(ctx, int64(pointRead*limit), func(c conn) error {
		return c.snapshot(func() error {
			list, next = nil, nil
			rows := c.stmt(query).id(ws).id(webhook).id(*after).int(int64(limit) + 1)
			if f.Event != nil {
				rows = rows.int(f.Event.Seq).int(f.Event.Tag)
			}
			if f.Event != nil || f.Status != "" {
				rows = rows.text(string(f.Status))
			}
			found, err := all("deliveries", rows, readDelivery)
			if err != nil {
				return err
			}
			size := desk.NewPageSize(limit)
			for _, d := range found {
				if err := readResponses(c, ws, d); err != nil {
					return err
				}
				if !size.Add(d.ListBytes()) {
					next = &list[len(list)-1].ID
					break
				}
				list = append(list, d)
			}
			return nil
		})
	})
	return list, next, err
}

// readResponses adds the responses of a delivery's tries.
func readResponses(c conn, ws desk.ID, d *desk.WebhookDelivery) error {
	if d.Status == desk.DeliveryDelivered && len(d.Tries) == 1 {
		return nil // no try has failed, so there is no response
	}
	row := c.stmt(deliveryResponsesQuery).id(ws).id(d.Contact).id(d.ID)
	for row.next() {
		d.Respond(row.readTime(), row.readText())
	}
	return failed("responses", row.done())
}

// Delivery returns a delivery of a webhook, or nil.
func (s *Store) Delivery(ctx context.Context, ws, webhook, id desk.ID) (d *desk.WebhookDelivery, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		return c.snapshot(func() error {
			if d, err = one("delivery", c.stmt(deliveryQuery).id(ws).id(webhook).id(id), readDelivery); err != nil || d == nil {
				return err
			}
			return readResponses(c, ws, d)
		})
	})
	return d, err
}

// PendingDeliveries returns all pending deliveries of a webhook, without the
// responses of their tries.
func (s *Store) PendingDeliveries(ctx context.Context, ws, webhook desk.ID) (list []*desk.WebhookDelivery, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		list, err = all("pending deliveries", c.stmt(`SELECT `+deliveryColumns+`
			FROM deliveries INDEXED BY deliveries_status WHERE workspace_id = ? AND webhook_id = ? AND status = 'pending' ORDER BY id`).id(ws).id(webhook), readDelivery)
		return err
	})
	return list, err
}

const forgottenDeliveriesQuery = `SELECT ` + deliveryColumns + ` FROM deliveries WHERE workspace_id = ?1 AND webhook_id = ?2 AND (?4 = 0 OR settled_at > 0 AND (settled_at < ?3 OR
		id <= (SELECT id FROM deliveries WHERE workspace_id = ?1 AND webhook_id = ?2 ORDER BY id DESC LIMIT 1 OFFSET ?4)))
	ORDER BY id LIMIT +?5`

// ForgetDeliveries deletes up to limit old deliveries of a webhook (see
// store.Deliveries).
func (s *Store) ForgetDeliveries(ctx context.Context, ws, webhook desk.ID, before desk.Time, keep, limit int) (n int, err error) {
	err = s.write(ctx, func(c conn) error {
		list, err := all("old deliveries", c.stmt(forgottenDeliveriesQuery).id(ws).id(webhook).time(before).int(int64(keep)).int(int64(limit)), readDelivery)
		if err != nil {
			return err
		}
		n = len(list)
		return dropDeliveries(c, ws, webhook, list)
	})
	return n, err
}

func dropDeliveries(c conn, ws, webhook desk.ID, list []*desk.WebhookDelivery) error {
	for _, d := range list {
		if err := c.stmt(`DELETE FROM delivery_responses WHERE workspace_id = ? AND contact_id = ? AND delivery_id = ?`).id(ws).id(d.Contact).id(d.ID).run(); err != nil {
			return failed("drop responses", err)
		}
		if err := c.stmt(`DELETE FROM deliveries WHERE workspace_id = ? AND webhook_id = ? AND id = ?`).id(ws).id(webhook).id(d.ID).run(); err != nil {
			return failed("drop deliveries", err)
		}
	}
	return nil
}

const nextDeliveredQuery = `SELECT webhook_id FROM deliveries WHERE workspace_id = ? AND webhook_id > ? ORDER BY webhook_id LIMIT 1`

// DeliveredWebhooks lists the webhooks that have deliveries. It goes from one webhook to
// the next, and does not read all deliveries in between.
func (s *Store) DeliveredWebhooks(ctx context.Context, ws desk.ID) (list []desk.ID, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		list = nil
		for last, more := (desk.ID{}), true; more; {
			row := c.stmt(nextDeliveredQuery).id(ws).id(last)
			if more = row.next(); more {
				last = row.readID()
				list = append(list, last)
			}
			if err := row.done(); err != nil {
				return failed("webhooks of deliveries", err)
			}
		}
		return nil
	})
	return list, err
}

// eraseResponses deletes the responses of endpoints to events of a deleted contact.
func eraseResponses(c conn, ws, contact desk.ID) error {
	return c.stmt(`DELETE FROM delivery_responses WHERE workspace_id = ? AND contact_id = ?`).id(ws).id(contact).run()
}

func (t *tx) Leased(task string, holder desk.ID) (calls int64, ours bool, err error) {
	row := t.c.stmt(`SELECT calls FROM leases WHERE workspace_id = ? AND task = ? AND holder = ?`).id(t.ws).text(task).id(holder)
	if ours = row.next(); ours {
		calls = row.readInt()
	}
	return calls, ours, failed("lease", row.done())
}

func (t *tx) Passed(place desk.EventPlace) (bool, error) {
	f := &feed{s: t.s, c: t.c, ws: t.ws}
	floor, _, err := f.Ends()
	if err != nil || place.Seq <= floor.Seq {
		return err == nil, err
	}
	there, err := f.At(place.Seq)
	return there == place, err
}

// StoreDeliveries stores deliveries and the webhook's state.
func (s *Store) StoreDeliveries(ctx context.Context, hold store.DeliveryHold, state desk.WebhookState, list []*desk.WebhookDelivery) (stored bool, err error) {
	err = s.write(ctx, func(c conn) error {
		stored = false
		settings, err := s.toWrite(c, hold.Workspace)
		if err != nil {
			return err
		}
		t := &tx{s: s, c: c, ws: hold.Workspace, settings: settings}
		calls, held, err := t.Leased(hold.Task, hold.Holder)
		if err != nil || !held || calls != hold.Calls || settings.Version != hold.Settings {
			return err
		}
		if passed, err := t.Passed(state.Cursor); err != nil || !passed {
			return err
		}
		stored = true
		if err := t.PutWebhookState(hold.ID, state); err != nil {
			return err
		}
		return t.PutDeliveries(hold.ID, list)
	})
	return stored && err == nil, err
}

func (t *tx) CallHolder(task string) error {
	return failed("call holder", t.c.stmt(`INSERT INTO leases (workspace_id, task, until, calls) VALUES (?, ?, 0, 1)
		ON CONFLICT DO UPDATE SET calls = leases.calls + 1`).id(t.ws).text(task).run())
}

func (t *tx) DeliveriesOf(webhook desk.ID, ids []desk.ID) (list []*desk.WebhookDelivery, err error) {
	for _, id := range ids {
		d, err := one("delivery", t.c.stmt(deliveryQuery).id(t.ws).id(webhook).id(id), readDelivery)
		if err != nil {
			return nil, err
		}
		if d != nil {
			list = append(list, d)
		}
	}
	return list, nil
}

func (t *tx) PutDeliveries(webhook desk.ID, list []*desk.WebhookDelivery) error {
	for _, d := range list {
		err := t.c.stmt(`REPLACE INTO deliveries (workspace_id, webhook_id, ` + deliveryColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`).
			id(t.ws).id(webhook).id(d.ID).int(d.Event.Seq).int(d.Event.Tag).text(string(d.Type)).idOrNull(d.Contact).text(string(d.Status)).
			time(d.CreatedAt).time(d.DueAt).time(d.TriedAt).int(int64(d.Steps)).time(d.SettledAt).json(d.Tries).run()
		if err != nil {
			return failed("store delivery", err)
		}
		for _, a := range d.Tries {
			if a.Response == "" {
				continue
			}
			if err := t.c.stmt(`REPLACE INTO delivery_responses (workspace_id, contact_id, delivery_id, at, response)
				SELECT ?1, ?2, ?3, ?4, ?5 WHERE ?2 = zeroblob(16) OR EXISTS (SELECT 1 FROM contacts WHERE workspace_id = ?1 AND id = ?2)`).
				id(t.ws).id(d.Contact).id(d.ID).time(a.At).text(a.Response).run(); err != nil {
				return failed("store response", err)
			}
		}
		if d.Dropped() {
			if err := t.c.stmt(`DELETE FROM delivery_responses WHERE workspace_id = ? AND contact_id = ? AND delivery_id = ? AND at < ?`).
				id(t.ws).id(d.Contact).id(d.ID).time(d.Tries[0].At).run(); err != nil {
				return failed("drop responses", err)
			}
		}
	}
	return nil
}

func (t *tx) DropPending(webhook desk.ID, after int64) error {
	list, err := all("pending deliveries", t.c.stmt(`SELECT `+deliveryColumns+` FROM deliveries INDEXED BY deliveries_status
		WHERE workspace_id = ? AND webhook_id = ? AND status = 'pending' AND seq > ?`).id(t.ws).id(webhook).int(after), readDelivery)
	if err != nil {
		return err
	}
	return dropDeliveries(t.c, t.ws, webhook, list)
}

func (t *tx) DuePending(webhook desk.ID, at desk.Time) error {
	return failed("make deliveries due", t.c.stmt(`UPDATE deliveries INDEXED BY deliveries_status SET due_at = ?3
		WHERE workspace_id = ?1 AND webhook_id = ?2 AND status = 'pending'`).id(t.ws).id(webhook).time(at).run())
}
