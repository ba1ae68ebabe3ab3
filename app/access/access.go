// Package access finds out who is calling: programs by their API keys, members by sessions,
// sign-in links and passwords.
//
//	access.go    the Service, and members as principals
//	keys.go      from a key to a principal
//	session.go   sessions and links
//	password.go  signing in by a password, setting one, the throttle
//	hashing.go   how passwords are hashed, and in which order
//	known.go     a cache of the keys' principals; when keys were used
package access

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"parley/desk"
	"parley/store"
)

// Deps are the parts of a Service. All are required.
type Deps struct {
	Store  store.Store
	Now    func() desk.Time     // the clock
	Uptime func() time.Duration // a monotonic clock
	Random func([]byte)         // fills with random bytes
	Log    *slog.Logger

	// Derive returns a key for one purpose, derived from the installation's secret key.
	Derive func(purpose string, parts ...[]byte) []byte
}

// A Service knows who is calling. Its methods are safe for concurrent use.
type Service struct {
	Deps
	known   known
	uses    keyUses
	hashing chan struct{} // full while a password is hashed
	hashed  atomic.Int64
	changes turns // lets one change of a password through at a time
	spread  spread
}

// New builds a Service.
func New(d Deps) *Service {
	return &Service{Deps: d, hashing: make(chan struct{}, 1), changes: turns{one: make(chan struct{}, 1), each: map[desk.ID]*turn{}}}
}

// Hashed returns how many password hashes this process has made.
func (a *Service) Hashed() int64 { return a.hashed.Load() }

// Member returns the principal of a member, or Unauthorized if there is no such member.
// The caller must have checked that it acts for the member, see Session.
func (a *Service) Member(ctx context.Context, ws, id desk.ID) (desk.Principal, error) {
	s, err := a.Store.Settings(ctx, ws)
	if desk.IsType(err, desk.NotFound) {
		return desk.Principal{}, desk.ErrSignedOut
	}
	if err != nil {
		return desk.Principal{}, err
	}
	return desk.MemberPrincipal(s, id)
}
