// Package feed is the feed of events: its pages, the followers that wait for new events,
// and the store that wakes them.
//
//	follow.go     following the feed: reading new events as they come
//	read.go       reading pages, and the log
//	page.go       a page, with the records that its events are about
//	webhook.go    a webhook with its state, as readers see it
//	id.go         ids of events; each id is also a cursor
//	feed.go       the Service; waking followers; expiry
//	waking.go     the Store that counts events and wakes followers
//	followers.go  the followers that wait for events, and their limits
//	news.go       which workspaces have new events
//	due.go        which workspaces have due jobs
package feed

import (
	"context"
	"errors"
	"time"

	"parley/app/cursors"
	"parley/app/steps"
	"parley/desk"
	"parley/store"
)

// Deps are the parts of a Service. All are required.
type Deps struct {
	Store   store.Store
	Now     func() desk.Time // the clock
	Cursors cursors.Sealer
	Key     []byte          // signs ids of events
	Drained <-chan struct{} // closed when followers must stop waiting

	// Library returns the templates of a channel.
	Library func(ctx context.Context, ws desk.ID, c *desk.Channel) (*desk.Library, error)
	// WebhookChanged is called after a commit that may have changed a webhook.
	WebhookChanged func()
}

// A Service is the feed of events. Its methods are safe for concurrent use. Its Store wraps
// the given one, and also wakes followers: all code that stores events must use it.
type Service struct {
	Deps
	followers followers
	news      news
	stored    eventCounts
}

// New builds a Service.
func New(d Deps) *Service {
	a := &Service{Deps: d, stored: newEventCounts()}
	a.Store = wakingStore{d.Store, a.wake, a.stored, d.WebhookChanged}
	return a
}

// wake tells followers and readers of news that a workspace may have new events. The
// followers come first: Deliver leaves news to an endpoint that follows the workspace.
func (a *Service) wake(ws desk.ID) {
	a.followers.wake(ws)
	a.news.tell([]desk.ID{ws}, false)
}

// News returns a News for a new reader. At first, all workspaces have news.
func (a *Service) News() *News { return a.news.reader() }

// Stored is how many events of each type this process has stored.
func (a *Service) Stored() map[desk.EventType]int64 {
	numbers := map[desk.EventType]int64{}
	for t, n := range a.stored {
		numbers[t] = n.Load()
	}
	return numbers
}

// Followers is how many streams and waiting reads this process has.
func (a *Service) Followers() int {
	a.followers.mu.Lock()
	defer a.followers.mu.Unlock()
	return int(a.followers.count.Load()) - a.followers.byKey[desk.ID{}] // without parley's own followers
}

// Watch adds a follower of parley itself. It is woken when the workspace may have new
// events, until Unwatch is called. The limits of followers do not apply to it.
func (a *Service) Watch(ws desk.ID, woken chan struct{}) { _ = a.followers.add(ws, desk.ID{}, woken) }

// Unwatch removes a follower that Watch has added.
func (a *Service) Unwatch(ws desk.ID, woken chan struct{}) { a.followers.remove(ws, desk.ID{}, woken) }

// Look wakes the followers of workspaces in which another process has stored something, and
// tells the readers of news. If the database can't be read, it wakes all streams, so that
// their next read fails.
func (a *Service) Look(ctx context.Context) error {
	return errors.Join(a.lookAtFollowed(ctx), a.news.look(ctx, a.Store, a.followers.wake))
}

func (a *Service) lookAtFollowed(ctx context.Context) error {
	list := a.followers.workspaces()
	if len(list) == 0 {
		return nil
	}
	heads, err := a.Store.Heads(ctx, list)
	a.followers.mu.Lock()
	defer a.followers.mu.Unlock()
	for _, ws := range list {
		if of := a.followers.of[ws]; of != nil && (err != nil || of.head != heads[ws]) {
			if err == nil {
				of.head = heads[ws]
			}
			a.followers.wakeLocked(ws, err != nil)
		}
	}
	return err
}

// Forget drops events older than age from the feeds of all workspaces.
func (a *Service) Forget(ctx context.Context, age time.Duration) error {
	workspaces, err := a.Store.Workspaces(ctx)
	if err != nil {
		return err
	}
	now, _, err := a.Store.Clock(ctx)
	if err != nil {
		return err
	}
	expired := desk.Expired{Before: desk.Ago(age, now, a.Now()), Now: desk.Ago(0, now, a.Now())}
	return steps.Abreast(ctx, workspaces, func(w desk.Workspace) error {
		return steps.InGroups(ctx, steps.Group, func(limit int) (int, error) { return a.Store.DropEvents(ctx, w.ID, expired, limit) })
	})
}
