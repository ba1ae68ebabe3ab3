package access

import (
	"context"

	"parley/desk"
)

// Authenticate turns the text of a key into a principal, or returns Unauthorized.
func (a *Service) Authenticate(ctx context.Context, key string) (desk.Principal, error) {
	credential, ok := desk.ParseKey(key)
	if !ok {
		return desk.Principal{}, desk.ErrUnauthorized
	}
	settings, err := a.Store.Authenticate(ctx, credential.PublicID)
	if desk.IsType(err, desk.NotFound) {
		return desk.Principal{}, desk.ErrUnauthorized
	}
	if err != nil {
		return desk.Principal{}, err
	}
	k, now := settings.KeyByPublicID(credential.PublicID), a.Now()
	if k == nil || !credential.Proves(k) || !k.Valid(now) {
		return desk.Principal{}, desk.ErrUnauthorized
	}
	p := desk.Principal{Actor: desk.Actor{Kind: desk.ByKey, ID: k.ID}, Settings: settings, Key: k}
	a.known.put(credential.PublicID, p)
	a.uses.note(p, now)
	return p, nil
}

// Presume returns the principal that this key had last time, if the secret is right and the
// key has not expired. It does not check whether the key has changed since. App's Write,
// WriteAll and Contact check this in the transaction that does their work, and return
// ErrStale if the workspace's settings have changed. If any call with a presumed principal
// fails, except with Unavailable, the caller must call Authenticate before it reports the
// error to its client. This saves most requests a read (docs/adr/0007).
func (a *Service) Presume(key string) (desk.Principal, bool) {
	credential, ok := desk.ParseKey(key)
	if !ok {
		return desk.Principal{}, false
	}
	p, ok := a.known.get(credential.PublicID)
	if !ok || !credential.Proves(p.Key) {
		return desk.Principal{}, false
	}
	now := a.Now()
	if !p.Key.Valid(now) {
		return desk.Principal{}, false
	}
	p.Presumed = true
	a.uses.note(p, now)
	return p, true
}

// StoreKeyUses stores the times at which keys were used since the last call. If it fails,
// the times that are not stored yet are lost; the next use of the key gives a newer one.
func (a *Service) StoreKeyUses(ctx context.Context) error {
	for ws, uses := range a.uses.take() {
		if err := a.Store.PutKeyUses(ctx, ws, uses); err != nil {
			return err
		}
	}
	return nil
}

// KeyUses returns when the workspace's keys were last used. A use may appear a minute late.
// Keys that were never used are left out.
func (a *Service) KeyUses(ctx context.Context, p desk.Principal) (map[desk.ID]desk.Time, error) {
	return a.Store.KeyUses(ctx, p.Workspace())
}
