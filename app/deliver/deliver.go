// Package deliver is webhooks: their settings and secrets, and the deliveries of events to
// them. One request of a delivery is a try.
//
//	run.go         which endpoints this process serves
//	endpoint.go    the loop of an endpoint: what it reads, and which tries begin
//	results.go     what came of tries, and storing it
//	ping.go        a ping of an endpoint, and its limits
//	requests.go    the requests to one endpoint that are under way
//	try.go         one try: what it sends, and what came of it
//	deliveries.go  what callers do with deliveries: list, repeat, replay
//	webhooks.go    webhooks: listing and changing them
//	forget.go      deletes old deliveries, and those of removed webhooks
//	secrets.go     the secrets of webhooks, encrypted
//	deliver.go     the Service and what it is built from
//	poster.go      what sends a request
package deliver

import (
	"log/slog"
	"maps"
	"sync"
	"time"

	"parley/app/cursors"
	"parley/app/feed"
	"parley/app/steps"
	"parley/app/vault"
	"parley/desk"
	"parley/store"
)

// The times of delivering.
const (
	// holdFor is how long a node has an endpoint without extending its lease, in
	// milliseconds; holdEvery is how often it extends it, and looks for endpoints that
	// nobody has. holdLeast is how much of a lease must be left for a try to begin.
	holdFor   = desk.Time(10_000)
	holdEvery = 3 * time.Second
	holdLeast = 2 * time.Second

	// holdPause is how long it waits at least before it extends them again because a
	// webhook has changed: one tenant may change one all the time.
	holdPause = 500 * time.Millisecond

	// freshFor is how old the data of a try may be when it begins: no try with a
	// person's data begins over a second after the person's deletion (contract-events §4).
	// What the settings have of an event may be older. A try reads an event slowReads
	// times to have it so.
	freshFor      = 900 * time.Millisecond
	freshSettings = 10 * time.Second
	slowReads     = 3

	// Results are stored in groups of storeGroup, or storeEvery after the first. If they
	// can't be stored, no try begins once there are storeMost.
	storeEvery = 200 * time.Millisecond
	storeGroup = 100
	storeMost  = 2 * storeGroup

	// cursorEvery is how often a cursor is stored that moves without a delivery.
	cursorEvery = 5 * time.Second

	// idleStep is how long a loop waits at most while something is outstanding: a clock
	// may be set.
	idleStep = 500 * time.Millisecond

	// deliveryPage is how many events are read at a time.
	deliveryPage = 200

	// deliveredPause is the least time between two pages for an endpoint that has read
	// all: many commits share a page then.
	deliveredPause = 50 * time.Millisecond

	// maxPosts is how many tries of a process are under way at a time.
	maxPosts = 1024

	// lastStores is how often a node that stops tries to store the last results.
	lastStores = 5
)

// Deps are the parts of a Service. Those that only deliveries need may be missing where no
// Run is called: Poster and Event.
type Deps struct {
	Store   store.Store
	Feed    *feed.Service
	Cursors cursors.Sealer
	Vault   *vault.Vault         // of the webhooks' secrets
	Clock   func() time.Time     // the clock
	Uptime  func() time.Duration // a monotonic clock
	NewID   func() desk.ID       // new ids; they grow with time
	Random  func([]byte)         // fills with random bytes
	Drained <-chan struct{}      // closed when no try is to begin any more
	Log     *slog.Logger

	Poster       Poster
	Event        func(*feed.Page, *desk.FeedEvent) []byte // renders an event
	Rules        desk.DeliveryRules                       // zero: the default
	WebhookRules desk.WebhookRules
}

// A Service delivers events to webhooks, and has what callers do with both. Its methods are
// safe for concurrent use.
type Service struct {
	Deps
	holder    desk.ID // this process
	posts     chan struct{}
	noted     chan struct{} // has an element if an endpoint may have been added
	mu        sync.Mutex
	endpoints map[store.WebhookRef]*endpoint
	requests  map[store.WebhookRef]*requests
	results   map[string]int64 // tries by their error; "" is success
}

// New builds a Service.
func New(d Deps) *Service {
	a := &Service{
		Deps: d, posts: make(chan struct{}, maxPosts), noted: make(chan struct{}, 1),
		endpoints: map[store.WebhookRef]*endpoint{}, requests: map[store.WebhookRef]*requests{}, results: map[string]int64{"": 0},
	}
	if a.Rules.Schedule == nil {
		a.Rules = desk.DefaultDeliveryRules()
	}
	for _, result := range desk.TryErrors {
		a.results[result] = 0
	}
	return a
}

func (a *Service) now() desk.Time { return desk.TimeOf(a.Clock()) }

// Note has Run look for endpoints now: a webhook may have changed.
func (a *Service) Note() { steps.Wake(a.noted) }

func (a *Service) count(result string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.results[result]++
}

// Tries counts the requests of this process to endpoints, by each error that
// there is; "" is success.
func (a *Service) Tries() map[string]int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.results)
}

func taskOf(webhook desk.ID) string { return "webhook " + webhook.String() }

// taskRef identifies the task of serving a webhook.
func taskRef(ref store.WebhookRef) store.LeaseRef {
	return store.LeaseRef{Workspace: ref.Workspace, Task: taskOf(ref.ID)}
}
