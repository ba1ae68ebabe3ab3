package feed

import (
	"context"

	"parley/desk"
)

// A Webhook is a webhook as callers see it.
type Webhook struct {
	desk.Webhook
	FailingSince desk.Time // 0: it is not failing
	Cursor       string    // the id of the last event whose delivery has begun
}

// Webhooks returns webhooks of a workspace with their states. Webhooks that were removed
// meanwhile are left out.
func (a *Service) Webhooks(ctx context.Context, s *desk.Settings, list ...*desk.Webhook) (found []Webhook, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	states, err := a.Store.WebhookStates(ctx, s.ID)
	if err != nil {
		return nil, err
	}
	for _, w := range list {
		if state, there := states[w.ID]; there {
			found = append(found, Webhook{*w, state.FailingSince, a.EventID(s.ID, state.Cursor)})
		}
	}
	return found, nil
}
