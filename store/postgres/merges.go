package postgres

import (
	"context"

	"parley/desk"
	"parley/store"

	"github.com/jackc/pgx/v5"
)

const (
	mergeColumns    = `id, into_id, from_id, survivor_id, at, actor_kind, actor_id, undone_at, moved, not_restored, changes`
	mergeQuery      = `SELECT ` + mergeColumns + `, undo FROM merges WHERE workspace_id = $1 AND id = $2`
	mergesByIDQuery = `SELECT ` + mergeColumns + `, undo` + ofEach2 + `(SELECT * FROM merges WHERE workspace_id = $1 AND id = u.i OFFSET 0) m`
	mergeOfQuery    = `SELECT ` + mergeColumns + `, undo FROM merges WHERE workspace_id = $1 AND from_id = $2 AND survivor_id IS NOT NULL`
	mergesQuery     = `SELECT ` + mergeColumns + `, '' FROM merges WHERE workspace_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3`
	// The indexes of the columns find the merges of a contact, and few are sorted.
	mergesOfQuery = `SELECT ` + mergeColumns + `, '' FROM merges WHERE workspace_id = $1 AND id IN (
		SELECT id FROM merges WHERE workspace_id = $1 AND into_id IN ` + oneWithMerged + ` AND id < $3
		UNION SELECT id FROM merges WHERE workspace_id = $1 AND from_id IN ` + oneWithMerged + ` AND id < $3)
		ORDER BY id DESC LIMIT $4`
	mergedQuery = `SELECT u.id, l.survivor_id, l.id FROM unnest($2::uuid[]) u (id) CROSS JOIN LATERAL
		(SELECT survivor_id, id FROM merges WHERE workspace_id = $1 AND from_id = u.id AND survivor_id IS NOT NULL OFFSET 0) l`
	mergedIntoQuery = `SELECT from_id FROM merges WHERE workspace_id = $1 AND survivor_id = $2 ORDER BY from_id`
	countPartsQuery = `SELECT (SELECT count(*) FROM (SELECT 1 FROM conversations WHERE workspace_id = $1 AND contact_id = $2 LIMIT $3) c),
		(SELECT count(*) FROM (SELECT 1 FROM media WHERE workspace_id = $1 AND contact_id = $2 LIMIT $3) m) FROM workspaces WHERE id = $1`
	countFilesQuery = `SELECT count(*) FROM (SELECT 1 FROM media WHERE workspace_id = $1 AND contact_id = $2 LIMIT $3) m`
	newestIntoQuery = `SELECT id FROM merges WHERE workspace_id = $1 AND into_id = $2 AND survivor_id IS NOT NULL ORDER BY number DESC LIMIT 1`
	lastIntoQuery   = `SELECT coalesce(max(number), 0) + 1 FROM merges WHERE workspace_id = $1 AND into_id = $2`
	putMergeQuery   = `INSERT INTO merges (workspace_id, ` + mergeColumns + `, undo, number) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
		ON CONFLICT (workspace_id, id) DO UPDATE SET survivor_id = excluded.survivor_id, undone_at = excluded.undone_at, moved = excluded.moved,
		not_restored = excluded.not_restored, changes = excluded.changes, undo = excluded.undo`
	partsQuery      = `SELECT id, channel_id, status = 'open' FROM conversations WHERE workspace_id = $1 AND contact_id = $2 ORDER BY id LIMIT $3 FOR UPDATE`
	windowsOfQuery  = `SELECT channel_id, contact_id, opened_at, number, user_id, shut_at, shut_by, replied_at, auto_reply_at, auto_replies FROM windows WHERE workspace_id = $1 AND contact_id = $2`
	heardSinceQuery = `SELECT coalesce(max(m.ts), 0) FROM conversations c JOIN messages m ON m.workspace_id = $1 AND m.conversation_id = c.id AND m.ts > $4
		WHERE c.workspace_id = $1 AND c.contact_id = $2 AND c.channel_id = $3 AND m.direction = 'inbound'`
	moveSurvivorsQuery = `UPDATE merges SET survivor_id = $3 WHERE workspace_id = $1 AND survivor_id = $2 RETURNING id`
	forgetUndoQuery    = `UPDATE merges SET changes = '', undo = '' WHERE workspace_id = $1 AND id IN
		(SELECT id FROM merges WHERE workspace_id = $1 AND undo <> '' AND at < $2 ORDER BY at LIMIT $3)`
	forgetUndoneQuery = `DELETE FROM merges WHERE workspace_id = $1 AND id IN
		(SELECT id FROM merges WHERE workspace_id = $1 AND undone_at > 0 AND undone_at < $2 ORDER BY undone_at LIMIT $3)`
)

// The moves of a contact $2 to a contact $3.
var moveContactQueries = []string{
	`UPDATE conversations SET contact_id = $3 WHERE workspace_id = $1 AND contact_id = $2`,
	`UPDATE media_jobs SET contact_id = $3 WHERE workspace_id = $1 AND media_id IN (SELECT id FROM media WHERE workspace_id = $1 AND contact_id = $2)`,
	`UPDATE media SET contact_id = $3 WHERE workspace_id = $1 AND contact_id = $2`,
	`UPDATE auto_replies SET contact_id = $3 WHERE workspace_id = $1 AND contact_id = $2`,
	`UPDATE attempts SET contact_id = $3 WHERE workspace_id = $1 AND contact_id = $2 AND phase IN ('refused', 'released') AND NOT erased`,
}

// The moves of the conversations $4 of a contact $2 to a contact $3.
var moveConversationsQueries = []string{
	`UPDATE media_jobs SET contact_id = $3 WHERE workspace_id = $1 AND conversation_id = ANY ($4::uuid[])
		AND media_id IN (SELECT id FROM media WHERE workspace_id = $1 AND contact_id = $2)`,
	`UPDATE media SET contact_id = $3 WHERE workspace_id = $1 AND contact_id = $2 AND id IN
		(SELECT m.media_id FROM media f JOIN messages m ON m.workspace_id = $1 AND m.media_id = f.id AND m.direction = 'inbound' WHERE f.workspace_id = $1 AND f.contact_id = $2 AND m.conversation_id = ANY ($4::uuid[]))`,
	`UPDATE auto_replies SET contact_id = $3 WHERE workspace_id = $1 AND contact_id = $2 AND conversation_id = ANY ($4::uuid[])`,
}

const (
	// The attempts that sent nothing and are moved: replies by their conversation, templates by
	// the number. Citus takes no cast of a column to json in a statement that changes rows.
	unsentPartsQuery = `SELECT id FROM attempts WHERE workspace_id = $1 AND contact_id = $2 AND phase IN ('refused', 'released') AND NOT erased
		AND CASE WHEN plan::json ->> 'Reply' IS NULL THEN number = ANY ($4::text[]) ELSE (plan::json ->> 'Conversation')::uuid = ANY ($3::uuid[]) END ORDER BY id FOR UPDATE`
	moveUnsentQuery = `UPDATE attempts SET contact_id = $3 WHERE workspace_id = $1 AND contact_id = $2 AND id = ANY ($4::uuid[])`

	// forgetLaterQuery takes the values from the undone merges of a contact since a time.
	forgetLaterQuery = `UPDATE merges SET changes = '' WHERE workspace_id = $1 AND (into_id = $2 OR from_id = $2) AND undone_at > 0 AND at >= $3 AND id <> $4`
)

func readMerge(row pgx.Row) (*desk.Merge, error) {
	m := &desk.Merge{}
	err := row.Scan(into(&m.ID), into(&m.Into), into(&m.From), into(&m.Survivor), (*int64)(&m.At), (*string)(&m.Actor.Kind), into(&m.Actor.ID), (*int64)(&m.UndoneAt),
		document{&m.Moved}, document{&m.NotRestored}, document{&m.Changes}, document{&m.Undo})
	return m, err
}

// MergesByID returns the merges that exist, in no order.
func (s *Store) MergesByID(ctx context.Context, ws desk.ID, ids []desk.ID) ([]*desk.Merge, error) {
	return readAll(ctx, s, "merges", readMerge, mergesByIDQuery, uuid(ws), uuids(ids))
}

// Merges returns a page of merges (see store.Merges).
func (s *Store) Merges(ctx context.Context, ws, contact desk.ID, before *desk.ID, limit int) (list []*desk.Merge, next *desk.ID, err error) {
	if before == nil {
		before = &lastID
	}
	query, args := mergesQuery, []any{uuid(ws), uuid(*before), limit + 1}
	if !contact.IsZero() {
		query, args = mergesOfQuery, []any{uuid(ws), uuid(contact), uuid(*before), limit + 1}
	}
	err = s.read(ctx, func(p *pipe) error {
		list, next = nil, nil
		found, err := all(p, "merges", readMerge, query, args...)
		size := desk.NewPageSize(limit)
		for _, m := range found {
			if !size.Add(m.ListBytes()) {
				next = &list[len(list)-1].ID
				break
			}
			list = append(list, m)
		}
		return err
	})
	return list, next, err
}

// Merged tells where merged contacts are now.
func (s *Store) Merged(ctx context.Context, ws desk.ID, ids []desk.ID) (found map[desk.ID]desk.Merged, err error) {
	err = s.read(ctx, func(p *pipe) error {
		found, err = merged(p, ws, ids)
		return err
	})
	return found, err
}

func merged(p *pipe, ws desk.ID, ids []desk.ID) (map[desk.ID]desk.Merged, error) {
	found := map[desk.ID]desk.Merged{}
	p.each(func(row pgx.Row) error {
		var id desk.ID
		var m desk.Merged
		err := row.Scan(into(&id), into(&m.Into), into(&m.Merge))
		found[id] = m
		return err
	}, mergedQuery, uuid(ws), uuids(ids))
	return found, p.send("merged contacts")
}

// MergedInto returns the ids of all contacts that are part of a contact.
func (s *Store) MergedInto(ctx context.Context, ws, contact desk.ID) ([]desk.ID, error) {
	return readAll(ctx, s, "merged contacts", readID, mergedIntoQuery, uuid(ws), uuid(contact))
}

// CountParts counts a contact's conversations and files.
func (s *Store) CountParts(ctx context.Context, ws, contact desk.ID, most int) (conversations, files int, err error) {
	err = s.read(ctx, func(p *pipe) error {
		p.each(func(row pgx.Row) error { return row.Scan(&conversations, &files) }, countPartsQuery, uuid(ws), uuid(contact), most)
		return p.send("count parts")
	})
	return conversations, files, err
}

// CountConversationsOf counts those of the conversations that are a contact's.
func (s *Store) CountConversationsOf(ctx context.Context, ws, contact desk.ID, conversations []desk.ID) (int, error) {
	return readOne(ctx, s, "count conversations", func(row pgx.Row) (n int, err error) { return n, row.Scan(&n) },
		`SELECT count(*)`+ofEach3+`(SELECT 1 FROM conversations WHERE workspace_id = $1 AND id = u.i AND contact_id = $2 OFFSET 0) c`, uuid(ws), uuid(contact), uuids(conversations))
}

// ForgetMerges takes the values of contacts from old merges.
func (s *Store) ForgetMerges(ctx context.Context, ws desk.ID, before desk.Time, limit int) (n int, err error) {
	for _, query := range []string{forgetUndoQuery, forgetUndoneQuery} {
		tag, err := s.exec(ctx, "forget merges", query, uuid(ws), int64(before), limit)
		if err != nil {
			return n, err
		}
		n += int(tag.RowsAffected())
	}
	return n, nil
}

// withMerged is contacts with all that are part of them, and oneWithMerged is one.
const (
	oneWithMerged = `(SELECT $2::uuid UNION ALL SELECT from_id FROM merges WHERE workspace_id = $1 AND survivor_id = $2)`
	withMerged    = `(SELECT unnest($2::uuid[]) UNION ALL SELECT from_id FROM merges WHERE workspace_id = $1 AND survivor_id = ANY ($2::uuid[]))`
)

// eraseMerges deletes the merges of deleted contacts, and those of the contacts that were part of
// them, undone ones, too. It notes these contacts as deleted, and deletes their history and the
// responses of endpoints that name them.
func eraseMerges(p *pipe, ws desk.ID, contacts any) {
	p.put(`SELECT 1 FROM merges WHERE workspace_id = $1 AND survivor_id = ANY ($2::uuid[]) ORDER BY id FOR UPDATE`, uuid(ws), contacts) // who adds to the history waits
	eraseConflicts(p, ws, contacts)
	p.put(`INSERT INTO erasures (workspace_id, id, at) SELECT m.workspace_id, m.from_id, e.at FROM merges m JOIN erasures e ON e.workspace_id = $1 AND e.id = m.survivor_id
		WHERE m.workspace_id = $1 AND m.survivor_id = ANY ($2::uuid[]) ON CONFLICT DO NOTHING`, uuid(ws), contacts)
	p.put(`DELETE FROM history WHERE workspace_id = $1 AND contact_id IN (SELECT from_id FROM merges WHERE workspace_id = $1 AND survivor_id = ANY ($2::uuid[]))`, uuid(ws), contacts)
	p.put(`DELETE FROM delivery_responses WHERE workspace_id = $1 AND contact_id IN (SELECT from_id FROM merges WHERE workspace_id = $1 AND survivor_id = ANY ($2::uuid[]))`, uuid(ws), contacts)
	p.put(`DELETE FROM merges WHERE workspace_id = $1 AND id IN (
		SELECT id FROM merges WHERE workspace_id = $1 AND into_id IN `+withMerged+`
		UNION SELECT id FROM merges WHERE workspace_id = $1 AND from_id IN `+withMerged+`)`, uuid(ws), contacts)
}

func (t *tx) Merge(id desk.ID) (*desk.Merge, error) {
	return one(t.pipe, "merge", readMerge, mergeQuery+forUpdate, uuid(t.ws), uuid(id))
}

func (t *tx) MergeOf(from desk.ID) (*desk.Merge, error) {
	return one(t.pipe, "merge of a contact", readMerge, mergeOfQuery+forUpdate, uuid(t.ws), uuid(from))
}

func (t *tx) NewestMerge(contact desk.ID) (desk.ID, error) {
	of, err := merged(t.pipe, t.ws, []desk.ID{contact})
	if m := of[contact]; !m.Merge.IsZero() || err != nil {
		return m.Merge, err
	}
	return one(t.pipe, "newest merge", readID, newestIntoQuery, uuid(t.ws), uuid(contact))
}

func (t *tx) PutMerge(m *desk.Merge) error {
	if m.UndoneAt != 0 {
		t.put(forgetLaterQuery, uuid(t.ws), uuid(m.Into), int64(m.At), uuid(m.ID))
		t.put(`DELETE FROM delivery_responses WHERE workspace_id = $1 AND contact_id = $2 AND at >= $3`, uuid(t.ws), uuid(m.Into), int64(m.At))
	}
	number, err := one(t.pipe, "number of a merge", func(row pgx.Row) (n int64, err error) { return n, row.Scan(&n) }, lastIntoQuery, uuid(t.ws), uuid(m.Into))
	if err != nil {
		return err
	}
	t.put(putMergeQuery, uuid(t.ws), uuid(m.ID), uuid(m.Into), uuid(m.From), orNull(m.Survivor), int64(m.At), string(m.Actor.Kind), uuid(m.Actor.ID), int64(m.UndoneAt),
		asJSON(m.Moved), asJSON(m.NotRestored), asJSON(m.Changes), asJSON(m.Undo), number)
	return t.fail
}

func (t *tx) Parts(contact desk.ID, most int) (list []store.Part, files int, err error) {
	t.each(func(row pgx.Row) error {
		var part store.Part
		err := row.Scan(into(&part.ID), into(&part.Channel), &part.Open)
		list = append(list, part)
		return err
	}, partsQuery, uuid(t.ws), uuid(contact), most)
	t.each(func(row pgx.Row) error { return row.Scan(&files) }, countFilesQuery, uuid(t.ws), uuid(contact), most)
	return list, files, t.send("parts of a contact")
}

func (t *tx) MoveContact(from, to desk.ID) (merges []desk.ID, err error) {
	for _, query := range moveContactQueries {
		t.put(query, uuid(t.ws), uuid(from), uuid(to))
	}
	return all(t.pipe, "move a contact", readID, moveSurvivorsQuery, uuid(t.ws), uuid(from), uuid(to))
}

func (t *tx) MoveConversations(from, to desk.ID, conversations []desk.ID, numbers []string, merges []desk.ID) (moved []desk.ID, err error) {
	list := uuids(conversations)
	for _, query := range moveConversationsQueries {
		t.put(query, uuid(t.ws), uuid(from), uuid(to), list)
	}
	unsent, err := all(t.pipe, "attempts to move", readID, unsentPartsQuery, uuid(t.ws), uuid(from), list, append([]string{}, numbers...))
	if err != nil {
		return nil, err
	}
	t.put(moveUnsentQuery, uuid(t.ws), uuid(from), uuid(to), uuids(unsent))
	t.put(`UPDATE merges SET survivor_id = $3 WHERE workspace_id = $1 AND survivor_id = $2 AND id = ANY ($4::uuid[])`, uuid(t.ws), uuid(from), uuid(to), uuids(merges))
	return all(t.pipe, "move conversations", readID, `UPDATE conversations SET contact_id = $3 WHERE workspace_id = $1 AND contact_id = $2 AND id = ANY ($4::uuid[]) RETURNING id`,
		uuid(t.ws), uuid(from), uuid(to), list)
}

func (t *tx) WindowsOf(contact desk.ID) (map[desk.ID]desk.Window, error) {
	rows, err := all(t.pipe, "windows of a contact", readWindow, windowsOfQuery+forUpdate, uuid(t.ws), uuid(contact))
	windows := make(map[desk.ID]desk.Window, len(rows))
	for _, w := range rows {
		windows[w.Channel] = w.Window
	}
	return windows, err
}

func (t *tx) DropWindow(channel, contact desk.ID) error {
	t.put(`DELETE FROM windows WHERE workspace_id = $1 AND contact_id = $2 AND channel_id = $3`, uuid(t.ws), uuid(contact), uuid(channel))
	return t.fail
}

func (t *tx) HeardSince(channel, contact desk.ID, after desk.Time) (desk.Time, error) {
	return one(t.pipe, "heard since", readTime, heardSinceQuery, uuid(t.ws), uuid(contact), uuid(channel), int64(after))
}

// eraseConflicts deletes the conflicts of deleted contacts, and of all that are part of them: a
// conflict that somebody decided about still names these, with their identities.
func eraseConflicts(p *pipe, ws desk.ID, contacts any) {
	const of = ` IN (SELECT conflict_id FROM conflict_contacts WHERE workspace_id = $1 AND contact_id IN ` + withMerged + `)`
	p.put(`DELETE FROM conflicts WHERE workspace_id = $1 AND id`+of, uuid(ws), contacts)
	p.put(`DELETE FROM conflict_contacts WHERE workspace_id = $1 AND conflict_id`+of, uuid(ws), contacts)
}
