package app

import (
	"context"
	"slices"

	"parley/desk"
)

// A Principal is who is calling: a key, and the workspace that it belongs to as
// it was configured when the call came in.
type Principal struct {
	Settings *desk.Settings
	Key      *desk.APIKey
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
	return Principal{settings, k}, nil
}

// Allow returns Forbidden, naming the permission, unless the key has it.
func (p Principal) Allow(needs desk.Permission) error { return allow(p.Key, needs) }

func allow(k *desk.APIKey, needs desk.Permission) error {
	if slices.Contains(k.Permissions, needs) {
		return nil
	}
	return desk.Errorf(desk.Forbidden, "this key lacks the permission %s: add it with parley key edit, or use another key", needs)
}
