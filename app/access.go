package app

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/json"
	"errors"
	"fmt"

	"parley/desk"
)

// Secrets of channels are stored encrypted with AES-256-GCM, by a key that comes of the
// installation's secret key, and bound to their channel: a row that is copied to another
// one opens nothing.

// A sealedSecrets is what is encrypted.
type sealedSecrets struct {
	Token        string `json:"token"`
	AppSecret    string `json:"app_secret"`
	OldAppSecret string `json:"old_app_secret,omitempty"`
	OldUntil     int64  `json:"old_until,omitempty"`
	VerifyToken  string `json:"verify_token"`
}

// newVault returns what encrypts with a key of 32 bytes.
func newVault(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err == nil {
		var aead cipher.AEAD
		if aead, err = cipher.NewGCM(block); err == nil {
			return aead
		}
	}
	panic(err) // a key of 32 bytes always makes one
}

// seal encrypts a channel's secrets.
func (a *App) seal(ws, channel desk.ID, s Secrets) []byte {
	plain, err := json.Marshal(sealedSecrets{s.Token.Reveal(), s.AppSecret.Reveal(), s.OldAppSecret.Reveal(), int64(s.OldUntil), s.VerifyToken.Reveal()})
	if err != nil {
		panic(err) // texts always can be made into JSON
	}
	nonce := make([]byte, a.vault.NonceSize())
	a.random(nonce)
	return a.vault.Seal(nonce, nonce, plain, append(ws[:], channel[:]...))
}

// access opens a channel's secrets.
func (a *App) access(ws desk.ID, c *desk.Channel) (Access, error) {
	at := Access{Workspace: ws, Channel: c}
	sealed := c.Account.Sealed
	if len(sealed) == 0 {
		return at, nil
	}
	size := a.vault.NonceSize()
	if len(sealed) < size {
		return at, fmt.Errorf("the secrets of channel %s are cut short", c.ID)
	}
	plain, err := a.vault.Open(nil, sealed[:size], sealed[size:], append(ws[:], c.ID[:]...))
	if err != nil {
		return at, fmt.Errorf("the secrets of channel %s can't be decrypted: %w", c.ID, err)
	}
	var s sealedSecrets
	if json.Unmarshal(plain, &s) != nil { // whose error might show some of it
		return at, errors.New("the secrets of channel " + c.ID.String() + " can't be read")
	}
	at.Secrets = Secrets{Token: NewSecret(s.Token), AppSecret: NewSecret(s.AppSecret), VerifyToken: NewSecret(s.VerifyToken)}
	if s.OldAppSecret != "" && desk.Time(s.OldUntil) > a.now() {
		at.Secrets.OldAppSecret, at.Secrets.OldUntil = NewSecret(s.OldAppSecret), desk.Time(s.OldUntil)
	}
	return at, nil
}

// accessOf is access to a channel by its id alone, with its workspace's settings. It
// returns NotFound.
func (a *App) accessOf(ctx context.Context, channel desk.ID) (*desk.Settings, Access, error) {
	s, c, err := a.channelOf(ctx, channel)
	if err != nil {
		return nil, Access{}, err
	}
	at, err := a.access(s.ID, c)
	return s, at, err
}

// sameApp tells whether an app secret signs the webhooks of both, also while it is being
// replaced on one after the other.
func (s Secrets) sameApp(other Secrets) bool {
	for _, a := range [2]Secret{s.AppSecret, s.OldAppSecret} {
		if a != (Secret{}) && (a == other.AppSecret || a == other.OldAppSecret) {
			return true
		}
	}
	return false
}

// replaced returns the secrets with those in their place that are not empty. The app
// secret before still counts for as long as the provider repeats webhooks.
func (s Secrets) replaced(by Secrets, now desk.Time) Secrets {
	if by.Token != (Secret{}) {
		s.Token = by.Token
	}
	if by.AppSecret != (Secret{}) {
		if s.AppSecret != by.AppSecret {
			s.OldAppSecret, s.OldUntil = s.AppSecret, now+keepWebhook
		}
		s.AppSecret = by.AppSecret
	}
	if by.VerifyToken != (Secret{}) {
		s.VerifyToken = by.VerifyToken
	}
	return s
}
