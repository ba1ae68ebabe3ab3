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
	"cmp"
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
	// holdFor is how long a node keeps an endpoint if it does not extend its lease, in
	// milliseconds. Every holdEvery, it extends its leases. A try begins only if the lease
	// lasts for holdLeast more.
	holdFor   = desk.Time(10_000)
	holdEvery = 3 * time.Second
	holdLeast = 2 * time.Second

	// A node looks at all webhooks when it starts, once in lookEvery, and after one has
	// changed, but at most once in holdPause: a tenant may change its webhooks all the time.
	// Between these looks it takes endpoints whose workspaces have news, at most once in
	// newsPause. A dead node's endpoints must be taken within 20 s (contract-events §3).
	holdPause = 500 * time.Millisecond
	newsPause = 20 * time.Millisecond
	lookEvery = 6 * time.Second

	// A node leaves an endpoint for which nothing has happened for restAfter: most webhooks of
	// a large installation rest most of the time, and a lease costs a write every holdEvery.
	// maxRests is how many leases are dropped at a time.
	restAfter = 30 * time.Second
	maxRests  = 8

	// maxLoads is how many endpoints read their state at a time. After a start there may be
	// thousands, and requests need the database, too: a small server has 16 connections to it.
	maxLoads = 8

	// freshFor is how old the data of a try may be when the try begins. No try with a person's
	// data begins more than a second after the person's deletion (contract-events §4).
	// freshSettings is the limit for events about settings. If the data is too old, the try
	// reads the event again, up to slowReads times.
	freshFor      = 900 * time.Millisecond
	freshSettings = 10 * time.Second
	slowReads     = 3

	// maxReads is how many tries read their events at a time. A try that repeats another reads
	// its event again, and thousands of them must leave connections to the callers' requests.
	maxReads = 8

	// Results are stored when there are storeGroup of them, or when the first has waited for
	// storeEvery. While storeMost of them can't be stored, no new try begins.
	storeEvery = 200 * time.Millisecond
	storeGroup = 100
	storeMost  = 2 * storeGroup

	// cursorEvery is how often the cursor is stored if it moves but no delivery begins.
	cursorEvery = 5 * time.Second

	// idleStep is how long the loop waits at most while some work is waiting. It must not wait
	// longer, because somebody may set the clock.
	idleStep = 500 * time.Millisecond

	// deliveryPage is how many events are read at a time.
	deliveryPage = 200

	// deliveredPause is the least time between two pages for an endpoint that has read all
	// events. In this time more commits may come, which then share one page.
	deliveredPause = 50 * time.Millisecond

	// maxPosts is how many tries of a process are under way at a time.
	maxPosts = 1024

	// lastStores is how many times a stopping node tries to store the last results.
	lastStores = 5
)

// Deps are the parts of a Service. Poster and Event may be missing if Run is not called:
// only deliveries need them.
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
	RestAfter    time.Duration // zero: the default
}

// A Service delivers events to webhooks. It also has the methods by which callers read and
// change webhooks and deliveries. Its methods are safe for concurrent use.
type Service struct {
	Deps
	holder    desk.ID // this process
	posts     chan struct{}
	rests     chan struct{} // has an element for each lease that is being dropped
	reads     chan struct{} // has an element for each try that reads its event
	loads     chan struct{} // has an element for each endpoint that reads its state
	noted     chan struct{} // has an element if an endpoint may have been added
	news      *feed.News
	mu        sync.Mutex
	endpoints map[store.WebhookRef]*endpoint
	requests  map[store.WebhookRef]*requests
	results   map[string]int64 // tries by their error; "" is success
}

// New builds a Service.
func New(d Deps) *Service {
	a := &Service{
		Deps: d, posts: make(chan struct{}, maxPosts), rests: make(chan struct{}, maxRests), reads: make(chan struct{}, maxReads), loads: make(chan struct{}, maxLoads), noted: make(chan struct{}, 1), news: d.Feed.News(),
		endpoints: map[store.WebhookRef]*endpoint{}, requests: map[store.WebhookRef]*requests{}, results: map[string]int64{"": 0},
	}
	a.RestAfter = cmp.Or(a.RestAfter, restAfter)
	if a.Rules.Schedule == nil {
		a.Rules = desk.DefaultDeliveryRules()
	}
	for _, result := range desk.TryErrors {
		a.results[result] = 0
	}
	return a
}

func (a *Service) now() desk.Time { return desk.TimeOf(a.Clock()) }

// Note tells Run to look for endpoints now, because a webhook may have changed.
func (a *Service) Note() { steps.Wake(a.noted) }

func (a *Service) count(result string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.results[result]++
}

// Tries returns how many requests this process has made to endpoints, by their error. The
// key "" counts the successes.
func (a *Service) Tries() map[string]int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.results)
}

// taskRef identifies the task of serving a webhook.
func taskRef(ref store.WebhookRef) store.LeaseRef {
	return store.LeaseRef{Workspace: ref.Workspace, Task: store.WebhookTask(ref.ID)}
}
