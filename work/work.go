package work

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"parley/app"
	"parley/desk"
	"parley/store"
)

// Parts have the steps of the schedules. Each method does one step and may run at the same
// time as the others.
type Parts struct {
	App
	Access     Access
	Clock      Clock
	Feed       Feed
	Deliver    Deliver
	Daily      Daily
	Media      Media
	Search     Search
	Imports    Imports
	Broadcasts Broadcasts
	Conflicts  Conflicts
}

// Of returns the parts of an App.
func Of(a *app.App) Parts {
	return Parts{a, a.Access, a.Clock, a.Feed, a.Deliver, a.Daily, a.Media, a.Search, a.Imports, a.Broadcasts, a.Conflicts}
}

// An App has the steps of app.App.
type App interface {
	// InboundDue returns the workspaces with due inbound items, and how long to wait before
	// the next call. InboundNoted gets an element if an item may be due earlier.
	InboundDue() (list []desk.ID, next time.Duration)
	InboundNoted() <-chan struct{}

	// TakeInbound processes the next items of a workspace. LookForInbound finds the
	// items that other processes have stored.
	TakeInbound(ctx context.Context, ws desk.ID) error
	LookForInbound(ctx context.Context) error

	// SyncStale fetches templates that are old, or that were reported as changed.
	// TemplatesNoted gets an element after such a report.
	SyncStale(ctx context.Context) error
	TemplatesNoted() <-chan struct{}

	Sweep(ctx context.Context) error
	ForgetAlone(ctx context.Context) error

	// ForgetMessages deletes messages and notes older than age.
	ForgetMessages(ctx context.Context, age time.Duration) error

	// SendAutoReplies sends automatic replies until ctx ends. AssignWaiting assigns waiting
	// conversations once a member is eligible, until ctx ends.
	SendAutoReplies(ctx context.Context)
	AssignWaiting(ctx context.Context)
}

// Access has the steps of package access.
type Access interface {
	// StoreKeyUses stores when keys were used.
	StoreKeyUses(ctx context.Context) error
}

// A Clock has the steps of package clock.
type Clock interface {
	// Look raises the counter of hours when it is time, and compares the clocks.
	Look(ctx context.Context) error
}

// A Feed has the steps of package feed.
type Feed interface {
	// Look wakes followers if another process has stored events. Forget drops events older
	// than age from the feed.
	Look(ctx context.Context) error
	Forget(ctx context.Context, age time.Duration) error
}

// Deliver has the steps of package deliver.
type Deliver interface {
	// Run delivers events to webhooks until ctx ends.
	Run(ctx context.Context)
}

// Daily has the steps of package daily.
type Daily interface {
	// Count counts new messages by day.
	Count(ctx context.Context) error
}

// Media has the steps of package media.
type Media interface {
	// Fetch fetches the files of inbound messages until ctx ends. DropContents deletes
	// content that no file uses. ForgetOld deletes the content of files older than age.
	Fetch(ctx context.Context)
	DropContents(ctx context.Context) error
	ForgetOld(ctx context.Context, age time.Duration) error
}

// Search has the steps of package search.
type Search interface {
	// Run keeps the terms by which contacts are found, until ctx ends.
	Run(ctx context.Context)
}

// Imports has the steps of package imports.
type Imports interface {
	// ImportUploads imports files that members have uploaded, until ctx ends.
	ImportUploads(ctx context.Context)
}

// Conflicts has the steps of package conflicts.
type Conflicts interface {
	// Remember stores conflicts between contacts, until ctx ends.
	Remember(ctx context.Context)
}

// Broadcasts has the steps of package broadcast.
type Broadcasts interface {
	// Run sends broadcasts until ctx ends. FollowDeliveries gives their rows the delivery
	// statuses of messages, until ctx ends. ForgetRows deletes the rows of broadcasts that ended
	// longer ago than keep.
	Run(ctx context.Context)
	FollowDeliveries(ctx context.Context)
	ForgetRows(ctx context.Context, keep time.Duration) error
}

// How often each step runs.
const (
	lookEvery   = 5 * time.Second
	sweepEvery  = 5 * time.Second
	forgetEvery = time.Hour // on one of the nodes
	clockEvery  = time.Minute
	usesEvery   = time.Minute
	countEvery  = 15 * time.Second // messages by day
	lastUses    = 5 * time.Second  // how long storing the last uses of keys may take when the process stops
	eventsEvery = time.Second
	dropsEvery  = 20 * time.Second // content of erased files
	syncEvery   = time.Minute      // looks for old libraries
	// syncPause is how long reports of changed templates are collected before the
	// templates are fetched.
	syncPause = 2 * time.Second
)

// Keep says how long data stays.
type Keep struct {
	Events   time.Duration // in the feed; 0: for ever
	Messages time.Duration // and notes; 0: for ever
	Media    time.Duration // the content of files; 0: for ever
	Rows     time.Duration // of broadcasts that have ended; 0: for ever
}

// Run runs all schedules until the context ends, and returns when no step is under way;
// steps are short.
func Run(ctx context.Context, a Parts, keep Keep, log *slog.Logger) {
	ctx = store.InBackground(ctx)
	r := runner{a.App, log}
	var all sync.WaitGroup
	all.Go(func() { r.inbound(ctx) })
	all.Go(func() { r.every(ctx, lookEvery, "look for inbound items", a.LookForInbound, nil) })
	all.Go(func() { r.every(ctx, sweepEvery, "sweep", a.Sweep, nil) })
	all.Go(func() { r.every(ctx, forgetEvery, "forget", a.ForgetAlone, nil) })
	all.Go(func() {
		r.every(ctx, usesEvery, "store uses of keys", a.Access.StoreKeyUses, nil)
		last, stop := context.WithTimeout(context.WithoutCancel(ctx), lastUses)
		defer stop()
		r.attempt(last, "store uses of keys", a.Access.StoreKeyUses)
	})
	all.Go(func() { r.every(ctx, countEvery, "count messages by day", a.Daily.Count, nil) })
	all.Go(func() { r.every(ctx, clockEvery, "look at the clock", a.Clock.Look, nil) })
	all.Go(func() {
		r.every(ctx, syncEvery, "fetch templates", func(ctx context.Context) error {
			all.Go(func() { r.attempt(ctx, "fetch templates", a.SyncStale) }) // a slow fetch does not delay the next one
			return nil
		}, a.TemplatesNoted())
	})
	all.Go(func() { a.Deliver.Run(ctx) })
	all.Go(func() { a.Media.Fetch(ctx) })
	all.Go(func() { a.SendAutoReplies(ctx) })
	all.Go(func() { a.AssignWaiting(ctx) })
	all.Go(func() { a.Search.Run(store.Patiently(ctx)) })
	all.Go(func() { a.Imports.ImportUploads(ctx) })
	all.Go(func() { a.Conflicts.Remember(ctx) })
	all.Go(func() { a.Broadcasts.Run(ctx) })
	all.Go(func() { a.Broadcasts.FollowDeliveries(store.Patiently(ctx)) })
	all.Go(func() { r.every(ctx, dropsEvery, "drop content of files", a.Media.DropContents, nil) })
	all.Go(func() { r.every(ctx, eventsEvery, "look for events", a.Feed.Look, nil) })
	if keep.Events > 0 {
		forget := func(ctx context.Context) error { return a.Feed.Forget(ctx, keep.Events) }
		all.Go(func() { r.every(ctx, dropEvery(keep.Events), "forget events", forget, nil) })
	}
	if keep.Messages > 0 {
		forget := func(ctx context.Context) error { return a.ForgetMessages(ctx, keep.Messages) }
		all.Go(func() { r.every(ctx, forgetEvery, "forget messages", forget, nil) })
	}
	if keep.Rows > 0 {
		forget := func(ctx context.Context) error { return a.Broadcasts.ForgetRows(ctx, keep.Rows) }
		all.Go(func() { r.every(ctx, forgetEvery, "forget rows of broadcasts", forget, nil) })
	}
	if keep.Media > 0 {
		forget := func(ctx context.Context) error { return a.Media.ForgetOld(ctx, keep.Media) }
		all.Go(func() { r.every(ctx, forgetEvery, "forget media", forget, nil) })
	}
	all.Wait()
}

// dropEvery is how often expired events are dropped. Events may stay longer than keepEvents,
// by a tenth of it and ten seconds (contract-events §2).
func dropEvery(keepEvents time.Duration) time.Duration {
	return min(keepEvents/20+5*time.Second, forgetEvery)
}

type runner struct {
	app App
	log *slog.Logger
}

// every is a schedule: it runs do at once, then once in each period, and also soon after
// noted gets an element.
func (r runner) every(ctx context.Context, period time.Duration, what string, do func(context.Context) error, noted <-chan struct{}) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for ctx.Err() == nil {
		r.attempt(ctx, what, do)
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-noted:
			select { // more reports may come
			case <-ctx.Done():
			case <-time.After(syncPause):
			}
		}
	}
}

func (r runner) attempt(ctx context.Context, what string, do func(context.Context) error) {
	if err := do(ctx); err != nil && ctx.Err() == nil {
		r.log.WarnContext(ctx, "background work failed; it will be tried again", "work", what, "err", err)
	}
}
