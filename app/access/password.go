package access

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"

	"parley/desk"
	"parley/store"
)

// longestHashing is how long a caller waits to hash a password. One password is hashed at a
// time.
const longestHashing = 5 * time.Second

// maxSignIns is how many members, of different workspaces, one sign-in returns.
const maxSignIns = 20

// maxHolders is how many members with one e-mail a sign-in checks.
const maxHolders = 1000

// maxPassword is how many bytes a typed password may have. A longer one has more than
// desk.MaxPassword characters, however they are composed.
const maxPassword = 16 << 10

// The throttle of sign-ins, which all nodes share. E-mails, members and addresses are
// hashed into a fixed number of buckets, so any number of them takes limited space.
const (
	emailBuckets   = 4096
	addressBuckets = 65536
)

// LongestThrottle is how far in the future a place of the throttle can be. A bucket that
// was not used for so long can be forgotten.
const LongestThrottle = max(desk.SignInTries*desk.SignInEvery, desk.AddressTries*desk.AddressEvery)

var errSignIn = desk.Errorf(desk.Unauthorized, "the e-mail or the password is wrong")

// SignIn returns the members, of any workspace, who have this e-mail and this password. The
// parameter from is the address of the caller. SignIn returns Unauthorized if there is no
// such member, whatever the reason; RateLimited after too many tries; and Unavailable if
// too many callers sign in at once. It makes the same number of hashes for every e-mail
// (docs/adr/0037).
func (a *Service) SignIn(ctx context.Context, email, password, from string) (list []desk.Principal, err error) {
	canonical := desk.ReferTo(email).Email()
	if err := a.throttle(ctx, a.emailBucket("e-mail", canonical), from); err != nil {
		return nil, err
	}
	holders, err := a.Store.MembersByEmail(ctx, canonical, maxHolders)
	if err != nil {
		return nil, err
	}
	recipes := recipesOf(holders)
	if len(recipes) == 0 {
		recipes = []recipe{a.recipeFor(canonical)}
	}
	recipes = recipes[:min(len(recipes), maxSignIns)]
	most, err := a.mostRecipes(ctx, len(recipes))
	if err != nil {
		return nil, err
	}
	own := len(recipes)
	for n := own; n < most; n++ { // so that the time does not show how many workspaces have this e-mail, if any
		recipes = append(recipes, a.recipeFor(fmt.Sprint(canonical, " ", n)))
	}
	hashes, err := a.hashes(ctx, readPassword(password), recipes)
	if err != nil {
		return nil, err
	}
	var proved, others []store.MemberAccess
	for _, h := range holders {
		if h.Password == "" {
			continue
		}
		if at := slices.Index(recipes[:own], recipeOf(h.Password)); at >= 0 && subtle.ConstantTimeCompare([]byte(hashes[at]), []byte(h.Password)) == 1 {
			proved = append(proved, h)
		} else {
			others = append(others, h)
		}
	}
	a.gather(ctx, proved, others, recipes[:own], hashes)
	for _, h := range proved[:min(len(proved), maxSignIns)] {
		p, err := a.Member(ctx, h.Workspace, h.ID)
		switch {
		case desk.IsType(err, desk.Unauthorized): // removed meanwhile
		case err != nil:
			return nil, err
		case p.Member.SessionsFrom == h.SessionsFrom: // otherwise the password was replaced meanwhile
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		return nil, errSignIn
	}
	return list, nil
}

// gather makes members with one e-mail use one recipe, so that one hash serves for all of
// them. Members who have just signed in get a new hash of their password, by the recipe
// that most other members with the e-mail use.
func (a *Service) gather(ctx context.Context, proved, others []store.MemberAccess, recipes []recipe, hashes []string) {
	if len(proved) == 0 || len(recipes) < 2 {
		return
	}
	common := recipesOf(others)
	if len(common) == 0 {
		common = recipesOf(proved)
	}
	to := slices.Index(recipes, common[0])
	if to < 0 {
		return
	}
	for _, h := range proved {
		if recipeOf(h.Password) == recipes[to] {
			continue
		}
		if err := a.Store.MovePassword(ctx, h.Workspace, h.ID, h.Password, hashes[to]); err != nil {
			a.Log.WarnContext(ctx, "the hash of a password can not be stored in its new form", "workspace_id", h.Workspace.String(), "member_id", h.ID.String(), "err", err)
		}
	}
}

// SetPassword sets the member's own password, and ends the member's sessions. It needs the
// old password, unless byLink says that the member has just signed in by a link. It returns
// the member with the new settings, with which a session can begin.
func (a *Service) SetPassword(ctx context.Context, p desk.Principal, old string, byLink bool, password string) (desk.Principal, error) {
	if p.Member == nil {
		return p, desk.Errorf(desk.Forbidden, "only members have passwords")
	}
	ws, id := p.Workspace(), p.Member.ID
	password, err := desk.ParsePassword(password, p.Member.Email)
	if err != nil {
		return p, desk.InvalidAt("/password", "%v", err)
	}
	leave, err := a.changes.enter(ctx, ws)
	if err != nil {
		return p, err
	}
	defer leave()
	now, err := a.Member(ctx, ws, id)
	if err == nil && now.Member.SessionsFrom != p.Member.SessionsFrom {
		err = desk.ErrSignedOut
	}
	if err != nil {
		return p, err
	}
	stored := ""
	if !byLink {
		if stored, err = a.Store.Password(ctx, ws, id); err != nil {
			return p, err
		}
		if stored == "" {
			return p, desk.InvalidAt("/old", "sign in by a new link to set a first password")
		}
	}
	if err := a.throttle(ctx, a.emailBucket("member", id.String()), ""); err != nil {
		return p, err
	}
	if !byLink {
		hashes, err := a.hashes(ctx, readPassword(old), []recipe{recipeOf(stored)})
		if err != nil {
			return p, err
		}
		if subtle.ConstantTimeCompare([]byte(hashes[0]), []byte(stored)) != 1 {
			return p, desk.InvalidAt("/old", "this is not your password")
		}
	}
	made, err := a.recipeOfEmail(ctx, p)
	if err != nil {
		return p, err
	}
	hashes, err := a.hashes(ctx, password, []recipe{made})
	if err != nil {
		return p, err
	}
	var m desk.Member
	err = store.UpdateSettings(ctx, a.Store, ws, p.Actor, a.Now, func(s *desk.Settings) (desk.Change, error) {
		stored := s.Member(id)
		if stored == nil || stored.SessionsFrom != p.Member.SessionsFrom { // signed out while the hash was made
			return desk.Change{}, desk.ErrSignedOut
		}
		m = *stored
		m.EndSessions(a.Now())
		changed := m
		return desk.Change{Member: &changed, Password: hashes[0]}, nil
	})
	p.Member = &m
	return p, err
}

// HasPassword tells whether the member has a password.
func (a *Service) HasPassword(ctx context.Context, p desk.Principal) (bool, error) {
	if p.Member == nil {
		return false, nil
	}
	hash, err := a.Store.Password(ctx, p.Workspace(), p.Member.ID)
	return hash != "", err
}

// emailBucket returns the bucket that limits the tries with an e-mail, or the changes of a
// member's password.
func (a *Service) emailBucket(kind, text string) desk.Bucket {
	return desk.Bucket{Name: a.throttled(kind, text, emailBuckets), Interval: desk.SignInEvery, Burst: desk.SignInTries}
}

// throttle takes a place in the bucket and, unless from is "", in the bucket of this address.
// It returns RateLimited if one of them is full.
func (a *Service) throttle(ctx context.Context, bucket desk.Bucket, from string) error {
	buckets := []desk.Bucket{bucket}
	if from != "" {
		buckets = append(buckets, desk.Bucket{Name: a.throttled("address", network(from), addressBuckets), Interval: desk.AddressEvery, Burst: desk.AddressTries})
	}
	wait, ok, err := a.Store.Pace(ctx, desk.ID{}, buckets, 0)
	if err == nil && !ok {
		e := desk.Errorf(desk.RateLimited, "too many tries")
		e.RetryAfter = max(1, int(math.Ceil(wait.Seconds())))
		return e
	}
	return err
}

// throttled returns the name of the bucket for a text; there are n buckets of each kind.
func (a *Service) throttled(kind, text string, n uint64) string {
	mac := hmac.New(sha256.New, a.Derive("sign-in throttle", []byte(kind)))
	mac.Write([]byte(text))
	return fmt.Sprintf("sign-in %s %d", kind, binary.BigEndian.Uint64(mac.Sum(nil))%n)
}

// network returns the part of an address that identifies a caller: the whole IPv4 address,
// or the /64 of an IPv6 address.
func network(from string) string {
	ip, err := netip.ParseAddr(from)
	if err != nil {
		return from
	}
	ip = ip.Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	prefix, _ := ip.Prefix(64)
	return prefix.String()
}
