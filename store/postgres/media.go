package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	digest "hash"
	"io"
	"time"

	"parley/desk"
	"parley/store"
	"parley/store/internal/stored"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

const mediaColumns = `id, contact_id, kind, mime, trait, name, size, sha256, status, reason, created_at`

func readMedia(row pgx.Row) (*desk.Media, error) {
	var m desk.Media
	err := row.Scan(into(&m.ID), into(&m.ContactID), (*string)(&m.Kind), &m.MIME, (*string)(&m.Trait), &m.Name, &m.Size, &m.SHA256,
		(*string)(&m.Status), (*string)(&m.Reason), (*int64)(&m.CreatedAt))
	if len(m.SHA256) == 0 {
		m.SHA256 = nil
	}
	return &m, err
}

const (
	mediaQuery       = `SELECT ` + mediaColumns + ` FROM media WHERE workspace_id = $1 AND id = $2`
	mediaListQuery   = `SELECT ` + mediaColumns + ` FROM media WHERE workspace_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3`
	failedMediaQuery = `SELECT ` + mediaColumns + ` FROM media WHERE workspace_id = $1 AND id < $2 AND status = 'failed' ORDER BY id DESC LIMIT $3`
	oldMediaQuery    = `SELECT ` + mediaColumns + ` FROM media WHERE workspace_id = $1 AND status = 'ready' AND created_at < $2 ORDER BY created_at, id LIMIT $3`
	putMediaQuery    = `INSERT INTO media (workspace_id, ` + mediaColumns + `, used) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 0)
		ON CONFLICT (workspace_id, id) DO UPDATE SET contact_id = excluded.contact_id, kind = excluded.kind, mime = excluded.mime, trait = excluded.trait,
		name = excluded.name, size = excluded.size, sha256 = excluded.sha256, status = excluded.status, reason = excluded.reason,
		created_at = excluded.created_at, used = 0`
)

// Media returns the record of a file, or NotFound.
func (s *Store) Media(ctx context.Context, ws, id desk.ID) (m *desk.Media, err error) {
	err = s.read(ctx, func(p *pipe) error {
		m, err = one(p, "media", readMedia, mediaQuery, uuid(ws), uuid(id))
		return err
	})
	if err == nil && m == nil {
		err = desk.NoMedia()
	}
	return m, err
}

// MediaList returns up to limit records of files, newest first.
func (s *Store) MediaList(ctx context.Context, ws desk.ID, failed bool, before desk.ID, limit int) (list []*desk.Media, err error) {
	if before.IsZero() {
		before = lastID
	}
	query := mediaListQuery
	if failed {
		query = failedMediaQuery
	}
	err = s.read(ctx, func(p *pipe) error {
		list, err = all(p, "media", readMedia, query, uuid(ws), uuid(before), limit)
		return err
	})
	return list, err
}

func (t *tx) Media(id desk.ID) (*desk.Media, error) {
	return one(t.pipe, "media", readMedia, mediaQuery+forUpdate, uuid(t.ws), uuid(id))
}

func (t *tx) PutMedia(m *desk.Media) error {
	sum := m.SHA256
	if sum == nil {
		sum = []byte{}
	}
	t.put(putMediaQuery, uuid(t.ws), uuid(m.ID), orNull(m.ContactID), string(m.Kind), m.MIME, string(m.Trait), m.Name, m.Size, sum,
		string(m.Status), string(m.Reason), int64(m.CreatedAt))
	return t.fail
}

func (t *tx) OldMedia(before desk.Time, limit int) ([]*desk.Media, error) {
	return all(t.pipe, "old media", readMedia, oldMediaQuery+forUpdate, uuid(t.ws), int64(before), limit)
}

// chunkBytes is how much content is in one row.
const chunkBytes = 1 << 20

// A draft is content that is being written to rows.
type draft struct {
	s      *Store
	ctx    context.Context // of who writes it
	ws, id desk.ID
	n      int64  // chunks that are stored
	buf    []byte // of the next one
	hash   digest.Hash
	size   int64
	kept   bool
}

// A fileDraft is content that is being written to a file, in the directory that all
// nodes share.
type fileDraft struct {
	*stored.FileDraft
	s  *Store
	ws desk.ID
}

// NewContent begins to store content.
func (s *Store) NewContent(ctx context.Context, ws desk.ID) (store.Draft, error) {
	if s.files != nil {
		d, err := s.files.New()
		if err != nil {
			return nil, err
		}
		return &fileDraft{d, s, ws}, nil
	}
	d := &draft{s: s, ctx: ctx, ws: ws, hash: sha256.New()}
	_, err := rand.Read(d.id[:])
	return d, err
}

func (d *draft) Write(p []byte) (written int, err error) {
	for len(p) > 0 {
		if len(d.buf) == chunkBytes {
			if err := d.flush(); err != nil {
				return written, err
			}
		}
		n := min(chunkBytes-len(d.buf), len(p))
		d.buf = append(d.buf, p[:n]...)
		_, _ = d.hash.Write(p[:n])
		d.size += int64(n)
		p, written = p[n:], written+n
	}
	return written, nil
}

const (
	putDraftQuery = `INSERT INTO media_drafts (workspace_id, chunks, begun_at) VALUES ($1, $2, ` + databaseNow + `) ON CONFLICT DO NOTHING`
	putChunkQuery = `INSERT INTO media_chunks (workspace_id, chunks, n, bytes) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`
)

// flush stores a chunk. Until the content is kept, the draft's row says that it may be
// deleted.
func (d *draft) flush() error {
	if err := d.ctx.Err(); err != nil {
		return stored.Unavailable(err)
	}
	err := d.s.atOnce(d.ctx, "store content", func(p *pipe) {
		if d.n == 0 {
			p.put(putDraftQuery, uuid(d.ws), uuid(d.id))
		}
		p.put(putChunkQuery, uuid(d.ws), uuid(d.id), d.n, d.buf)
	})
	if err == nil {
		d.n, d.buf = d.n+1, d.buf[:0]
	}
	return err
}

const (
	newContentQuery = `INSERT INTO media_contents (workspace_id, sha256, size, unused, pins, pinned_until, chunks)
		VALUES ($1, $2, $3, 1, 1, ` + databaseNow + ` + $4::bigint, $5) ON CONFLICT DO NOTHING RETURNING chunks`
	pinContentQuery = `UPDATE media_contents c SET pins = CASE WHEN c.pinned_until > ` + databaseNow + ` THEN c.pins + 1 ELSE 1 END,
		pinned_until = ` + databaseNow + ` + $3::bigint WHERE workspace_id = $1 AND sha256 = $2 RETURNING chunks`
	useMediaQuery = `INSERT INTO media_used AS u (workspace_id, bytes) VALUES ($1, $2)
		ON CONFLICT (workspace_id) DO UPDATE SET bytes = u.bytes + excluded.bytes RETURNING bytes`
	mediaUsedQuery = `SELECT bytes FROM media_used WHERE workspace_id = $1`
)

// keepContent stores the row of content, or pins the one that there is, and returns where
// the content is. New content counts for the workspace.
func keepContent(t *tx, sum []byte, size int64, chunks any, most int64) (at desk.ID, err error) {
	there := false
	place := func(row pgx.Row) error {
		there = true
		return row.Scan(into(&at))
	}
	for range 3 { // it may be deleted between the two statements
		t.each(place, newContentQuery, uuid(t.ws), sum, size, store.KeptContent.Milliseconds(), chunks)
		if err := t.send("keep content"); err != nil {
			return at, err
		}
		if there {
			break
		}
		t.each(place, pinContentQuery, uuid(t.ws), sum, store.KeptContent.Milliseconds())
		if err := t.send("pin content"); err != nil || there {
			return at, err
		}
	}
	if !there {
		return at, stored.HeldContent()
	}
	used := int64(0)
	t.each(func(row pgx.Row) error { return row.Scan(&used) }, useMediaQuery, uuid(t.ws), size)
	if err := t.send("use media"); err != nil {
		return at, err
	}
	if most > 0 && used > most {
		return at, desk.MediaFull(most, used-size)
	}
	return at, nil
}

// MediaUsed returns how many bytes of content a workspace has.
func (s *Store) MediaUsed(ctx context.Context, ws desk.ID) (n int64, err error) {
	err = s.read(ctx, func(p *pipe) error {
		n = 0
		p.each(func(row pgx.Row) error { return row.Scan(&n) }, mediaUsedQuery, uuid(ws))
		return p.send("media used")
	})
	return n, err
}

// CountMedia counts them anew. The row is locked first: who stores content or deletes it
// changes the row last, so each of them is in the sum, or comes after it.
func (s *Store) CountMedia(ctx context.Context, ws desk.ID) error {
	return s.write(ctx, ws, false, func(t *tx) error {
		if err := t.open("begin"); err != nil {
			return err
		}
		t.put(`INSERT INTO media_used (workspace_id, bytes) VALUES ($1, 0) ON CONFLICT DO NOTHING`, uuid(ws))
		t.put(`SELECT 1 FROM media_used WHERE workspace_id = $1 FOR UPDATE`, uuid(ws))
		if err := t.send("count media"); err != nil {
			return err
		}
		t.put(`UPDATE media_used SET bytes = (SELECT coalesce(sum(size), 0) FROM media_contents WHERE workspace_id = $1) WHERE workspace_id = $1`, uuid(ws))
		return t.fail
	})
}

// Room returns the free bytes of the directory's file system, if one has the content.
func (s *Store) Room() (free, total int64, known bool, err error) {
	if s.files == nil {
		return 0, 0, false, nil
	}
	free, total, err = s.files.Room()
	return free, total, true, err
}

// Keep makes the content durable.
func (d *draft) Keep(ctx context.Context, most int64) (sum []byte, size int64, err error) {
	sum = d.hash.Sum(nil)
	if d.buf == nil {
		d.buf = []byte{}
	}
	err = d.s.write(ctx, d.ws, false, func(t *tx) error {
		if err := t.open("begin"); err != nil {
			return err
		}
		there := d.n == 0
		if !there {
			t.each(func(pgx.Row) error { there = true; return nil },
				`DELETE FROM media_drafts WHERE workspace_id = $1 AND chunks = $2 RETURNING 1`, uuid(d.ws), uuid(d.id))
		}
		at, err := keepContent(t, sum, d.size, uuid(d.id), most)
		switch {
		case err != nil:
			return err
		case !there: // this process was stopped for so long that the draft was deleted
			return stored.HeldContent()
		case at == d.id:
			t.put(putChunkQuery, uuid(d.ws), uuid(d.id), d.n, d.buf)
		case d.n > 0:
			t.put(`DELETE FROM media_chunks WHERE workspace_id = $1 AND chunks = $2`, uuid(d.ws), uuid(d.id))
		}
		return t.fail
	})
	d.kept = err == nil || errors.Is(err, store.ErrCommitLost)
	return sum, d.size, err
}

// Drop deletes a draft that was not kept. If that fails, DropDrafts deletes it.
func (d *draft) Drop() {
	d.buf = nil
	if d.kept || d.n == 0 {
		return
	}
	d.kept = true
	_ = d.s.atOnce(d.ctx, "drop draft", func(p *pipe) { dropDraft(p, d.ws, d.id) })
}

func dropDraft(p *pipe, ws, id desk.ID) {
	p.put(`DELETE FROM media_chunks WHERE workspace_id = $1 AND chunks = $2`, uuid(ws), uuid(id))
	p.put(`DELETE FROM media_drafts WHERE workspace_id = $1 AND chunks = $2`, uuid(ws), uuid(id))
}

// Keep makes the content durable. Its row comes first: a file without a row would never
// be deleted.
func (d *fileDraft) Keep(ctx context.Context, most int64) (sum []byte, size int64, err error) {
	if sum, size, err = d.Finish(); err != nil {
		return nil, 0, err
	}
	inRows := false
	err = d.s.write(ctx, d.ws, false, func(t *tx) error {
		if err := t.open("begin"); err != nil {
			return err
		}
		at, err := keepContent(t, sum, size, pgtype.UUID{}, most)
		inRows = !at.IsZero()
		return err
	})
	if err == nil && !inRows {
		err = d.Place(d.ws, sum)
	}
	return sum, size, err
}

// OpenContent opens content for reading, or returns NotFound.
func (s *Store) OpenContent(ctx context.Context, ws desk.ID, sum []byte) (io.ReadSeekCloser, error) {
	c := &content{s: s, ctx: ctx, ws: ws}
	there := false
	err := s.read(ctx, func(p *pipe) error {
		p.each(func(row pgx.Row) error {
			there = true
			return row.Scan(into(&c.id), &c.size)
		}, `SELECT chunks, size FROM media_contents WHERE workspace_id = $1 AND sha256 = $2`, uuid(ws), sum)
		return p.send("content")
	})
	switch {
	case err != nil:
		return nil, err
	case !there || c.id.IsZero() && s.files == nil:
		return nil, stored.NoContent()
	case c.id.IsZero():
		f, err := s.files.Open(ws, sum)
		if err != nil {
			return nil, err
		}
		return f, nil
	}
	return c, nil
}

// A content reads chunks, one at a time.
type content struct {
	s        *Store
	ctx      context.Context // of who reads it
	ws, id   desk.ID
	size, at int64
	n        int64  // the chunk in buf
	buf      []byte // nil: none
}

func (c *content) Read(b []byte) (int, error) {
	if c.at >= c.size {
		return 0, io.EOF
	}
	if n := c.at / chunkBytes; c.buf == nil || n != c.n {
		var chunk []byte
		err := c.s.read(c.ctx, func(p *pipe) (err error) {
			chunk, err = one(p, "chunk", func(row pgx.Row) (b []byte, err error) {
				err = row.Scan(&b)
				return b, err
			}, `SELECT bytes FROM media_chunks WHERE workspace_id = $1 AND chunks = $2 AND n = $3`, uuid(c.ws), uuid(c.id), n)
			return err
		})
		if err != nil {
			return 0, err
		}
		c.n, c.buf = n, chunk
	}
	from := c.at - c.n*chunkBytes
	if from >= int64(len(c.buf)) {
		return 0, stored.NoContent() // it was deleted meanwhile
	}
	n := copy(b, c.buf[from:])
	c.at += int64(n)
	return n, nil
}

func (c *content) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += c.at
	case io.SeekEnd:
		offset += c.size
	}
	if offset < 0 {
		return 0, errors.New("content: a place before its start")
	}
	c.at = offset
	return offset, nil
}

func (c *content) Close() error {
	c.buf = nil
	return nil
}

func (t *tx) UseContent(sum []byte) error {
	used := false
	t.each(func(pgx.Row) error { used = true; return nil },
		`UPDATE media_contents SET unused = 0, pins = greatest(pins - 1, 0) WHERE workspace_id = $1 AND sha256 = $2 RETURNING 1`, uuid(t.ws), sum)
	err := t.send("use content")
	if err == nil && !used {
		return stored.HeldContent()
	}
	return err
}

// ReleaseContent leaves it to DropContents whether another file has the content.
func (t *tx) ReleaseContent(sum []byte) error {
	t.put(`UPDATE media_contents SET unused = 1 WHERE workspace_id = $1 AND sha256 = $2`, uuid(t.ws), sum)
	return t.fail
}

const (
	unusedContents = ` unused = 1 AND (pins = 0 OR pinned_until <= ` + databaseNow + ` OR pinned_until > ` + databaseNow + ` + $1::bigint)`
	// The workspace is not being deleted: that deletes the content, too.
	unusedContentsQuery = `SELECT workspace_id, sha256 FROM media_contents c WHERE` + unusedContents + `
		AND NOT EXISTS (SELECT FROM workspaces w WHERE w.id = c.workspace_id AND w.deleted) LIMIT $2`
	lockContentsQuery = `SELECT sha256, chunks, size FROM media_contents WHERE` + unusedContents + ` AND workspace_id = $2 AND sha256 = ANY ($3::bytea[])
		ORDER BY sha256 FOR UPDATE SKIP LOCKED`
	usedContentsQuery = `SELECT sum FROM unnest($2::bytea[]) u (sum) WHERE EXISTS
		(SELECT FROM media WHERE workspace_id = $1 AND sha256 = u.sum AND status = 'ready')`
)

// DropContents deletes up to limit contents that no file has. They are locked meanwhile,
// so nobody can keep the same content again.
func (s *Store) DropContents(ctx context.Context, limit int) (n int, err error) {
	void := 2 * store.KeptContent.Milliseconds()
	unused := map[desk.ID][][]byte{}
	err = s.read(ctx, func(p *pipe) error {
		clear(unused)
		n = 0
		p.each(func(row pgx.Row) error {
			var ws desk.ID
			var sum []byte
			err := row.Scan(into(&ws), &sum)
			unused[ws] = append(unused[ws], sum)
			n++
			return err
		}, unusedContentsQuery, void, limit)
		return p.send("unused content")
	})
	var stuck error // what can't be deleted does not keep the rest
	for ws, sums := range unused {
		if err != nil {
			break
		}
		err = s.write(ctx, ws, false, func(t *tx) error {
			if err := t.open("begin"); err != nil {
				return err
			}
			failed, err := dropContents(t, void, sums)
			stuck = cmp.Or(failed, stuck)
			return err
		})
		if desk.IsType(err, desk.NotFound) { // the workspace was deleted meanwhile
			err = nil
		}
	}
	return n, cmp.Or(err, stuck)
}

// dropContents returns as stuck why a file could not be deleted; its content stays unused.
func dropContents(t *tx, void int64, sums [][]byte) (stuck, err error) {
	places, sizes := map[string]desk.ID{}, map[string]int64{}
	var locked [][]byte
	t.each(func(row pgx.Row) error {
		var sum []byte
		var at desk.ID
		var size int64
		err := row.Scan(&sum, into(&at), &size)
		sizes[string(sum)] = size
		places[string(sum)], locked = at, append(locked, sum)
		return err
	}, lockContentsQuery, void, uuid(t.ws), sums)
	if err := t.send("lock content"); err != nil || locked == nil {
		return nil, err
	}
	var used [][]byte
	t.each(func(row pgx.Row) error {
		var sum []byte
		err := row.Scan(&sum)
		used = append(used, sum)
		delete(places, string(sum))
		return err
	}, usedContentsQuery, uuid(t.ws), locked)
	if err := t.send("content in use"); err != nil {
		return nil, err
	}
	var gone [][]byte
	freed := int64(0)
	chunks := pgtype.FlatArray[uuid]{}
	for sum, at := range places {
		switch {
		case !at.IsZero():
			chunks = append(chunks, uuid(at))
		case t.s.files != nil:
			if e := t.s.files.Remove(t.ws, []byte(sum)); e != nil {
				stuck = e
				continue
			}
		}
		gone = append(gone, []byte(sum))
		freed += sizes[sum]
	}
	t.put(`UPDATE media_contents SET unused = 0 WHERE workspace_id = $1 AND sha256 = ANY ($2::bytea[])`, uuid(t.ws), used)
	t.put(`DELETE FROM media_chunks WHERE workspace_id = $1 AND chunks = ANY ($2::uuid[])`, uuid(t.ws), chunks)
	t.put(`DELETE FROM media_contents WHERE workspace_id = $1 AND sha256 = ANY ($2::bytea[])`, uuid(t.ws), gone)
	t.put(`UPDATE media_used SET bytes = greatest(bytes - $2::bigint, 0) WHERE workspace_id = $1`, uuid(t.ws), freed)
	return stuck, t.fail
}

// draftGroup is how many drafts are deleted at a time.
const draftGroup = 100

// DropDrafts deletes drafts that are older than this.
func (s *Store) DropDrafts(ctx context.Context, age time.Duration) error {
	if s.files != nil {
		return s.files.DropDrafts(ctx, age)
	}
	type draft struct{ ws, id desk.ID }
	var old []draft
	err := s.read(ctx, func(p *pipe) (err error) {
		old, err = all(p, "old drafts", func(row pgx.Row) (d draft, err error) {
			err = row.Scan(into(&d.ws), into(&d.id))
			return d, err
		}, `SELECT workspace_id, chunks FROM media_drafts WHERE begun_at < `+databaseNow+` - $1::bigint OR begun_at > `+databaseNow+` + $1::bigint LIMIT $2`, age.Milliseconds(), draftGroup)
		return err
	})
	for _, d := range old {
		if err != nil {
			break
		}
		err = s.atOnce(ctx, "drop draft", func(p *pipe) { dropDraft(p, d.ws, d.id) })
	}
	return err
}

const (
	mediaDueQuery = `SELECT workspace_id, min(CASE WHEN due_at > ` + statementNow + ` + $1::bigint THEN 0 ELSE greatest(due_at - ` + statementNow + `, 0) END)
		FROM media_jobs WHERE ended = 0 GROUP BY workspace_id`
	jobColumns  = `media_id, channel_id, contact_id, conversation_id, message_id, message_ts, ref, mime, size, sha256, tries, due_at, holder, ended`
	takeDueJob  = `due_at <= ` + databaseNow + ` AND $5::bigint > 0 ORDER BY due_at, media_id LIMIT 1 FOR UPDATE SKIP LOCKED`
	takeFarJob  = `due_at > ` + databaseNow + ` + $5::bigint ORDER BY due_at, media_id LIMIT 1 FOR UPDATE SKIP LOCKED`
	takeJobFrom = `UPDATE media_jobs SET due_at = ` + databaseNow + ` + $3::bigint, holder = $2 WHERE workspace_id = $1 AND $4::bigint = 0
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
// first of each is due.
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
				uuid(ws), uuid(holder), lease.Milliseconds(), 0, longest.Milliseconds())
			if err != nil || job != nil {
				return err
			}
		}
		return nil
	})
	return job, err
}

// HoldMediaJob extends the holder's lease, and tells whether it still has the job.
func (s *Store) HoldMediaJob(ctx context.Context, ws, media, holder desk.ID, lease time.Duration) (bool, error) {
	tag, err := s.exec(ctx, "hold media job", `UPDATE media_jobs SET due_at = `+databaseNow+` + $4::bigint WHERE workspace_id = $1 AND media_id = $2 AND holder = $3`,
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

// MediaRef returns the id by which a channel's provider knows a file, "" for none.
func (s *Store) MediaRef(ctx context.Context, ws, media, channel desk.ID) (ref string, at desk.Time, err error) {
	err = s.read(ctx, func(p *pipe) error {
		p.each(func(row pgx.Row) error { return row.Scan(&ref, (*int64)(&at)) },
			`SELECT ref, at FROM media_refs WHERE workspace_id = $1 AND media_id = $2 AND channel_id = $3`, uuid(ws), uuid(media), uuid(channel))
		return p.send("media ref")
	})
	return ref, at, err
}

const putMediaRefQuery = `INSERT INTO media_refs (workspace_id, media_id, channel_id, ref, at)
	SELECT $1, id, $3, $4, $5 FROM media WHERE workspace_id = $1 AND id = $2 FOR SHARE
	ON CONFLICT (workspace_id, media_id, channel_id) DO UPDATE SET ref = excluded.ref, at = excluded.at`

// PutMediaRef stores it, unless the file was deleted.
func (s *Store) PutMediaRef(ctx context.Context, ws, media, channel desk.ID, ref string, at desk.Time) error {
	_, err := s.exec(ctx, "store media ref", putMediaRefQuery, uuid(ws), uuid(media), uuid(channel), ref, int64(at))
	return err
}

const messagesOfQuery = `SELECT ` + messageColumns + contactOfMessage + ` FROM messages m WHERE workspace_id = $1 AND media_id = $2 LIMIT $3`

func (t *tx) MessagesOf(media desk.ID, limit int) ([]*desk.Message, error) {
	return all(t.pipe, "messages of media", readOneMessage, messagesOfQuery, uuid(t.ws), uuid(media), limit)
}

const (
	oldUploadsQuery = `SELECT id FROM media WHERE workspace_id = $1 AND contact_id IS NULL AND used = 0 AND created_at < $2
		AND id NOT IN (SELECT media_id FROM attempts WHERE workspace_id = $1 AND media_id IS NOT NULL) ORDER BY created_at, id LIMIT $3 FOR UPDATE`
	usedUploadsQuery = `UPDATE media m SET used = 1 WHERE workspace_id = $1 AND id = ANY ($2::uuid[])
		AND EXISTS (SELECT FROM messages WHERE workspace_id = $1 AND media_id = m.id)`
	dropUploadsQuery = `WITH gone AS (DELETE FROM media WHERE workspace_id = $1 AND id = ANY ($2::uuid[]) AND used = 0
		AND NOT EXISTS (SELECT FROM attempts WHERE workspace_id = $1 AND media_id = media.id) RETURNING id, status, sha256)` + dropOfMedia
	dropMediaQuery = `WITH gone AS (DELETE FROM media WHERE workspace_id = $1 AND id = $2 RETURNING id, status, sha256)` + dropOfMedia
	// dropOfMedia deletes what belongs to files that are gone. DropContents deletes the
	// content.
	dropOfMedia = `, jobs AS (DELETE FROM media_jobs WHERE workspace_id = $1 AND media_id IN (SELECT id FROM gone)),
		refs AS (DELETE FROM media_refs WHERE workspace_id = $1 AND media_id IN (SELECT id FROM gone))
		UPDATE media_contents SET unused = 1 WHERE workspace_id = $1 AND unused = 0 AND sha256 IN (SELECT sha256 FROM gone WHERE status = 'ready')`
)

// MediaInUse is asked after Media, which locks the row: so do those who store a message or an
// attempt with it.
func (t *tx) MediaInUse(id desk.ID) (used bool, err error) {
	t.each(func(row pgx.Row) error { return row.Scan(&used) },
		`SELECT EXISTS (SELECT FROM messages WHERE workspace_id = $1 AND media_id = $2) OR EXISTS (SELECT FROM attempts WHERE workspace_id = $1 AND media_id = $2)`, uuid(t.ws), uuid(id))
	return used, t.send("media in use")
}

func (t *tx) DropMedia(id desk.ID) error {
	t.put(dropMediaQuery, uuid(t.ws), uuid(id))
	return t.fail
}

func (t *tx) DropUploads(before desk.Time, limit int) (int, error) {
	ids := pgtype.FlatArray[uuid]{}
	t.each(func(row pgx.Row) error {
		var id uuid
		err := row.Scan(&id)
		ids = append(ids, id)
		return err
	}, oldUploadsQuery, uuid(t.ws), int64(before), limit)
	if err := t.send("old uploads"); err != nil || len(ids) == 0 {
		return 0, err
	}
	t.put(usedUploadsQuery, uuid(t.ws), ids)
	t.put(dropUploadsQuery, uuid(t.ws), ids)
	return len(ids), t.fail
}

const (
	// ofContacts are the conversations of contacts.
	ofContacts     = ` (SELECT id FROM conversations WHERE workspace_id = $1 AND contact_id = ANY ($2::uuid[]))`
	mediaOfQuery   = `SELECT id FROM media WHERE workspace_id = $1 AND contact_id = ANY ($2::uuid[])`
	uploadsOfQuery = `SELECT media_id FROM messages WHERE workspace_id = $1 AND media_id IS NOT NULL AND conversation_id IN` + ofContacts
	eraseMedia     = `WITH gone AS (DELETE FROM media m WHERE workspace_id = $1 AND id IN (` + mediaOfQuery + ` UNION ` + uploadsOfQuery + `)
		AND (contact_id = ANY ($2::uuid[]) OR NOT EXISTS
			(SELECT FROM messages x WHERE x.workspace_id = $1 AND x.media_id = m.id AND x.conversation_id NOT IN` + ofContacts + `)
			AND NOT EXISTS (SELECT FROM attempts a WHERE a.workspace_id = $1 AND a.media_id = m.id AND a.contact_id <> ALL ($2::uuid[])))
		RETURNING id, status, sha256)` + dropOfMedia
)

// eraseMediaOf deletes the files that contacts sent, and the uploads that only they got. All
// are locked first, so that the second statement sees the messages of others, and the
// provider's ids that are being stored.
func eraseMediaOf(p *pipe, ws desk.ID, contacts pgtype.FlatArray[uuid]) {
	p.put(`SELECT 1 FROM media WHERE workspace_id = $1 AND id IN (`+mediaOfQuery+` UNION `+uploadsOfQuery+`) ORDER BY id FOR UPDATE`, uuid(ws), contacts)
	p.put(eraseMedia, uuid(ws), contacts)
}

// bindMedia ties the installation to the directory of content, or to the database. It
// returns InvalidRequest for another place.
func (s *Store) bindMedia(ctx context.Context) error {
	var bound string
	holds := false
	look := func() error {
		return s.read(ctx, func(p *pipe) error {
			p.each(func(row pgx.Row) error { return row.Scan(&bound, &holds) }, `SELECT media, EXISTS (SELECT FROM media_contents) FROM installation`)
			return p.send("place of media")
		})
	}
	if err := look(); err != nil {
		return err
	}
	switch {
	case s.files == nil && bound != "":
		return desk.Invalidf("this installation keeps files in a directory: name it with --media or PARLEY_MEDIA")
	case s.files == nil:
		return nil
	case bound == "" && holds:
		return desk.Invalidf("this installation keeps files in the database: start without --media and PARLEY_MEDIA")
	case bound == "":
		mark, err := s.files.Mark(rand.Text())
		if err == nil {
			_, err = s.exec(ctx, "place of media", `UPDATE installation SET media = $1 WHERE media = ''`, mark)
		}
		if err == nil {
			err = look() // another node may have been first
		}
		if err != nil {
			return err
		}
	}
	mark, err := s.files.MarkOf()
	if err == nil && mark != bound {
		err = desk.Invalidf("%s is not the directory in which this installation keeps files: see that it is mounted, or name the right one with --media", s.files.Dir)
	}
	return err
}

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

const attachedQuery = `SELECT ` + mediaColumns + ` FROM media WHERE workspace_id = $1 AND id = ANY ($2::uuid[])`

// attach adds the records of their files to messages, with one query for all of them.
func attach(p *pipe, ws desk.ID, messages []*desk.Message) error {
	ids := pgtype.FlatArray[uuid]{}
	for _, m := range messages {
		if !m.Media.IsZero() {
			ids = append(ids, uuid(m.Media))
		}
	}
	if len(ids) == 0 {
		return nil
	}
	list, err := all(p, "attachments", readMedia, attachedQuery, uuid(ws), ids)
	files := map[desk.ID]*desk.Media{}
	for _, file := range list {
		files[file.ID] = file
	}
	for _, m := range messages {
		m.Attachment = files[m.Media]
	}
	return err
}
