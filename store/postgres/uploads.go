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
	uploadColumns = `u.id, u.slot, u.media_id, u.member_id, u.name, u.size, u.total, u.options, u.state, u.problem, u.problem_at, u.created_at, abs(u.queued_at), u.ended_at, u.run_id, u.broadcast_id`
	runOfUpload   = `coalesce(i.started_at, 0), coalesce(i.ended_at, 0), coalesce(i.read, 0), coalesce(i.created, 0), coalesce(i.updated, 0), coalesce(i.unchanged, 0), coalesce(i.rejected, 0), coalesce(i.error_bytes, 0)`
	withRun       = `SELECT ` + uploadColumns + `, i.id, i.key, ` + runOfUpload + ` FROM import_uploads u LEFT JOIN imports i ON i.workspace_id = u.workspace_id AND i.id = u.run_id WHERE u.workspace_id = $1`

	uploadsQuery    = withRun + ` ORDER BY u.id DESC LIMIT $2`
	uploadQuery     = withRun + ` AND u.id = $2`
	nextUploadQuery = withRun + ` AND u.slot > 0 AND u.queued_at <> 0 ORDER BY abs(u.queued_at), u.id LIMIT 1`
	uploadsDueQuery = `SELECT u.workspace_id, max(CASE WHEN l.until > ` + statementNow + ` + $1::bigint THEN 0 ELSE greatest(coalesce(l.until, 0) - ` + statementNow + `, 0) END) FROM import_uploads u
		LEFT JOIN leases l ON l.workspace_id = u.workspace_id AND l.task = '` + store.ImportTask + `' WHERE u.slot > 0 AND u.queued_at <> 0 GROUP BY u.workspace_id`

	uploadInTxQuery    = `SELECT ` + uploadColumns + ` FROM import_uploads u WHERE u.workspace_id = $1 AND u.id = $2`
	peopleUploadsQuery = `SELECT ` + uploadColumns + ` FROM import_uploads u WHERE u.workspace_id = $1 AND u.slot > 0 AND u.broadcast_id = $2`
	uploadSlotsQuery   = `SELECT slot FROM import_uploads WHERE workspace_id = $1 AND slot > 0`
	// A workspace has few uploads: they go after a week.
	oldUploadsOfQuery = `SELECT ` + uploadColumns + ` FROM import_uploads u WHERE u.workspace_id = $1 AND (u.ended_at = 0 AND u.created_at < $2 OR u.ended_at > 0 AND u.ended_at < $3) ORDER BY u.id LIMIT $4`
	putUploadQuery    = `INSERT INTO import_uploads (workspace_id, id, slot, media_id, member_id, name, size, total, options, state, problem, problem_at, created_at, queued_at, ended_at, run_id, broadcast_id)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) ON CONFLICT (workspace_id, id) DO UPDATE SET slot = excluded.slot, member_id = excluded.member_id, total = excluded.total,
		options = excluded.options, state = excluded.state, problem = excluded.problem, problem_at = excluded.problem_at, queued_at = excluded.queued_at, ended_at = excluded.ended_at, run_id = excluded.run_id`
	dropUploadQuery = `DELETE FROM import_uploads WHERE workspace_id = $1 AND id = $2`

	rejectedQuery    = `SELECT body FROM import_rejects WHERE workspace_id = $1 AND run_id = $2 AND at = $3`
	putRejectedQuery = `INSERT INTO import_rejects (workspace_id, run_id, at, body) VALUES ($1, $2, $3, $4) ON CONFLICT (workspace_id, run_id, at) DO UPDATE SET body = excluded.body`
	dropRejectsQuery = `DELETE FROM import_rejects WHERE workspace_id = $1 AND run_id = $2`
	dropRunQuery     = `DELETE FROM imports WHERE workspace_id = $1 AND id = $2`
)

func uploadFields(u *desk.Upload) []any {
	return []any{
		into(&u.ID), &u.Slot, into(&u.MediaID), into(&u.MemberID), &u.Name, &u.Size, &u.Rows, &u.Options, (*string)(&u.State), &u.Problem, &u.ProblemAt,
		(*int64)(&u.CreatedAt), (*int64)(&u.QueuedAt), (*int64)(&u.EndedAt), into(&u.RunID), into(&u.Broadcast),
	}
}

func readUpload(row pgx.Row) (*desk.Upload, error) {
	var u desk.Upload
	err := row.Scan(uploadFields(&u)...)
	return &u, err
}

func readUploadWithRun(row pgx.Row) (*desk.Upload, error) {
	var u desk.Upload
	var key []byte
	run := &u.Run
	err := row.Scan(append(uploadFields(&u), into(&run.ID), &key, (*int64)(&run.StartedAt), (*int64)(&run.EndedAt), &run.Rows, &run.Created, &run.Updated, &run.Unchanged, &run.Rejected, &run.ErrorBytes)...)
	copy(run.Key[:], key)
	return &u, err
}

// Uploads returns the newest uploads of a workspace.
func (s *Store) Uploads(ctx context.Context, ws desk.ID, limit int) ([]*desk.Upload, error) {
	return readAll(ctx, s, "uploads", readUploadWithRun, uploadsQuery, uuid(ws), limit)
}

// Upload returns an upload, or nil.
func (s *Store) Upload(ctx context.Context, ws, id desk.ID) (*desk.Upload, error) {
	return readOne(ctx, s, "upload", readUploadWithRun, uploadQuery, uuid(ws), uuid(id))
}

// UploadsDue returns the workspaces with queued uploads, and how long each has to wait.
func (s *Store) UploadsDue(ctx context.Context, lease time.Duration) (map[desk.ID]time.Duration, error) {
	return s.due(ctx, "uploads due", uploadsDueQuery, lease)
}

// NextUpload returns the upload of a workspace that is queued for the longest time, or nil.
func (s *Store) NextUpload(ctx context.Context, ws desk.ID) (*desk.Upload, error) {
	return readOne(ctx, s, "next upload", readUploadWithRun, nextUploadQuery, uuid(ws))
}

// Rejected returns the rejected rows of a run at a place, or nil.
func (s *Store) Rejected(ctx context.Context, ws, run desk.ID, at int64) ([]byte, error) {
	return readOne(ctx, s, "rejected rows", scanned[[]byte], rejectedQuery, uuid(ws), uuid(run), at)
}

func (t *tx) Upload(id desk.ID) (*desk.Upload, error) {
	return one(t.pipe, "upload", readUpload, uploadInTxQuery+forUpdate, uuid(t.ws), uuid(id))
}

func (t *tx) UploadsOf(broadcast desk.ID) ([]*desk.Upload, error) {
	return all(t.pipe, "uploads of a broadcast", readUpload, peopleUploadsQuery+forUpdate, uuid(t.ws), uuid(broadcast))
}

func (t *tx) PutUpload(u *desk.Upload) error {
	t.put(putUploadQuery, uuid(t.ws), uuid(u.ID), u.Slot, uuid(u.MediaID), uuid(u.MemberID), u.Name, u.Size, u.Rows, u.Options,
		string(u.State), u.Problem, u.ProblemAt, int64(u.CreatedAt), stored.QueuedAt(u), int64(u.EndedAt), uuid(u.RunID), orNull(u.Broadcast))
	return t.fail
}

func (t *tx) UploadSlots() ([]int, error) {
	return all(t.pipe, "slots of uploads", scanned[int], uploadSlotsQuery, uuid(t.ws))
}

func (t *tx) OldUploads(made, ended desk.Time, limit int) ([]*desk.Upload, error) {
	return all(t.pipe, "old uploads", readUpload, oldUploadsOfQuery+forUpdate, uuid(t.ws), int64(made), int64(ended), limit)
}

func (t *tx) DropUpload(u *desk.Upload) error {
	t.put(dropUploadQuery, uuid(t.ws), uuid(u.ID))
	return t.DropRun(u.RunID)
}

func (t *tx) PutRejected(run desk.ID, at int64, rows []byte) error {
	t.put(putRejectedQuery, uuid(t.ws), uuid(run), at, rows)
	return t.fail
}

func (t *tx) DropRun(run desk.ID) error {
	t.put(dropRejectsQuery, uuid(t.ws), uuid(run))
	t.put(dropRunQuery, uuid(t.ws), uuid(run))
	return t.fail
}
