package feed

import (
	"context"
	"encoding/binary"
	"fmt"

	"parley/app/cursors"
	"parley/desk"
	"parley/store"
)

// A Query has the parameters of a reader of the feed.
type Query struct {
	Cursor string // "" or oldest: from the oldest event; latest: only new events; otherwise the events after this id
	Types  desk.EventFilter
	Limit  int
	Bare   bool // without the records
}

// Page returns the next page of the feed. Its errors are Unauthorized, InvalidRequest for a
// cursor that it did not give out, Forbidden for a type that the principal may not read,
// and CursorExpired.
func (a *Service) Page(ctx context.Context, p desk.Principal, q Query) (*Page, error) {
	start, err := a.start(p.Workspace(), q.Cursor)
	if err != nil {
		return nil, err
	}
	start.Limit, start.Bare = q.Limit, q.Bare
	return a.eventPage(ctx, p, start, q.Types)
}

// A Log is a page of the log of events, newest first, with the settings that name
// its actors and records.
type Log struct {
	Settings *desk.Settings
	Events   []desk.FeedEvent
	Next     string // the cursor of the next page, "" if there is none
}

// Log returns a page of the events of some types (nil: of all), newest first. A page may be
// short, or even empty, although there is a next one. It returns InvalidRequest for a
// cursor of another workspace or other types.
func (a *Service) Log(ctx context.Context, p desk.Principal, types []desk.EventType, cursor string, limit int) (l Log, err error) {
	if err := p.Allow(desk.Administer); err != nil {
		return l, err
	}
	if types == nil {
		types = desk.EventTypes
	}
	list, before := cursors.List{Workspace: p.Workspace(), Name: "event log", Filter: fmt.Sprintf("%q", types)}, int64(0)
	if cursor != "" {
		place, err := a.Cursors.Open(list, cursor)
		if err != nil {
			return l, err
		}
		before = int64(binary.BigEndian.Uint64(place))
	}
	events, next, err := a.Store.EventLog(ctx, p.Workspace(), types, before, limit)
	if err != nil {
		return l, err
	}
	for i := range events {
		events[i].ID = a.EventID(p.Workspace(), events[i].Place)
	}
	l = Log{Settings: p.Settings, Events: events}
	if next > 0 {
		l.Next = a.Cursors.Seal(list, binary.BigEndian.AppendUint64(nil, uint64(next)))
	}
	return l, nil
}

// start returns the query that begins at a cursor.
func (a *Service) start(ws desk.ID, cursor string) (q store.EventQuery, err error) {
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

// Cursor returns the cursor of the place after the last event that a page looked at.
func (a *Service) Cursor(page *Page) string { return a.EventID(page.Settings.ID, page.Next) }

// eventPage reads a page, and checks the principal in the same snapshot of the database.
func (a *Service) eventPage(ctx context.Context, p desk.Principal, q store.EventQuery, f desk.EventFilter) (*Page, error) {
	ws := p.Workspace()
	var types []desk.EventType
	read, err := a.Store.Events(ctx, ws, q, func(s *desk.Settings) (_ []desk.EventType, err error) {
		if err := p.Still(s, desk.EventsRead, a.Now()); err != nil {
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
		return nil, a.Expired(read, read.Expired)
	}
	if q.Bare {
		a.identify(read)
		return &Page{EventPage: read, types: types}, nil
	}
	page, err := a.complete(ctx, read)
	if err != nil {
		return nil, err
	}
	page.types = types
	return page, nil
}

// Expired returns the error CursorExpired for a page that can't be read.
func (a *Service) Expired(page *store.EventPage, reason string) error {
	e := desk.Errorf(desk.CursorExpired, "events after this cursor have expired; go on from the oldest that is kept, and read the records anew")
	if reason == desk.ExpiredByHistory {
		e = desk.Errorf(desk.CursorExpired, "this database has no such event: it was restored from a backup; go on from the newest, and read the records anew")
	}
	ws := page.Settings.ID
	e.Details = desk.ExpiredCursor{Reason: reason, Oldest: a.EventID(ws, page.Oldest), Newest: a.EventID(ws, page.Newest)}
	return e
}

// Read returns a page of a workspace's events for parley itself. The function which returns
// the types of the page. If events have expired, Read returns no error, but sets the page's
// Expired.
func (a *Service) Read(ctx context.Context, ws desk.ID, q store.EventQuery, which func(*desk.Settings) ([]desk.EventType, error)) (*Page, error) {
	read, err := a.Store.Events(ctx, ws, q, which)
	if err != nil {
		return nil, err
	}
	return a.complete(ctx, read)
}

// At returns a page with one event and its current record. If the event is no longer kept,
// the page has no events.
func (a *Service) At(ctx context.Context, ws desk.ID, place desk.EventPlace) (*Page, error) {
	return a.Read(ctx, ws, store.EventQuery{From: store.AtPlace, After: place, AtOnce: true}, func(*desk.Settings) ([]desk.EventType, error) {
		return desk.EventTypes, nil
	})
}

// Seek returns the place of a cursor. It returns CursorExpired, and InvalidRequest for a
// cursor that this feed did not give out.
func (a *Service) Seek(ctx context.Context, ws desk.ID, cursor string) (desk.EventPlace, error) {
	q, err := a.start(ws, cursor)
	if err != nil {
		return desk.EventPlace{}, err
	}
	page, err := a.Store.Events(ctx, ws, q, func(*desk.Settings) ([]desk.EventType, error) { return nil, nil })
	if err != nil {
		return desk.EventPlace{}, err
	}
	if page.Expired != "" {
		return desk.EventPlace{}, a.Expired(page, page.Expired)
	}
	return page.Next, nil
}
