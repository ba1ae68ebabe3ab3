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
	Refused     int64 // the provider refused the message for good
	Unavailable int64 // the message was not sent; a later send may succeed
	InDoubt     int64 // the outcome is unknown
}

type sendCounts struct{ accepted, refused, unavailable, inDoubt atomic.Int64 }

// count adds a send to the counts, by its result: nil if the provider accepted it, and a
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

// databaseEvery is how old the metrics of the database may get.
const databaseEvery = 5 * time.Second

// databaseTimeout is how long reading these metrics may take, while a reader of /metrics
// waits.
const databaseTimeout = 3 * time.Second

// Metrics has the metrics of this process's sends and of the database.
type Metrics struct {
	store store.Store
	clock func() time.Time
	sends sendCounts

	// The last reading of the database's metrics, which all readers of /metrics share.
	mu    sync.Mutex
	at    time.Time // zero: there was none
	found store.Metrics
	err   error
}

// Sends returns the counts of sends.
func (f *Metrics) Sends() SendCounts {
	c := &f.sends
	return SendCounts{c.accepted.Load(), c.refused.Load(), c.unavailable.Load(), c.inDoubt.Load()}
}

// Database returns the metrics of the database. All but Now may be up to databaseEvery old.
// If a reading failed, its error is returned for the same time.
func (f *Metrics) Database(ctx context.Context) (store.Metrics, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at.IsZero() || f.clock().Sub(f.at) >= databaseEvery {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), databaseTimeout)
		defer cancel()
		f.found, f.err = f.store.Metrics(ctx, desk.TimeOf(f.clock()))
		f.at = f.clock()
	}
	found := f.found
	found.Now += desk.Time(f.clock().Sub(f.at).Milliseconds())
	return found, f.err
}
