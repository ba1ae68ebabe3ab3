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

// chunkBytes is how much content is in one row.
const chunkBytes = 1 << 20

// A draft is content that is being written to rows.
type draft struct {
	s      *Store
	ctx    context.Context // the context of the writer
	ws, id desk.ID
	n      int64  // chunks that are stored so far
	buf    []byte // the next chunk
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

var (
	putDraftQuery = `INSERT INTO media_drafts (workspace_id, chunks, begun_at) SELECT id, $2, ` + shardNow("id") + ofWorkspace + ` ON CONFLICT DO NOTHING`
	putChunkQuery = `INSERT INTO media_chunks (workspace_id, chunks, n, bytes) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`
)

// flush stores a chunk. Until the content is kept, the draft has a row in the database,
// so that DropDrafts can delete the draft.
func (d *draft) flush() error {
	if err := d.ctx.Err(); err != nil {
		return stored.Unavailable(err)
	}
	select {
	case d.s.chunks <- struct{}{}:
		defer func() { <-d.s.chunks }()
	case <-d.ctx.Done():
		return stored.Unavailable(d.ctx.Err())
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

var (
	newContentQuery = `INSERT INTO media_contents (workspace_id, sha256, size, unused, pins, pinned_until, chunks)
		SELECT id, $2, $3, 1, 1, ` + shardNow("id") + ` + $4::bigint, $5` + ofWorkspace + ` ON CONFLICT DO NOTHING RETURNING chunks`
	pinContentQuery = `UPDATE media_contents c SET pins = CASE WHEN c.pinned_until > ` + shardNow("c.workspace_id") + ` THEN c.pins + 1 ELSE 1 END,
		pinned_until = ` + shardNow("c.workspace_id") + ` + $3::bigint WHERE workspace_id = $1 AND sha256 = $2 RETURNING chunks`
	useMediaQuery = `INSERT INTO media_used AS u (workspace_id, bytes) VALUES ($1, $2)
		ON CONFLICT (workspace_id) DO UPDATE SET bytes = u.bytes + excluded.bytes RETURNING bytes`
	mediaUsedQuery = `SELECT bytes FROM media_used WHERE workspace_id = $1`
)

// keepContent stores the row of content, or pins the row that exists, and returns where
// the content is. The size of new content is added to the bytes of the workspace.
func keepContent(t *tx, sum []byte, size int64, chunks any, most int64) (at desk.ID, err error) {
	there := false
	place := func(row pgx.Row) error {
		there = true
		return row.Scan(into(&at))
	}
	for range 3 { // the row may be deleted between the two statements
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

// CountMedia counts the bytes again, from the stored content. It first locks the row with
// the count. Every transaction that stores or deletes content changes this row last. So
// such a transaction either commits before CountMedia counts, or changes the count
// afterwards.
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

// Room returns how many bytes are free in the file system of the directory, and the total
// size of the file system. It needs content in a directory.
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
		case !there: // the draft was deleted, because this process was stopped for very long
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

// Keep makes the content durable. The row is stored before the file: a file without a
// row would never be deleted.
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
		return s.files.Open(ws, sum)
	}
	return c, nil
}

// A content reads chunks, one at a time.
type content struct {
	s        *Store
	ctx      context.Context // the context of the reader
	ws, id   desk.ID
	size, at int64
	n        int64  // the number of the chunk in buf
	buf      []byte // nil: no chunk
}

func (c *content) Read(b []byte) (int, error) {
	if c.at >= c.size {
		return 0, io.EOF
	}
	if n := c.at / chunkBytes; c.buf == nil || n != c.n {
		var chunk []byte
		err := c.s.read(c.ctx, func(p *pipe) (err error) {
			chunk, err = one(p, "chunk", scanned[[]byte], `SELECT bytes FROM media_chunks WHERE workspace_id = $1 AND chunks = $2 AND n = $3`, uuid(c.ws), uuid(c.id), n)
			return err
		})
		if err != nil {
			return 0, err
		}
		c.n, c.buf = n, chunk
	}
	from := c.at - c.n*chunkBytes
	if from >= int64(len(c.buf)) {
		return 0, stored.NoContent() // the content was deleted meanwhile
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

// ReleaseContent marks the content. DropContents checks whether another file has it.
func (t *tx) ReleaseContent(sum []byte) error {
	t.put(`UPDATE media_contents SET unused = 1 WHERE workspace_id = $1 AND sha256 = $2`, uuid(t.ws), sum)
	return t.fail
}

const (
	unusedContents = ` unused = 1 AND (pins = 0 OR pinned_until <= ` + databaseNow + ` OR pinned_until > ` + databaseNow + ` + $1::bigint)`
	// Contents of a workspace that is being deleted are left out: EraseWorkspace deletes
	// them.
	unusedContentsQuery = `SELECT workspace_id, sha256 FROM media_contents c WHERE` + unusedContents + `
		AND NOT EXISTS (SELECT 1 FROM workspaces w WHERE w.id = c.workspace_id AND w.deleted) LIMIT $2`
	lockContentsQuery = `SELECT sha256, chunks, size FROM media_contents WHERE` + unusedContents + ` AND workspace_id = $2 AND sha256 = ANY ($3::bytea[])
		ORDER BY sha256 FOR UPDATE SKIP LOCKED`
	usedContentsQuery = `SELECT sum FROM unnest($2::bytea[]) u (sum) WHERE EXISTS
		(SELECT 1 FROM media WHERE workspace_id = $1 AND sha256 = u.sum AND status = 'ready')`
)

// DropContents deletes up to limit contents that no file has. They are locked meanwhile,
// so that no transaction can keep the same content again.
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
	var stuck error // the failure to delete one content does not stop the others
	for ws, sums := range unused {
		if err != nil {
			break
		}
		var gone []string
		err = s.write(ctx, ws, false, func(t *tx) error {
			if err := t.open("begin"); err != nil {
				return err
			}
			aside, failed, err := dropContents(t, void, sums)
			gone, stuck = append(gone, aside...), cmp.Or(failed, stuck)
			return err
		})
		stored.DropAside(gone)               // also if the commit failed: the content had no file
		if desk.IsType(err, desk.NotFound) { // the workspace was deleted meanwhile
			err = nil
		}
	}
	return n, cmp.Or(err, stuck)
}

// dropContents deletes contents, and returns the paths of the files that it has set
// aside. If a file could not be set aside, stuck is the error, and the content of this
// file stays marked as unused.
func dropContents(t *tx, void int64, sums [][]byte) (aside []string, stuck, err error) {
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
		return nil, nil, err
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
		return nil, nil, err
	}
	var gone [][]byte
	freed := int64(0)
	chunks := pgtype.FlatArray[uuid]{}
	for sum, at := range places {
		switch {
		case !at.IsZero():
			chunks = append(chunks, uuid(at))
		case t.s.files != nil:
			path, e := t.s.files.SetAside(t.ws, []byte(sum))
			if e != nil {
				stuck = e
				continue
			}
			aside = append(aside, path)
		}
		gone = append(gone, []byte(sum))
		freed += sizes[sum]
	}
	t.put(`UPDATE media_contents SET unused = 0 WHERE workspace_id = $1 AND sha256 = ANY ($2::bytea[])`, uuid(t.ws), used)
	t.put(`DELETE FROM media_chunks WHERE workspace_id = $1 AND chunks = ANY ($2::uuid[])`, uuid(t.ws), chunks)
	t.put(`DELETE FROM media_contents WHERE workspace_id = $1 AND sha256 = ANY ($2::bytea[])`, uuid(t.ws), gone)
	t.put(`UPDATE media_used SET bytes = greatest(bytes - $2::bigint, 0) WHERE workspace_id = $1`, uuid(t.ws), freed)
	return aside, stuck, t.fail
}

// draftGroup is how many drafts are deleted in one step.
const draftGroup = 100

// DropDrafts deletes drafts that are older than age.
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
