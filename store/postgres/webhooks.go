package postgres

import (
	"context"
	"strings"

	"parley/desk"
	"parley/store/internal/stored"

	"github.com/jackc/pgx/v5"
)

const webhooksQuery = `SELECT id, url, types, enabled, disabled_reason, sealed, created_at, updated_at FROM webhooks WHERE workspace_id = $1`

func readWebhook(row pgx.Row) (w desk.Webhook, err error) {
	var types string
	err = row.Scan(into(&w.ID), &w.URL, &types, &w.Enabled, (*string)(&w.DisabledReason), &w.Sealed, (*int64)(&w.CreatedAt), (*int64)(&w.UpdatedAt))
	w.Types = stored.Words(types)
	return w, err
}

// putWebhooks queues the webhooks of a change.
func putWebhooks(p *pipe, ws desk.ID, change desk.Change) {
	if w := change.Webhook; w != nil {
		p.put(`INSERT INTO webhooks (workspace_id, id, url, types, enabled, disabled_reason, sealed, created_at, updated_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (workspace_id, id) DO UPDATE SET url = excluded.url,
			types = excluded.types, enabled = excluded.enabled, disabled_reason = excluded.disabled_reason, sealed = excluded.sealed,
			created_at = excluded.created_at, updated_at = excluded.updated_at`,
			uuid(ws), uuid(w.ID), w.URL, strings.Join(w.Types, ","), w.Enabled, string(w.DisabledReason), w.Sealed, int64(w.CreatedAt), int64(w.UpdatedAt))
		enter(p, stored.Webhook, w.ID.String(), ws)
		if change.Renew {
			p.put(`UPDATE webhook_states SET failing_since = 0, failures = 0, probes = 0, held_until = 0
				WHERE workspace_id = $1 AND webhook_id = $2`, uuid(ws), uuid(w.ID))
		}
	}
	if w := change.RemoveWebhook; w != nil {
		p.put(`DELETE FROM webhooks WHERE workspace_id = $1 AND id = $2`, uuid(ws), uuid(w.ID))
		p.put(`DELETE FROM webhook_states WHERE workspace_id = $1 AND webhook_id = $2`, uuid(ws), uuid(w.ID))
		p.put(`DELETE FROM directory WHERE kind = $1 AND ref = $2`, stored.Webhook, w.ID.String())
	}
}

// beginWebhook queues the state of a new webhook. It comes behind the events in the
// pipe, so the events have their numbers.
func beginWebhook(t *tx) {
	if at := stored.CreatedAt(t.webhook, t.events); at != nil {
		t.put(`INSERT INTO webhook_states (workspace_id, webhook_id, seq, tag, failing_since, failures, probes, held_until)
			SELECT workspace_id, $2, seq - $3, $4, 0, 0, 0, 0 FROM event_counters WHERE workspace_id = $1`,
			uuid(t.ws), uuid(t.webhook.ID), int64(at.Later), at.Tag)
	}
}

const webhookStateColumns = `webhook_id, seq, tag, failing_since, failures, probes, held_until`

// A webhookState is a state with its webhook's id.
type webhookState struct {
	id desk.ID
	desk.WebhookState
}

func readWebhookState(row pgx.Row) (s webhookState, err error) {
	err = row.Scan(into(&s.id), &s.Cursor.Seq, &s.Cursor.Tag, (*int64)(&s.FailingSince), &s.Failures, &s.Probes, (*int64)(&s.HeldUntil))
	return s, err
}

// WebhookStates returns the states of a workspace's webhooks.
func (s *Store) WebhookStates(ctx context.Context, ws desk.ID) (states map[desk.ID]desk.WebhookState, err error) {
	err = s.read(ctx, func(p *pipe) error {
		list, err := all(p, "states of webhooks", readWebhookState, `SELECT `+webhookStateColumns+` FROM webhook_states WHERE workspace_id = $1`, uuid(ws))
		states = make(map[desk.ID]desk.WebhookState, len(list))
		for _, state := range list {
			states[state.id] = state.WebhookState
		}
		return err
	})
	return states, err
}

func (t *tx) WebhookState(id desk.ID) (desk.WebhookState, error) {
	s, err := one(t.pipe, "state of a webhook", readWebhookState, `SELECT `+webhookStateColumns+` FROM webhook_states
		WHERE workspace_id = $1 AND webhook_id = $2`+forUpdate, uuid(t.ws), uuid(id))
	return s.WebhookState, err
}

func (t *tx) PutWebhookState(id desk.ID, state desk.WebhookState) error {
	putWebhookState(t.pipe, t.ws, id, state)
	return t.fail
}

func putWebhookState(p *pipe, ws, id desk.ID, state desk.WebhookState) {
	p.put(`UPDATE webhook_states SET seq = $3, tag = $4, failing_since = $5, failures = $6, probes = $7, held_until = $8
		WHERE workspace_id = $1 AND webhook_id = $2`, uuid(ws), uuid(id), state.Cursor.Seq, state.Cursor.Tag,
		int64(state.FailingSince), state.Failures, state.Probes, int64(state.HeldUntil))
}
