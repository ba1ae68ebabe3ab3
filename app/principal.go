package app

import (
	"context"
	"errors"
	"slices"
	"sync"

	"parley/desk"
)

// A Principal is who is calling: a key, and the workspace that it belongs to as
// it was configured when the call came in.
type Principal struct {
	Settings *desk.Settings
	Key      *desk.APIKey
	presumed bool
}

// Workspace is the only workspace that the principal can see.
func (p Principal) Workspace() desk.ID { return p.Settings.ID }

// errUnauthorized is one and the same for a missing, malformed, unknown, revoked
// and expired key, so that nobody can tell which keys exist (spec, Authentication 6).
var errUnauthorized = desk.Errorf(desk.Unauthorized, "send a valid API key: Authorization: Bearer prl_live_…")

// Authenticate turns the text of a key into a principal, or returns Unauthorized.
func (a *App) Authenticate(ctx context.Context, key string) (Principal, error) {
	credential, ok := desk.ParseKey(key)
	if !ok {
		return Principal{}, errUnauthorized
	}
	settings, err := a.store.Authenticate(ctx, credential.PublicID)
	if desk.IsType(err, desk.NotFound) {
		return Principal{}, errUnauthorized
	}
	if err != nil {
		return Principal{}, err
	}
	k := settings.KeyByPublicID(credential.PublicID)
	if k == nil || !credential.Proves(k) || !k.Valid(a.now()) {
		return Principal{}, errUnauthorized
	}
	p := Principal{Settings: settings, Key: k}
	a.known.put(credential.PublicID, p)
	return p, nil
}

// Presume returns the principal that this key was last time, if its secret is
// right and it has not expired since. Whether the key still is what it was is left
// to what follows: Write, WriteAll and Contact look in the very transaction in
// which they do their work, and return ErrStale when the workspace's settings have
// changed. A caller who meets any error with a presumed principal must Authenticate
// before answering it. This spares most requests a read of their own (docs/adr/0007).
func (a *App) Presume(key string) (Principal, bool) {
	credential, ok := desk.ParseKey(key)
	if !ok {
		return Principal{}, false
	}
	p, ok := a.known.get(credential.PublicID)
	if !ok || !credential.Proves(p.Key) || !p.Key.Valid(a.now()) {
		return Principal{}, false
	}
	p.presumed = true
	return p, true
}

// ErrStale is returned for a presumed principal whose workspace's settings have
// changed: nothing was done, and the caller must Authenticate and try again.
var ErrStale = errors.New("the workspace's settings have changed since this principal was authenticated")

// stale tells whether a presumed principal must be authenticated anew, given the
// settings of the transaction that did its work.
func (p Principal) stale(s *desk.Settings) bool {
	return p.presumed && p.Settings.Version != s.Version
}

// SameSettings tells whether both principals saw the same version of the settings.
func (p Principal) SameSettings(q Principal) bool {
	return p.Settings.ID == q.Settings.ID && p.Settings.Version == q.Settings.Version
}

// maxKnown bounds how many principals are remembered.
const maxKnown = 10_000

// known remembers the newest principal of each key.
type known struct {
	mu       sync.RWMutex
	byPublic map[string]Principal
}

func (k *known) get(public string) (Principal, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	p, ok := k.byPublic[public]
	return p, ok
}

func (k *known) put(public string, p Principal) {
	if old, ok := k.get(public); ok && old.SameSettings(p) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byPublic == nil || len(k.byPublic) >= maxKnown {
		k.byPublic = map[string]Principal{}
	}
	k.byPublic[public] = p
}

// still checks the key once more, inside a transaction: once a revocation is
// answered, nothing that the key sends is stored any more.
func (p Principal) still(s *desk.Settings, needs desk.Permission, now desk.Time) error {
	k := s.Key(p.Key.ID)
	if k == nil || !k.Valid(now) {
		return errUnauthorized
	}
	return allow(k, needs)
}

// Allow returns Forbidden, naming the permission, unless the key has it.
func (p Principal) Allow(needs desk.Permission) error { return allow(p.Key, needs) }

func allow(k *desk.APIKey, needs desk.Permission) error {
	if slices.Contains(k.Permissions, needs) {
		return nil
	}
	return desk.Errorf(desk.Forbidden, "this key lacks the permission %s: add it with parley key edit, or use another key", needs)
}
