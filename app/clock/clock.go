// Package clock has the counter of hours, which does not depend on wall clocks, and measures
// how far the server's clock is from the database's.
package clock

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"parley/desk"
	"parley/store"
)

// Wall clocks can jump: a person or a daemon sets them, or a host wakes up. So the
// protection against sending twice does not use wall clocks of servers. Keys, attempts and
// early statuses age by the database's counter of hours, which servers raise by their
// monotonic clocks. Leases, places in the pace and due times use only the database's clock.
// If such a time is further in the future than is possible, it does not count. (adr/0017)

// Deps are the parts of a Service. All are required.
type Deps struct {
	Store  store.Store
	Now    func() desk.Time
	Uptime func() time.Duration // a monotonic clock
	Log    *slog.Logger
}

// A Service compares the clocks of this process and of the database. Its methods are safe
// for concurrent use.
type Service struct {
	Deps
	hourglass hourglass
	ahead     atomic.Int64 // of the database's clock, in nanoseconds
}

// New builds a Service.
func New(d Deps) *Service { return &Service{Deps: d} }

// If a server's clock and the database's clock differ by more than apart, the server logs
// it.
const apart = time.Minute

// An hourglass records how long a node has seen the counter of hours unchanged.
type hourglass struct {
	mu    sync.Mutex
	hour  int64         // the last value seen
	since time.Duration // when this value was first seen, by the monotonic clock
}

// hourLength is how long the counter must stay unchanged before a node raises it. The
// lifetimes that count its hours (desk.KeyLife, desk.StatusLife) rely on it.
const hourLength = time.Hour

// turned records that the counter was read between two moments of the monotonic clock. It
// reports whether the counter has not changed for an hour.
func (h *hourglass) turned(hour int64, before, after time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if hour != h.hour {
		h.hour, h.since = hour, after
	}
	return before-h.since >= hourLength
}

// Look raises the counter of hours if this process has seen it unchanged for an
// hour, and compares the server's clock with the database's.
func (a *Service) Look(ctx context.Context) error {
	before, wallBefore := a.Uptime(), a.Now()
	database, hour, err := a.Store.Clock(ctx)
	if err != nil {
		return err
	}
	a.compare(ctx, database, wallBefore, a.Now())
	if a.hourglass.turned(hour, before, a.Uptime()) {
		return a.Store.RaiseHour(ctx, hour)
	}
	return nil
}

// compare stores how far the server's clock is ahead. It logs when the difference becomes
// greater than the limit, and when it is small again. The parameters before and after are
// the server's times around the reading of the database's clock.
func (a *Service) compare(ctx context.Context, database, before, after desk.Time) {
	ahead := desk.Time(0)
	if database < before {
		ahead = before - database
	} else if database > after {
		ahead = after - database
	}
	by := time.Duration(ahead) * time.Millisecond
	was := time.Duration(a.ahead.Swap(int64(by)))
	switch far := by.Abs() > apart; {
	case far && was.Abs() <= apart:
		a.Log.WarnContext(ctx, "this server's clock differs from the database's: set it by NTP", "ahead", by)
	case !far && was.Abs() > apart:
		a.Log.InfoContext(ctx, "this server's clock agrees with the database's again", "ahead", by)
	}
}

// Ahead returns how far this server's clock was ahead of the database's at the last
// comparison. A negative value means that it was behind.
func (a *Service) Ahead() time.Duration { return time.Duration(a.ahead.Load()) }
