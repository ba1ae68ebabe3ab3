package app

import (
	"crypto/hmac"
	"crypto/sha256"
	"log/slog"
	"time"

	"parley/app/cursors"
	"parley/app/vault"
	"parley/desk"
	"parley/provider"
	"parley/store"
)

// A base has the parts that all of app uses.
type base struct {
	store     store.Store
	providers map[desk.ChannelKind]provider.Provider
	answer    func(*desk.SentMessage) []byte
	clock     func() time.Time
	newID     func() desk.ID
	random    func([]byte)
	secret    []byte
	log       *slog.Logger
	bounds    Bounds
	cursors   cursors.Sealer
	vault     *vault.Vault      // of secrets
	addresses desk.WebhookRules // which addresses webhooks and guarded connections may use
}

// derive returns a key for one purpose.
func (b *base) derive(purpose string, parts ...[]byte) []byte {
	mac := hmac.New(sha256.New, b.secret)
	mac.Write([]byte(purpose))
	for _, p := range parts {
		mac.Write(p)
	}
	return mac.Sum(nil)
}

func (b *base) now() desk.Time { return desk.TimeOf(b.clock()) }
