package sqlite

import (
	"context"

	"parley/app"
	"parley/desk"
)

const optOutQuery = `SELECT since, at FROM opt_outs WHERE workspace_id = ? AND number_hash = ?`

func optOut(c conn, ws desk.ID, number app.NumberHash) (app.OptOut, error) {
	return one("opt-out", c.stmt(optOutQuery).id(ws).bytes(number[:]), func(s *stmt) app.OptOut {
		return app.OptOut{Since: s.readTime(), At: s.readTime()}
	})
}

// OptedOut returns since when the holder of a number takes no marketing, or 0.
func (s *Store) OptedOut(ctx context.Context, ws desk.ID, number app.NumberHash) (since desk.Time, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		o, err := optOut(c, ws, number)
		since = o.Since
		return err
	})
	return since, err
}

const (
	earlyStatusesQuery = `SELECT external_id, attempt_id, delivery, failure, at FROM early_statuses
	WHERE workspace_id = ? AND channel_id = ? AND external_id = ?`
	takeStatusesQuery = `DELETE FROM early_statuses WHERE workspace_id = ? AND channel_id = ? AND external_id = ?`
	dropStatusesQuery = `DELETE FROM early_statuses WHERE workspace_id = ? AND at < ?`
)

func readStatus(s *stmt) desk.StatusNotice {
	n := desk.StatusNotice{ExternalID: s.readText(), Attempt: s.readID(), Delivery: desk.Delivery(s.readText())}
	s.readJSON(&n.Failure)
	n.At = s.readTime()
	return n
}

const noticeColumns = `due_at, id, channel_id, webhook_at, skip, body`

func readNotice(s *stmt) app.Notice {
	return app.Notice{
		Due: s.readTime(), ID: s.readID(), Channel: s.readID(), Webhook: s.readTime(), Skip: int(s.readInt()), Body: s.readBlob(),
	}
}

// putNotice leaves the body of a webhook to PutWebhook.
func putNotice(c conn, ws desk.ID, n app.Notice) error {
	if n.Webhook != 0 {
		n.Body = nil
	}
	return failed("store notice", c.stmt(`REPLACE INTO notices (workspace_id, `+noticeColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?)`).
		id(ws).time(n.Due).id(n.ID).id(n.Channel).time(n.Webhook).int(int64(n.Skip)).bytes(n.Body).run())
}

const takeNoticeQuery = `DELETE FROM notices WHERE workspace_id = ? AND due_at = ? AND id = ? RETURNING ` + noticeColumns

// PutNotice keeps a provider's notice until it is due and was taken.
func (s *Store) PutNotice(_ context.Context, ws desk.ID, n app.Notice) error {
	return s.write(func(c conn) error { return putNotice(c, ws, n) })
}

const noticesQuery = `SELECT ` + noticeColumns + ` FROM notices WHERE workspace_id = ? ORDER BY due_at, id LIMIT ?`

// Notices returns up to limit notices of a workspace that are due at now, oldest
// first, and when the next one after them is due, 0 when there is none.
func (s *Store) Notices(ctx context.Context, ws desk.ID, now desk.Time, limit int) (list []app.Notice, next desk.Time, err error) {
	err = s.read(ctx, int64(pointRead+limit), func(c conn) error {
		rows := c.stmt(noticesQuery).id(ws).int(int64(limit) + 1)
		for next == 0 && rows.next() {
			n := readNotice(&rows)
			if n.Due > now || len(list) == limit {
				next = n.Due
				continue
			}
			list = append(list, n)
		}
		return failed("notices", rows.done())
	})
	return list, next, err
}

const noticesDueQuery = `SELECT workspace_id, min(due_at) FROM notices GROUP BY workspace_id`

// NoticesDue returns the workspaces that notices are kept for, and when the first of each
// is due.
func (s *Store) NoticesDue(ctx context.Context) (due map[desk.ID]desk.Time, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		due = map[desk.ID]desk.Time{}
		rows := c.stmt(noticesDueQuery)
		for rows.next() {
			due[rows.readID()] = rows.readTime()
		}
		return failed("notices due", rows.done())
	})
	return due, err
}

// Lease gives a task to the caller for some milliseconds of the database's clock, and
// tells whether it did: not while another has it.
func (s *Store) Lease(_ context.Context, ws desk.ID, task string, millis desk.Time) (ours bool, err error) {
	err = s.write(func(c conn) error {
		err := c.stmt(`INSERT INTO leases (workspace_id, task, until) VALUES (?, ?, ?)
			ON CONFLICT DO UPDATE SET until = excluded.until WHERE leases.until < ?`).id(ws).text(task).time(now() + millis).time(now()).run()
		ours = c.Changes() > 0
		return failed("lease", err)
	})
	return ours, err
}

const leaseQuery = `SELECT until FROM leases WHERE workspace_id = ? AND task = ?`

// LeaseOf returns until when a task was given last, 0 for never.
func (s *Store) LeaseOf(ctx context.Context, ws desk.ID, task string) (until desk.Time, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		until, err = one("lease", c.stmt(leaseQuery).id(ws).text(task), (*stmt).readTime)
		return err
	})
	return until, err
}
