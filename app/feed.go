package app

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/app/cursors"
	"parley/app/steps"
	"parley/desk"
	"parley/store"
)

// The id of an event is evt_ and 32 characters: its number, its tag, and a signature that
// binds both to the workspace (contract-events §1). Its byte order is the order of the
// numbers. It is also the cursor of the place after the event.
const (
	eventIDPrefix = "evt_"
	eventIDPlace  = 6 + 6 // bytes of number and tag
	eventIDLength = eventIDPlace + 8
)

var eventIDText = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// EventID is the id of the event at a place.
func (a *App) EventID(ws desk.ID, place desk.EventPlace) string {
	id := binary.BigEndian.AppendUint64(nil, uint64(place.Seq)<<16)[:6]
	id = append(id, binary.BigEndian.AppendUint64(nil, uint64(place.Tag)<<16)[:6]...)
	return eventIDPrefix + eventIDText.EncodeToString(append(id, a.signEvent(ws, id)...))
}

func (a *App) signEvent(ws desk.ID, place []byte) []byte {
	mac := hmac.New(sha256.New, a.eventKey)
	mac.Write(ws[:])
	mac.Write(place)
	return mac.Sum(nil)[:eventIDLength-eventIDPlace]
}

// EventPlace is the place of an event's id. It is false for a text that is no id of the
// workspace.
func (a *App) EventPlace(ws desk.ID, id string) (place desk.EventPlace, ok bool) {
	text, found := strings.CutPrefix(id, eventIDPrefix)
	b, err := eventIDText.DecodeString(text)
	if !found || err != nil || len(b) != eventIDLength || len(text) != eventIDText.EncodedLen(eventIDLength) || !hmac.Equal(b[eventIDPlace:], a.signEvent(ws, b[:eventIDPlace])) {
		return place, false
	}
	number := func(b []byte) int64 { return int64(binary.BigEndian.Uint64(append([]byte{0, 0}, b...))) }
	return desk.EventPlace{Seq: number(b[:6]), Tag: number(b[6:12])}, true
}

// A FeedQuery is what a reader of the feed asks for.
type FeedQuery struct {
	Cursor string // "" or oldest: from the oldest event; latest: what comes from now on; otherwise an event's id
	Types  desk.EventFilter
	Limit  int
	Bare   bool // without the records
}

// Feed returns the next page of the feed. It returns Unauthorized, InvalidRequest for a
// cursor that it did not give out, Forbidden for a type that the principal may not read,
// and CursorExpired.
func (a *App) Feed(ctx context.Context, p desk.Principal, q FeedQuery) (*FeedPage, error) {
	start, err := a.eventStart(p.Workspace(), q.Cursor)
	if err != nil {
		return nil, err
	}
	start.Limit, start.Bare = q.Limit, q.Bare
	return a.eventPage(ctx, p, start, q.Types)
}

// An EventLog is a page of the log of events, newest first, with the settings that name
// its actors and records.
type EventLog struct {
	Settings *desk.Settings
	Events   []desk.FeedEvent
	Next     string // the cursor of the next page, "" if there is none
}

// EventLog returns a page of the events of some types, nil for all, newest first. A page
// may be short, or even empty, although there is a next one. It returns InvalidRequest
// for a cursor of another workspace or other types.
func (a *App) EventLog(ctx context.Context, p desk.Principal, types []desk.EventType, cursor string, limit int) (l EventLog, err error) {
	if err := p.Allow(desk.Administer); err != nil {
		return l, err
	}
	if types == nil {
		types = desk.EventTypes
	}
	list, before := cursors.List{Workspace: p.Workspace(), Name: "event log", Filter: fmt.Sprintf("%q", types)}, int64(0)
	if cursor != "" {
		place, err := a.cursors.Open(list, cursor)
		if err != nil {
			return l, err
		}
		before = int64(binary.BigEndian.Uint64(place))
	}
	events, next, err := a.store.EventLog(ctx, p.Workspace(), types, before, limit)
	if err != nil {
		return l, err
	}
	for i := range events {
		events[i].ID = a.EventID(p.Workspace(), events[i].Place)
	}
	l = EventLog{Settings: p.Settings, Events: events}
	if next > 0 {
		l.Next = a.cursors.Seal(list, binary.BigEndian.AppendUint64(nil, uint64(next)))
	}
	return l, nil
}

// eventStart reads a cursor.
func (a *App) eventStart(ws desk.ID, cursor string) (q store.EventQuery, err error) {
	switch cursor {
	case "", "oldest":
		return store.EventQuery{From: store.FromOldest}, nil
	case "latest":
		return store.EventQuery{From: store.FromNewest}, nil
	}
	place, ok := a.EventPlace(ws, cursor)
	if !ok {
		return q, desk.InvalidAt("/cursor", "this service did not give it out for this workspace; use the id of an event, a cursor of an answer, oldest or latest")
	}
	return store.EventQuery{From: store.FromPlace, After: place}, nil
}

// Cursor is the cursor of the place after the last event that a page looked at.
func (a *App) Cursor(page *FeedPage) string { return a.EventID(page.Settings.ID, page.Next) }

// eventPage reads a page, and checks the principal in the snapshot of the page.
func (a *App) eventPage(ctx context.Context, p desk.Principal, q store.EventQuery, f desk.EventFilter) (*FeedPage, error) {
	ws := p.Workspace()
	var types []desk.EventType
	read, err := a.store.Events(ctx, ws, q, func(s *desk.Settings) (_ []desk.EventType, err error) {
		if err := p.Still(s, desk.EventsRead, a.now()); err != nil {
			return nil, err
		}
		types, err = f.For(p.In(s).Allow)
		return types, err
	})
	if desk.IsType(err, desk.NotFound) { // the workspace was deleted meanwhile
		return nil, desk.ErrUnauthorized
	}
	if err != nil {
		return nil, err
	}
	if read.Expired != "" {
		return nil, a.expired(read, read.Expired)
	}
	if q.Bare {
		a.identify(read)
		return &FeedPage{EventPage: read, types: types}, nil
	}
	page, err := a.complete(ctx, read)
	if err != nil {
		return nil, err
	}
	page.types = types
	return page, nil
}

// expired is CursorExpired for a page that can't be read.
func (a *App) expired(page *store.EventPage, reason string) error {
	e := desk.Errorf(desk.CursorExpired, "events after this cursor have expired; go on from the oldest that is kept, and read the records anew")
	if reason == desk.ExpiredByHistory {
		e = desk.Errorf(desk.CursorExpired, "this database has no such event: it was restored from a backup; go on from the newest, and read the records anew")
	}
	ws := page.Settings.ID
	e.Details = desk.ExpiredCursor{Reason: reason, Oldest: a.EventID(ws, page.Oldest), Newest: a.EventID(ws, page.Newest)}
	return e
}

// The greatest numbers of followers of a process, of one workspace, and of one key
// (contract-events §2).
const (
	maxFollowers          = 1024
	maxWorkspaceFollowers = maxFollowers / 2
	maxKeyFollowers       = 16
)

// followers are those who wait for events, by workspace.
type followers struct {
	count atomic.Int64 // so that a write without followers costs nothing
	mu    sync.Mutex
	of    map[desk.ID]*followed
	byKey map[desk.ID]int
}

// A followed is a workspace with followers.
type followed struct {
	head  store.Head             // at the last look
	woken map[chan struct{}]bool // true: one of parley's own
	count int                    // of them, without parley's own
}

// add lets woken know when the workspace may have new events. by is whose the follower
// is, for the limits; the zero id has none.
func (f *followers) add(ws, by desk.ID, woken chan struct{}) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.full(ws, by); e != nil {
		e.RetryAfter = 5
		return e
	}
	if f.of == nil {
		f.of, f.byKey = map[desk.ID]*followed{}, map[desk.ID]int{}
	}
	if f.of[ws] == nil {
		f.of[ws] = &followed{woken: map[chan struct{}]bool{}}
	}
	f.of[ws].woken[woken] = by.IsZero()
	if !by.IsZero() {
		f.of[ws].count++
	}
	f.byKey[by]++
	f.count.Add(1)
	return nil
}

// full returns an error if there is no place for a follower. parley's own don't count.
func (f *followers) full(ws, by desk.ID) *desk.Error {
	of := f.of[ws]
	switch {
	case by.IsZero():
		return nil
	case f.byKey[by] >= maxKeyFollowers:
		return desk.Errorf(desk.RateLimited, "this key has %d streams and waiting reads already: close one first", maxKeyFollowers)
	case of != nil && of.count >= maxWorkspaceFollowers:
		return desk.Errorf(desk.RateLimited, "this workspace has %d streams and waiting reads already: close one first", maxWorkspaceFollowers)
	case f.count.Load()-int64(f.byKey[desk.ID{}]) >= maxFollowers:
		return desk.Errorf(desk.Unavailable, "this server has %d streams and waiting reads already", maxFollowers)
	}
	return nil
}

func (f *followers) remove(ws, by desk.ID, woken chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := f.of[ws]
	if !by.IsZero() {
		of.count--
	}
	if delete(of.woken, woken); len(of.woken) == 0 {
		delete(f.of, ws)
	}
	if f.byKey[by]--; f.byKey[by] == 0 {
		delete(f.byKey, by)
	}
	f.count.Add(-1)
}

// Followers is how many streams and waiting reads this process has.
func (a *App) Followers() int {
	a.followers.mu.Lock()
	defer a.followers.mu.Unlock()
	return int(a.followers.count.Load()) - a.followers.byKey[desk.ID{}] // without those of parley itself
}

// wake wakes the followers of a workspace.
func (f *followers) wake(ws desk.ID) {
	if f.count.Load() == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wakeLocked(ws, false)
}

// wakeLocked wakes the followers of a workspace. If they can only learn that the database
// is away, it leaves out parley's own, who notice that by themselves.
func (f *followers) wakeLocked(ws desk.ID, away bool) {
	if of := f.of[ws]; of != nil {
		for woken, own := range of.woken {
			if !away || !own {
				steps.Wake(woken)
			}
		}
	}
}

func (f *followers) workspaces() (list []desk.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for ws := range f.of {
		list = append(list, ws)
	}
	return list
}

// LookForEvents wakes the followers of workspaces in which another process has stored
// something. If the database is away, it wakes all streams: what they read then fails.
func (a *App) LookForEvents(ctx context.Context) error {
	list := a.followers.workspaces()
	if len(list) == 0 {
		return nil
	}
	heads, err := a.store.Heads(ctx, list)
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

// A Follower reads the feed on as events come. It is used by one goroutine.
type Follower struct {
	app   *App
	p     desk.Principal
	types desk.EventFilter
	query store.EventQuery // of the next page
	last  *position        // of the last page
	woken chan struct{}
}

// A position is what a Follower keeps of a page.
type position struct {
	settings *desk.Settings
	start    desk.EventPlace
	types    []desk.EventType
	more     bool
	read     time.Time
}

// Follow begins to follow the feed from a cursor. It returns the first page, which may
// have no events, and the errors of Feed; RateLimited or Unavailable if there are too
// many followers. Close must be called.
func (a *App) Follow(ctx context.Context, p desk.Principal, q FeedQuery) (*Follower, *FeedPage, error) {
	start, err := a.eventStart(p.Workspace(), q.Cursor)
	if err != nil {
		return nil, nil, err
	}
	start.Limit, start.Bare = q.Limit, q.Bare
	f := &Follower{app: a, p: p, types: q.Types, query: start, woken: make(chan struct{}, 1)}
	page, err := f.page(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := a.followers.add(p.Workspace(), p.Actor.ID, f.woken); err != nil {
		return nil, nil, err
	}
	steps.Wake(f.woken) // something may have come before it was added
	return f, page, nil
}

// Close ends it.
func (f *Follower) Close() { f.app.followers.remove(f.p.Workspace(), f.p.Actor.ID, f.woken) }

func (f *Follower) page(ctx context.Context) (*FeedPage, error) {
	page, err := f.app.eventPage(ctx, f.p, f.query, f.types)
	if err != nil {
		return nil, err
	}
	f.query.From, f.query.After = store.FromPlace, page.Next
	f.last = &position{page.Settings, page.Start, page.types, page.More, time.Now()}
	return page, nil
}

// Again reads the last page again, which may end elsewhere now. It lets a caller drop
// the page while it waits for memory.
func (f *Follower) Again(ctx context.Context) (*FeedPage, error) {
	f.query.After = f.last.start
	return f.page(ctx)
}

// Still returns a function that tells whether the principal may read the last page now.
// It may be called beside the other methods.
func (f *Follower) Still(ctx context.Context) func() bool {
	had := f.last.types
	return func() bool {
		s, err := f.app.store.Settings(ctx, f.p.Workspace())
		if err != nil || f.p.Still(s, desk.EventsRead, f.app.now()) != nil {
			return false
		}
		types, err := f.types.For(f.p.In(s).Allow)
		return err == nil && kept(had, types) == nil
	}
}

// kept returns Forbidden unless the types now have all those before.
func kept(before, now []desk.EventType) error {
	for _, t := range before {
		if !slices.Contains(now, t) {
			return desk.Errorf(desk.Forbidden, "this key may no longer read %s", t)
		}
	}
	return nil
}

// pagePause is the least time between two pages of a follower who has read all: many
// commits share a page then.
const pagePause = 20 * time.Millisecond

// Next returns the next page that has events, or, after some time without any, or when
// the process stops, a page without. It returns Forbidden if the principal may no longer
// read a type that it got before.
func (f *Follower) Next(ctx context.Context, idle time.Duration) (*FeedPage, error) {
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

// Await is Next for one request, which looks at a limited number of events: it may also
// return a page without events that is not the end.
func (f *Follower) Await(ctx context.Context, wait time.Duration) (*FeedPage, error) {
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

// empty is a page without events, at the place that was reached.
func (f *Follower) empty() *FeedPage {
	return &FeedPage{EventPage: &store.EventPage{Settings: f.last.settings, Start: f.query.After, Next: f.query.After, More: f.last.more}}
}

// step reads the next page as soon as there may be events. It returns nil when the
// caller's patience or the process ends.
func (f *Follower) step(ctx context.Context, patience <-chan time.Time) (*FeedPage, error) {
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
	case <-expiry: // it is no event
	case <-patience:
		return nil, nil
	case <-f.app.drained:
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return f.page(ctx)
}

// expiry ticks when the principal's key expires.
func (f *Follower) expiry() (<-chan time.Time, func()) {
	if f.p.Key == nil || f.p.Key.ExpiresAt == 0 {
		return nil, func() {}
	}
	// Not more often, because this clock and the key's may differ.
	timer := time.NewTimer(max(pagePause, time.Duration(f.p.Key.ExpiresAt-f.app.now())*time.Millisecond))
	return timer.C, func() { timer.Stop() }
}

// ForgetEvents drops events of an age from the feeds of all workspaces. Of this clock and
// the database's, the one that is behind counts: a node whose clock is far ahead must not
// drop the feeds of all.
func (a *App) ForgetEvents(ctx context.Context, age time.Duration) error {
	workspaces, err := a.store.Workspaces(ctx)
	if err != nil {
		return err
	}
	now, _, err := a.store.Clock(ctx)
	if err != nil {
		return err
	}
	now = min(now, a.now())
	expired := desk.Expired{Before: now - desk.Time(age.Milliseconds()), Now: now}
	var failed []error
	for _, w := range workspaces {
		failed = append(failed, steps.InGroups(ctx, steps.Group, func(limit int) (int, error) { // the next workspace does not wait for this one
			return a.store.DropEvents(ctx, w.ID, expired, limit)
		}))
	}
	return errors.Join(failed...)
}
