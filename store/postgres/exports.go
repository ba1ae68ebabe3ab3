package postgres

import (
	"context"

	"parley/desk"

	"github.com/jackc/pgx/v5"
)

const (
	contactsAfterLimit = `SELECT *, octet_length(note) + octet_length(attributes) + octet_length(further) AS bytes FROM contacts WHERE workspace_id = $1 AND id > $2 ORDER BY id LIMIT $3`
	countOptOutsQuery  = `SELECT count(*) FROM opt_outs WHERE workspace_id = $1 AND since > 0`
)

var contactsAfterQuery = `SELECT ` + contactColumns + `, c.there FROM (` + upToPage(contactsAfterLimit, `id`) + `) c JOIN workspaces w ON w.id = $1 ORDER BY c.id`

// ContactsAfter returns contacts in the order of ids.
func (s *Store) ContactsAfter(ctx context.Context, ws, after desk.ID, limit int) (list []*desk.Contact, more bool, err error) {
	list, next, err := s.contactPage(ctx, ws, limit, contactsAfterQuery, []any{uuid(ws), uuid(after), limit + 1})
	return list, next != nil, err
}

// CountOptOuts returns for how many handles an opt-out is stored.
func (s *Store) CountOptOuts(ctx context.Context, ws desk.ID) (n int, err error) {
	err = s.read(ctx, func(p *pipe) error {
		n, err = one(p, "count opt-outs", func(row pgx.Row) (n int, err error) { return n, row.Scan(&n) }, countOptOutsQuery, uuid(ws))
		return err
	})
	return n, err
}
