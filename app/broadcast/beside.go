package broadcast

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"parley/desk"

	"golang.org/x/time/rate"
)

// claimsAtOnce is how many rows a process claims at a time. The others wait outside of the
// database, so that a reply does not wait behind all of them.
const claimsAtOnce = 16

// A claiming decides when a process may claim another row.
type claiming struct {
	uptime    func() time.Duration
	slowUntil atomic.Int64  // by Uptime
	slowly    *rate.Limiter // of claims until then
	places    chan struct{} // has an element for each row that is being claimed
}

func newClaiming(uptime func() time.Duration) *claiming {
	perSecond := rate.Limit(desk.BroadcastsBeside * runtime.GOMAXPROCS(0))
	return &claiming{uptime: uptime, slowly: rate.NewLimiter(perSecond, 1), places: make(chan struct{}, claimsAtOnce)}
}

func (c *claiming) giveWay() { c.slowUntil.Store(int64(c.uptime() + desk.BroadcastsBesideFor)) }

func (c *claiming) slow() bool { return c.uptime() < time.Duration(c.slowUntil.Load()) }

// wait waits until this process may claim another row. The caller calls leave once it has claimed
// it, or can't.
func (c *claiming) wait(ctx context.Context) (leave func(), err error) {
	if c.slow() {
		if err := c.slowly.Wait(ctx); err != nil {
			return nil, err
		}
	}
	select {
	case c.places <- struct{}{}:
		return sync.OnceFunc(func() { <-c.places }), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
