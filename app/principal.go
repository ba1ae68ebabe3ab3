package app

import (
	"context"
	"errors"
	"slices"
	"sync"

	"parley/desk"
)

// A Principal is the caller: an actor, its permissions, and its workspace with the
// configuration at the time of the call.
type Principal struct {
	Actor    desk.Actor
	Settings *desk.Settings
	Key      *desk.APIKey // for an actor of kind key; otherwise nil
	Member   *desk.Member // for an actor of kind member; otherwise nil
	presumed bool
}

// Operator returns the principal of the command line in a workspace, or NotFound. It
// has all permissions: anybody who can run commands can read the database anyway.
func (a *App) Operator(ctx context.Context, ws desk.ID) (Principal, error) {
	s, err := a.store.Settings(ctx, ws)
	if err != nil {
		return Principal{}, err
	}
	return Principal{Actor: desk.Actor{Kind: desk.ByCLI}, Settings: s}, nil
}

// OperatorOf is Operator in the workspace of a member, key, channel or unsettled attempt,
// given by its id.
func (a *App) OperatorOf(ctx context.Context, id desk.ID) (Principal, error) {
	ws, err := a.store.WorkspaceOf(ctx, id)
	if err != nil {
		return Principal{}, err
	}
	return a.Operator(ctx, ws)
}

// OperatorOfAttempt is Operator in the workspace of an attempt, or returns NotFound.
func (a *App) OperatorOfAttempt(ctx context.Context, id desk.ID) (Principal, error) {
	p, err := a.OperatorOf(ctx, id)
	if !desk.IsType(err, desk.NotFound) {
		return p, err
	}
	workspaces, err := a.store.Workspaces(ctx) // a settled one is looked for in each
	if err != nil {
		return Principal{}, err
	}
	for _, w := range workspaces {
		at, err := a.store.Attempt(ctx, w.ID, id)
		if at != nil && err == nil {
			return a.Operator(ctx, w.ID)
		}
		if err != nil {
			return Principal{}, err
		}
	}
	return Principal{}, noAttempt()
}

// errSignedOut is for a member who has been removed.
var errSignedOut = desk.Errorf(desk.Unauthorized, "you are signed out")

// Member returns the principal of a member, or Unauthorized if there is no such member.
// The caller must have checked that it acts for the member, see Session.
func (a *App) Member(ctx context.Context, ws, id desk.ID) (Principal, error) {
	s, err := a.store.Settings(ctx, ws)
	if desk.IsType(err, desk.NotFound) {
		return Principal{}, errSignedOut
	}
	if err != nil {
		return Principal{}, err
	}
	return member(s, id)
}

func member(s *desk.Settings, id desk.ID) (Principal, error) {
	m := s.Member(id)
	if m == nil {
		return Principal{}, errSignedOut
	}
	return Principal{Actor: desk.Actor{Kind: desk.ByMember, ID: id}, Settings: s, Member: m}, nil
}

// byProvider is the actor for reports of a channel's provider.
func byProvider(channel desk.ID) desk.Actor { return desk.Actor{Kind: desk.ByProvider, ID: channel} }

// Workspace is the only workspace that the principal can see.
func (p Principal) Workspace() desk.ID { return p.Settings.ID }

// errUnauthorized is the same for a missing, malformed, unknown, revoked and expired
// key, so that it does not show which keys exist (spec, Authentication 6).
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
	k, now := settings.KeyByPublicID(credential.PublicID), a.now()
	if k == nil || !credential.Proves(k) || !k.Valid(now) {
		return Principal{}, errUnauthorized
	}
	p := Principal{Actor: desk.Actor{Kind: desk.ByKey, ID: k.ID}, Settings: settings, Key: k}
	a.known.put(credential.PublicID, p)
	a.uses.note(p, now)
	return p, nil
}

// Presume returns the principal that this key had last time, if the secret is right and
// the key has not expired. It does not check whether the key has changed since. Write,
// WriteAll and Contact check that in the transaction that does their work, and return
// ErrStale if the workspace's settings have changed. If a caller gets any error with a
// presumed principal, it must call Authenticate before it answers that error. This
// saves most requests a read (docs/adr/0007).
func (a *App) Presume(key string) (Principal, bool) {
	credential, ok := desk.ParseKey(key)
	if !ok {
		return Principal{}, false
	}
	p, ok := a.known.get(credential.PublicID)
	if !ok || !credential.Proves(p.Key) {
		return Principal{}, false
	}
	now := a.now()
	if !p.Key.Valid(now) {
		return Principal{}, false
	}
	p.presumed = true
	a.uses.note(p, now)
	return p, true
}

// ErrStale is returned for a presumed principal if the workspace's settings have
// changed. Nothing was done; the caller must Authenticate and try again.
var ErrStale = errors.New("the workspace's settings have changed since this principal was authenticated")

// stale tells whether a presumed principal must be authenticated again, given the
// settings of the transaction that did its work.
func (p Principal) stale(s *desk.Settings) bool {
	return p.presumed && p.Settings.Version != s.Version
}

// SameSettings tells whether both principals have the same version of the settings.
func (p Principal) SameSettings(q Principal) bool {
	return p.Settings.ID == q.Settings.ID && p.Settings.Version == q.Settings.Version
}

// maxKnown limits how many principals are kept.
const maxKnown = 10_000

// known keeps the newest principal of each key.
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

// still checks a key or a member again inside a transaction: after a revocation, a
// removal or a change of role was answered, nothing that the caller sends is stored.
func (p Principal) still(s *desk.Settings, needs desk.Permission, now desk.Time) error {
	switch {
	case p.Key != nil:
		k := s.Key(p.Key.ID)
		if k == nil || !k.Valid(now) {
			return errUnauthorized
		}
		return allow(k, needs)
	case p.Member != nil:
		m := s.Member(p.Member.ID)
		if m == nil {
			return errSignedOut
		}
		return allowMember(m, needs)
	}
	return nil
}

// in is the principal as the settings of a transaction have it. still must have passed.
func (p Principal) in(s *desk.Settings) Principal {
	p.Settings = s
	if p.Key != nil {
		p.Key = s.Key(p.Key.ID)
	}
	if p.Member != nil {
		p.Member = s.Member(p.Member.ID)
	}
	return p
}

// Allow returns Forbidden, with the permission's name, unless the principal has it.
func (p Principal) Allow(needs desk.Permission) error {
	switch {
	case p.Key != nil:
		return allow(p.Key, needs)
	case p.Member != nil:
		return allowMember(p.Member, needs)
	}
	return nil
}

// allow never gives a key what only members have: a leaked key must not create others.
func allow(k *desk.APIKey, needs desk.Permission) error {
	if needs == desk.ContactsDelete {
		needs = desk.ContactsWrite
	}
	if slices.Contains(k.Permissions, needs) {
		return nil
	}
	if !slices.Contains(desk.Permissions, needs) {
		return desk.Errorf(desk.Forbidden, "an API key can't change the workspace, its members, keys or channels")
	}
	list := slices.DeleteFunc(slices.Clone(desk.Permissions), func(held desk.Permission) bool {
		return held != needs && !slices.Contains(k.Permissions, held)
	})
	return desk.Errorf(desk.Forbidden, "this key lacks the permission %s", needs).Advise(desk.EditKey, k.ID.String(), desk.JoinPermissions(list))
}

func allowMember(m *desk.Member, needs desk.Permission) error {
	if slices.Contains(m.Role.Permissions(), needs) {
		return nil
	}
	return desk.Errorf(desk.Forbidden, "members with the role %s lack the permission %s", m.Role, needs)
}

// configure changes the principal's workspace, if the principal may administer it.
func (a *App) configure(ctx context.Context, p Principal, decide func(*desk.Settings) (desk.Change, error)) error {
	if err := p.Allow(desk.Administer); err != nil {
		return err
	}
	return a.updateSettings(ctx, p.Workspace(), p.Actor, func(s *desk.Settings) (desk.Change, error) {
		if err := p.still(s, desk.Administer, 0); err != nil { // no key comes here
			return desk.Change{}, err
		}
		return decide(s)
	})
}

// updateSettings changes a workspace, with the events of what really changes.
func (a *App) updateSettings(ctx context.Context, ws desk.ID, by desk.Actor, decide func(*desk.Settings) (desk.Change, error)) error {
	return a.store.UpdateSettings(ctx, ws, func(s *desk.Settings) (desk.Change, error) {
		change, err := decide(s)
		if err != nil {
			return desk.Change{}, err
		}
		return change.Against(s, by, a.now()), nil
	})
}
