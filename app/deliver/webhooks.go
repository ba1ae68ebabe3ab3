package deliver

import (
	"context"

	"parley/app/feed"
	"parley/desk"
	"parley/provider"
	"parley/store"
)

// Webhooks lists the webhooks of the principal's workspace, oldest first.
func (a *Service) Webhooks(ctx context.Context, p desk.Principal) ([]feed.Webhook, error) {
	if err := p.Allow(desk.WebhooksRead); err != nil {
		return nil, err
	}
	return a.Feed.Webhooks(ctx, p.Settings, p.Settings.Webhooks()...)
}

// Webhook returns a webhook, or NotFound.
func (a *Service) Webhook(ctx context.Context, p desk.Principal, id desk.ID) (feed.Webhook, error) {
	if err := p.Allow(desk.WebhooksRead); err != nil {
		return feed.Webhook{}, err
	}
	return a.oneWebhook(ctx, p.Settings, p.Settings.Webhook(id))
}

// oneWebhook is Feed.Webhooks for one webhook. It returns NotFound if the webhook is nil or
// was removed.
func (a *Service) oneWebhook(ctx context.Context, s *desk.Settings, w *desk.Webhook) (feed.Webhook, error) {
	if w == nil {
		return feed.Webhook{}, desk.NoWebhook()
	}
	list, err := a.Feed.Webhooks(ctx, s, w)
	if err != nil {
		return feed.Webhook{}, err
	}
	if len(list) == 0 {
		return feed.Webhook{}, desk.NoWebhook()
	}
	return list[0], nil
}

// changedWebhook returns a webhook after its change was stored.
func (a *Service) changedWebhook(ctx context.Context, s *desk.Settings, w *desk.Webhook) (feed.Webhook, error) {
	changed, err := a.oneWebhook(ctx, s, w)
	if desk.IsType(err, desk.Unavailable) {
		err = &desk.Error{Type: desk.Unavailable, Message: "the change is stored, but the webhook can't be read now", Err: err}
	}
	return changed, err
}

// directed returns the webhook with this id. It returns NotFound, and Forbidden for a
// caller who may not read the events of the webhook.
func directed(p desk.Principal, id desk.ID) (*desk.Webhook, error) {
	w := p.Settings.Webhook(id)
	if w == nil {
		return nil, desk.NoWebhook()
	}
	return w, p.MayDeliver(desk.FilterOf(w.Types))
}

// changeWebhooks changes the webhooks of the principal's workspace. decide is called inside
// the transaction, with the principal as it is there.
func (a *Service) changeWebhooks(ctx context.Context, p desk.Principal, decide func(desk.Principal) (desk.Change, error)) error {
	return store.UpdateSettingsAs(ctx, a.Store, p, desk.WebhooksWrite, a.now, func(s *desk.Settings) (desk.Change, error) {
		return decide(p.In(s))
	})
}

// changeWebhook changes one webhook. The principal must have the permission to read its
// events, both before and after the change.
func (a *Service) changeWebhook(ctx context.Context, p desk.Principal, id desk.ID, types *[]string, change func(*desk.Settings, *desk.Webhook) error) (feed.Webhook, error) {
	var w desk.Webhook
	var filter *desk.EventFilter
	if types != nil {
		filter = desk.FilterOf(*types)
	}
	err := a.changeWebhooks(ctx, p, func(now desk.Principal) (desk.Change, error) {
		p = now
		stored := p.Settings.Webhook(id)
		if stored == nil {
			return desk.Change{}, desk.NoWebhook()
		}
		if err := p.MayDeliver(desk.FilterOf(stored.Types)); err != nil {
			return desk.Change{}, err
		}
		if types != nil {
			if err := p.MayDeliver(filter); err != nil {
				return desk.Change{}, err
			}
		}
		w = *stored
		return desk.Change{Webhook: &w}, change(p.Settings, &w)
	})
	if err != nil {
		return feed.Webhook{}, err
	}
	return a.changedWebhook(ctx, p.Settings, &w)
}

// AllTypes are the event types of a webhook that was added without types.
var AllTypes = []string{"*"}

// AddWebhook adds a webhook, and returns its secret. If no secret is given, it makes one.
// It returns Forbidden, InvalidRequest, and WebhookExists.
func (a *Service) AddWebhook(ctx context.Context, p desk.Principal, edit desk.WebhookEdit, given *string) (added feed.Webhook, secret provider.Secret, err error) {
	if edit.URL == nil {
		edit.URL = new(string)
	}
	if edit.Types == nil {
		edit.Types = &AllTypes
	}
	// Checks of the texts alone are made before the transaction takes a lock.
	w := desk.Webhook{ID: a.NewID(), Enabled: true, CreatedAt: a.now()}
	filter, wrong := desk.FilterOf(*edit.Types), edit.Check(a.WebhookRules)
	var key []byte
	if wrong == nil {
		key, wrong = a.webhookSecret(given)
	}
	if wrong == nil {
		w.Apply(edit)
		secret = provider.NewSecret(desk.WebhookSecretText(key))
		w.Sealed = a.sealWebhook(p.Workspace(), w.ID, []webhookSecret{{Key: key}})
	}
	err = a.changeWebhooks(ctx, p, func(now desk.Principal) (desk.Change, error) {
		p = now
		if err := p.MayDeliver(filter); err != nil {
			return desk.Change{}, err
		}
		if wrong != nil {
			return desk.Change{}, wrong
		}
		return desk.Change{Webhook: &w}, p.Settings.CheckWebhook(&w)
	})
	if err != nil {
		return feed.Webhook{}, provider.Secret{}, err
	}
	added, err = a.changedWebhook(ctx, p.Settings, &w)
	return added, secret, err
}

// EditWebhook changes the fields that the edit contains. It returns NotFound, Forbidden,
// InvalidRequest, and WebhookExists.
func (a *Service) EditWebhook(ctx context.Context, p desk.Principal, id desk.ID, edit desk.WebhookEdit) (feed.Webhook, error) {
	wrong := edit.Check(a.WebhookRules) // before a lock is held
	return a.changeWebhook(ctx, p, id, edit.Types, func(s *desk.Settings, w *desk.Webhook) error {
		if wrong != nil {
			return wrong
		}
		w.Apply(edit)
		return s.CheckWebhook(w)
	})
}

// RemoveWebhook removes a webhook with its deliveries, or returns NotFound.
func (a *Service) RemoveWebhook(ctx context.Context, p desk.Principal, id desk.ID) error {
	err := a.changeWebhooks(ctx, p, func(p desk.Principal) (desk.Change, error) {
		w := p.Settings.Webhook(id)
		if w == nil {
			return desk.Change{}, desk.NoWebhook()
		}
		return desk.Change{RemoveWebhook: w}, nil
	})
	if err == nil {
		a.dropDeliveries(context.WithoutCancel(ctx), store.WebhookRef{Workspace: p.Workspace(), ID: id})
	}
	return err
}

// RotateWebhook gives a webhook a new secret, and returns it. For overlap seconds, the old
// secret also signs the requests. It returns NotFound, Forbidden and InvalidRequest.
func (a *Service) RotateWebhook(ctx context.Context, p desk.Principal, id desk.ID, overlap int64) (rotated feed.Webhook, secret provider.Secret, err error) {
	rotated, err = a.changeWebhook(ctx, p, id, nil, func(s *desk.Settings, w *desk.Webhook) error {
		if overlap < 0 || overlap > desk.MaxOverlap {
			return desk.InvalidAt("/overlap_s", "give 0 to %d seconds", desk.MaxOverlap)
		}
		stored, err := a.openWebhook(s.ID, w)
		if err != nil {
			return err
		}
		key, err := a.webhookSecret(nil)
		if err != nil {
			return err
		}
		secret = provider.NewSecret(desk.WebhookSecretText(key))
		secrets := []webhookSecret{{Key: key}}
		if overlap > 0 {
			secrets = append(secrets, webhookSecret{stored[0].Key, a.now() + desk.Time(1000*overlap)})
		}
		w.Sealed = a.sealWebhook(s.ID, w.ID, secrets)
		return nil
	})
	return rotated, secret, err
}

// A disabling is the reason to disable a webhook, and the URL that has failed. If the owner
// has changed the URL meanwhile, the webhook stays enabled.
type disabling struct {
	reason desk.DisabledReason // "": it is not to be disabled
	url    string
}

// disableWebhook disables a webhook whose endpoint has failed for too long, or has answered
// that it is gone, unless the URL was changed meanwhile.
func (a *Service) disableWebhook(ctx context.Context, ref store.WebhookRef, why disabling) error {
	disabled := false
	err := store.UpdateSettings(ctx, a.Store, ref.Workspace, desk.Actor{Kind: desk.BySystem}, a.now, func(s *desk.Settings) (desk.Change, error) {
		w := s.Webhook(ref.ID)
		if disabled = w != nil && w.Enabled && w.URL == why.url; !disabled {
			return desk.Change{}, nil
		}
		edited := *w
		edited.Enabled, edited.DisabledReason = false, why.reason
		return desk.Change{Webhook: &edited}, nil
	})
	if err == nil && disabled {
		a.Log.WarnContext(ctx, "a webhook was disabled", "workspace_id", ref.Workspace, "webhook_id", ref.ID, "reason", why.reason)
	}
	return err
}
