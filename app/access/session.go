package access

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"

	"parley/desk"
	"parley/store"
)

// A MemberSession is a member's session in one browser.
type MemberSession struct {
	store.Session
	stored bool      // the session was read from the store
	from   desk.Time // for a new session: the member's SessionsFrom at the sign-in
}

// Session returns the session with a token. The caller must have hashed the token already.
// It returns nil if there is no valid session: it has expired, the member was removed, or
// the member's sessions were ended.
func (a *Service) Session(ctx context.Context, token string) (*MemberSession, error) {
	found, settings, err := a.Store.Session(ctx, token)
	if err != nil || found == nil {
		return nil, err
	}
	s := &MemberSession{Session: *found, stored: true}
	if s.ExpiresAt <= a.Now() || s.void(settings) {
		return nil, nil
	}
	return s, nil
}

// void reports that a new session must not begin, or that a stored session is not valid.
// Sessions are ended by deleting their rows. So a stored session of an existing member is
// valid, even if the clocks of servers differ.
func (s *MemberSession) void(settings *desk.Settings) bool {
	m := settings.Member(s.Member)
	return m == nil || !s.stored && s.from != m.SessionsFrom
}

// NewSession returns a session of a member, to be stored by PutSession. PutSession refuses
// it if the member's sessions were ended after p was read. The session's BegunAt is not
// before SessionsFrom, because nodes of an earlier release would treat it as ended.
func (a *Service) NewSession(p desk.Principal) *MemberSession {
	from := p.Member.SessionsFrom
	return &MemberSession{Session: store.Session{Workspace: p.Workspace(), Member: p.Member.ID, BegunAt: max(a.Now(), from)}, from: from}
}

// PutSession stores a new session, or the changes of one that Session returned. It returns
// Unauthorized if the member was removed, or if the session was ended meanwhile.
func (a *Service) PutSession(ctx context.Context, token string, s MemberSession) error {
	err := a.Store.InTx(ctx, s.Workspace, func(tx store.Tx) error {
		if s.void(tx.Settings()) {
			return desk.ErrSignedOut
		}
		if err := tx.NoteSeen(s.Member, a.Now()); err != nil {
			return err
		}
		if !s.stored {
			return tx.BeginSession(token, s.Session, desk.MaxSessions)
		}
		kept, err := tx.KeepSession(token, s.Session)
		if err == nil && !kept {
			err = desk.ErrSignedOut
		}
		return err
	})
	if desk.IsType(err, desk.NotFound) { // the workspace was deleted
		return desk.ErrSignedOut
	}
	return err
}

// EndSession ends the session with this token, if there is one.
func (a *Service) EndSession(ctx context.Context, token string) error {
	s, _, err := a.Store.Session(ctx, token)
	if err != nil || s == nil {
		return err
	}
	err = a.Store.InTx(ctx, s.Workspace, func(tx store.Tx) error { return tx.EndSession(token) })
	if desk.IsType(err, desk.NotFound) {
		return nil
	}
	return err
}

// EndSessions ends all sessions and links of a member. Members may end their own; admins
// may end those of every member.
func (a *Service) EndSessions(ctx context.Context, p desk.Principal, member desk.ID) error {
	if err := p.MayManage(p.Settings, member); err != nil {
		return err
	}
	return store.UpdateSettings(ctx, a.Store, p.Workspace(), p.Actor, a.Now, func(s *desk.Settings) (desk.Change, error) {
		if err := p.MayManage(s, member); err != nil {
			return desk.Change{}, err
		}
		m := *s.Member(member)
		m.EndSessions(a.Now())
		return desk.Change{Member: &m}, nil
	})
}

// MakeLink makes a sign-in link for a member and returns its token, which is not stored.
// Only admins and the command line may call it. It appends an event of the member.
func (a *Service) MakeLink(ctx context.Context, p desk.Principal, member desk.ID) (token string, expires desk.Time, err error) {
	if err := p.Allow(desk.Administer); err != nil {
		return "", 0, err
	}
	random := make([]byte, 32)
	a.Random(random)
	token = base64.RawURLEncoding.EncodeToString(random)
	now := a.Now()
	expires = now + desk.Time(desk.LinkLife.Milliseconds())
	err = a.Store.InTx(ctx, p.Workspace(), func(tx store.Tx) error {
		if err := p.Still(tx.Settings(), desk.Administer, now); err != nil {
			return err
		}
		if tx.Settings().Member(member) == nil {
			return desk.ErrNoMember
		}
		if err := tx.PutLoginLink(hashOfLink(token), store.LoginLink{Workspace: p.Workspace(), Member: member, ExpiresAt: expires}); err != nil {
			return err
		}
		return tx.Append(desk.Event{Type: desk.MemberUpdated, Subject: member, Actor: p.Actor, At: now, Changed: []string{"link"}})
	})
	return token, expires, err
}

func hashOfLink(token string) string {
	hash := sha256.Sum256([]byte(token))
	return hex.EncodeToString(hash[:])
}

var errNoLink = desk.NotFoundf("this link was used already, or has expired")

// LinkOwner returns the member of a sign-in link, or NotFound. The link can still be used.
func (a *Service) LinkOwner(ctx context.Context, token string) (desk.Principal, error) {
	l, settings, err := a.Store.LoginLink(ctx, hashOfLink(token))
	if err != nil {
		return desk.Principal{}, err
	}
	return a.owner(l, settings)
}

// SpendLink returns the member of a sign-in link, and makes the link invalid. For a used,
// unknown or expired link it returns NotFound.
func (a *Service) SpendLink(ctx context.Context, token string) (p desk.Principal, err error) {
	hash := hashOfLink(token)
	l, _, err := a.Store.LoginLink(ctx, hash)
	if err == nil && l == nil {
		err = errNoLink
	}
	if err != nil {
		return desk.Principal{}, err
	}
	err = a.Store.InTx(ctx, l.Workspace, func(tx store.Tx) error {
		l, err := tx.TakeLoginLink(hash)
		if err == nil {
			p, err = a.owner(l, tx.Settings())
		}
		return err
	})
	if desk.IsType(err, desk.NotFound) {
		err = errNoLink
	}
	return p, err
}

func (a *Service) owner(l *store.LoginLink, settings *desk.Settings) (desk.Principal, error) {
	if l == nil || l.ExpiresAt <= a.Now() || settings.Member(l.Member) == nil {
		return desk.Principal{}, errNoLink
	}
	return desk.MemberPrincipal(settings, l.Member)
}

// LastSeen returns when members were last seen. The times may be an hour too old. Members
// who never signed in are left out.
func (a *Service) LastSeen(ctx context.Context, p desk.Principal) (map[desk.ID]desk.Time, error) {
	if err := p.Allow(desk.Administer); err != nil {
		return nil, err
	}
	return a.Store.LastSeen(ctx, p.Workspace())
}

// Held returns how many contacts a member owns, and how many open conversations are
// assigned to the member. Each number is at most 100.
func (a *Service) Held(ctx context.Context, p desk.Principal, member desk.ID) (contacts, conversations int, err error) {
	if err := p.Allow(desk.Administer); err != nil {
		return 0, 0, err
	}
	return a.Store.Held(ctx, p.Workspace(), member, 100)
}
