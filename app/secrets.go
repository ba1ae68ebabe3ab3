package app

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"parley/desk"
	"parley/provider"
)

// Secrets are stored encrypted with AES-256-GCM, with a key derived from the
// installation's secret key. A webhook's secrets are bound to the webhook. A channel's
// secrets are bound to the channel, and to the address, the version and the number with
// which they are used. If a row is changed, or copied to another channel, its secrets can't
// be decrypted.

// A sealedSecrets is the plain content that is encrypted.
type sealedSecrets struct {
	Token        string `json:"token"`
	AppSecret    string `json:"app_secret"`
	OldAppSecret string `json:"old_app_secret,omitempty"`
	OldUntil     int64  `json:"old_until,omitempty"`
	VerifyToken  string `json:"verify_token"`
}

// seal encrypts a channel's secrets. If a field that sealedFor uses changes, they must be
// sealed again.
func (a *App) seal(ws desk.ID, c *desk.Channel, s provider.Secrets) []byte {
	plain, err := json.Marshal(sealedSecrets{s.Token.Reveal(), s.AppSecret.Reveal(), s.OldAppSecret.Reveal(), int64(s.OldUntil), s.VerifyToken.Reveal()})
	if err != nil {
		panic(err) // a struct of texts and numbers can always be encoded
	}
	return a.sealText(ws, c, plain)
}

func (a *App) sealText(ws desk.ID, c *desk.Channel, plain []byte) []byte {
	return append([]byte(sealedForm), a.vault.Encrypt(plain, sealedFor(ws, c))...)
}

// sealedForm is the prefix of secrets that are bound to more than the channel's id. Secrets
// that the first release sealed begin with random bytes instead.
const sealedForm = "\x00s2\x00"

// sealedFor returns the data to which the secrets are bound: the channel, and the address to
// which they are sent. A person who can write to the database must not get the token by
// changing the address.
func sealedFor(ws desk.ID, c *desk.Channel) []byte {
	bound := slices.Concat(ws[:], c.ID[:])
	for _, part := range []string{c.Account.BaseURL, c.Account.Version, c.ExternalID} {
		bound = append(binary.BigEndian.AppendUint32(bound, uint32(len(part))), part...)
	}
	return bound
}

// A sealedError means that a channel's secrets can't be decrypted.
type sealedError struct {
	channel *desk.Channel
	err     error
}

func (e *sealedError) Error() string {
	address := e.channel.Account.BaseURL
	if address == "" {
		address = "the provider's own address"
	}
	return fmt.Sprintf("the secrets of channel %s don't open (%v): they were sealed for another address, version or number than the channel has now (%s, version %q, number %s), or with another secret key; "+
		"put the channel's row back as it was, or start with the right key", e.channel.ID, e.err, address, e.channel.Account.Version, e.channel.ExternalID)
}

func (e *sealedError) Unwrap() error { return e.err }

// open decrypts a channel's secrets. Secrets that the first release sealed are not bound to
// an address. They are decrypted for the provider's own address only, unless anywhere is
// set. Only the upgrade sets it, once.
func (a *App) open(ws desk.ID, c *desk.Channel, anywhere bool) (plain []byte, err error) {
	sealed, bound := c.Account.Sealed, sealedFor(ws, c)
	if rest, found := bytes.CutPrefix(sealed, []byte(sealedForm)); found {
		sealed = rest
	} else if anywhere || c.Account.BaseURL == "" {
		bound = slices.Concat(ws[:], c.ID[:])
	}
	if plain, err = a.vault.Decrypt(sealed, bound); err != nil {
		return nil, &sealedError{c, err}
	}
	return plain, nil
}

// SealAnew seals the secrets of the first release again. It runs once in an installation's
// life. If an old row is put back later, its secrets can be used for the provider's own
// address only.
func (a *App) SealAnew(ctx context.Context) error {
	done, err := a.store.Resealed(ctx)
	if err != nil || done {
		return err
	}
	list, err := a.store.Workspaces(ctx)
	if err != nil {
		return err
	}
	for _, w := range list {
		s, err := a.store.Settings(ctx, w.ID)
		if err != nil {
			return err
		}
		for _, c := range s.Channels() {
			if err := a.sealAnew(ctx, w.ID, c); err != nil {
				return err
			}
		}
	}
	return a.store.SetResealed(ctx)
}

func (a *App) sealAnew(ctx context.Context, ws desk.ID, c *desk.Channel) error {
	if len(c.Account.Sealed) == 0 || bytes.HasPrefix(c.Account.Sealed, []byte(sealedForm)) {
		return nil
	}
	// The secrets themselves do not change, so there is no event.
	return a.store.UpdateSettings(ctx, ws, func(s *desk.Settings) (desk.Change, error) {
		edited := *s.Channel(c.ID)
		plain, err := a.open(ws, &edited, true)
		if err != nil {
			a.log.ErrorContext(ctx, "a channel's secrets can't be encrypted again; they stay as they are", "workspace_id", ws, "channel_id", c.ID, "err", err)
			return desk.Change{}, nil
		}
		edited.Account.Sealed = a.sealText(ws, &edited, plain)
		return desk.Change{Channel: &edited}, nil
	})
}

// access decrypts a channel's secrets.
func (a *App) access(ws desk.ID, c *desk.Channel) (provider.Access, error) {
	at := provider.Access{Workspace: ws, Channel: c}
	if len(c.Account.Sealed) == 0 {
		return at, nil
	}
	plain, err := a.open(ws, c, false)
	if err != nil {
		return at, err
	}
	var s sealedSecrets
	if json.Unmarshal(plain, &s) != nil { // its error might contain some of the secret
		return at, errors.New("the secrets of channel " + c.ID.String() + " can't be read")
	}
	at.Secrets = provider.Secrets{Token: provider.NewSecret(s.Token), AppSecret: provider.NewSecret(s.AppSecret), VerifyToken: provider.NewSecret(s.VerifyToken)}
	if s.OldAppSecret != "" && desk.Time(s.OldUntil) > a.now() {
		at.Secrets.OldAppSecret, at.Secrets.OldUntil = provider.NewSecret(s.OldAppSecret), desk.Time(s.OldUntil)
	}
	return at, nil
}

// accessOf is like access, but the channel is given by its id alone. It also returns the
// workspace's settings, or NotFound.
func (a *App) accessOf(ctx context.Context, channel desk.ID) (*desk.Settings, provider.Access, error) {
	s, c, err := a.channelOf(ctx, channel)
	if err != nil {
		return nil, provider.Access{}, err
	}
	at, err := a.access(s.ID, c)
	return s, at, err
}

// channelOf finds a channel, and its workspace's settings, by its id alone.
func (a *App) channelOf(ctx context.Context, id desk.ID) (*desk.Settings, *desk.Channel, error) {
	ws, err := a.store.WorkspaceOf(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	s, err := a.store.Settings(ctx, ws)
	if err != nil {
		return nil, nil, err
	}
	if c := s.Channel(id); c != nil {
		return s, c, nil
	}
	return nil, nil, errNoChannel
}
