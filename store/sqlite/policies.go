package sqlite

import (
	"parley/desk"
	"parley/store/internal/stored"
)

const policiesQuery = `SELECT channel_id, policy, updated_at FROM policies WHERE workspace_id = ?`

func readPolicy(s *stmt) (p desk.Policy) {
	p, s.fail = stored.Policy(s.readID(), s.readText(), s.readTime())
	return p
}

// flushPolicies stores the reply policies of a change.
func flushPolicies(c conn, ws desk.ID, change desk.Change) error {
	for _, p := range change.Policies {
		text, err := stored.PolicyText(p)
		if err == nil {
			err = c.stmt(`REPLACE INTO policies (workspace_id, channel_id, policy, updated_at) VALUES (?, ?, ?, ?)`).
				id(ws).id(p.Channel).text(text).time(p.UpdatedAt).run()
		}
		if err != nil {
			return err
		}
	}
	if p := change.RemovePolicy; p != nil {
		return c.stmt(`DELETE FROM policies WHERE workspace_id = ? AND channel_id = ?`).id(ws).id(p.Channel).run()
	}
	return nil
}
