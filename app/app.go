package app

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"parley/app/access"
	"parley/app/cursors"
	"parley/app/daily"
	"parley/app/deliver"
	"parley/app/feed"
	"parley/app/media"
	"parley/app/vault"
	"parley/desk"
	"parley/provider"
	"parley/store"
)

// An App carries out user actions against a store.
type App struct {
	Access  *access.Service  // keys, and how members sign in
	Feed    *feed.Service    // the feed of events
	Deliver *deliver.Service // webhooks
	Daily   *daily.Service   // messages counted by day
	Media   *media.Service   // files

	store      store.Store
	providers  map[desk.ChannelKind]provider.Provider
	answer     func(*desk.SentMessage) []byte
	clock      func() time.Time
	uptime     func() time.Duration
	newID      func() desk.ID
	random     func([]byte)
	secret     []byte
	log        *slog.Logger
	bounds     Bounds
	writer     *writer
	cursors    cursors.Sealer
	vault      *vault.Vault      // of secrets
	addresses  desk.WebhookRules // to which requests may go
	libraries  libraries
	flights    flights
	claims     claims
	inboundDue inboundDue
	readings   readings
	stale      stale
	hourglass  hourglass
	sends      sendCounts
	gauging    gauging
	clockAhead atomic.Int64  // of the database's clock, in nanoseconds
	trial      sync.Mutex    // of dry runs of batches
	drained    chan struct{} // closed by Drain
	drain      sync.Once
	receipts   receipts
	pools      pools
	retries    sync.WaitGroup // retries in the background until something is stored
	stopped    chan struct{}  // closed by Close
}

// derive returns a key for one purpose.
func (a *App) derive(purpose string, parts ...[]byte) []byte {
	mac := hmac.New(sha256.New, a.secret)
	mac.Write([]byte(purpose))
	for _, p := range parts {
		mac.Write(p)
	}
	return mac.Sum(nil)
}

func (a *App) now() desk.Time { return desk.TimeOf(a.clock()) }

// NewID returns a new id.
func (a *App) NewID() desk.ID { return a.newID() }

// Ready tells whether the database can answer now.
func (a *App) Ready(ctx context.Context) error { return a.store.Ready(ctx) }

// Close stops the retries in the background and waits for them. The next process finds
// what is not stored by then. It is called once, after everything else that uses the
// App has ended.
func (a *App) Close() {
	close(a.stopped)
	a.retries.Wait()
}

// Draining tells whether Drain was called.
func (a *App) Draining() bool {
	select {
	case <-a.drained:
		return true
	default:
		return false
	}
}

// Drain tells calls that wait for another call's send to give up now.
func (a *App) Drain() { a.drain.Do(func() { close(a.drained) }) }
