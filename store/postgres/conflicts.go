package postgres

import (
	"context"

	"parley/desk"
	"parley/store"

	"github.com/jackc/pgx/v5"
)

const (
	conflictColumns    = `id, contacts, identities, refusals, first_at, last_at, actor_kind, actor_id, status, resolution`
	conflictQuery      = `SELECT ` + conflictColumns + ` FROM conflicts WHERE workspace_id = $1 AND id = $2`
	conflictOfQuery    = `SELECT ` + conflictColumns + ` FROM conflicts WHERE workspace_id = $1 AND contacts_key = $2`
	conflictsByIDQuery = `SELECT ` + conflictColumns + ofEach2 + `(SELECT * FROM conflicts WHERE workspace_id = $1 AND id = u.i OFFSET 0) c`
	conflictsQuery     = `SELECT ` + conflictColumns + ` FROM conflicts WHERE workspace_id = $1 AND status = $2 AND (last_at, id) < ($3, $4) ORDER BY last_at DESC, id DESC LIMIT $5`
	conflictsWithQuery = `SELECT ` + conflictColumns + ` FROM conflicts WHERE workspace_id = $1 AND id IN
		(SELECT conflict_id FROM conflict_contacts WHERE workspace_id = $1 AND contact_id = $2) ORDER BY id`
	conflictsOfQuery = `SELECT ` + conflictColumns + ` FROM conflicts WHERE workspace_id = $1 AND id IN
		(SELECT DISTINCT conflict_id FROM conflict_contacts WHERE workspace_id = $1 AND contact_id IN ` + oneWithMerged + ` AND conflict_id > $3 ORDER BY conflict_id LIMIT $4) ORDER BY id`
	contactNamesQuery = `SELECT l.id, l.name FROM unnest($2::uuid[]) u (id) CROSS JOIN LATERAL (SELECT id, name` + contactByID + ` LIMIT 1) l`
	putConflictQuery  = `INSERT INTO conflicts (workspace_id, ` + conflictColumns + `, contacts_key) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
		ON CONFLICT (workspace_id, id) DO UPDATE SET contacts = excluded.contacts, identities = excluded.identities, refusals = excluded.refusals, first_at = excluded.first_at,
		last_at = excluded.last_at, actor_kind = excluded.actor_kind, actor_id = excluded.actor_id, status = excluded.status, resolution = excluded.resolution, contacts_key = excluded.contacts_key`
	putConflictContacts  = `INSERT INTO conflict_contacts (workspace_id, contact_id, conflict_id) SELECT w.id, u.id, $3 FROM unnest($2::uuid[]) u (id)` + inWorkspace
	dropConflictContacts = `DELETE FROM conflict_contacts WHERE workspace_id = $1 AND conflict_id = ANY ($2::uuid[])`
	dropConflictsQuery   = `DELETE FROM conflicts WHERE workspace_id = $1 AND id = ANY ($2::uuid[])`
	oldConflictsQuery    = `SELECT id FROM conflicts WHERE workspace_id = $1 AND last_at < $2 ORDER BY last_at, id LIMIT $3`
	trimConflictsQuery   = `SELECT id FROM conflicts WHERE workspace_id = $1 ORDER BY last_at DESC, id DESC OFFSET $2`
)

func readConflict(row pgx.Row) (*desk.Conflict, error) {
	c := &desk.Conflict{}
	err := row.Scan(into(&c.ID), document{&c.Contacts}, document{&c.Identities}, &c.Count, (*int64)(&c.FirstAt), (*int64)(&c.LastAt),
		(*string)(&c.Actor.Kind), into(&c.Actor.ID), (*string)(&c.Status), document{&c.Resolution})
	return c, err
}

// ConflictsByID returns the conflicts that exist, in no order.
func (s *Store) ConflictsByID(ctx context.Context, ws desk.ID, ids []desk.ID) ([]*desk.Conflict, error) {
	return readAll(ctx, s, "conflicts", readConflict, conflictsByIDQuery, uuid(ws), uuids(ids))
}

// Conflicts returns a page of conflicts (see store.Conflicts).
func (s *Store) Conflicts(ctx context.Context, ws desk.ID, status desk.ConflictStatus, after *store.ConflictPlace, limit int) (list []*desk.Conflict, next *store.ConflictPlace, err error) {
	if after == nil {
		after = &store.ConflictPlace{LastAt: endOfTime, ID: lastID}
	}
	err = s.read(ctx, func(p *pipe) error {
		list, next = nil, nil
		found, err := all(p, "conflicts", readConflict, conflictsQuery, uuid(ws), string(status), int64(after.LastAt), uuid(after.ID), limit+1)
		size := desk.NewPageSize(limit)
		for _, c := range found {
			if !size.Add(c.ListBytes()) {
				last := list[len(list)-1]
				next = &store.ConflictPlace{LastAt: last.LastAt, ID: last.ID}
				break
			}
			list = append(list, c)
		}
		return err
	})
	return list, next, err
}

// ConflictsOf returns conflicts of a contact, in the order of ids.
func (s *Store) ConflictsOf(ctx context.Context, ws, contact, after desk.ID, limit int) ([]*desk.Conflict, error) {
	return readAll(ctx, s, "conflicts of a contact", readConflict, conflictsOfQuery, uuid(ws), uuid(contact), uuid(after), limit)
}

// ContactNames returns the names of the contacts that exist.
func (s *Store) ContactNames(ctx context.Context, ws desk.ID, ids []desk.ID) (names map[desk.ID]string, err error) {
	err = s.read(ctx, func(p *pipe) error {
		names = make(map[desk.ID]string, len(ids))
		p.each(func(row pgx.Row) error {
			var id desk.ID
			var name string
			err := row.Scan(into(&id), &name)
			names[id] = name
			return err
		}, contactNamesQuery, uuid(ws), uuids(ids))
		return p.send("contact names")
	})
	return names, err
}

// ForgetConflicts deletes old conflicts.
func (s *Store) ForgetConflicts(ctx context.Context, ws desk.ID, before desk.Time, limit int) (n int, err error) {
	var old []desk.ID
	if err := s.read(ctx, func(p *pipe) error {
		old, err = all(p, "old conflicts", readID, oldConflictsQuery, uuid(ws), int64(before), limit)
		return err
	}); err != nil || len(old) == 0 {
		return 0, err
	}
	return len(old), s.atOnceIn(ctx, ws, "forget conflicts", func(p *pipe) { dropConflicts(p, ws, old) })
}

func dropConflicts(p *pipe, ws desk.ID, ids []desk.ID) {
	p.put(dropConflictContacts, uuid(ws), uuids(ids))
	p.put(dropConflictsQuery, uuid(ws), uuids(ids))
}

func (t *tx) Conflict(id desk.ID) (*desk.Conflict, error) {
	return one(t.pipe, "conflict", readConflict, conflictQuery+forUpdate, uuid(t.ws), uuid(id))
}

func (t *tx) ConflictOf(key [32]byte) (*desk.Conflict, error) {
	return one(t.pipe, "conflict of a set", readConflict, conflictOfQuery+forUpdate, uuid(t.ws), key[:])
}

func (t *tx) ConflictsWith(contact desk.ID) ([]*desk.Conflict, error) {
	return all(t.pipe, "conflicts of a contact", readConflict, conflictsWithQuery+forUpdate, uuid(t.ws), uuid(contact))
}

func (t *tx) PutConflict(v *desk.Conflict) error {
	key := v.Key()
	t.put(putConflictQuery, uuid(t.ws), uuid(v.ID), asJSON(v.Contacts), asJSON(v.Identities), v.Count, int64(v.FirstAt), int64(v.LastAt),
		string(v.Actor.Kind), uuid(v.Actor.ID), string(v.Status), asJSON(v.Resolution), key[:])
	t.put(dropConflictContacts, uuid(t.ws), uuids([]desk.ID{v.ID}))
	t.put(putConflictContacts, uuid(t.ws), uuids(v.Contacts), uuid(v.ID))
	return t.fail
}

func (t *tx) DropConflict(id desk.ID) error {
	dropConflicts(t.pipe, t.ws, []desk.ID{id})
	return t.fail
}

func (t *tx) TrimConflicts(keep int) error {
	ids, err := all(t.pipe, "conflicts too many", readID, trimConflictsQuery, uuid(t.ws), keep)
	if err == nil && ids != nil {
		dropConflicts(t.pipe, t.ws, ids)
	}
	return err
}
