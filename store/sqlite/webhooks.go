package sqlite

import (
	"context"
	"strings"

	"parley/desk"
	"parley/store/internal/stored"
)

const webhooksQuery = `SELECT id, url, types, enabled, disabled_reason, sealed, created_at, updated_at FROM webhooks WHERE workspace_id = ?`

func readWebhook(s *stmt) desk.Webhook {
	return desk.Webhook{
		ID: s.readID(), URL: s.readText(), Types: stored.Words(s.readText()), Enabled: s.readInt() != 0,
		DisabledReason: desk.DisabledReason(s.readText()), Sealed: s.readBlob(), CreatedAt: s.readTime(), UpdatedAt: s.readTime(),
	}
}

// flushWebhooks stores the webhooks of a change. It runs after the events got their
// numbers, because the deliveries of a new webhook begin at its own event.
func flushWebhooks(c conn, ws desk.ID, change desk.Change) error {
	if w := change.Webhook; w != nil {
		err := c.stmt(`INSERT INTO webhooks (workspace_id, id, url, types, enabled, disabled_reason, sealed, created_at, updated_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (workspace_id, id) DO UPDATE SET url = excluded.url,
			types = excluded.types, enabled = excluded.enabled, disabled_reason = excluded.disabled_reason, sealed = excluded.sealed,
			created_at = excluded.created_at, updated_at = excluded.updated_at`).id(ws).id(w.ID).text(w.URL).text(strings.Join(w.Types, ",")).int(flag(w.Enabled)).
			text(string(w.DisabledReason)).bytes(w.Sealed).time(w.CreatedAt).time(w.UpdatedAt).run()
		if err == nil {
			err = enter(c, stored.Webhook, w.ID.String(), ws)
		}
		if err == nil && change.Renew {
			err = c.stmt(`UPDATE webhook_states SET failing_since = 0, failures = 0, probes = 0, held_until = 0
				WHERE workspace_id = ? AND webhook_id = ?`).id(ws).id(w.ID).run()
		}
		if at := stored.CreatedAt(w, change.Events); err == nil && at != nil {
			err = c.stmt(`INSERT INTO webhook_states (workspace_id, webhook_id, seq, tag, failing_since, failures, probes, held_until)
				VALUES (?, ?, ?, ?, 0, 0, 0, 0)`).id(ws).id(w.ID).int(c.newest[ws] - int64(at.Later)).int(at.Tag).run()
		}
		if err != nil {
			return err
		}
	}
	if w := change.RemoveWebhook; w != nil {
		err := c.stmt(`DELETE FROM webhooks WHERE workspace_id = ? AND id = ?`).id(ws).id(w.ID).run()
		if err == nil {
			err = c.stmt(`DELETE FROM webhook_states WHERE workspace_id = ? AND webhook_id = ?`).id(ws).id(w.ID).run()
		}
		if err == nil {
			err = c.stmt(`DELETE FROM directory WHERE kind = ? AND ref = ?`).text(stored.Webhook).text(w.ID.String()).run()
		}
		return err
	}
	return nil
}

const webhookStateColumns = `seq, tag, failing_since, failures, probes, held_until`

func readWebhookState(s *stmt) desk.WebhookState {
	return desk.WebhookState{
		Cursor: desk.EventPlace{Seq: s.readInt(), Tag: s.readInt()}, FailingSince: s.readTime(),
		Failures: int(s.readInt()), Probes: int(s.readInt()), HeldUntil: s.readTime(),
	}
}

// WebhookStates returns the states of a workspace's webhooks.
func (s *Store) WebhookStates(ctx context.Context, ws desk.ID) (states map[desk.ID]desk.WebhookState, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		states = map[desk.ID]desk.WebhookState{}
		row := c.stmt(`SELECT webhook_id, ` + webhookStateColumns + ` FROM webhook_states WHERE workspace_id = ?`).id(ws)
		for row.next() {
			id := row.readID()
			states[id] = readWebhookState(&row)
		}
		return failed("states of webhooks", row.done())
	})
	return states, err
}

func (t *tx) WebhookState(id desk.ID) (desk.WebhookState, error) {
	return one("state of a webhook", t.c.stmt(`SELECT `+webhookStateColumns+` FROM webhook_states WHERE workspace_id = ? AND webhook_id = ?`).
		id(t.ws).id(id), readWebhookState)
}

func (t *tx) PutWebhookState(id desk.ID, state desk.WebhookState) error {
	return failed("state of a webhook", t.c.stmt(`UPDATE webhook_states SET seq = ?, tag = ?, failing_since = ?, failures = ?, probes = ?, held_until = ?
		WHERE workspace_id = ? AND webhook_id = ?`).int(state.Cursor.Seq).int(state.Cursor.Tag).time(state.FailingSince).
		int(int64(state.Failures)).int(int64(state.Probes)).time(state.HeldUntil).id(t.ws).id(id).run())
}
