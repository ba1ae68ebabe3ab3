package deliver

import (
	"encoding/json"
	"errors"
	"slices"

	"parley/desk"
)

// A webhookSecret is one of the secrets of a webhook.
type webhookSecret struct {
	Key   []byte    `json:"key"`
	Until desk.Time `json:"until,omitempty"` // 0: it is the newest one
}

// webhookSecret reads a secret, or makes one if none is given.
func (a *Service) webhookSecret(given *string) ([]byte, error) {
	if given != nil {
		return desk.ParseWebhookSecret(*given)
	}
	key := make([]byte, desk.NewWebhookSecret)
	a.Random(key)
	return key, nil
}

// sealWebhook encrypts the secrets of a webhook, newest first.
func (a *Service) sealWebhook(ws, id desk.ID, secrets []webhookSecret) []byte {
	plain, err := json.Marshal(secrets)
	if err != nil {
		panic(err) // bytes and numbers can always be made into JSON
	}
	return a.Vault.Encrypt(plain, webhookSealedFor(ws, id))
}

// webhookSealedFor returns the bytes to which the secrets of a webhook are bound. No
// channel's secrets are bound to the same bytes.
func webhookSealedFor(ws, id desk.ID) []byte { return slices.Concat([]byte("webhook"), ws[:], id[:]) }

// openWebhook decrypts the secrets of a webhook, newest first.
func (a *Service) openWebhook(ws desk.ID, w *desk.Webhook) (secrets []webhookSecret, err error) {
	plain, err := a.Vault.Decrypt(w.Sealed, webhookSealedFor(ws, w.ID))
	if err != nil || json.Unmarshal(plain, &secrets) != nil || len(secrets) == 0 {
		return nil, errors.New("the secrets of webhook " + w.ID.String() + " don't open: its row was changed, or encrypted with another secret key")
	}
	return secrets, nil
}

// webhookSecrets are the secrets that sign a webhook's deliveries at now, newest first.
func (a *Service) webhookSecrets(ws desk.ID, w *desk.Webhook, now desk.Time) (keys [][]byte, err error) {
	secrets, err := a.openWebhook(ws, w)
	for _, s := range secrets {
		if s.Until == 0 || now < s.Until {
			keys = append(keys, s.Key)
		}
	}
	return keys, err
}
