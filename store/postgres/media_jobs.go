package postgres

import (
	"context"
	"time"

	"parley/desk"
	"parley/store"

	"github.com/jackc/pgx/v5"
)

const (
	mediaDueQuery = `SELECT workspace_id, min(CASE WHEN due_at > ` + statementNow + ` + $1::bigint THEN 0 ELSE greatest(due_at - ` + statementNow + `, 0) END)
		FROM media_jobs WHERE ended = 0 GROUP BY workspace_id`
	jobColumns  = `media_id, channel_id, contact_id, conversation_id, message_id, message_ts, ref, mime, size, sha256, tries, due_at, holder, ended`
	takeDueJob  = `due_at <= $6::bigint AND $5::bigint > 0 ORDER BY due_at, media_id LIMIT 1 FOR UPDATE SKIP LOCKED`
	takeFarJob  = `due_at > $6::bigint + $5::bigint ORDER BY due_at, media_id LIMIT 1 FOR UPDATE SKIP LOCKED`
	takeJobFrom = `UPDATE media_jobs SET due_at = $6::bigint + $3::bigint, holder = $2 WHERE workspace_id = $1 AND $4::bigint = 0
		AND media_id = (SELECT media_id FROM media_jobs WHERE workspace_id = $1 AND ended = 0 AND `
	mediaJobQuery = `SELECT ` + jobColumns + ` FROM media_jobs WHERE workspace_id = $1 AND media_id = $2`
	putJobQuery   = `INSERT INTO media_jobs (workspace_id, ` + jobColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
		ON CONFLICT (workspace_id, media_id) DO UPDATE SET channel_id = excluded.channel_id, contact_id = excluded.contact_id,
		conversation_id = excluded.conversation_id, message_id = excluded.message_id, message_ts = excluded.message_ts, ref = excluded.ref,
		mime = excluded.mime, size = excluded.size, sha256 = excluded.sha256, tries = excluded.tries, due_at = excluded.due_at, holder = excluded.holder, ended = excluded.ended`
)

func readJob(row pgx.Row) (*store.MediaJob, error) {
	var j store.MediaJob
	ended := 0
	err := row.Scan(into(&j.Media), into(&j.Channel), into(&j.Contact), into(&j.Conversation), into(&j.Message), (*int64)(&j.TS),
		&j.Ref, &j.MIME, &j.Size, &j.SHA256, &j.Tries, (*int64)(&j.Due), into(&j.Holder), &ended)
	j.Ended = ended != 0
	if len(j.SHA256) == 0 {
		j.SHA256 = nil
	}
	return &j, err
}

// MediaDue returns the workspaces with files to fetch, and how long to wait until the
// first file of each is due.
func (s *Store) MediaDue(ctx context.Context, longest time.Duration) (map[desk.ID]time.Duration, error) {
	return s.due(ctx, "media due", mediaDueQuery, longest)
}

// TakeMediaJob gives the oldest due job of a workspace to a holder, or returns nil.
func (s *Store) TakeMediaJob(ctx context.Context, ws, holder desk.ID, lease, longest time.Duration) (job *store.MediaJob, err error) {
	err = s.write(ctx, ws, false, func(t *tx) error {
		if err := t.open("begin"); err != nil {
			return err
		}
		for _, which := range []string{takeDueJob, takeFarJob} { // the second: the clock was set back
			job, err = one(t.pipe, "take media job", readJob, takeJobFrom+which+`) RETURNING `+jobColumns,
				uuid(ws), uuid(holder), lease.Milliseconds(), 0, longest.Milliseconds(), int64(t.Now()))
			if err != nil || job != nil {
				return err
			}
		}
		return nil
	})
	return job, err
}

// HoldMediaJob extends the holder's lease, and tells whether the holder still has the
// job.
func (s *Store) HoldMediaJob(ctx context.Context, ws, media, holder desk.ID, lease time.Duration) (bool, error) {
	tag, err := s.exec(ctx, "hold media job", `UPDATE media_jobs SET due_at = `+shardNow("workspace_id")+` + $4::bigint WHERE workspace_id = $1 AND media_id = $2 AND holder = $3`,
		uuid(ws), uuid(media), uuid(holder), lease.Milliseconds())
	return tag.RowsAffected() == 1, err
}

func (t *tx) MediaJob(media desk.ID) (*store.MediaJob, error) {
	return one(t.pipe, "media job", readJob, mediaJobQuery+forUpdate, uuid(t.ws), uuid(media))
}

func (t *tx) PutMediaJob(j store.MediaJob) error {
	sum := j.SHA256
	if sum == nil {
		sum = []byte{}
	}
	t.put(putJobQuery, uuid(t.ws), uuid(j.Media), uuid(j.Channel), uuid(j.Contact), uuid(j.Conversation), uuid(j.Message), int64(j.TS),
		j.Ref, j.MIME, j.Size, sum, j.Tries, int64(j.Due), uuid(j.Holder), number(j.Ended))
	return t.fail
}

func (t *tx) DropMediaJob(media desk.ID) error {
	t.put(`DELETE FROM media_jobs WHERE workspace_id = $1 AND media_id = $2`, uuid(t.ws), uuid(media))
	return t.fail
}
