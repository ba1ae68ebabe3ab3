package sqlite

import (
	"context"
	"time"

	"parley/desk"
	"parley/store"
	"parley/store/internal/stored"
)

const (
	uploadColumns = `u.id, u.slot, u.media_id, u.member_id, u.name, u.size, u.total, u.options, u.state, u.problem, u.problem_at, u.created_at, abs(u.queued_at), u.ended_at, u.run_id, u.broadcast_id`
	withRun       = `SELECT ` + uploadColumns + `, i.id IS NOT NULL, i.id, i.key, i.started_at, i.ended_at, i.read, i.created, i.updated, i.unchanged, i.rejected, i.error_bytes FROM import_uploads u LEFT JOIN imports i ON i.workspace_id = u.workspace_id AND i.id = u.run_id WHERE u.workspace_id = ?`

	uploadsQuery    = withRun + ` ORDER BY u.id DESC LIMIT +?`
	uploadQuery     = withRun + ` AND u.id = ?`
	nextUploadQuery = withRun + ` AND u.slot > 0 AND u.queued_at <> 0 ORDER BY abs(u.queued_at), u.id LIMIT 1`
	uploadsDueQuery = `SELECT u.workspace_id, max(CASE WHEN l.until > ?1 + ?2 THEN 0 ELSE max(coalesce(l.until, 0) - ?1, 0) END) FROM import_uploads u INDEXED BY import_uploads_slot
		LEFT JOIN leases l ON l.workspace_id = u.workspace_id AND l.task = '` + store.ImportTask + `' WHERE u.slot > 0 AND u.queued_at <> 0 GROUP BY u.workspace_id`

	uploadInTxQuery    = `SELECT ` + uploadColumns + ` FROM import_uploads u WHERE u.workspace_id = ? AND u.id = ?`
	peopleUploadsQuery = `SELECT ` + uploadColumns + ` FROM import_uploads u WHERE u.workspace_id = ? AND u.slot > 0 AND u.broadcast_id = ?`
	uploadSlotsQuery   = `SELECT slot FROM import_uploads INDEXED BY import_uploads_slot WHERE workspace_id = ? AND slot > 0`
	// A workspace has few uploads: they go after a week.
	oldUploadsOfQuery = `SELECT ` + uploadColumns + ` FROM import_uploads u WHERE u.workspace_id = ? AND (u.ended_at = 0 AND u.created_at < ? OR u.ended_at > 0 AND u.ended_at < ?) ORDER BY u.id LIMIT +?`
	putUploadQuery    = `INSERT INTO import_uploads (workspace_id, id, slot, media_id, member_id, name, size, total, options, state, problem, problem_at, created_at, queued_at, ended_at, run_id, broadcast_id)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (workspace_id, id) DO UPDATE SET slot = excluded.slot, member_id = excluded.member_id, total = excluded.total,
		options = excluded.options, state = excluded.state, problem = excluded.problem, problem_at = excluded.problem_at, queued_at = excluded.queued_at, ended_at = excluded.ended_at, run_id = excluded.run_id`
	dropUploadQuery = `DELETE FROM import_uploads WHERE workspace_id = ? AND id = ?`

	rejectedQuery    = `SELECT body FROM import_rejects WHERE workspace_id = ? AND run_id = ? AND at = ?`
	putRejectedQuery = `REPLACE INTO import_rejects (workspace_id, run_id, at, body) VALUES (?, ?, ?, ?)`
	dropRejectsQuery = `DELETE FROM import_rejects WHERE workspace_id = ? AND run_id = ?`
	dropRunQuery     = `DELETE FROM imports WHERE workspace_id = ? AND id = ?`
)

func readUpload(s *stmt) *desk.Upload {
	return &desk.Upload{
		ID: s.readID(), Slot: int(s.readInt()), MediaID: s.readID(), MemberID: s.readID(), Name: s.readText(), Size: s.readInt(), Rows: s.readInt(), Options: s.readText(),
		State: desk.UploadState(s.readText()), Problem: s.readText(), ProblemAt: s.readText(), CreatedAt: s.readTime(), QueuedAt: s.readTime(), EndedAt: s.readTime(), RunID: s.readID(),
		Broadcast: s.readID(),
	}
}

func readUploadWithRun(s *stmt) *desk.Upload {
	u := readUpload(s)
	if s.readInt() != 0 {
		u.Run = *readImport(s)
	}
	return u
}

// Uploads returns the newest uploads of a workspace.
func (s *Store) Uploads(ctx context.Context, ws desk.ID, limit int) (list []*desk.Upload, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		list, err = all("uploads", c.stmt(uploadsQuery).id(ws).int(int64(limit)), readUploadWithRun)
		return err
	})
	return list, err
}

// Upload returns an upload, or nil.
func (s *Store) Upload(ctx context.Context, ws, id desk.ID) (u *desk.Upload, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		u, err = one("upload", c.stmt(uploadQuery).id(ws).id(id), readUploadWithRun)
		return err
	})
	return u, err
}

// UploadsDue returns the workspaces with queued uploads, and how long each has to wait.
func (s *Store) UploadsDue(ctx context.Context, lease time.Duration) (map[desk.ID]time.Duration, error) {
	return s.due(ctx, "uploads due", uploadsDueQuery, lease)
}

// NextUpload returns the upload of a workspace that is queued for the longest time, or nil.
func (s *Store) NextUpload(ctx context.Context, ws desk.ID) (u *desk.Upload, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		u, err = one("next upload", c.stmt(nextUploadQuery).id(ws), readUploadWithRun)
		return err
	})
	return u, err
}

// Rejected returns the rejected rows of a run at a place, or nil.
func (s *Store) Rejected(ctx context.Context, ws, run desk.ID, at int64) (rows []byte, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		rows, err = one("rejected rows", c.stmt(rejectedQuery).id(ws).id(run).int(at), (*stmt).readBlob)
		return err
	})
	return rows, err
}

func (t *tx) Upload(id desk.ID) (*desk.Upload, error) {
	return one("upload", t.c.stmt(uploadInTxQuery).id(t.ws).id(id), readUpload)
}

func (t *tx) UploadsOf(broadcast desk.ID) ([]*desk.Upload, error) {
	return all("uploads of a broadcast", t.c.stmt(peopleUploadsQuery).id(t.ws).id(broadcast), readUpload)
}

func (t *tx) PutUpload(u *desk.Upload) error {
	return failed("store upload", t.c.stmt(putUploadQuery).id(t.ws).id(u.ID).int(int64(u.Slot)).id(u.MediaID).id(u.MemberID).text(u.Name).int(u.Size).int(u.Rows).text(u.Options).
		text(string(u.State)).text(u.Problem).text(u.ProblemAt).time(u.CreatedAt).int(stored.QueuedAt(u)).time(u.EndedAt).id(u.RunID).idOrNull(u.Broadcast).run())
}

func (t *tx) UploadSlots() ([]int, error) {
	return all("slots of uploads", t.c.stmt(uploadSlotsQuery).id(t.ws), func(s *stmt) int { return int(s.readInt()) })
}

func (t *tx) OldUploads(made, ended desk.Time, limit int) ([]*desk.Upload, error) {
	return all("old uploads", t.c.stmt(oldUploadsOfQuery).id(t.ws).time(made).time(ended).int(int64(limit)), readUpload)
}

func (t *tx) DropUpload(u *desk.Upload) error {
	if err := failed("drop upload", t.c.stmt(dropUploadQuery).id(t.ws).id(u.ID).run()); err != nil {
		return err
	}
	return t.DropRun(u.RunID)
}

func (t *tx) PutRejected(run desk.ID, at int64, rows []byte) error {
	return failed("store rejected rows", t.c.stmt(putRejectedQuery).id(t.ws).id(run).int(at).bytes(rows).run())
}

func (t *tx) DropRun(run desk.ID) error {
	for _, query := range []string{dropRejectsQuery, dropRunQuery} {
		if err := t.c.stmt(query).id(t.ws).id(run).run(); err != nil {
			return failed("drop import", err)
		}
	}
	return wantScrub(t.c)
}
