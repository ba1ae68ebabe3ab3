package sqlite

import (
	"cmp"
	"context"
	"encoding/hex"
	"io"
	"path/filepath"
	"time"

	"parley/desk"
	"parley/store"
	"parley/store/internal/stored"
)

// filesBeside returns the directory of content beside a database.
func filesBeside(path string) stored.Files {
	return stored.Files{Dir: filepath.Join(filepath.Dir(path), "media")}
}

const mediaColumns = `id, contact_id, kind, mime, trait, name, size, sha256, status, reason, created_at`

func readMedia(s *stmt) *desk.Media {
	return &desk.Media{
		ID: s.readID(), ContactID: s.readID(), Kind: desk.MessageKind(s.readText()), MIME: s.readText(), Trait: desk.MediaTrait(s.readText()),
		Name: s.readText(), Size: s.readInt(), SHA256: s.readBlob(), Status: desk.MediaStatus(s.readText()),
		Reason: desk.MediaReason(s.readText()), CreatedAt: s.readTime(),
	}
}

const (
	mediaQuery       = `SELECT ` + mediaColumns + ` FROM media WHERE workspace_id = ? AND id = ?`
	mediaListQuery   = `SELECT ` + mediaColumns + ` FROM media WHERE workspace_id = ? AND id < ? ORDER BY id DESC LIMIT +?`
	failedMediaQuery = `SELECT ` + mediaColumns + ` FROM media INDEXED BY media_failed WHERE workspace_id = ? AND id < ? AND status = 'failed' ORDER BY id DESC LIMIT +?`
	oldMediaQuery    = `SELECT ` + mediaColumns + ` FROM media INDEXED BY media_age WHERE workspace_id = ?1 AND status = 'ready' AND created_at < ?2` + forNoBroadcast + ` ORDER BY created_at, id LIMIT +?3`
	putMediaQuery    = `REPLACE INTO media (workspace_id, ` + mediaColumns + `, used) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)`
)

// Media returns the record of a file, or nil.
func (s *Store) Media(ctx context.Context, ws, id desk.ID) (m *desk.Media, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		m, err = one("media", c.stmt(mediaQuery).id(ws).id(id), readMedia)
		return err
	})
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
	err = s.read(ctx, pointRead, func(c conn) error {
		list, err = all("media", c.stmt(query).id(ws).id(before).int(int64(limit)), readMedia)
		return err
	})
	return list, err
}

func (t *tx) Media(id desk.ID) (*desk.Media, error) {
	return one("media", t.c.stmt(mediaQuery).id(t.ws).id(id), readMedia)
}

func (t *tx) PutMedia(m *desk.Media) error {
	return failed("store media", t.c.stmt(putMediaQuery).id(t.ws).id(m.ID).idOrNull(m.ContactID).text(string(m.Kind)).text(m.MIME).text(string(m.Trait)).
		text(m.Name).int(m.Size).bytes(m.SHA256).text(string(m.Status)).text(string(m.Reason)).time(m.CreatedAt).run())
}

func (t *tx) OldMedia(before desk.Time, limit int) ([]*desk.Media, error) {
	return all("old media", t.c.stmt(oldMediaQuery).id(t.ws).time(before).int(int64(limit)), readMedia)
}

// A draft is content that is being written to a file.
type draft struct {
	*stored.FileDraft
	s  *Store
	ws desk.ID
}

// NewContent begins to store content.
func (s *Store) NewContent(_ context.Context, ws desk.ID) (store.Draft, error) {
	d, err := s.files.New()
	if err != nil {
		return nil, err
	}
	return &draft{d, s, ws}, nil
}

const keepContentQuery = `INSERT INTO media_contents (workspace_id, sha256, size, unused, pins, pinned_until) VALUES (?1, ?2, ?3, 1, 1, ?4)
	ON CONFLICT (workspace_id, sha256) DO UPDATE SET pins = CASE WHEN pinned_until > ?5 THEN pins + 1 ELSE 1 END, pinned_until = excluded.pinned_until`

// Keep makes the content durable. Its row comes first: a file without a row would never
// be deleted.
func (d *draft) Keep(ctx context.Context, most int64) (sum []byte, size int64, err error) {
	if sum, size, err = d.Finish(); err != nil {
		return nil, 0, err
	}
	err = d.s.write(ctx, func(c conn) error {
		if _, err := d.s.toWrite(c, d.ws); err != nil {
			return err
		}
		known, err := one("content", c.stmt(contentThereQuery).id(d.ws).bytes(sum), (*stmt).readInt)
		if err != nil {
			return err
		}
		if known == 0 {
			used, err := one("media used", c.stmt(mediaUsedQuery).id(d.ws), (*stmt).readInt)
			if err != nil {
				return err
			}
			if most > 0 && used+size > most {
				return desk.MediaFull(most, used)
			}
			if err := c.stmt(useMediaQuery).id(d.ws).int(size).run(); err != nil {
				return failed("use media", err)
			}
		}
		now := d.s.now()
		until := now + desk.Time(store.KeptContent.Milliseconds())
		return failed("keep content", c.stmt(keepContentQuery).id(d.ws).bytes(sum).int(size).time(until).time(now).run())
	})
	if err == nil {
		err = d.Place(d.ws, sum)
	}
	return sum, size, err
}

const (
	contentThereQuery = `SELECT count(*) FROM media_contents WHERE workspace_id = ? AND sha256 = ?`
	mediaUsedQuery    = `SELECT bytes FROM media_used WHERE workspace_id = ?`
	useMediaQuery     = `INSERT INTO media_used (workspace_id, bytes) VALUES (?, ?) ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes`
	leaveMediaQuery   = `UPDATE media_used SET bytes = max(bytes - (SELECT size FROM media_contents WHERE workspace_id = ?1 AND sha256 = ?2), 0) WHERE workspace_id = ?1`
	countUsedQuery    = `REPLACE INTO media_used (workspace_id, bytes) SELECT ?1, coalesce(sum(size), 0) FROM media_contents WHERE workspace_id = ?1`
)

// MediaUsed returns how many bytes of content a workspace has.
func (s *Store) MediaUsed(ctx context.Context, ws desk.ID) (n int64, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		n, err = one("media used", c.stmt(mediaUsedQuery).id(ws), (*stmt).readInt)
		return err
	})
	return n, err
}

// CountMedia counts the bytes of a workspace's content again, from the stored content.
func (s *Store) CountMedia(ctx context.Context, ws desk.ID) error {
	return s.write(ctx, func(c conn) error {
		if _, err := s.toWrite(c, ws); err != nil {
			return err
		}
		return failed("count media", c.stmt(countUsedQuery).id(ws).run())
	})
}

// Room returns how many bytes are free in the file system with the content, and its total
// size.
func (s *Store) Room() (free, total int64, known bool, err error) {
	free, total, err = s.files.Room()
	return free, total, true, err
}

// OpenContent opens content for reading, or returns NotFound.
func (s *Store) OpenContent(_ context.Context, ws desk.ID, sum []byte) (io.ReadSeekCloser, error) {
	return s.files.Open(ws, sum)
}

func (t *tx) UseContent(sum []byte) error {
	err := t.c.stmt(`UPDATE media_contents SET unused = 0, pins = max(pins - 1, 0) WHERE workspace_id = ? AND sha256 = ?`).id(t.ws).bytes(sum).run()
	if err == nil && t.c.Changes() == 0 {
		return stored.HeldContent()
	}
	return failed("use content", err)
}

// ReleaseContent marks the content. DropContents checks whether another file has it.
func (t *tx) ReleaseContent(sum []byte) error {
	return failed("release content", t.c.stmt(`UPDATE media_contents SET unused = 1 WHERE workspace_id = ? AND sha256 = ?`).
		id(t.ws).bytes(sum).run())
}

const (
	unusedContentsQuery = `SELECT workspace_id, sha256 FROM media_contents INDEXED BY media_contents_unused
		WHERE unused = 1 AND (pins = 0 OR pinned_until <= ?1 OR pinned_until > ?2) LIMIT +?3`
	contentUsedQuery = `SELECT count(*) FROM (SELECT 1 FROM media INDEXED BY media_content WHERE workspace_id = ? AND sha256 = ? AND status = 'ready' LIMIT 1)`
	dropContentQuery = `DELETE FROM media_contents WHERE workspace_id = ? AND sha256 = ?`
	keptContentQuery = `UPDATE media_contents SET unused = 0 WHERE workspace_id = ? AND sha256 = ?`
)

// DropContents deletes up to limit contents that no file has. In the transaction, nobody
// can keep the same content again, but all other writes wait. So the transaction only
// sets the files aside, and they are deleted after it. If one file can't be set aside,
// the others are still deleted.
func (s *Store) DropContents(ctx context.Context, limit int) (n int, err error) {
	type content struct {
		ws  desk.ID
		sum []byte
	}
	find := func(c conn) ([]content, error) {
		now := s.now()
		return all("unused content", c.stmt(unusedContentsQuery).time(now).time(now+desk.Time(2*store.KeptContent.Milliseconds())).int(int64(limit)),
			func(s *stmt) content { return content{s.readID(), s.readBlob()} })
	}
	err = s.read(ctx, pointRead, func(c conn) error {
		list, err := find(c)
		n = len(list)
		return err
	})
	if err != nil || n == 0 {
		return 0, err
	}
	var stuck error
	var gone []string
	err = s.write(ctx, func(c conn) error {
		list, err := find(c)
		n, stuck = len(list), nil
		for _, content := range list {
			if err != nil {
				break
			}
			var used int64
			if used, err = one("content in use", c.stmt(contentUsedQuery).id(content.ws).bytes(content.sum), (*stmt).readInt); err != nil {
				break
			}
			query := keptContentQuery
			if used == 0 {
				query = dropContentQuery
				aside, e := s.files.SetAside(content.ws, content.sum)
				if e != nil {
					stuck = e
					continue
				}
				gone = append(gone, aside)
				if err = failed("leave media", c.stmt(leaveMediaQuery).id(content.ws).bytes(content.sum).run()); err != nil {
					break
				}
			}
			err = failed("drop content", c.stmt(query).id(content.ws).bytes(content.sum).run())
		}
		return err
	})
	stored.DropAside(gone) // also if the commit failed: the content had no file
	return n, cmp.Or(err, stuck)
}

// DropDrafts deletes drafts that are older than age.
func (s *Store) DropDrafts(ctx context.Context, age time.Duration) error {
	return s.files.DropDrafts(ctx, age)
}

const (
	mediaDueQuery = `SELECT workspace_id, min(CASE WHEN due_at > ?1 + ?2 THEN 0 ELSE max(due_at - ?1, 0) END) FROM media_jobs INDEXED BY media_jobs_due WHERE ended = 0 GROUP BY workspace_id`
	jobColumns    = `media_id, channel_id, contact_id, conversation_id, message_id, message_ts, ref, mime, size, sha256, tries, due_at, holder, ended`
	nextJobQuery  = `SELECT media_id FROM media_jobs INDEXED BY media_jobs_due WHERE workspace_id = ?1 AND ended = 0 AND due_at <= ?2 ORDER BY due_at, media_id LIMIT 1`
	farJobQuery   = `SELECT media_id FROM media_jobs INDEXED BY media_jobs_due WHERE workspace_id = ?1 AND ended = 0 AND due_at > ?2 ORDER BY due_at, media_id LIMIT 1`
	takeJobQuery  = `UPDATE media_jobs SET due_at = ?3, holder = ?4 WHERE workspace_id = ?1 AND media_id = ?2 RETURNING ` + jobColumns
	holdJobQuery  = `UPDATE media_jobs SET due_at = ?4 WHERE workspace_id = ?1 AND media_id = ?2 AND holder = ?3`
	mediaJobQuery = `SELECT ` + jobColumns + ` FROM media_jobs WHERE workspace_id = ? AND media_id = ?`
	putJobQuery   = `REPLACE INTO media_jobs (workspace_id, ` + jobColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
)

func readJob(s *stmt) *store.MediaJob {
	return &store.MediaJob{
		Media: s.readID(), Channel: s.readID(), Contact: s.readID(), Conversation: s.readID(), Message: s.readID(), TS: s.readTime(),
		Ref: s.readText(), MIME: s.readText(), Size: s.readInt(), SHA256: s.readBlob(), Tries: int(s.readInt()), Due: s.readTime(), Holder: s.readID(), Ended: s.readInt() != 0,
	}
}

// MediaDue returns the workspaces with files to fetch, and how long to wait until the
// first of each is due.
func (s *Store) MediaDue(ctx context.Context, longest time.Duration) (map[desk.ID]time.Duration, error) {
	return s.due(ctx, "media due", mediaDueQuery, longest)
}

// TakeMediaJob gives the oldest due job of a workspace to a holder, or returns nil.
func (s *Store) TakeMediaJob(ctx context.Context, ws, holder desk.ID, lease, longest time.Duration) (job *store.MediaJob, err error) {
	err = s.write(ctx, func(c conn) error {
		job = nil
		if _, err := s.toWrite(c, ws); err != nil {
			return err
		}
		now := s.now()
		id, err := one("next job", c.stmt(nextJobQuery).id(ws).time(now), (*stmt).readID)
		if err == nil && id.IsZero() { // the clock may have been set back
			id, err = one("next job", c.stmt(farJobQuery).id(ws).time(now+desk.Time(longest.Milliseconds())), (*stmt).readID)
		}
		if err != nil || id.IsZero() {
			return err
		}
		job, err = one("take job", c.stmt(takeJobQuery).id(ws).id(id).time(now+desk.Time(lease.Milliseconds())).id(holder), readJob)
		return err
	})
	return job, err
}

// HoldMediaJob extends the holder's lease, and tells whether it still has the job.
func (s *Store) HoldMediaJob(ctx context.Context, ws, media, holder desk.ID, lease time.Duration) (held bool, err error) {
	err = s.write(ctx, func(c conn) error {
		err := c.stmt(holdJobQuery).id(ws).id(media).id(holder).time(s.now() + desk.Time(lease.Milliseconds())).run()
		held = c.Changes() > 0
		return failed("hold job", err)
	})
	return held && err == nil, err
}

func (t *tx) MediaJob(media desk.ID) (*store.MediaJob, error) {
	return one("media job", t.c.stmt(mediaJobQuery).id(t.ws).id(media), readJob)
}

func (t *tx) PutMediaJob(j store.MediaJob) error {
	return failed("store media job", t.c.stmt(putJobQuery).id(t.ws).id(j.Media).id(j.Channel).id(j.Contact).id(j.Conversation).id(j.Message).time(j.TS).
		text(j.Ref).text(j.MIME).int(j.Size).bytes(j.SHA256).int(int64(j.Tries)).time(j.Due).id(j.Holder).int(flag(j.Ended)).run())
}

func (t *tx) DropMediaJob(media desk.ID) error {
	return failed("drop media job", t.c.stmt(`DELETE FROM media_jobs WHERE workspace_id = ? AND media_id = ?`).id(t.ws).id(media).run())
}

// MediaRef returns the id by which a channel's provider knows a file, or "".
func (s *Store) MediaRef(ctx context.Context, ws, media, channel desk.ID) (ref string, at desk.Time, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		_, err := one("media ref", c.stmt(`SELECT ref, at FROM media_refs WHERE workspace_id = ? AND media_id = ? AND channel_id = ?`).id(ws).id(media).id(channel),
			func(s *stmt) bool {
				ref, at = s.readText(), s.readTime()
				return true
			})
		return err
	})
	return ref, at, err
}

// PutMediaRef stores the provider's id of a file, unless the file was deleted.
func (s *Store) PutMediaRef(ctx context.Context, ws, media, channel desk.ID, ref string, at desk.Time) error {
	return s.write(ctx, func(c conn) error {
		return failed("store media ref", c.stmt(`REPLACE INTO media_refs (workspace_id, media_id, channel_id, ref, at)
			SELECT ?1, ?2, ?3, ?4, ?5 FROM media WHERE workspace_id = ?1 AND id = ?2`).id(ws).id(media).id(channel).text(ref).time(at).run())
	})
}

func (t *tx) DropMediaRef(media, channel desk.ID) error {
	return failed("drop media ref", t.c.stmt(`DELETE FROM media_refs WHERE workspace_id = ? AND media_id = ? AND channel_id = ?`).id(t.ws).id(media).id(channel).run())
}

const messagesOfQuery = `SELECT ` + messageColumns + contactOfMessage + ` FROM messages m INDEXED BY messages_media WHERE workspace_id = ? AND media_id = ? LIMIT +?`

func (t *tx) MessagesOf(media desk.ID, limit int) ([]*desk.Message, error) {
	return all("messages of media", t.c.stmt(messagesOfQuery).id(t.ws).id(media).int(int64(limit)), readOneMessage)
}

const (
	oldUploadsQuery = `SELECT id FROM media INDEXED BY media_uploads WHERE workspace_id = ?1 AND contact_id IS NULL AND used = 0 AND created_at < ?2
		AND id NOT IN (SELECT media_id FROM attempts INDEXED BY attempts_media WHERE workspace_id = ?1 AND media_id IS NOT NULL)` + forNoBroadcast + `
		ORDER BY created_at, id LIMIT +?3`
	mediaInUseQuery = `SELECT EXISTS (SELECT 1 FROM messages INDEXED BY messages_media WHERE workspace_id = ?1 AND media_id = ?2)
		OR EXISTS (SELECT 1 FROM attempts INDEXED BY attempts_media WHERE workspace_id = ?1 AND media_id = ?2 AND contact_id <> ?3)
		OR EXISTS (SELECT 1 FROM broadcasts INDEXED BY broadcasts_media WHERE workspace_id = ?1 AND media_id = ?2)`
	// forNoBroadcast leaves out the files that broadcasts need until their end.
	forNoBroadcast = ` AND id NOT IN (SELECT media_id FROM broadcasts INDEXED BY broadcasts_media WHERE workspace_id = ?1 AND media_id IS NOT NULL)`
	usedMediaQuery = `UPDATE media SET used = 1 WHERE workspace_id = ? AND id = ?`
)

func (t *tx) DropUploads(before desk.Time, limit int) (int, error) {
	old, err := all("old uploads", t.c.stmt(oldUploadsQuery).id(t.ws).time(before).int(int64(limit)), (*stmt).readID)
	for _, id := range old {
		if err != nil {
			break
		}
		var used bool
		if used, err = mediaInUse(t.c, t.ws, id, desk.ID{}); err != nil {
			break
		}
		if used {
			err = failed("keep upload", t.c.stmt(usedMediaQuery).id(t.ws).id(id).run())
		} else {
			err = dropMedia(t.c, t.ws, id)
		}
	}
	return len(old), err
}

// mediaInUse tells whether a file is in a message, or is still needed by a broadcast or by a
// message to another contact than the given one.
func mediaInUse(c conn, ws, id, contact desk.ID) (bool, error) {
	used, err := one("media in use", c.stmt(mediaInUseQuery).id(ws).id(id).id(contact), (*stmt).readInt)
	return used > 0, err
}

func (t *tx) MediaInUse(id desk.ID) (bool, error) { return mediaInUse(t.c, t.ws, id, desk.ID{}) }

func (t *tx) DropMedia(id desk.ID) error { return dropMedia(t.c, t.ws, id) }

// dropMedia deletes the record of a file, with what belongs to it. DropContents deletes
// the content.
func dropMedia(c conn, ws, id desk.ID) error {
	for _, query := range []string{
		`UPDATE media_contents SET unused = 1 WHERE workspace_id = ?1 AND unused = 0
			AND sha256 IN (SELECT sha256 FROM media WHERE workspace_id = ?1 AND id = ?2 AND status = 'ready')`,
		`DELETE FROM media_jobs WHERE workspace_id = ?1 AND media_id = ?2`,
		`DELETE FROM media_refs WHERE workspace_id = ?1 AND media_id = ?2`,
		`DELETE FROM media WHERE workspace_id = ?1 AND id = ?2`,
	} {
		if err := c.stmt(query).id(ws).id(id).run(); err != nil {
			return failed("drop media", err)
		}
	}
	return nil
}

const (
	sentMediaQuery = `SELECT id FROM media INDEXED BY media_contact WHERE workspace_id = ? AND contact_id = ?`
	gotMediaQuery  = `SELECT DISTINCT media_id FROM messages WHERE workspace_id = ?1 AND media_id IS NOT NULL AND conversation_id IN
		(SELECT id FROM conversations` + byContact + ` WHERE workspace_id = ?1 AND contact_id = ?2)`
)

// mediaOfContact returns the files that a contact sent, and those that were sent to the
// contact.
func mediaOfContact(c conn, ws, contact desk.ID) (sent, got []desk.ID, err error) {
	if sent, err = all("media of contact", c.stmt(sentMediaQuery).id(ws).id(contact), (*stmt).readID); err != nil {
		return nil, nil, err
	}
	got, err = all("media of contact", c.stmt(gotMediaQuery).id(ws).id(contact), (*stmt).readID)
	return sent, got, err
}

// eraseMedia deletes the files that a deleted contact sent. It also deletes the files
// that were sent to the contact, if no message has them any more.
func eraseMedia(c conn, ws, contact desk.ID, sent, got []desk.ID) error {
	for _, id := range got {
		used, err := mediaInUse(c, ws, id, contact)
		if err != nil {
			return err
		}
		if !used {
			sent = append(sent, id)
		}
	}
	for _, id := range sent {
		if err := dropMedia(c, ws, id); err != nil {
			return err
		}
	}
	return nil
}

// Content opens content for reading, for an export.
func (s *Store) Content(ws, sum []byte) (io.ReadCloser, error) {
	return s.files.Open(desk.ID(ws), sum)
}

const attachedQuery = `SELECT ` + mediaColumns + ` FROM media WHERE workspace_id = ?1 AND id IN (SELECT unhex(value) FROM json_each(?2))`

// attach adds to each message the record of its file, with one query for all messages.
func attach(c conn, ws desk.ID, messages []*desk.Message) error {
	var ids []string
	for _, m := range messages {
		if !m.Media.IsZero() {
			ids = append(ids, hex.EncodeToString(m.Media[:]))
		}
	}
	if ids == nil {
		return nil
	}
	list, err := all("attachments", c.stmt(attachedQuery).id(ws).json(ids), readMedia)
	files := map[desk.ID]*desk.Media{}
	for _, file := range list {
		files[file.ID] = file
	}
	for _, m := range messages {
		m.Attachment = files[m.Media]
	}
	return err
}
