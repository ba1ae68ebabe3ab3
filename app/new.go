package app

import (
	"context"
	"io"
	"log/slog"
	"net/netip"
	"time"

	"parley/app/access"
	"parley/app/broadcast"
	"parley/app/clock"
	"parley/app/conflicts"
	"parley/app/cursors"
	"parley/app/daily"
	"parley/app/deliver"
	"parley/app/exports"
	"parley/app/feed"
	"parley/app/imports"
	"parley/app/media"
	"parley/app/merges"
	"parley/app/search"
	"parley/app/segments"
	"parley/app/vault"
	"parley/desk"
	"parley/provider"
	"parley/store"
)

// Deps are the parts of an App. All are required, except those with a default, and Poster
// and Event, which only deliveries need.
type Deps struct {
	Store             store.Store
	Providers         map[desk.ChannelKind]provider.Provider
	Answer            func(*desk.SentMessage) []byte                               // renders the answer to a send, which is stored
	ReadContact       func(body []byte, s *desk.Settings) (*desk.Op, error)        // reads a row of an import; nil: nothing is imported
	ReadRow           func(body []byte, s *desk.Settings) (desk.RowInput, error)   // reads a row of a file of people; nil: nothing is imported
	ReadOptOut        func(body []byte, s *desk.Settings) (*desk.OptOutRow, error) // reads a row of a file of opt-outs; nil: nothing is imported
	Now               func() time.Time                                             // the clock
	Uptime            func() time.Duration                                         // a monotonic clock; nil: the process's own
	NewID             func() desk.ID                                               // new ids; they grow with time
	Random            func([]byte)                                                 // fills with random bytes
	Secret            []byte                                                       // the installation's secret key, 32 bytes
	Log               *slog.Logger
	Bounds            Bounds // of a send; 0 means the default
	MaxMedia          int64  // the greatest size of a file in bytes; 0: desk.DefaultMaxMedia
	MediaPerWorkspace int64  // how many bytes the files of a workspace may have; 0: no limit
	KeepFree          int64  // how many bytes stay free on the file system with the files

	AddressRefused func(netip.Addr) bool // addresses to which no webhook may go; nil: none
	PlainHTTP      bool                  // webhooks may go to http URLs, too

	Poster     deliver.Poster
	Event      func(*feed.Page, *desk.FeedEvent) []byte // renders an event
	Deliveries desk.DeliveryRules                       // zero: the default
}

// New builds an App.
func New(d Deps) *App {
	uptime := d.Uptime
	if uptime == nil {
		uptime = monotonic()
	}
	a := &App{
		base: base{
			providers: d.Providers, answer: d.Answer, clock: d.Now, newID: d.NewID, random: d.Random, secret: d.Secret, log: d.Log,
			bounds: d.Bounds.orDefaults(), addresses: desk.WebhookRules{PlainHTTP: d.PlainHTTP, Refused: d.AddressRefused},
		},
		ending:     ending{drained: make(chan struct{}), stopped: make(chan struct{})},
		inboundDue: inboundDue{uptime: uptime, changed: make(chan struct{}, 1)},
	}
	a.cursors, a.vault = cursors.NewSealer(a.derive("cursor")), vault.New(a.derive("channel secrets"), d.Random)
	a.Feed = feed.New(feed.Deps{
		Store: d.Store, Now: a.now, Cursors: a.cursors, Key: a.derive("event"), Drained: a.drained,
		Library: a.libraries.of, WebhookChanged: func() { a.Deliver.Note() },
	})
	a.store = a.Feed.Store // everything is written through it
	a.Access = access.New(access.Deps{Store: a.store, Now: a.now, Uptime: uptime, Random: d.Random, Log: d.Log, Derive: a.derive})
	a.Clock = clock.New(clock.Deps{Store: a.store, Now: a.now, Uptime: uptime, Log: d.Log})
	a.Daily = daily.New(a.store, a.now, a.Feed.News())
	a.pools.news = a.Feed.News()
	a.autoReplies = a.Feed.Due(func(ctx context.Context) (map[desk.ID]time.Duration, error) {
		return a.store.AutoRepliesDue(ctx, longestAutoReply)
	})
	a.Deliver = deliver.New(deliver.Deps{
		Store: a.store, Feed: a.Feed, Cursors: a.cursors, Vault: a.vault, Clock: d.Now, Uptime: uptime, NewID: d.NewID, Random: d.Random,
		Drained: a.drained, Log: d.Log, RestAfter: d.Bounds.Rest, Poster: d.Poster, Event: d.Event, Rules: d.Deliveries, WebhookRules: a.addresses,
	})
	a.Metrics = &Metrics{store: a.store, clock: d.Now}
	a.Media = media.New(media.Deps{
		Store: a.store, Feed: a.Feed, Providers: d.Providers, Access: a.access, Now: a.now, NewID: d.NewID, Log: d.Log,
		MaxSize: d.MaxMedia, PerWorkspace: d.MediaPerWorkspace, KeepFree: d.KeepFree, Lease: d.Bounds.Fetch,
	})
	a.Exports = exports.New(exports.Deps{Store: a.store, Now: a.now, Hash: a.handleHash})
	a.Merges = merges.New(merges.Deps{Store: a.store, Cursors: a.cursors, Now: a.now, NewID: d.NewID})
	a.Conflicts = conflicts.New(conflicts.Deps{Store: a.store, Merges: a.Merges, Cursors: a.cursors, Now: a.now, NewID: d.NewID, Uptime: uptime, Log: d.Log})
	a.Search = search.New(search.Deps{Store: a.store, Feed: a.Feed, Cursors: a.cursors, Log: d.Log})
	a.Segments = segments.New(segments.Deps{Store: a.store, Cursors: a.cursors, Now: a.now})
	a.Broadcasts = broadcast.New(broadcast.Deps{
		Store: a.store, Feed: a.Feed, Cursors: a.cursors, Segments: a.Segments, Machine: machine{a}, Now: a.now, Uptime: uptime, NewID: d.NewID, Log: d.Log, Lease: d.Bounds.Broadcast,
		Deleted: func(tx store.Tx, broadcast desk.ID) error { return a.Imports.Deleted(tx, broadcast) },
	})
	a.Imports = imports.New(imports.Deps{
		Store: a.store, Feed: a.Feed, People: a.Broadcasts, Now: a.now, NewID: d.NewID, Log: d.Log, Hash: a.handleHash, OptOut: a.importChoice, ReadContact: d.ReadContact, ReadRow: d.ReadRow, ReadOptOut: d.ReadOptOut,
		PutAttribute: func(ctx context.Context, p desk.Principal, in desk.AttributeInput) error {
			_, _, err := a.PutAttribute(ctx, p, in)
			return err
		},
		Refused: func(ctx context.Context, p desk.Principal, refusals []error) {
			a.Conflicts.NoteAll(p.Workspace(), p.Actor, refusals)
			a.Conflicts.StoreNow(ctx)
		},
		Open: func(ctx context.Context, p desk.Principal, media desk.ID) (io.ReadCloser, error) {
			_, content, err := a.Media.Open(ctx, p, media)
			return content, err
		},
	})
	a.writer = &writer{store: a.store, now: a.now, newID: d.NewID, longest: longestQueued, lanes: map[desk.ID]*lane{}}
	a.libraries.store, a.libraries.log, a.libraries.stale.changed = a.store, d.Log, make(chan struct{}, 1)
	a.libraries.slots = make(chan struct{}, syncsAbreast)
	return a
}

// monotonic returns a clock that can't be set.
func monotonic() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}
