package postgres

import (
	"parley/desk"
	"parley/store/internal/stored"

	"github.com/jackc/pgx/v5"
)

const policiesQuery = `SELECT channel_id, policy, updated_at FROM policies WHERE workspace_id = $1`

func readPolicy(row pgx.Row) (desk.Policy, error) {
	var channel desk.ID
	var text string
	var at desk.Time
	if err := row.Scan(into(&channel), &text, (*int64)(&at)); err != nil {
		return desk.Policy{}, err
	}
	return stored.Policy(channel, text, at)
}

// putPolicies queues the reply policies of a change.
func putPolicies(p *pipe, ws desk.ID, change desk.Change) error {
	for _, policy := range change.Policies {
		text, err := stored.PolicyText(policy)
		if err != nil {
			return err
		}
		p.put(`INSERT INTO policies (workspace_id, channel_id, policy, updated_at) VALUES ($1, $2, $3, $4)
			ON CONFLICT (workspace_id, channel_id) DO UPDATE SET policy = excluded.policy, updated_at = excluded.updated_at`,
			uuid(ws), uuid(policy.Channel), text, int64(policy.UpdatedAt))
	}
	if policy := change.RemovePolicy; policy != nil {
		p.put(`DELETE FROM policies WHERE workspace_id = $1 AND channel_id = $2`, uuid(ws), uuid(policy.Channel))
	}
	return nil
}
