package app

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"log/slog"
	"net/netip"
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

// Deps are the parts of an App. All are required, except those with a default, and what
// only deliveries need: Poster and Event.
type Deps struct {
	Store             store.Store
	Providers         map[desk.ChannelKind]provider.Provider
	Answer            func(*desk.SentMessage) []byte // renders the answer to a send, which is stored
	Now               func() time.Time               // the clock
	Uptime            func() time.Duration           // a monotonic clock; nil: the process's own
	NewID             func() desk.ID                 // new ids; they grow with time
	Random            func([]byte)                   // fills with random bytes
	Secret            []byte                         // the installation's secret key, 32 bytes
	Log               *slog.Logger
	Bounds            Bounds // of a send; 0 means the default
	MaxMedia          int64  // the greatest size of a file in bytes; 0: desk.DefaultMaxMedia
	MediaPerWorkspace int64  // how many bytes the files of a workspace may have; 0: no limit
	KeepFree          int64  // how many bytes stay free on the file system that has the files

	AddressRefused func(netip.Addr) bool // addresses to which no webhook may go; nil: none
	PlainHTTP      bool                  // webhooks may go to http URLs, too

	Poster     deliver.Poster
	Event      func(*feed.Page, *desk.FeedEvent) []byte // renders an event
	Deliveries desk.DeliveryRules                       // zero: the default
}

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

// New builds an App.
func New(d Deps) *App {
	a := &App{
		providers: d.Providers, answer: d.Answer, clock: d.Now, uptime: d.Uptime, newID: d.NewID, random: d.Random,
		secret: d.Secret, log: d.Log, bounds: d.Bounds.orDefaults(), addresses: desk.WebhookRules{PlainHTTP: d.PlainHTTP, Refused: d.AddressRefused},
		drained: make(chan struct{}), stopped: make(chan struct{}),
	}
	if a.uptime == nil {
		a.uptime = monotonic()
	}
	a.cursors, a.vault = cursors.NewSealer(a.derive("cursor")), vault.New(a.derive("channel secrets"), d.Random)
	a.Feed = feed.New(feed.Deps{
		Store: d.Store, Now: a.now, Cursors: a.cursors, Key: a.derive("event"), Drained: a.drained,
		Library: a.library, WebhookChanged: func() { a.Deliver.Note() },
	})
	a.store = a.Feed.Store
	a.Access = access.New(access.Deps{Store: a.store, Now: a.now, Uptime: a.uptime, Random: d.Random, Log: d.Log, Derive: a.derive})
	a.Deliver = deliver.New(deliver.Deps{
		Store: a.store, Feed: a.Feed, Cursors: a.cursors, Vault: a.vault, Clock: d.Now, Uptime: a.uptime, NewID: d.NewID, Random: d.Random,
		Drained: a.drained, Log: d.Log, Poster: d.Poster, Event: d.Event, Rules: d.Deliveries, WebhookRules: a.addresses,
	})
	a.Daily = daily.New(a.store, a.now)
	a.Media = media.New(media.Deps{
		Store: a.store, Providers: d.Providers, Access: a.access, Now: a.now, NewID: d.NewID, Log: d.Log,
		MaxSize: d.MaxMedia, PerWorkspace: d.MediaPerWorkspace, KeepFree: d.KeepFree, Lease: d.Bounds.Fetch,
	})
	a.writer = &writer{store: a.store, now: a.now, newID: d.NewID, lanes: map[desk.ID]*lane{}}
	a.inboundDue.changed, a.stale.changed = make(chan struct{}, 1), make(chan struct{}, 1)
	return a
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
