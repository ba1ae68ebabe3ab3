package sqlite

import (
	"context"

	"parley/desk"
	"parley/store"
)

const (
	conflictColumns    = `id, contacts, identities, refusals, first_at, last_at, actor_kind, actor_id, status, resolution`
	conflictQuery      = `SELECT ` + conflictColumns + ` FROM conflicts WHERE workspace_id = ? AND id = ?`
	conflictOfQuery    = `SELECT ` + conflictColumns + ` FROM conflicts INDEXED BY conflicts_key WHERE workspace_id = ? AND contacts_key = ?`
	conflictsQuery     = `SELECT ` + conflictColumns + ` FROM conflicts INDEXED BY conflicts_status WHERE workspace_id = ?1 AND status = ?2 AND (last_at, id) < (?3, ?4) ORDER BY last_at DESC, id DESC LIMIT +?5`
	conflictsWithQuery = `SELECT ` + conflictColumns + ` FROM conflicts WHERE workspace_id = ?1 AND id IN (SELECT conflict_id FROM conflict_contacts WHERE workspace_id = ?1 AND contact_id = ?2) ORDER BY id`
	conflictsOfQuery   = `SELECT ` + conflictColumns + ` FROM conflicts WHERE workspace_id = ?1 AND id IN
		(SELECT DISTINCT conflict_id FROM conflict_contacts WHERE workspace_id = ?1 AND contact_id IN ` + withMerged + ` AND conflict_id > ?3 ORDER BY conflict_id LIMIT +?4) ORDER BY id`
	contactNameQuery = `SELECT id, name FROM contacts WHERE workspace_id = ? AND id = ?`
	putConflictQuery = `INSERT INTO conflicts (workspace_id, ` + conflictColumns + `, contacts_key) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (workspace_id, id) DO UPDATE SET contacts = excluded.contacts, identities = excluded.identities, refusals = excluded.refusals, first_at = excluded.first_at,
		last_at = excluded.last_at, actor_kind = excluded.actor_kind, actor_id = excluded.actor_id, status = excluded.status, resolution = excluded.resolution, contacts_key = excluded.contacts_key`
	putConflictContactQuery   = `INSERT INTO conflict_contacts (workspace_id, contact_id, conflict_id) VALUES (?, ?, ?)`
	dropConflictContactsQuery = `DELETE FROM conflict_contacts WHERE workspace_id = ? AND conflict_id = ?`
	dropConflictQuery         = `DELETE FROM conflicts WHERE workspace_id = ? AND id = ?`
	oldConflictsQuery         = `SELECT id FROM conflicts INDEXED BY conflicts_last WHERE workspace_id = ? AND last_at < ? ORDER BY last_at, id LIMIT +?`
	trimConflictsQuery        = `SELECT id FROM conflicts INDEXED BY conflicts_last WHERE workspace_id = ? ORDER BY last_at DESC, id DESC LIMIT -1 OFFSET ?`
	conflictIDsQuery          = `SELECT DISTINCT conflict_id FROM conflict_contacts WHERE workspace_id = ?1 AND contact_id IN ` + withMerged

	// The contact ?2 and all contacts that are part of it: a conflict that somebody decided about
	// still names them.
	withMerged = `(SELECT ?2 UNION ALL SELECT from_id FROM merges INDEXED BY merges_survivor WHERE workspace_id = ?1 AND survivor_id = ?2 AND survivor_id IS NOT NULL)`
)

func readConflict(s *stmt) *desk.Conflict {
	c := &desk.Conflict{ID: s.readID()}
	s.readJSON(&c.Contacts)
	s.readJSON(&c.Identities)
	c.Count, c.FirstAt, c.LastAt = s.readInt(), s.readTime(), s.readTime()
	c.Actor = desk.Actor{Kind: desk.ActorKind(s.readText()), ID: s.readID()}
	c.Status = desk.ConflictStatus(s.readText())
	s.readJSON(&c.Resolution)
	return c
}

// ConflictsByID returns the conflicts that exist, in no order.
func (s *Store) ConflictsByID(ctx context.Context, ws desk.ID, ids []desk.ID) (list []*desk.Conflict, err error) {
	err = s.read(ctx, int64(pointRead*len(ids)), func(c conn) error {
		for _, id := range ids {
			found, err := one("conflict", c.stmt(conflictQuery).id(ws).id(id), readConflict)
			if err != nil {
				return err
			}
			if found != nil {
				list = append(list, found)
			}
		}
		return nil
	})
	return list, err
}

// Conflicts returns a page of conflicts (see store.Conflicts).
func (s *Store) Conflicts(ctx context.Context, ws desk.ID, status desk.ConflictStatus, after *store.ConflictPlace, limit int) (list []*desk.Conflict, next *store.ConflictPlace, err error) {
	if after == nil {
		after = &store.ConflictPlace{LastAt: endOfTime, ID: lastID}
	}
	err = s.read(ctx, int64(pointRead*limit), func(c conn) error {
		rows := c.stmt(conflictsQuery).id(ws).text(string(status)).time(after.LastAt).id(after.ID).int(int64(limit) + 1)
		size := desk.NewPageSize(limit)
		for next == nil && rows.next() {
			if found := readConflict(&rows); size.Add(found.ListBytes()) {
				list = append(list, found)
			} else {
				last := list[len(list)-1]
				next = &store.ConflictPlace{LastAt: last.LastAt, ID: last.ID}
			}
		}
		return failed("conflicts", rows.done())
	})
	return list, next, err
}

// ConflictsOf returns conflicts of a contact, in the order of ids.
func (s *Store) ConflictsOf(ctx context.Context, ws, contact, after desk.ID, limit int) (list []*desk.Conflict, err error) {
	err = s.read(ctx, int64(pointRead*limit), func(c conn) error {
		list, err = all("conflicts of a contact", c.stmt(conflictsOfQuery).id(ws).id(contact).id(after).int(int64(limit)), readConflict)
		return err
	})
	return list, err
}

// ContactNames returns the names of the contacts that exist.
func (s *Store) ContactNames(ctx context.Context, ws desk.ID, ids []desk.ID) (names map[desk.ID]string, err error) {
	err = s.read(ctx, int64(pointRead*len(ids)), func(c conn) error {
		names = make(map[desk.ID]string, len(ids))
		for _, id := range ids {
			row := c.stmt(contactNameQuery).id(ws).id(id)
			if row.next() {
				names[row.readID()] = row.readText()
			}
			if err := row.done(); err != nil {
				return failed("contact names", err)
			}
		}
		return nil
	})
	return names, err
}

// ForgetConflicts deletes old conflicts.
func (s *Store) ForgetConflicts(ctx context.Context, ws desk.ID, before desk.Time, limit int) (n int, err error) {
	err = s.write(ctx, func(c conn) error {
		old, err := all("old conflicts", c.stmt(oldConflictsQuery).id(ws).time(before).int(int64(limit)), (*stmt).readID)
		if n = len(old); err != nil || n == 0 {
			return err
		}
		if err := dropConflicts(c, ws, old); err != nil {
			return err
		}
		return wantScrub(c)
	})
	return n, err
}

func dropConflicts(c conn, ws desk.ID, ids []desk.ID) error {
	for _, id := range ids {
		for _, query := range []string{dropConflictContactsQuery, dropConflictQuery} {
			if err := c.stmt(query).id(ws).id(id).run(); err != nil {
				return failed("drop conflict", err)
			}
		}
	}
	return nil
}

// eraseConflicts deletes the conflicts of a deleted contact, and of all that are part of it: they
// name identities.
func eraseConflicts(c conn, ws, contact desk.ID) error {
	ids, err := all("conflicts of a contact", c.stmt(conflictIDsQuery).id(ws).id(contact), (*stmt).readID)
	if err != nil {
		return err
	}
	return dropConflicts(c, ws, ids)
}

func (t *tx) Conflict(id desk.ID) (*desk.Conflict, error) {
	return one("conflict", t.c.stmt(conflictQuery).id(t.ws).id(id), readConflict)
}

func (t *tx) ConflictOf(key [32]byte) (*desk.Conflict, error) {
	return one("conflict of a set", t.c.stmt(conflictOfQuery).id(t.ws).bytes(key[:]), readConflict)
}

func (t *tx) ConflictsWith(contact desk.ID) ([]*desk.Conflict, error) {
	return all("conflicts of a contact", t.c.stmt(conflictsWithQuery).id(t.ws).id(contact), readConflict)
}

func (t *tx) PutConflict(v *desk.Conflict) error {
	key := v.Key()
	if err := t.c.stmt(putConflictQuery).id(t.ws).id(v.ID).json(v.Contacts).json(v.Identities).int(v.Count).time(v.FirstAt).time(v.LastAt).
		text(string(v.Actor.Kind)).id(v.Actor.ID).text(string(v.Status)).json(v.Resolution).bytes(key[:]).run(); err != nil {
		return failed("store conflict", err)
	}
	if err := t.c.stmt(dropConflictContactsQuery).id(t.ws).id(v.ID).run(); err != nil {
		return failed("store conflict", err)
	}
	for _, id := range v.Contacts {
		if err := t.c.stmt(putConflictContactQuery).id(t.ws).id(id).id(v.ID).run(); err != nil {
			return failed("store conflict", err)
		}
	}
	return nil
}

func (t *tx) DropConflict(id desk.ID) error { return dropConflicts(t.c, t.ws, []desk.ID{id}) }

func (t *tx) TrimConflicts(keep int) error {
	ids, err := all("conflicts too many", t.c.stmt(trimConflictsQuery).id(t.ws).int(int64(keep)), (*stmt).readID)
	if err != nil {
		return err
	}
	return dropConflicts(t.c, t.ws, ids)
}
