package app

import (
	"context"
	"sync"
	"time"

	"parley/desk"
)

// Wall clocks can jump: a person or a daemon sets them, or a host wakes up. So no
// protection against sending twice uses a wall clock. Keys, attempts and early statuses
// age by the database's counter of hours, which servers raise by their monotonic
// clocks. Leases, places in the pace and due times use only the database's clock, and
// are void if they are further ahead than they can be. (adr/0017)

const (
	// clockApart is how far a server's clock may differ from the database's before the
	// server logs it.
	clockApart = time.Minute
)

// An hourglass is what a node has seen of the counter of hours.
type hourglass struct {
	mu    sync.Mutex
	hour  int64         // the last value seen
	since time.Duration // when this value was first seen, by the monotonic clock
}

// hourLength is how long the counter must stay unchanged before a node raises it. The
// lifetimes that count its hours (desk.KeyLife, desk.StatusLife) rely on it.
const hourLength = time.Hour

// turned records that the counter was seen between two moments of the monotonic clock,
// and tells whether it has not changed for an hour.
func (h *hourglass) turned(hour int64, before, after time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if hour != h.hour {
		h.hour, h.since = hour, after
	}
	return before-h.since >= hourLength
}

// LookAtClock raises the counter of hours if this process has seen it unchanged for an
// hour, and compares the server's clock with the database's.
func (a *App) LookAtClock(ctx context.Context) error {
	before, wallBefore := a.uptime(), a.now()
	database, hour, err := a.store.Clock(ctx)
	if err != nil {
		return err
	}
	a.compareClocks(ctx, database, wallBefore, a.now())
	if a.hourglass.turned(hour, before, a.uptime()) {
		return a.store.RaiseHour(ctx, hour)
	}
	return nil
}

// compareClocks stores how far the server's clock is ahead, and logs it when it becomes
// too far, and when it no longer is. The database's clock was read between two moments.
func (a *App) compareClocks(ctx context.Context, database, before, after desk.Time) {
	ahead := desk.Time(0)
	if database < before {
		ahead = before - database
	} else if database > after {
		ahead = after - database
	}
	apart := time.Duration(ahead) * time.Millisecond
	was := time.Duration(a.clockAhead.Swap(int64(apart)))
	switch far := apart.Abs() > clockApart; {
	case far && was.Abs() <= clockApart:
		a.log.WarnContext(ctx, "this server's clock differs from the database's: set it by NTP", "ahead", apart)
	case !far && was.Abs() > clockApart:
		a.log.InfoContext(ctx, "this server's clock agrees with the database's again", "ahead", apart)
	}
}

// ClockAhead is how far this server's clock was ahead of the database's at the last
// comparison; below zero it is behind.
func (a *App) ClockAhead() time.Duration { return time.Duration(a.clockAhead.Load()) }

// monotonic returns a clock that can't be set.
func monotonic() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}
