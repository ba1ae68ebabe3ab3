package web

import (
	"sync"

	"parley/desk"

	"golang.org/x/time/rate"
)

// A Rate limits each key to a number of requests a second, with bursts of the same
// number.
type Rate struct {
	perSecond int
	mu        sync.Mutex
	byKey     map[desk.ID]*rate.Limiter // never more than there are keys
}

// NewRate returns a Rate of perSecond; 0 means no limit.
func NewRate(perSecond int) *Rate {
	return &Rate{perSecond: perSecond, byKey: map[desk.ID]*rate.Limiter{}}
}

// Allow tells whether a request of the key may be served now, and counts it.
func (l *Rate) Allow(key desk.ID) bool {
	if l.perSecond <= 0 {
		return true
	}
	l.mu.Lock()
	limiter := l.byKey[key]
	if limiter == nil {
		limiter = rate.NewLimiter(rate.Limit(l.perSecond), l.perSecond)
		l.byKey[key] = limiter
	}
	l.mu.Unlock()
	return limiter.Allow()
}
