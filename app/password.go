package app

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"time"

	"parley/desk"

	"golang.org/x/crypto/argon2"
)

// How passwords are hashed: argon2id, as OWASP recommends it. A hash takes about 20 MB and
// 40 ms.
const (
	argonMemory  = 19456 // KiB
	argonTime    = 2
	argonThreads = 1
	argonSalt    = 16
	argonKey     = 32
)

// longestHashing is how long a sign-in waits for others', since one password is hashed at
// a time.
const longestHashing = 5 * time.Second

// maxSignIns is of how many workspaces' members one sign-in tries the passwords.
const maxSignIns = 20

// The throttle of sign-ins, which all nodes share. E-mails and addresses are hashed, and
// only so many of their hashes are told apart, so their number takes no space.
const (
	emailTries, emailEvery     = 5, 30 * time.Second
	emailBuckets               = 4096
	addressTries, addressEvery = 20, 5 * time.Second
	addressBuckets             = 65536
	longestThrottle            = max(emailTries*emailEvery, addressTries*addressEvery)
)

var errSignIn = desk.Errorf(desk.Unauthorized, "the e-mail or the password is wrong")

// SignIn returns the members, of several workspaces, whom an e-mail and a password are
// right for. from is the address of the caller. It returns Unauthorized if there is none,
// whatever the reason; RateLimited after too many tries; and Unavailable if too many sign
// in at once.
func (a *App) SignIn(ctx context.Context, email, password, from string) (list []Principal, err error) {
	canonical := desk.CanonicalEmail(strings.TrimSpace(email))
	if err := a.throttle(ctx, canonical, from); err != nil {
		return nil, err
	}
	refs, err := a.store.MembersByEmail(ctx, canonical)
	if err != nil {
		return nil, err
	}
	if len(refs) == 0 { // the same work, so that the time does not tell who is a member
		refs = []MemberRef{{}}
	}
	password = desk.NormalPassword(password)
	hashed := 0
	for _, ref := range refs {
		p, err := a.Member(ctx, ref.Workspace, ref.ID) // before the password: NewSession sees that it was replaced
		if err != nil && !desk.IsType(err, desk.Unauthorized) {
			return nil, err
		}
		stored, e := a.store.Password(ctx, ref.Workspace, ref.ID)
		if e != nil {
			return nil, e
		}
		if err != nil || stored == "" || hashed == maxSignIns {
			continue
		}
		hashed++
		right, err := a.proves(ctx, password, stored)
		if err != nil {
			return nil, err
		}
		if right {
			list = append(list, p)
		}
	}
	if hashed == 0 {
		if _, err := a.hash(ctx, password, make([]byte, argonSalt)); err != nil {
			return nil, err
		}
	}
	if len(list) == 0 {
		return nil, errSignIn
	}
	return list, nil
}

// SetPassword sets the member's own password, and ends the member's sessions. The caller
// has proved who it is by the old password, or by a link: byLink is set shortly after the
// member signed in by one.
func (a *App) SetPassword(ctx context.Context, p Principal, old string, byLink bool, password string) error {
	if p.Member == nil {
		return desk.Errorf(desk.Forbidden, "only members have passwords")
	}
	ws, id := p.Workspace(), p.Member.ID
	password, err := desk.ParsePassword(password, p.Member.Email)
	if err != nil {
		return desk.InvalidAt("/password", "%v", err)
	}
	if !byLink {
		stored, err := a.store.Password(ctx, ws, id)
		if err != nil {
			return err
		}
		if stored == "" {
			return desk.InvalidAt("/old", "sign in by a new link to set a first password")
		}
		if err := a.throttle(ctx, desk.CanonicalEmail(p.Member.Email), ""); err != nil {
			return err
		}
		right, err := a.proves(ctx, desk.NormalPassword(old), stored)
		if err != nil {
			return err
		}
		if !right {
			return desk.InvalidAt("/old", "this is not your password")
		}
	}
	salt := make([]byte, argonSalt)
	a.random(salt)
	hash, err := a.hash(ctx, password, salt)
	if err != nil {
		return err
	}
	return a.updateSettings(ctx, ws, p.Actor, func(s *desk.Settings) (desk.Change, error) {
		stored := s.Member(id)
		if stored == nil || stored.SessionsFrom != p.Member.SessionsFrom { // signed out while the hash was made
			return desk.Change{}, errSignedOut
		}
		m := *stored
		m.EndSessions(a.now())
		return desk.Change{Member: &m, Password: hash}, nil
	})
}

// HasPassword tells whether the member has a password.
func (a *App) HasPassword(ctx context.Context, p Principal) (bool, error) {
	if p.Member == nil {
		return false, nil
	}
	hash, err := a.store.Password(ctx, p.Workspace(), p.Member.ID)
	return hash != "", err
}

// throttle takes a place for a try with this e-mail, and for one from this address, if it
// is not "". It returns RateLimited if there is none.
func (a *App) throttle(ctx context.Context, canonical, from string) error {
	buckets := []Bucket{{a.throttled("e-mail", canonical, emailBuckets), emailEvery, emailTries}}
	if from != "" {
		buckets = append(buckets, Bucket{a.throttled("address", network(from), addressBuckets), addressEvery, addressTries})
	}
	wait, ok, err := a.store.Pace(ctx, desk.ID{}, buckets, 0)
	if err == nil && !ok {
		e := desk.Errorf(desk.RateLimited, "too many tries to sign in")
		e.RetryAfter = max(1, int(math.Ceil(wait.Seconds())))
		return e
	}
	return err
}

// throttled is the name of one of n buckets.
func (a *App) throttled(kind, text string, n uint64) string {
	mac := hmac.New(sha256.New, a.derive("sign-in throttle", []byte(kind)))
	mac.Write([]byte(text))
	return fmt.Sprintf("sign-in %s %d", kind, binary.BigEndian.Uint64(mac.Sum(nil))%n)
}

// network is an address by which callers are told apart: an IPv4 address, or the /64 of
// an IPv6 address.
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

// hash returns the text of a password's hash in the usual form, PHC.
func (a *App) hash(ctx context.Context, password string, salt []byte) (string, error) {
	key, err := a.argon(ctx, password, salt, argonTime, argonMemory, argonThreads, argonKey)
	if err != nil {
		return "", err
	}
	encode := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonThreads, encode(salt), encode(key)), nil
}

// proves tells whether a password has this hash.
func (a *App) proves(ctx context.Context, password, hash string) (bool, error) {
	var version int
	var memory, times uint32
	var threads uint8
	parts := strings.Split(hash, "$")
	if len(parts) != 6 || parts[1] != "argon2id" {
		return false, fmt.Errorf("the hash of a password has an unknown form")
	}
	if _, err := fmt.Sscanf(parts[2]+" "+parts[3], "v=%d m=%d,t=%d,p=%d", &version, &memory, &times, &threads); err != nil || version != argon2.Version {
		return false, fmt.Errorf("the hash of a password has unknown parameters")
	}
	salt, err := base64.RawStdEncoding.DecodeString(parts[4])
	if err != nil {
		return false, fmt.Errorf("the salt of a password: %w", err)
	}
	key, err := base64.RawStdEncoding.DecodeString(parts[5])
	if err != nil {
		return false, fmt.Errorf("the hash of a password: %w", err)
	}
	got, err := a.argon(ctx, password, salt, times, memory, threads, uint32(len(key)))
	return err == nil && subtle.ConstantTimeCompare(got, key) == 1, err
}

// argon hashes one password at a time. It returns Unavailable if others take too long.
func (a *App) argon(ctx context.Context, password string, salt []byte, times, memory uint32, threads uint8, length uint32) ([]byte, error) {
	timer := time.NewTimer(longestHashing)
	defer timer.Stop()
	select {
	case a.hashing <- struct{}{}:
	case <-timer.C:
		return nil, desk.Errorf(desk.Unavailable, "too many people sign in at this moment: try again shortly")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-a.hashing }()
	return argon2.IDKey([]byte(password), salt, times, memory, threads, length), nil
}
