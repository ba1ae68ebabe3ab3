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

// Webhooks adds the states to webhooks of a workspace. One that was removed meanwhile is
// left out.
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
