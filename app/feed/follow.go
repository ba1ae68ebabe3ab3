package feed

import (
	"context"
	"slices"
	"time"

	"parley/app/steps"
	"parley/desk"
	"parley/store"
)

// A Follower reads new events of the feed as they come. It is used by one goroutine.
type Follower struct {
	feed  *Service
	p     desk.Principal
	types desk.EventFilter
	query store.EventQuery // of the next page
	last  *position        // of the last page
	woken chan struct{}
}

// A position has the parts of a page that a Follower keeps.
type position struct {
	settings *desk.Settings
	start    desk.EventPlace
	types    []desk.EventType
	more     bool
	read     time.Time
}

// Follow begins to follow the feed from a cursor. It returns the first page, which may have
// no events. The caller must call Close. Its errors are those of Service.Page, and
// RateLimited or Unavailable if there are too many followers.
func (a *Service) Follow(ctx context.Context, p desk.Principal, q Query) (*Follower, *Page, error) {
	start, err := a.start(p.Workspace(), q.Cursor)
	if err != nil {
		return nil, nil, err
	}
	start.Limit, start.Bare = q.Limit, q.Bare
	f := &Follower{feed: a, p: p, types: q.Types, query: start, woken: make(chan struct{}, 1)}
	page, err := f.page(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := a.followers.add(p.Workspace(), p.Actor.ID, f.woken); err != nil {
		return nil, nil, err
	}
	steps.Wake(f.woken) // an event may have come before the follower was added
	return f, page, nil
}

// Close ends the follower.
func (f *Follower) Close() { f.feed.followers.remove(f.p.Workspace(), f.p.Actor.ID, f.woken) }

func (f *Follower) page(ctx context.Context) (*Page, error) {
	page, err := f.feed.eventPage(ctx, f.p, f.query, f.types)
	if err != nil {
		return nil, err
	}
	f.query.From, f.query.After = store.FromPlace, page.Next
	f.last = &position{page.Settings, page.Start, page.types, page.More, time.Now()}
	return page, nil
}

// Again reads the last page a second time. The page may now end at another event. So a
// caller need not keep a page while it waits for memory.
func (f *Follower) Again(ctx context.Context) (*Page, error) {
	f.query.After = f.last.start
	return f.page(ctx)
}

// Still returns a function that tells whether the principal may still read the last page.
// The function may be called concurrently with the other methods.
func (f *Follower) Still(ctx context.Context) func() bool {
	had := f.last.types
	return func() bool {
		s, err := f.feed.Store.Settings(ctx, f.p.Workspace())
		if err != nil || f.p.Still(s, desk.EventsRead, f.feed.Now()) != nil {
			return false
		}
		types, err := f.types.For(f.p.In(s).Allow)
		return err == nil && kept(had, types) == nil
	}
}

// kept returns Forbidden if a type of before is missing in now.
func kept(before, now []desk.EventType) error {
	for _, t := range before {
		if !slices.Contains(now, t) {
			return desk.Errorf(desk.Forbidden, "this key may no longer read %s", t)
		}
	}
	return nil
}

// pagePause is the least time between two pages of a follower who has read all events, so
// that many commits share a page.
const pagePause = 20 * time.Millisecond

// Next returns the next page that has events. If no event comes during the time idle, or
// when the process stops, it returns a page without events. It returns Forbidden if the
// principal may no longer read a type that it got before.
func (f *Follower) Next(ctx context.Context, idle time.Duration) (*Page, error) {
	patience := time.NewTimer(idle)
	defer patience.Stop()
	had := f.last.types
	for {
		page, err := f.step(ctx, patience.C)
		if err != nil {
			return nil, err
		}
		if err := kept(had, f.last.types); err != nil {
			return nil, err
		}
		if page == nil {
			return f.empty(), nil
		}
		if len(page.Events) > 0 {
			return page, nil
		}
	}
}

// Await is like Next, but for a single request. It looks at a limited number of events, so
// it may return a page without events although more events follow.
func (f *Follower) Await(ctx context.Context, wait time.Duration) (*Page, error) {
	patience := time.NewTimer(wait)
	defer patience.Stop()
	for looked := int64(0); ; {
		page, err := f.step(ctx, patience.C)
		if err != nil {
			return nil, err
		}
		if page == nil {
			return f.empty(), nil
		}
		if looked += page.Next.Seq - page.Start.Seq; len(page.Events) > 0 || looked >= desk.MaxEventsLooked {
			return page, nil
		}
	}
}

// empty returns a page without events, at the place that was reached.
func (f *Follower) empty() *Page {
	return &Page{EventPage: &store.EventPage{Settings: f.last.settings, Start: f.query.After, Next: f.query.After, More: f.last.more}}
}

// step reads the next page as soon as there may be events. It returns nil if the caller's
// time is over or the process stops.
func (f *Follower) step(ctx context.Context, patience <-chan time.Time) (*Page, error) {
	woken := f.woken
	if f.last.more {
		woken = make(chan struct{})
		close(woken)
	}
	expiry, stop := f.expiry()
	defer stop()
	select {
	case <-woken:
		if !f.last.more {
			time.Sleep(pagePause - time.Since(f.last.read)) // more commits may come
		}
	case <-expiry: // no new event: the page is read to check the key
	case <-patience:
		return nil, nil
	case <-f.feed.Drained:
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return f.page(ctx)
}

// expiry returns a channel that receives when the principal's key expires.
func (f *Follower) expiry() (<-chan time.Time, func()) {
	if f.p.Key == nil || f.p.Key.ExpiresAt == 0 {
		return nil, func() {}
	}
	// At least pagePause, because this server's clock may differ from that of the check.
	timer := time.NewTimer(max(pagePause, time.Duration(f.p.Key.ExpiresAt-f.feed.Now())*time.Millisecond))
	return timer.C, func() { timer.Stop() }
}
