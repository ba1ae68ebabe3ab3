package sqlite

import (
	"strings"
	"testing"
)

// firstRelease has the first statement of each kind of transaction in the first release's
// server. The transaction goes on only if this statement succeeds.
var firstRelease = map[string]string{
	"who has a key": `SELECT w.id, w.version FROM directory d JOIN workspaces w ON w.id = d.workspace_id WHERE d.kind = 'key' AND d.ref = ?`,
	"a contact write, a send, a callback, a change of settings": `SELECT version FROM workspaces WHERE id = ?`,
	"a callback's body": `REPLACE INTO webhooks (workspace_id, at, id, channel_id, body) VALUES (?, ?, ?, ?, ?)`,
	"the taking in":     `SELECT due_at, id, channel_id, webhook_at, skip, body FROM notices WHERE workspace_id = ? ORDER BY due_at, id LIMIT ?`,
}

// TestFirstReleaseFails: if a server of the first release still runs when the database
// is migrated, it fails at the start of each transaction, before it writes anything.
func TestFirstReleaseFails(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	for what, statement := range firstRelease {
		stmt, _, err := s.writer.PrepareTransient(statement)
		if err == nil {
			err = stmt.Finalize()
		}
		if err == nil || !strings.Contains(err.Error(), "no such") && !strings.Contains(err.Error(), "has no column") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
