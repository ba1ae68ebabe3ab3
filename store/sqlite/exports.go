package sqlite

import (
	"context"

	"parley/desk"
)

const (
	contactsAfterQuery = `SELECT w.settings_version, ` + contactColumns + ` FROM contacts c JOIN workspaces w ON w.id = c.workspace_id
		WHERE c.workspace_id = ? AND c.id > ? ORDER BY c.id LIMIT +?`
	countOptOutsQuery = `SELECT count(*) FROM opt_outs WHERE workspace_id = ? AND since > 0`
)

// ContactsAfter returns contacts in the order of ids.
func (s *Store) ContactsAfter(ctx context.Context, ws, after desk.ID, limit int) (list []*desk.Contact, more bool, err error) {
	err = s.read(ctx, int64(pointRead+limit), func(c conn) error { // contacts with neighbouring ids lie side by side
		page, next, err := s.contactPage(c, ws, c.stmt(contactsAfterQuery).id(ws).id(after).int(int64(limit)+1), limit)
		list, more = page, next != nil
		return err
	})
	return list, more, err
}

// CountOptOuts returns for how many handles an opt-out is stored.
func (s *Store) CountOptOuts(ctx context.Context, ws desk.ID) (n int, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		count, err := one("count opt-outs", c.stmt(countOptOutsQuery).id(ws), (*stmt).readInt)
		n = int(count)
		return err
	})
	return n, err
}
