package sqlite

import (
	"context"
	"time"

	"parley/desk"
	"parley/store/internal/stored"
)

// A forgets has the data that is needed to delete people: the key for hashes of their
// messages, and the database's clock.
type forgets struct {
	key []byte
	now func() desk.Time
}

const (
	forgottenMessagesQuery = `SELECT channel_id, external_id, attempt_id FROM messages WHERE workspace_id = ?1 AND conversation_id IN
	(SELECT id FROM conversations` + byContact + ` WHERE workspace_id = ?1 AND contact_id = ?2)`
	keepErasedQuery = `REPLACE INTO erased_messages (workspace_id, hash, erased_at) VALUES (?, ?, ?)`
	erasedQuery     = `SELECT 1 FROM erased_messages WHERE workspace_id = ? AND hash = ?`
	dropErasedQuery = `DELETE FROM erased_messages WHERE workspace_id = ?1 AND hash IN
	(SELECT hash FROM erased_messages INDEXED BY erased_messages_at WHERE workspace_id = ?1 AND erased_at < ?2 ORDER BY erased_at, hash LIMIT +?3)`
)

// forgetMessages stores hashes of the messages of a contact that is being deleted, and
// erases the attempts that sent them. It reads the messages one by one, because there
// may be very many.
func forgetMessages(c conn, ws, contact desk.ID) error {
	rows := c.stmt(forgottenMessagesQuery).id(ws).id(contact)
	var page []stored.ErasedHash
	flush := func() {
		if rows.fail == nil {
			rows.fail = keepHashes(c, ws, page)
		}
		page = page[:0]
	}
	for rows.next() {
		ref, attempt := desk.MessageRef{Channel: rows.readID(), ExternalID: rows.readText()}, rows.readID()
		if ref.ExternalID != "" {
			page = append(page, stored.HashErased(c.forgets.key, ws, ref))
		}
		if !attempt.IsZero() {
			rows.fail = eraseSettled(c, ws, attempt)
		}
		if len(page) == stored.ErasedPage {
			flush()
		}
	}
	flush()
	return rows.done()
}

// keepHashes stores hashes of messages that are being deleted.
func keepHashes(c conn, ws desk.ID, hashes []stored.ErasedHash) error {
	stored.SortErased(hashes)
	for _, h := range hashes {
		if err := c.stmt(keepErasedQuery).id(ws).bytes(h[:]).time(c.forgets.now()).run(); err != nil {
			return err
		}
	}
	return nil
}

// known tells whether the message was deleted.
func (f *forgets) known(c conn, ws desk.ID, m desk.MessageRef) (bool, error) {
	h := stored.HashErased(f.key, ws, m)
	return one("erased message", c.stmt(erasedQuery).id(ws).bytes(h[:]), func(*stmt) bool { return true })
}

func (t *tx) ReceivedMessage(m desk.MessageRef) (known *desk.Message, erased bool, err error) {
	if known, err = t.MessageBy(m.Channel, m.ExternalID); known == nil && err == nil {
		erased, err = t.c.forgets.known(t.c, t.ws, m)
	}
	return known, erased, err
}

func (t *tx) AnyErased(list []desk.MessageRef) (bool, error) {
	for _, m := range list {
		if erased, err := t.c.forgets.known(t.c, t.ws, m); erased || err != nil {
			return erased, err
		}
	}
	return false, nil
}

// ForgetErased deletes up to limit hashes of deleted messages. It deletes hashes
// that are older than age.
func (s *Store) ForgetErased(ctx context.Context, ws desk.ID, age time.Duration, limit int) (n int, err error) {
	err = s.write(ctx, func(c conn) error {
		if err := c.stmt(dropErasedQuery).id(ws).time(s.now() - desk.Time(age.Milliseconds())).int(int64(limit)).run(); err != nil {
			return failed("forget erased messages", err)
		}
		n = c.Changes()
		return nil
	})
	return n, err
}

const (
	erasuresQuery   = `SELECT id, at FROM erasures WHERE workspace_id = ? AND id > ? ORDER BY id LIMIT +?`
	putErasureQuery = `INSERT INTO erasures (workspace_id, id, at) VALUES (?, ?, ?) ON CONFLICT (workspace_id, id) DO UPDATE SET at = min(at, excluded.at)`
)

// Erasures returns deleted contacts in the order of ids.
func (s *Store) Erasures(ctx context.Context, ws, after desk.ID, limit int) (list []desk.Erasure, more bool, err error) {
	err = s.read(ctx, int64(pointRead+limit), func(c conn) error {
		found, err := all("erasures", c.stmt(erasuresQuery).id(ws).id(after).int(int64(limit)+1), func(s *stmt) desk.Erasure {
			return desk.Erasure{ID: s.readID(), At: s.readTime()}
		})
		list, more = found[:min(len(found), limit)], len(found) > limit
		return err
	})
	return list, more, err
}

// PutErasures stores which contacts were deleted.
func (t *tx) PutErasures(list []desk.Erasure) error { return putErasures(t.c, t.ws, list) }

// putErasures stores which contacts were deleted, for ever.
func putErasures(c conn, ws desk.ID, list []desk.Erasure) error {
	for _, e := range list {
		if err := c.stmt(putErasureQuery).id(ws).id(e.ID).time(e.At).run(); err != nil {
			return failed("store erasure", err)
		}
	}
	return nil
}
