package app

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"parley/desk"
	"parley/provider"
	"parley/store"
)

// A Webhook is a webhook as callers see it.
type Webhook struct {
	desk.Webhook
	FailingSince desk.Time // 0: it is not failing
	Cursor       string    // the id of the last event whose delivery has begun
}

// webhook is a webhook with its state.
func (a *App) webhook(ws desk.ID, w *desk.Webhook, state desk.WebhookState) Webhook {
	return Webhook{*w, state.FailingSince, a.EventID(ws, state.Cursor)}
}

// Webhooks lists the webhooks of the principal's workspace, oldest first.
func (a *App) Webhooks(ctx context.Context, p desk.Principal) ([]Webhook, error) {
	if err := p.Allow(desk.WebhooksRead); err != nil {
		return nil, err
	}
	return a.webhooks(ctx, p.Settings, p.Settings.Webhooks()...)
}

// Webhook returns a webhook, or NotFound.
func (a *App) Webhook(ctx context.Context, p desk.Principal, id desk.ID) (Webhook, error) {
	if err := p.Allow(desk.WebhooksRead); err != nil {
		return Webhook{}, err
	}
	return a.oneWebhook(ctx, p.Settings, p.Settings.Webhook(id))
}

// webhooks adds the states to webhooks of a workspace. One that was removed meanwhile is
// left out.
func (a *App) webhooks(ctx context.Context, s *desk.Settings, list ...*desk.Webhook) (found []Webhook, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	states, err := a.store.WebhookStates(ctx, s.ID)
	if err != nil {
		return nil, err
	}
	for _, w := range list {
		if state, there := states[w.ID]; there {
			found = append(found, a.webhook(s.ID, w, state))
		}
	}
	return found, nil
}

// oneWebhook is webhooks for one webhook, or NotFound if it is nil or was removed.
func (a *App) oneWebhook(ctx context.Context, s *desk.Settings, w *desk.Webhook) (Webhook, error) {
	if w == nil {
		return Webhook{}, desk.NoWebhook()
	}
	list, err := a.webhooks(ctx, s, w)
	if err != nil {
		return Webhook{}, err
	}
	if len(list) == 0 {
		return Webhook{}, desk.NoWebhook()
	}
	return list[0], nil
}

// changedWebhook is oneWebhook after a change was stored.
func (a *App) changedWebhook(ctx context.Context, s *desk.Settings, w *desk.Webhook) (Webhook, error) {
	changed, err := a.oneWebhook(ctx, s, w)
	if desk.IsType(err, desk.Unavailable) {
		err = &desk.Error{Type: desk.Unavailable, Message: "the change is stored, but the webhook can't be read now", Err: err}
	}
	return changed, err
}

// changeWebhooks changes the webhooks of the principal's workspace. decide gets the
// principal as the transaction sees it.
func (a *App) changeWebhooks(ctx context.Context, p desk.Principal, decide func(desk.Principal) (desk.Change, error)) error {
	return store.UpdateSettingsAs(ctx, a.store, p, desk.WebhooksWrite, a.now, func(s *desk.Settings) (desk.Change, error) {
		return decide(p.In(s))
	})
}

// changeWebhook changes one webhook, if the principal may read its events, before and
// after the change.
func (a *App) changeWebhook(ctx context.Context, p desk.Principal, id desk.ID, types *[]string, change func(*desk.Settings, *desk.Webhook) error) (Webhook, error) {
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
		return Webhook{}, err
	}
	return a.changedWebhook(ctx, p.Settings, &w)
}

// AllTypes are the types of a webhook for which none are given.
var AllTypes = []string{"*"}

// AddWebhook adds a webhook, and returns its secret, which is made if none is given. It
// returns Forbidden, InvalidRequest, and WebhookExists.
func (a *App) AddWebhook(ctx context.Context, p desk.Principal, edit desk.WebhookEdit, given *string) (added Webhook, secret provider.Secret, err error) {
	if edit.URL == nil {
		edit.URL = new(string)
	}
	if edit.Types == nil {
		edit.Types = &AllTypes
	}
	// What the texts decide is computed before a lock is held.
	w := desk.Webhook{ID: a.newID(), Enabled: true, CreatedAt: a.now()}
	filter, wrong := desk.FilterOf(*edit.Types), edit.Check(a.hookRules)
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
		return Webhook{}, provider.Secret{}, err
	}
	added, err = a.changedWebhook(ctx, p.Settings, &w)
	return added, secret, err
}

// EditWebhook changes what the edit names. It returns NotFound, Forbidden,
// InvalidRequest, and WebhookExists.
func (a *App) EditWebhook(ctx context.Context, p desk.Principal, id desk.ID, edit desk.WebhookEdit) (Webhook, error) {
	wrong := edit.Check(a.hookRules) // before a lock is held
	return a.changeWebhook(ctx, p, id, edit.Types, func(s *desk.Settings, w *desk.Webhook) error {
		if wrong != nil {
			return wrong
		}
		w.Apply(edit)
		return s.CheckWebhook(w)
	})
}

// RemoveWebhook removes a webhook with its deliveries, or returns NotFound.
func (a *App) RemoveWebhook(ctx context.Context, p desk.Principal, id desk.ID) error {
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

// RotateWebhook gives a webhook a new secret, and returns it. The one before goes on
// signing, too, for some seconds. It returns NotFound, Forbidden and InvalidRequest.
func (a *App) RotateWebhook(ctx context.Context, p desk.Principal, id desk.ID, overlap int64) (rotated Webhook, secret provider.Secret, err error) {
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

// A webhookSecret is one of the secrets of a webhook.
type webhookSecret struct {
	Key   []byte    `json:"key"`
	Until desk.Time `json:"until,omitempty"` // 0: it is the newest one
}

// webhookSecret reads a secret, or makes one if none is given.
func (a *App) webhookSecret(given *string) ([]byte, error) {
	if given != nil {
		return desk.ParseWebhookSecret(*given)
	}
	key := make([]byte, desk.NewWebhookSecret)
	a.random(key)
	return key, nil
}

// sealWebhook encrypts the secrets of a webhook, newest first.
func (a *App) sealWebhook(ws, id desk.ID, secrets []webhookSecret) []byte {
	plain, err := json.Marshal(secrets)
	if err != nil {
		panic(err) // bytes and numbers can always be made into JSON
	}
	return a.vault.Encrypt(plain, webhookSealedFor(ws, id))
}

// webhookSealedFor is what the secrets are bound to. No channel's secrets are bound to
// the same bytes.
func webhookSealedFor(ws, id desk.ID) []byte { return slices.Concat([]byte("webhook"), ws[:], id[:]) }

// openWebhook decrypts the secrets of a webhook, newest first.
func (a *App) openWebhook(ws desk.ID, w *desk.Webhook) (secrets []webhookSecret, err error) {
	plain, err := a.vault.Decrypt(w.Sealed, webhookSealedFor(ws, w.ID))
	if err != nil || json.Unmarshal(plain, &secrets) != nil || len(secrets) == 0 {
		return nil, errors.New("the secrets of webhook " + w.ID.String() + " don't open: its row was changed, or encrypted with another secret key")
	}
	return secrets, nil
}

// webhookSecrets are the secrets that sign a webhook's deliveries at now, newest first.
func (a *App) webhookSecrets(ws desk.ID, w *desk.Webhook, now desk.Time) (keys [][]byte, err error) {
	secrets, err := a.openWebhook(ws, w)
	for _, s := range secrets {
		if s.Until == 0 || now < s.Until {
			keys = append(keys, s.Key)
		}
	}
	return keys, err
}
