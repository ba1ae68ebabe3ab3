package postgres

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// firstRelease has the first statement of each kind of transaction in the first release's
// server. The transaction goes on only if this statement succeeds.
var firstRelease = map[string]string{
	"who has a key": `SELECT w.id, w.version FROM directory d JOIN workspaces w ON w.id = d.workspace_id WHERE d.kind = 'key' AND d.ref = $1`,
	"a contact write, a send, a callback, a change of settings": `SELECT version, ` + databaseNow + ` FROM workspaces WHERE id = $1`,
	"a callback's body": `INSERT INTO webhooks (workspace_id, at, id, channel_id, body) VALUES ($1, $2, $3, $4, $5)`,
	"the taking in":     `SELECT due_at, id, channel_id, webhook_at, skip, body FROM notices WHERE workspace_id = $1 ORDER BY due_at, id LIMIT $2`,
}

// TestFirstReleaseFails: if a server of the first release still runs when the database
// is migrated, it fails at the start of each transaction, before it writes anything.
func TestFirstReleaseFails(t *testing.T) {
	t.Parallel()
	s := openTwo(t)[0]
	for what, statement := range firstRelease {
		err := s.read(t.Context(), func(p *pipe) error {
			_, err := p.c.Conn().Prepare(t.Context(), "", statement)
			return err
		})
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || refused.Code != "42703" && refused.Code != "42P01" { // no such column, no such table
			t.Errorf("%s: %v", what, err)
		}
	}
}
