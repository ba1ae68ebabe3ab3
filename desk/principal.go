package desk

import "slices"

// A Principal is the caller: an actor, its permissions, and its workspace with the
// configuration at the time of the call. If both Key and Member are nil, the caller is the
// command line, which may do anything: a person who can run commands can read the database
// anyway.
type Principal struct {
	Actor    Actor
	Settings *Settings
	Key      *APIKey // for an actor of kind key; otherwise nil
	Member   *Member // for an actor of kind member; otherwise nil
	Presumed bool    // the key was authenticated with cached settings, see Stale
}

// ErrUnauthorized is the same for a missing, malformed, unknown, revoked and expired key,
// so that it does not show which keys exist (spec, Authentication 6).
var ErrUnauthorized = Errorf(Unauthorized, "send a valid API key: Authorization: Bearer prl_live_…")

// ErrSignedOut is for a member who was removed, or whose session was ended.
var ErrSignedOut = Errorf(Unauthorized, "you are signed out")

// ErrNoMember is for an id that no member of the workspace has.
var ErrNoMember = NotFoundf("no member has this id").Advise(ListMembers)

// MemberPrincipal returns the principal of a member, or ErrSignedOut if there is no such
// member.
func MemberPrincipal(s *Settings, id ID) (Principal, error) {
	m := s.Member(id)
	if m == nil {
		return Principal{}, ErrSignedOut
	}
	return Principal{Actor: Actor{Kind: ByMember, ID: id}, Settings: s, Member: m}, nil
}

// Workspace is the only workspace that the principal can see.
func (p Principal) Workspace() ID { return p.Settings.ID }

// SameSettings tells whether both principals have the same version of the settings.
func (p Principal) SameSettings(q Principal) bool {
	return p.Settings.ID == q.Settings.ID && p.Settings.Version == q.Settings.Version
}

// Stale tells whether a presumed principal must be authenticated again, given the settings
// of the transaction that did its work.
func (p Principal) Stale(s *Settings) bool {
	return p.Presumed && p.Settings.Version != s.Version
}

// Still returns an error if the key or the member may no longer make the request, according
// to the settings of a transaction. So nothing that the caller sends is stored after a
// revocation, a removal or a change of role was answered. The error is ErrUnauthorized,
// ErrSignedOut or Forbidden.
func (p Principal) Still(s *Settings, needs Permission, now Time) error {
	switch {
	case p.Key != nil:
		k := s.Key(p.Key.ID)
		if k == nil || !k.Valid(now) {
			return ErrUnauthorized
		}
		return k.allow(needs)
	case p.Member != nil:
		m := s.Member(p.Member.ID)
		if m == nil {
			return ErrSignedOut
		}
		return m.allow(needs)
	}
	return nil
}

// In returns the principal with the settings of a transaction. Call it only if the method
// Still returned nil for them.
func (p Principal) In(s *Settings) Principal {
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
func (p Principal) Allow(needs Permission) error {
	switch {
	case p.Key != nil:
		return p.Key.allow(needs)
	case p.Member != nil:
		return p.Member.allow(needs)
	}
	return nil
}

// allow never grants a key the permissions that only members have: a leaked key must not
// create further keys.
func (k *APIKey) allow(needs Permission) error {
	if needs == ContactsDelete {
		needs = ContactsWrite
	}
	if slices.Contains(k.Permissions, needs) {
		return nil
	}
	if !slices.Contains(Permissions, needs) {
		return Errorf(Forbidden, "an API key can't change the workspace, its members, keys or channels")
	}
	list := slices.DeleteFunc(slices.Clone(Permissions), func(held Permission) bool {
		return held != needs && !slices.Contains(k.Permissions, held)
	})
	return Errorf(Forbidden, "this key lacks the permission %s", needs).Advise(EditKey, k.ID.String(), JoinPermissions(list))
}

func (m *Member) allow(needs Permission) error {
	if slices.Contains(m.Role.Permissions(), needs) {
		return nil
	}
	return Errorf(Forbidden, "members with the role %s lack the permission %s", m.Role, needs)
}

// MayManage returns nil if the member is the caller, or if the caller may administer the
// workspace; otherwise Unauthorized, Forbidden or NotFound.
func (p Principal) MayManage(s *Settings, member ID) error {
	if p.Member != nil && p.Member.ID == member {
		if s.Member(member) == nil {
			return ErrSignedOut
		}
		return nil
	}
	if p.Key != nil { // no key has Administer, so this is Forbidden
		return p.Allow(Administer)
	}
	if err := p.Still(s, Administer, 0); err != nil {
		return err
	}
	if s.Member(member) == nil {
		return ErrNoMember
	}
	return nil
}

// LeavesAdmin returns InvalidRequest if the workspace would have no admin after a change of a
// member's role. Only the command line may remove the last admin.
func (p Principal) LeavesAdmin(s *Settings, m *Member, role Role) error {
	if p.Member == nil || m.Role != RoleAdmin || role == RoleAdmin {
		return nil
	}
	for _, other := range s.Members() {
		if other.ID != m.ID && other.Role == RoleAdmin {
			return nil
		}
	}
	return InvalidAt("/role", "the workspace would have no admin: make another member an admin first")
}

// MayDeliver returns Forbidden unless the principal may read all events of a filter, because
// a caller who sets an endpoint can read the events that it gets. A nil filter stands for
// types that do not exist; then only EventsRead is checked.
func (p Principal) MayDeliver(f *EventFilter) error {
	if err := p.Allow(EventsRead); err != nil || f == nil {
		return err
	}
	return f.AllowAll(p.Allow)
}
