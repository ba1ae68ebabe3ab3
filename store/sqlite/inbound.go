package sqlite

import (
	"context"
	"time"

	"parley/desk"
	"parley/store"
	"parley/store/internal/stored"
)

const optOutQuery = `SELECT since, at FROM opt_outs WHERE workspace_id = ? AND number_hash = ?`

func optOut(c conn, ws desk.ID, number store.NumberHash) (store.OptOut, error) {
	return one("opt-out", c.stmt(optOutQuery).id(ws).bytes(number[:]), func(s *stmt) store.OptOut {
		return store.OptOut{Since: s.readTime(), At: s.readTime()}
	})
}

// Choices returns the newest marketing choices of the holders of numbers.
func (s *Store) Choices(ctx context.Context, ws desk.ID, numbers []store.NumberHash) (found map[store.NumberHash]store.OptOut, err error) {
	err = s.read(ctx, int64(pointRead*len(numbers)), func(c conn) error {
		found = map[store.NumberHash]store.OptOut{}
		for _, number := range numbers {
			o, err := optOut(c, ws, number)
			if err != nil {
				return err
			}
			if o != (store.OptOut{}) {
				found[number] = o
			}
		}
		return nil
	})
	return found, err
}

const (
	earlyStatusesQuery = `SELECT external_id, attempt_id, delivery, failure, user_id, at FROM early_statuses
	WHERE workspace_id = ? AND channel_id = ? AND external_id = ?`
	takeStatusesQuery = `DELETE FROM early_statuses WHERE workspace_id = ? AND channel_id = ? AND external_id = ?`
	dropStatusesQuery = `DELETE FROM early_statuses WHERE workspace_id = ? AND hour <= ` + thisHour + ` - ?`
)

func readStatus(s *stmt) desk.StatusUpdate {
	n := desk.StatusUpdate{ExternalID: s.readText(), Attempt: s.readID(), Delivery: desk.DeliveryStatus(s.readText())}
	s.readJSON(&n.Failure)
	n.UserID, n.At = s.readText(), s.readTime()
	return n
}

const inboundColumns = `due_at, id, channel_id, received_at, skip, body`

func readInbound(s *stmt) desk.InboundItem {
	return desk.InboundItem{
		Due: s.readTime(), ID: s.readID(), Channel: s.readID(), ReceivedAt: s.readTime(), Skip: int(s.readInt()), Body: s.readBlob(),
	}
}

// putInbound stores an item. The body of a callback is left to PutCallback.
func putInbound(c conn, ws desk.ID, n desk.InboundItem) error {
	if n.ReceivedAt != 0 {
		n.Body = nil
	}
	return failed("store inbound item", c.stmt(`REPLACE INTO inbound_items (workspace_id, `+inboundColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?)`).
		id(ws).time(n.Due).id(n.ID).id(n.Channel).time(n.ReceivedAt).int(int64(n.Skip)).bytes(n.Body).run())
}

const takeInboundQuery = `DELETE FROM inbound_items WHERE workspace_id = ? AND due_at = ? AND id = ? RETURNING ` + inboundColumns

// inboundQuery selects the items whose due time is at most the longest wait ahead.
// farInboundQuery selects the items with a later due time: such a time is impossible, so
// these items are due, too.
const (
	inboundQuery    = `SELECT ` + inboundColumns + ` FROM inbound_items WHERE workspace_id = ? AND due_at <= ? ORDER BY due_at, id LIMIT +?`
	farInboundQuery = `SELECT ` + inboundColumns + ` FROM inbound_items WHERE workspace_id = ? AND due_at > ? ORDER BY due_at, id LIMIT +?`
)

// InboundItems returns up to limit due inbound items of a workspace, and how long to
// wait for the next one.
func (s *Store) InboundItems(ctx context.Context, ws desk.ID, longest time.Duration, limit int) (list []desk.InboundItem, next time.Duration, err error) {
	due := stored.Due{Limit: limit}
	err = s.read(ctx, int64(pointRead+2*limit), func(c conn) error {
		now := s.now()
		for _, of := range []struct {
			query string
			now   desk.Time
		}{{inboundQuery, now}, {farInboundQuery, 0}} {
			rows := c.stmt(of.query).id(ws).time(now + desk.Time(longest.Milliseconds())).int(int64(limit) + 1)
			for rows.next() {
				due.Add(readInbound(&rows), of.now)
			}
			if err := rows.done(); err != nil {
				return failed("inbound items", err)
			}
		}
		return nil
	})
	return due.List, due.Next(), err
}

const inboundDueQuery = `SELECT workspace_id, min(CASE WHEN due_at > ?1 + ?2 THEN 0 ELSE max(due_at - ?1, 0) END) FROM inbound_items GROUP BY workspace_id`

// InboundDue returns the workspaces with inbound items, and how long to wait until the
// first item of each is due.
func (s *Store) InboundDue(ctx context.Context, longest time.Duration) (map[desk.ID]time.Duration, error) {
	return s.due(ctx, "inbound items due", inboundDueQuery, longest)
}

// due returns the workspaces that a query finds, and how long each of them has to wait.
func (s *Store) due(ctx context.Context, doing, query string, longest time.Duration) (due map[desk.ID]time.Duration, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		due = map[desk.ID]time.Duration{}
		rows := c.stmt(query).time(s.now()).int(longest.Milliseconds())
		for rows.next() {
			ws := rows.readID()
			due[ws] = time.Duration(rows.readInt()) * time.Millisecond
		}
		return failed(doing, rows.done())
	})
	return due, err
}

// Lease gives a task to the caller for some milliseconds of the database's clock. It
// returns false while another caller holds a valid lease. A lease is not valid if it ends
// later than a new lease would end.
func (s *Store) Lease(ctx context.Context, ws desk.ID, task string, length desk.Time) (ours bool, err error) {
	err = s.write(ctx, func(c conn) error {
		now := s.now()
		err := c.stmt(`INSERT INTO leases (workspace_id, task, until) VALUES (?1, ?2, ?3)
			ON CONFLICT DO UPDATE SET until = excluded.until WHERE leases.until < ?4 OR leases.until > ?3`).
			id(ws).text(task).time(desk.Time(desk.LeaseFor(now, length))).time(now).run()
		ours = c.Changes() > 0
		return failed("lease", err)
	})
	return ours, err
}
