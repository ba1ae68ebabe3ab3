package postgres

import (
	"context"
	"crypto/rand"

	"parley/desk"

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
	oldMediaQuery    = `SELECT ` + mediaColumns + ` FROM media WHERE workspace_id = $1 AND status = 'ready' AND created_at < $2` + forNoBroadcast + ` ORDER BY created_at, id LIMIT $3`
	putMediaQuery    = `INSERT INTO media (workspace_id, ` + mediaColumns + `, used) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 0)
		ON CONFLICT (workspace_id, id) DO UPDATE SET contact_id = excluded.contact_id, kind = excluded.kind, mime = excluded.mime, trait = excluded.trait,
		name = excluded.name, size = excluded.size, sha256 = excluded.sha256, status = excluded.status, reason = excluded.reason,
		created_at = excluded.created_at, used = 0`
)

// Media returns the record of a file, or nil.
func (s *Store) Media(ctx context.Context, ws, id desk.ID) (*desk.Media, error) {
	return readOne(ctx, s, "media", readMedia, mediaQuery, uuid(ws), uuid(id))
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

// MediaRef returns the id by which a channel's provider knows a file, or "".
func (s *Store) MediaRef(ctx context.Context, ws, media, channel desk.ID) (ref string, at desk.Time, err error) {
	err = s.read(ctx, func(p *pipe) error {
		p.each(func(row pgx.Row) error { return row.Scan(&ref, (*int64)(&at)) },
			`SELECT ref, at FROM media_refs WHERE workspace_id = $1 AND media_id = $2 AND channel_id = $3`, uuid(ws), uuid(media), uuid(channel))
		return p.send("media ref")
	})
	return ref, at, err
}

const putMediaRefQuery = `INSERT INTO media_refs (workspace_id, media_id, channel_id, ref, at)
	SELECT workspace_id, id, $3, $4, $5 FROM media WHERE workspace_id = $1 AND id = $2 FOR SHARE
	ON CONFLICT (workspace_id, media_id, channel_id) DO UPDATE SET ref = excluded.ref, at = excluded.at`

// PutMediaRef stores the provider's id of a file, unless the file was deleted.
func (s *Store) PutMediaRef(ctx context.Context, ws, media, channel desk.ID, ref string, at desk.Time) error {
	_, err := s.exec(ctx, "store media ref", putMediaRefQuery, uuid(ws), uuid(media), uuid(channel), ref, int64(at))
	return err
}

func (t *tx) DropMediaRef(media, channel desk.ID) error {
	t.put(`DELETE FROM media_refs WHERE workspace_id = $1 AND media_id = $2 AND channel_id = $3`, uuid(t.ws), uuid(media), uuid(channel))
	return t.fail
}

const messagesOfQuery = `SELECT ` + messageColumns + contactOfMessage + ` FROM messages m WHERE workspace_id = $1 AND media_id = $2 LIMIT $3`

func (t *tx) MessagesOf(media desk.ID, limit int) ([]*desk.Message, error) {
	return all(t.pipe, "messages of media", readOneMessage, messagesOfQuery, uuid(t.ws), uuid(media), limit)
}

const (
	oldUploadsQuery = `SELECT id FROM media WHERE workspace_id = $1 AND contact_id IS NULL AND used = 0 AND created_at < $2
		AND id NOT IN (SELECT media_id FROM attempts WHERE workspace_id = $1 AND media_id IS NOT NULL)` + forNoBroadcast + ` ORDER BY created_at, id LIMIT $3 FOR UPDATE`
	// forNoBroadcast leaves out the files that broadcasts need until their end.
	forNoBroadcast   = ` AND id NOT IN (SELECT media_id FROM broadcasts WHERE workspace_id = $1 AND media_id IS NOT NULL)`
	usedUploadsQuery = `UPDATE media m SET used = 1 WHERE workspace_id = $1 AND id = ANY ($2::uuid[])
		AND EXISTS (SELECT 1 FROM messages WHERE workspace_id = $1 AND media_id = m.id)`
	dropUploadsQuery = `WITH gone AS (DELETE FROM media WHERE workspace_id = $1 AND id = ANY ($2::uuid[]) AND used = 0
		AND NOT EXISTS (SELECT 1 FROM attempts WHERE workspace_id = $1 AND media_id = media.id)` + forNoBroadcast + ` RETURNING id, status, sha256)` + dropOfMedia
	mediaInUseQuery = `SELECT EXISTS (SELECT 1 FROM messages WHERE workspace_id = $1 AND media_id = $2) OR EXISTS (SELECT 1 FROM attempts WHERE workspace_id = $1 AND media_id = $2)
		OR EXISTS (SELECT 1 FROM broadcasts WHERE workspace_id = $1 AND media_id = $2)`
	dropMediaQuery = `WITH gone AS (DELETE FROM media WHERE workspace_id = $1 AND id = $2 RETURNING id, status, sha256)` + dropOfMedia
	// dropOfMedia deletes the records that belong to the files in gone. DropContents
	// deletes the content.
	dropOfMedia = `, jobs AS (DELETE FROM media_jobs WHERE workspace_id = $1 AND media_id IN (SELECT id FROM gone)),
		refs AS (DELETE FROM media_refs WHERE workspace_id = $1 AND media_id IN (SELECT id FROM gone))
		UPDATE media_contents SET unused = 1 WHERE workspace_id = $1 AND unused = 0 AND sha256 IN (SELECT sha256 FROM gone WHERE status = 'ready')`
)

// MediaInUse must be called after Media, which locks the row. Transactions that store a
// message or an attempt with the file lock the row too.
func (t *tx) MediaInUse(id desk.ID) (used bool, err error) {
	t.each(func(row pgx.Row) error { return row.Scan(&used) },
		mediaInUseQuery, uuid(t.ws), uuid(id))
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
	// ofContacts selects the conversations of contacts.
	ofContacts     = ` (SELECT id FROM conversations WHERE workspace_id = $1 AND contact_id = ANY ($2::uuid[]))`
	mediaOfQuery   = `SELECT id FROM media WHERE workspace_id = $1 AND contact_id = ANY ($2::uuid[])`
	uploadsOfQuery = `SELECT media_id FROM messages WHERE workspace_id = $1 AND media_id IS NOT NULL AND conversation_id IN` + ofContacts
	eraseMedia     = `WITH gone AS (DELETE FROM media m WHERE workspace_id = $1 AND id IN (` + mediaOfQuery + ` UNION ` + uploadsOfQuery + `)
		AND (contact_id = ANY ($2::uuid[]) OR NOT EXISTS
			(SELECT 1 FROM messages x WHERE x.workspace_id = $1 AND x.media_id = m.id AND x.conversation_id NOT IN` + ofContacts + `)
			AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.workspace_id = $1 AND a.media_id = m.id AND a.contact_id <> ALL ($2::uuid[]))` + forNoBroadcast + `)
		RETURNING id, status, sha256)` + dropOfMedia
)

// eraseMediaOf deletes the files that contacts sent, and the uploads that were sent only
// to them. All files are locked first, so that the second statement sees the messages of
// other people, and the provider's ids that are being stored.
func eraseMediaOf(p *pipe, ws desk.ID, contacts pgtype.FlatArray[uuid]) {
	p.put(`SELECT 1 FROM media WHERE workspace_id = $1 AND id IN (`+mediaOfQuery+` UNION `+uploadsOfQuery+`) ORDER BY id FOR UPDATE`, uuid(ws), contacts)
	p.put(eraseMedia, uuid(ws), contacts)
}

// bindMedia ties the installation to the directory of content, or to the database. It
// returns InvalidRequest if the installation is tied to another place.
func (s *Store) bindMedia(ctx context.Context) error {
	var bound string
	holds := false
	look := func() error {
		return s.read(ctx, func(p *pipe) error {
			p.each(func(row pgx.Row) error { return row.Scan(&bound, &holds) }, `SELECT media, EXISTS (SELECT 1 FROM media_contents) FROM installation`)
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

const attachedQuery = `SELECT ` + mediaColumns + ofEach2 + `(SELECT * FROM media WHERE workspace_id = $1 AND id = u.i OFFSET 0) m`

// attach adds to each message the record of its file, with one query for all messages.
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
