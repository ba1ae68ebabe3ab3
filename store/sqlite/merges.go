package sqlite

import (
	"context"
	"encoding/hex"

	"parley/desk"
	"parley/store"
)

const (
	mergeColumns  = `id, into_id, from_id, survivor_id, at, actor_kind, actor_id, undone_at, moved, not_restored, changes`
	mergeQuery    = `SELECT ` + mergeColumns + `, undo FROM merges WHERE workspace_id = ? AND id = ?`
	mergeOfQuery  = `SELECT ` + mergeColumns + `, undo FROM merges INDEXED BY merges_from WHERE workspace_id = ? AND from_id = ? AND survivor_id IS NOT NULL`
	mergesQuery   = `SELECT ` + mergeColumns + `, '' FROM merges WHERE workspace_id = ?1 AND id < ?2 ORDER BY id DESC LIMIT +?3`
	mergesOfQuery = `SELECT ` + mergeColumns + `, '' FROM merges WHERE workspace_id = ?1 AND id IN (
		SELECT id FROM merges INDEXED BY merges_into WHERE workspace_id = ?1 AND into_id IN ` + withMerged + ` AND id < ?3
		UNION SELECT id FROM merges INDEXED BY merges_from WHERE workspace_id = ?1 AND from_id IN ` + withMerged + ` AND id < ?3)
		ORDER BY id DESC LIMIT +?4`
	mergedQuery     = `SELECT survivor_id, id FROM merges INDEXED BY merges_from WHERE workspace_id = ? AND from_id = ? AND survivor_id IS NOT NULL`
	mergedIntoQuery = `SELECT from_id FROM merges INDEXED BY merges_survivor WHERE workspace_id = ? AND survivor_id = ? AND survivor_id IS NOT NULL ORDER BY from_id`
	countFilesQuery = `SELECT count(*) FROM (SELECT 1 FROM media INDEXED BY media_contact WHERE workspace_id = ? AND contact_id = ? AND contact_id IS NOT NULL LIMIT +?)`
	newestIntoQuery = `SELECT id FROM merges INDEXED BY merges_into WHERE workspace_id = ? AND into_id = ? AND survivor_id IS NOT NULL ORDER BY number DESC LIMIT 1`
	putMergeQuery   = `INSERT INTO merges (workspace_id, ` + mergeColumns + `, undo, number)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13,
			(SELECT coalesce(max(number), 0) + 1 FROM merges WHERE workspace_id = ?1 AND into_id = ?3))
		ON CONFLICT (workspace_id, id) DO UPDATE SET survivor_id = excluded.survivor_id, undone_at = excluded.undone_at, moved = excluded.moved,
		not_restored = excluded.not_restored, changes = excluded.changes, undo = excluded.undo`
	partsQuery      = `SELECT id, channel_id, status = 'open' FROM conversations` + byContact + ` WHERE workspace_id = ? AND contact_id = ? ORDER BY id LIMIT +?`
	windowsOfQuery  = `SELECT channel_id, opened_at, number, user_id, shut_at, shut_by, replied_at, auto_reply_at, auto_replies FROM windows WHERE workspace_id = ? AND contact_id = ?`
	heardSinceQuery = `SELECT coalesce(max(m.ts), 0) FROM conversations c` + byContact + ` JOIN messages m ON m.workspace_id = c.workspace_id AND m.conversation_id = c.id AND m.ts > ?4
		WHERE c.workspace_id = ?1 AND c.contact_id = ?2 AND c.channel_id = ?3 AND m.direction = 'inbound'`
	moveSurvivorsQuery = `UPDATE merges SET survivor_id = ?3 WHERE workspace_id = ?1 AND survivor_id = ?2 AND survivor_id IS NOT NULL`
	forgetUndoQuery    = `UPDATE merges SET changes = '', undo = '' WHERE workspace_id = ?1 AND id IN
		(SELECT id FROM merges INDEXED BY merges_undoable WHERE workspace_id = ?1 AND undo <> '' AND at < ?2 LIMIT +?3)`
	forgetUndoneQuery = `DELETE FROM merges WHERE workspace_id = ?1 AND id IN
		(SELECT id FROM merges INDEXED BY merges_undone WHERE workspace_id = ?1 AND undone_at > 0 AND undone_at < ?2 LIMIT +?3)`
)

// The moves of a contact ?2 to a contact ?3. Each looks its rows up by the contact.
var moveContactQueries = []string{
	`UPDATE conversations` + byContact + ` SET contact_id = ?3 WHERE workspace_id = ?1 AND contact_id = ?2`,
	`UPDATE media_jobs SET contact_id = ?3 WHERE workspace_id = ?1 AND media_id IN (SELECT id FROM media INDEXED BY media_contact WHERE workspace_id = ?1 AND contact_id = ?2 AND contact_id IS NOT NULL)`,
	`UPDATE media INDEXED BY media_contact SET contact_id = ?3 WHERE workspace_id = ?1 AND contact_id = ?2 AND contact_id IS NOT NULL`,
	`UPDATE auto_replies SET contact_id = ?3 WHERE workspace_id = ?1 AND contact_id = ?2`,
	`UPDATE attempts INDEXED BY attempts_unsent SET contact_id = ?3 WHERE workspace_id = ?1 AND contact_id = ?2 AND phase IN ('refused', 'released') AND erased = 0`,
}

// The moves of the conversations ?4, a JSON array of ids in hex, of a contact ?2 to a contact ?3.
const inConversations = `(SELECT unhex(value) FROM json_each(?4))`

var moveConversationsQueries = []string{
	`UPDATE media_jobs SET contact_id = ?3 WHERE workspace_id = ?1 AND media_id IN (SELECT id FROM media INDEXED BY media_contact WHERE workspace_id = ?1 AND contact_id = ?2 AND contact_id IS NOT NULL)
		AND conversation_id IN ` + inConversations,
	`UPDATE media INDEXED BY media_contact SET contact_id = ?3 WHERE workspace_id = ?1 AND contact_id = ?2 AND contact_id IS NOT NULL AND EXISTS
		(SELECT 1 FROM messages m WHERE m.workspace_id = ?1 AND m.media_id = media.id AND m.media_id IS NOT NULL AND m.direction = 'inbound' AND m.conversation_id IN ` + inConversations + `)`,
	`UPDATE auto_replies SET contact_id = ?3 WHERE workspace_id = ?1 AND contact_id = ?2 AND conversation_id IN ` + inConversations,
}

// The move of attempts that sent nothing: replies by their conversation, templates by the
// number, of which ?5 is a JSON array.
const moveUnsentQuery = `UPDATE attempts INDEXED BY attempts_unsent SET contact_id = ?3 WHERE workspace_id = ?1 AND contact_id = ?2 AND phase IN ('refused', 'released') AND erased = 0
	AND iif(plan ->> '$.Reply' IS NULL, number IN (SELECT value FROM json_each(?5)), unhex(plan ->> '$.Conversation', '-') IN ` + inConversations + `)`

// forgetLaterQuery takes the values from the undone merges of a contact ?2 since a time.
const forgetLaterQuery = `UPDATE merges SET changes = '' WHERE workspace_id = ?1 AND id IN (
	SELECT id FROM merges INDEXED BY merges_into WHERE workspace_id = ?1 AND into_id = ?2
	UNION ALL SELECT id FROM merges INDEXED BY merges_from WHERE workspace_id = ?1 AND from_id = ?2) AND undone_at > 0 AND at >= ?3 AND id <> ?4`

const countOwnQuery = `SELECT count(*) FROM conversations` + byContact + ` WHERE workspace_id = ?1 AND contact_id = ?2 AND id IN (SELECT unhex(value) FROM json_each(?3))`

const moveConversationsQuery = `UPDATE conversations` + byContact + ` SET contact_id = ?3 WHERE workspace_id = ?1 AND contact_id = ?2 AND id IN ` + inConversations + ` RETURNING id`

func readMerge(s *stmt) *desk.Merge {
	m := &desk.Merge{ID: s.readID(), Into: s.readID(), From: s.readID(), Survivor: s.readID(), At: s.readTime()}
	m.Actor = desk.Actor{Kind: desk.ActorKind(s.readText()), ID: s.readID()}
	m.UndoneAt = s.readTime()
	s.readJSON(&m.Moved)
	s.readJSON(&m.NotRestored)
	s.readJSON(&m.Changes)
	s.readJSON(&m.Undo)
	return m
}

// MergesByID returns the merges that exist, in no order.
func (s *Store) MergesByID(ctx context.Context, ws desk.ID, ids []desk.ID) (list []*desk.Merge, err error) {
	err = s.read(ctx, int64(pointRead*len(ids)), func(c conn) error {
		for _, id := range ids {
			m, err := one("merge", c.stmt(mergeQuery).id(ws).id(id), readMerge)
			if err != nil {
				return err
			}
			if m != nil {
				list = append(list, m)
			}
		}
		return nil
	})
	return list, err
}

// Merges returns a page of merges (see store.Merges).
func (s *Store) Merges(ctx context.Context, ws, contact desk.ID, before *desk.ID, limit int) (list []*desk.Merge, next *desk.ID, err error) {
	if before == nil {
		before = &lastID
	}
	err = s.read(ctx, int64(pointRead*limit), func(c conn) error {
		rows := c.stmt(mergesQuery).id(ws).id(*before).int(int64(limit) + 1)
		if !contact.IsZero() {
			rows = c.stmt(mergesOfQuery).id(ws).id(contact).id(*before).int(int64(limit) + 1)
		}
		size := desk.NewPageSize(limit)
		for next == nil && rows.next() {
			if m := readMerge(&rows); size.Add(m.ListBytes()) {
				list = append(list, m)
			} else {
				next = &list[len(list)-1].ID
			}
		}
		return failed("merges", rows.done())
	})
	return list, next, err
}

// Merged tells where merged contacts are now.
func (s *Store) Merged(ctx context.Context, ws desk.ID, ids []desk.ID) (found map[desk.ID]desk.Merged, err error) {
	err = s.read(ctx, int64(pointRead*len(ids)), func(c conn) error {
		found, err = merged(c, ws, ids)
		return err
	})
	return found, err
}

func merged(c conn, ws desk.ID, ids []desk.ID) (map[desk.ID]desk.Merged, error) {
	found := map[desk.ID]desk.Merged{}
	for _, id := range ids {
		m, err := one("merged contact", c.stmt(mergedQuery).id(ws).id(id), func(s *stmt) desk.Merged { return desk.Merged{Into: s.readID(), Merge: s.readID()} })
		if err != nil {
			return nil, err
		}
		if !m.Merge.IsZero() {
			found[id] = m
		}
	}
	return found, nil
}

// loadMerged tells a Book where those of the named contacts are that were merged.
func loadMerged(c conn, book *desk.Book, ids []desk.ID) error {
	missing := book.Missing(ids)
	if missing == nil {
		return nil
	}
	found, err := merged(c, book.Settings().ID, missing)
	for id, m := range found {
		book.LoadMerged(id, m)
	}
	return err
}

// MergedInto returns the ids of all contacts that are part of a contact.
func (s *Store) MergedInto(ctx context.Context, ws, contact desk.ID) (ids []desk.ID, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		ids, err = all("merged contacts", c.stmt(mergedIntoQuery).id(ws).id(contact), (*stmt).readID)
		return err
	})
	return ids, err
}

// CountParts counts a contact's conversations and files.
func (s *Store) CountParts(ctx context.Context, ws, contact desk.ID, most int) (conversations, files int, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		n, err := one("count conversations", c.stmt(conversationCountQuery).id(ws).id(contact).int(int64(most)), (*stmt).readInt)
		if err != nil {
			return err
		}
		m, err := one("count files", c.stmt(countFilesQuery).id(ws).id(contact).int(int64(most)), (*stmt).readInt)
		conversations, files = int(n), int(m)
		return err
	})
	return conversations, files, err
}

// CountConversationsOf counts those of the conversations that are a contact's.
func (s *Store) CountConversationsOf(ctx context.Context, ws, contact desk.ID, conversations []desk.ID) (n int, err error) {
	err = s.read(ctx, int64(pointRead+len(conversations)), func(c conn) error {
		count, err := one("count conversations", c.stmt(countOwnQuery).id(ws).id(contact).json(hexes(conversations)), (*stmt).readInt)
		n = int(count)
		return err
	})
	return n, err
}

// ForgetMerges takes the values of contacts from old merges.
func (s *Store) ForgetMerges(ctx context.Context, ws desk.ID, before desk.Time, limit int) (n int, err error) {
	err = s.write(ctx, func(c conn) error {
		n = 0
		for _, query := range []string{forgetUndoQuery, forgetUndoneQuery} {
			if err := c.stmt(query).id(ws).time(before).int(int64(limit)).run(); err != nil {
				return failed("forget merges", err)
			}
			n += c.Changes()
		}
		if n == 0 {
			return nil
		}
		return wantScrub(c)
	})
	return n, err
}

// eraseMerges deletes the merges of a deleted contact, and those of the contacts that were part of
// it, undone ones, too. These contacts are noted as deleted; their history and the responses of
// endpoints that name them go.
func eraseMerges(c conn, ws, contact desk.ID) error {
	if err := eraseConflicts(c, ws, contact); err != nil {
		return err
	}
	for _, query := range []string{
		`INSERT INTO erasures (workspace_id, id, at) SELECT m.workspace_id, m.from_id, e.at FROM merges m INDEXED BY merges_survivor
			JOIN erasures e ON e.workspace_id = m.workspace_id AND e.id = m.survivor_id
			WHERE m.workspace_id = ?1 AND m.survivor_id = ?2 AND m.survivor_id IS NOT NULL ON CONFLICT DO NOTHING`,
		`DELETE FROM history WHERE workspace_id = ?1 AND contact_id IN (SELECT from_id FROM merges INDEXED BY merges_survivor WHERE workspace_id = ?1 AND survivor_id = ?2 AND survivor_id IS NOT NULL)`,
		`DELETE FROM delivery_responses WHERE workspace_id = ?1 AND contact_id IN (SELECT from_id FROM merges INDEXED BY merges_survivor WHERE workspace_id = ?1 AND survivor_id = ?2 AND survivor_id IS NOT NULL)`,
		`DELETE FROM merges WHERE workspace_id = ?1 AND id IN (
			SELECT id FROM merges INDEXED BY merges_into WHERE workspace_id = ?1 AND into_id IN ` + withMerged + `
			UNION SELECT id FROM merges INDEXED BY merges_from WHERE workspace_id = ?1 AND from_id IN ` + withMerged + `)`,
	} {
		if err := c.stmt(query).id(ws).id(contact).run(); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) Merge(id desk.ID) (*desk.Merge, error) {
	return one("merge", t.c.stmt(mergeQuery).id(t.ws).id(id), readMerge)
}

func (t *tx) MergeOf(from desk.ID) (*desk.Merge, error) {
	return one("merge of a contact", t.c.stmt(mergeOfQuery).id(t.ws).id(from), readMerge)
}

func (t *tx) NewestMerge(contact desk.ID) (desk.ID, error) {
	of, err := one("merge of a contact", t.c.stmt(mergedQuery).id(t.ws).id(contact), func(s *stmt) desk.ID { s.readID(); return s.readID() })
	if !of.IsZero() || err != nil {
		return of, err
	}
	return one("newest merge", t.c.stmt(newestIntoQuery).id(t.ws).id(contact), (*stmt).readID)
}

func (t *tx) PutMerge(m *desk.Merge) error {
	if m.UndoneAt != 0 {
		if err := t.c.stmt(forgetLaterQuery).id(t.ws).id(m.Into).time(m.At).id(m.ID).run(); err != nil {
			return failed("forget later merges", err)
		}
		if err := t.c.stmt(`DELETE FROM delivery_responses WHERE workspace_id = ? AND contact_id = ? AND at >= ?`).id(t.ws).id(m.Into).time(m.At).run(); err != nil {
			return failed("forget responses", err)
		}
	}
	return failed("store merge", t.c.stmt(putMergeQuery).id(t.ws).id(m.ID).id(m.Into).id(m.From).idOrNull(m.Survivor).time(m.At).text(string(m.Actor.Kind)).id(m.Actor.ID).
		time(m.UndoneAt).json(m.Moved).json(m.NotRestored).json(m.Changes).json(m.Undo).run())
}

func (t *tx) Parts(contact desk.ID, most int) (list []store.Part, files int, err error) {
	list, err = all("conversations of a contact", t.c.stmt(partsQuery).id(t.ws).id(contact).int(int64(most)), func(s *stmt) store.Part {
		return store.Part{ID: s.readID(), Channel: s.readID(), Open: s.readInt() != 0}
	})
	if err != nil {
		return nil, 0, err
	}
	n, err := one("count files", t.c.stmt(countFilesQuery).id(t.ws).id(contact).int(int64(most)), (*stmt).readInt)
	return list, int(n), err
}

func (t *tx) MoveContact(from, into desk.ID) (merges []desk.ID, err error) {
	clear(t.stored) // the conversations that this transaction has read are changed below
	for _, query := range moveContactQueries {
		if err := t.c.stmt(query).id(t.ws).id(from).id(into).run(); err != nil {
			return nil, failed("move a contact", err)
		}
	}
	return all("move merges", t.c.stmt(moveSurvivorsQuery+` RETURNING id`).id(t.ws).id(from).id(into), (*stmt).readID)
}

func (t *tx) MoveConversations(from, into desk.ID, conversations []desk.ID, numbers []string, merges []desk.ID) (moved []desk.ID, err error) {
	clear(t.stored)
	list := hexes(conversations)
	for _, query := range moveConversationsQueries {
		if err := t.c.stmt(query).id(t.ws).id(from).id(into).json(list).run(); err != nil {
			return nil, failed("move conversations", err)
		}
	}
	if err := t.c.stmt(moveUnsentQuery).id(t.ws).id(from).id(into).json(list).json(numbers).run(); err != nil {
		return nil, failed("move attempts", err)
	}
	if moved, err = all("move conversations", t.c.stmt(moveConversationsQuery).id(t.ws).id(from).id(into).json(list), (*stmt).readID); err != nil {
		return nil, err
	}
	return moved, failed("move merges", t.c.stmt(moveSurvivorsQuery+` AND id IN `+inConversations).id(t.ws).id(from).id(into).json(hexes(merges)).run())
}

// hexes returns ids for a parameter that is a JSON array of ids in hex.
func hexes(ids []desk.ID) []string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = hex.EncodeToString(id[:])
	}
	return list
}

func (t *tx) WindowsOf(contact desk.ID) (map[desk.ID]desk.Window, error) {
	windows := map[desk.ID]desk.Window{}
	rows := t.c.stmt(windowsOfQuery).id(t.ws).id(contact)
	for rows.next() {
		channel := rows.readID()
		windows[channel] = *readWindow(&rows)
	}
	return windows, failed("windows of a contact", rows.done())
}

func (t *tx) DropWindow(channel, contact desk.ID) error {
	return failed("drop window", t.c.stmt(`DELETE FROM windows WHERE workspace_id = ? AND contact_id = ? AND channel_id = ?`).id(t.ws).id(contact).id(channel).run())
}

func (t *tx) HeardSince(channel, contact desk.ID, after desk.Time) (desk.Time, error) {
	return one("heard since", t.c.stmt(heardSinceQuery).id(t.ws).id(contact).id(channel).time(after), (*stmt).readTime)
}
