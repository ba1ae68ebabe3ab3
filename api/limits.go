package api

import (
	"sync"

	"parley/desk"

	"golang.org/x/time/rate"
)

// limits holds each key to a number of requests a second, with bursts of as many.
type limits struct {
	perSecond int
	mu        sync.Mutex
	byKey     map[desk.ID]*rate.Limiter // as many as there are keys
}

func newLimits(perSecond int) *limits {
	return &limits{perSecond: perSecond, byKey: map[desk.ID]*rate.Limiter{}}
}

func (l *limits) allow(key desk.ID) bool {
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
