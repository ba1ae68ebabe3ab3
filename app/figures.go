package app

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"parley/desk"
	"parley/store"
)

// SendCounts counts the sends of this process by outcome, since it began.
type SendCounts struct {
	Accepted    int64 // the provider accepted the message
	Refused     int64 // the provider refused it for good
	Unavailable int64 // it was not sent for now
	InDoubt     int64 // the outcome is unknown
}

type sendCounts struct{ accepted, refused, unavailable, inDoubt atomic.Int64 }

// count counts a send by its result: nil if the provider accepted it, and a
// *desk.Refusal if it was certainly not sent.
func (c *sendCounts) count(err error) {
	var refusal *desk.Refusal
	switch {
	case err == nil:
		c.accepted.Add(1)
	case errors.As(err, &refusal) && refusal.Type == desk.ProviderRejected:
		c.refused.Add(1)
	case refusal != nil:
		c.unavailable.Add(1)
	default:
		c.inDoubt.Add(1)
	}
}

// SendCounts returns the counts for /metrics.
func (a *App) SendCounts() SendCounts {
	c := &a.sends
	return SendCounts{c.accepted.Load(), c.refused.Load(), c.unavailable.Load(), c.inDoubt.Load()}
}

// A gauging is the last reading of the gauges, shared by all readers of /metrics.
type gauging struct {
	mu    sync.Mutex
	at    time.Time // zero: there was none
	found store.Gauges
	err   error
}

// gaugeEvery is how old the gauges may get.
const gaugeEvery = 5 * time.Second

// gaugeTimeout is how long reading them may take: a reader of /metrics waits.
const gaugeTimeout = 3 * time.Second

// Gauges returns the gauges, which are up to gaugeEvery old but for Now. A database that
// can't be read is not asked more often either.
func (a *App) Gauges(ctx context.Context) (store.Gauges, error) {
	a.gauging.mu.Lock()
	defer a.gauging.mu.Unlock()
	g := &a.gauging
	if g.at.IsZero() || a.clock().Sub(g.at) >= gaugeEvery {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), gaugeTimeout)
		defer cancel()
		g.found, g.err = a.store.Gauges(ctx, a.now())
		g.at = a.clock()
	}
	found := g.found
	found.Now += desk.Time(a.clock().Sub(g.at).Milliseconds())
	return found, g.err
}
