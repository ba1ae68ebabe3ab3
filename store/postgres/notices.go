package postgres

import (
	"context"

	"parley/app"
	"parley/desk"

	"github.com/jackc/pgx/v5"
)

const optOutQuery = `SELECT since, at FROM opt_outs WHERE workspace_id = $1 AND number_hash = $2`

func readOptOut(row pgx.Row) (*app.OptOut, error) {
	var o app.OptOut
	err := row.Scan((*int64)(&o.Since), (*int64)(&o.At))
	return &o, err
}

// OptedOut returns since when the holder of a number takes no marketing, or 0.
func (s *Store) OptedOut(ctx context.Context, ws desk.ID, number app.NumberHash) (since desk.Time, err error) {
	err = s.read(ctx, func(p *pipe) error {
		o, err := one(p, "opt-out", readOptOut, optOutQuery, uuid(ws), number[:])
		if o != nil {
			since = o.Since
		}
		return err
	})
	return since, err
}

const (
	// statusLock is on a message by its provider's id. Two that share one only wait.
	statusLock = `SELECT pg_advisory_xact_lock(hashtextextended($1::uuid::text || $2::uuid::text || $3::text, 0))`

	takeStatusesQuery = `DELETE FROM early_statuses WHERE workspace_id = $1 AND channel_id = $2 AND external_id = $3
	RETURNING external_id, attempt_id, delivery, failure, at`
)

func readStatus(row pgx.Row) (n desk.StatusNotice, err error) {
	err = row.Scan(&n.ExternalID, into(&n.Attempt), (*string)(&n.Delivery), document{&n.Failure}, (*int64)(&n.At))
	return n, err
}

const noticeColumns = `due_at, id, channel_id, webhook_at, skip, body`

func readNotice(row pgx.Row) (n app.Notice, err error) {
	err = row.Scan((*int64)(&n.Due), into(&n.ID), into(&n.Channel), (*int64)(&n.Webhook), &n.Skip, &n.Body)
	if len(n.Body) == 0 {
		n.Body = nil
	}
	return n, err
}

const putNoticeQuery = `INSERT INTO notices (workspace_id, ` + noticeColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7)
	ON CONFLICT (workspace_id, due_at, id) DO UPDATE SET channel_id = excluded.channel_id, webhook_at = excluded.webhook_at,
	skip = excluded.skip, body = excluded.body`

// noticeArgs leaves the body of a webhook to PutWebhook.
func noticeArgs(ws desk.ID, n app.Notice) []any {
	if n.Webhook != 0 {
		n.Body = nil
	}
	return []any{uuid(ws), int64(n.Due), uuid(n.ID), uuid(n.Channel), int64(n.Webhook), n.Skip, notNull(n.Body)}
}

// notNull is what nil is not.
func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

func putNotice(p *pipe, ws desk.ID, n app.Notice) error {
	p.put(putNoticeQuery, noticeArgs(ws, n)...)
	return p.fail
}

const takeNoticesQuery = `WITH wanted AS (
		SELECT u.n, l.place FROM unnest($2::bigint[], $3::uuid[]) WITH ORDINALITY u (due_at, id, n) CROSS JOIN LATERAL
			(SELECT ctid AS place FROM notices WHERE workspace_id = $1 AND due_at = u.due_at AND id = u.id FOR UPDATE SKIP LOCKED) l),
	taken AS (DELETE FROM notices USING wanted WHERE notices.ctid = wanted.place RETURNING wanted.n, ` + noticeColumns + `)
	SELECT ` + noticeColumns + ` FROM taken ORDER BY n`

// PutNotice keeps a provider's notice until it is due and was taken.
func (s *Store) PutNotice(ctx context.Context, ws desk.ID, n app.Notice) error {
	_, err := s.exec(ctx, "store notice", putNoticeQuery, noticeArgs(ws, n)...)
	return err
}

const noticesQuery = `SELECT ` + noticeColumns + ` FROM notices WHERE workspace_id = $1 ORDER BY due_at, id LIMIT $2`

// Notices returns up to limit notices of a workspace that are due at now, oldest
// first, and when the next one after them is due, 0 when there is none.
func (s *Store) Notices(ctx context.Context, ws desk.ID, now desk.Time, limit int) (list []app.Notice, next desk.Time, err error) {
	err = s.read(ctx, func(p *pipe) error {
		list, err = all(p, "notices", readNotice, noticesQuery, uuid(ws), limit+1)
		return err
	})
	due := 0
	for due < min(len(list), limit) && list[due].Due <= now {
		due++
	}
	if due < len(list) {
		next = list[due].Due
	}
	if due == 0 {
		return nil, next, err
	}
	return list[:due], next, err
}

// NoticesDue returns the workspaces that notices are kept for, and when the first of each
// is due.
func (s *Store) NoticesDue(ctx context.Context) (due map[desk.ID]desk.Time, err error) {
	err = s.read(ctx, func(p *pipe) error {
		due = map[desk.ID]desk.Time{}
		p.each(func(row pgx.Row) error {
			var ws desk.ID
			var at desk.Time
			err := row.Scan(into(&ws), (*int64)(&at))
			due[ws] = at
			return err
		}, `SELECT workspace_id, min(due_at) FROM notices GROUP BY workspace_id`)
		return p.send("notices due")
	})
	return due, err
}

// Lease gives a task to the caller for some milliseconds of the database's clock, and
// tells whether it did: not while another has it.
func (s *Store) Lease(ctx context.Context, ws desk.ID, task string, millis desk.Time) (bool, error) {
	tag, err := s.exec(ctx, "lease", `INSERT INTO leases (workspace_id, task, until) VALUES ($1, $2, `+databaseNow+` + $3)
		ON CONFLICT (workspace_id, task) DO UPDATE SET until = excluded.until WHERE leases.until < `+databaseNow,
		uuid(ws), task, int64(millis))
	return tag.RowsAffected() == 1, err
}

// LeaseOf returns until when a task was given last, 0 for never.
func (s *Store) LeaseOf(ctx context.Context, ws desk.ID, task string) (until desk.Time, err error) {
	err = s.read(ctx, func(p *pipe) error {
		until, err = one(p, "lease", readTime, `SELECT until FROM leases WHERE workspace_id = $1 AND task = $2`, uuid(ws), task)
		return err
	})
	return until, err
}
