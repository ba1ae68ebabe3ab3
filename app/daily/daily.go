// Package daily counts messages by day, from the feed of events.
package daily

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"parley/app/feed"
	"parley/desk"
	"parley/store"
)

// kinds says for each type of event how its message is counted.
var kinds = map[desk.EventType]desk.DailyKind{
	desk.MessageReceived: desk.DailyReceived, desk.MessageSent: desk.DailySent, desk.MessageDelivered: desk.DailyDelivered,
	desk.MessageRead: desk.DailyRead, desk.MessageFailed: desk.DailyFailed,
}

const (
	// group is how many events one step counts.
	group = 2000
	// leaseFor is how long one process counts the events of a workspace, in milliseconds.
	// If two processes count the same events, Tx.CountDays accepts only one of the counts.
	leaseFor = desk.Time(10_000)
)

// A Service counts messages. Its methods are safe for concurrent use.
type Service struct {
	store store.Store
	now   func() desk.Time // the clock
	news  *feed.News       // a workspace without new events costs no read or write
}

// New builds a Service.
func New(s store.Store, now func() desk.Time, news *feed.News) *Service {
	return &Service{store: s, now: now, news: news}
}

// Count counts the new events of all workspaces by day. It reads them from the feed, so the
// writes themselves do no extra work.
func (a *Service) Count(ctx context.Context) error {
	list, err := a.news.Workspaces(ctx, a.store)
	if err != nil || len(list) == 0 {
		return err
	}
	heads, err := a.store.Heads(ctx, list)
	if err != nil {
		a.news.Add(list, false)
		return err
	}
	var failed []error
	for ws, head := range heads {
		err := ctx.Err()
		if err == nil {
			err = a.count(ctx, ws, head.Event)
		}
		if err != nil && !desk.IsType(err, desk.NotFound) {
			a.news.Add([]desk.ID{ws}, false)
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// count counts the events of a workspace up to the newest, unless another process does or
// has done so.
func (a *Service) count(ctx context.Context, ws desk.ID, newest int64) error {
	place, err := a.store.DailyPlace(ctx, ws)
	if err != nil || place.Seq == newest {
		return err
	}
	ours, err := a.store.Lease(ctx, ws, "daily", leaseFor)
	if err != nil {
		return err
	}
	if !ours {
		a.news.Add([]desk.ID{ws}, false) // the other process may end before it has counted
		return nil
	}
	return a.countDays(ctx, ws, place)
}

// countDays counts the events of a workspace after a place, up to the newest.
func (a *Service) countDays(ctx context.Context, ws desk.ID, place desk.EventPlace) (err error) {
	for more := true; more && err == nil && ctx.Err() == nil; {
		q := store.EventQuery{From: store.FromPlace, After: place, Limit: group}
		if place.Seq == 0 {
			q.From = store.FromOldest
		}
		var page *store.EventPage
		if page, err = a.read(ctx, ws, q); err != nil {
			return err
		}
		from := place
		place, more = page.Next, page.More
		if place == from {
			return nil
		}
		err = a.store.InTx(ctx, ws, func(tx store.Tx) error { return tx.CountDays(from, place, countsOf(page)) })
	}
	return err
}

// read reads a page of the feed. If events have expired before they were counted, it
// continues with the oldest event that is left.
func (a *Service) read(ctx context.Context, ws desk.ID, q store.EventQuery) (*store.EventPage, error) {
	types := slices.Sorted(maps.Keys(kinds))
	which := func(*desk.Settings) ([]desk.EventType, error) { return types, nil }
	page, err := a.store.Events(ctx, ws, q, which)
	if err == nil && page.Expired != "" {
		q.From = store.FromOldest
		if page.Expired == desk.ExpiredByHistory {
			q.From = store.FromNewest
		}
		page, err = a.store.Events(ctx, ws, q, which)
	}
	return page, err
}

// countsOf counts a page's events. The records of deleted people's messages no longer
// exist, so these messages are counted without their template.
func countsOf(page *store.EventPage) (list []desk.DailyCount) {
	type place struct {
		day  int64
		kind desk.DailyKind
		key  string
	}
	at := map[place]int{}
	add := func(day int64, kind desk.DailyKind, key, label string) {
		p := place{day, kind, key}
		i, known := at[p]
		if !known {
			i = len(list)
			at[p] = i
			list = append(list, desk.DailyCount{Day: day, Kind: kind, Key: key, Label: label})
		}
		list[i].N++
	}
	for i := range page.Events {
		e := &page.Events[i]
		day, kind, key := desk.DayOf(e.TS), kinds[e.Type], ""
		m := page.Messages[e.Subject]
		if m != nil && kind != desk.DailyReceived {
			key = m.TemplateKey()
		}
		add(day, kind, key, "")
		if kind == desk.DailyFailed && m != nil && m.Failure != nil {
			title, _, _ := strings.Cut(m.Failure.Title, ": ") // the rest may be about this message alone
			add(day, desk.DailyReason, strconv.Itoa(m.Failure.Code), title)
		}
	}
	slices.SortFunc(list, func(x, y desk.DailyCount) int { // all processes write in the same order, so they do not deadlock
		return cmp.Or(cmp.Compare(x.Day, y.Day), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Key, y.Key))
	})
	return list
}

// A Report has the numbers of the last days. A message counts for the day on which it was
// sent.
type Report struct {
	Days      []DayOfMessages // all of them, the oldest first
	Sends     Funnel
	Reasons   []FailureCount // the most frequent first
	Templates []TemplateUse  // the most used first
}

// A DayOfMessages is a day, in UTC, with its messages.
type DayOfMessages struct {
	Day      desk.Time
	Received int64
	Sent     int64
}

// A Funnel has the number of sends that reached each stage.
type Funnel struct{ Sent, Delivered, Read, Failed int64 }

// A FailureCount is an error code of the provider, and the number of messages that failed
// with it.
type FailureCount struct {
	Code, Title string
	N           int64
}

// A TemplateUse counts the sends of a template.
type TemplateUse struct {
	Channel        desk.ID
	Name, Language string
	Funnel
}

// Last returns the report of the last days, including today.
func (a *Service) Last(ctx context.Context, p desk.Principal, days int) (d Report, err error) {
	if err := p.Allow(desk.ConversationsRead); err != nil {
		return d, err
	}
	first := desk.DayOf(a.now()) - int64(days) + 1
	counts, err := a.store.Daily(ctx, p.Workspace(), first)
	if err != nil {
		return d, err
	}
	d.Days = make([]DayOfMessages, days)
	for i := range d.Days {
		d.Days[i].Day = desk.DayTime(first + int64(i))
	}
	reasons, uses := map[string]*FailureCount{}, map[string]*TemplateUse{}
	for _, c := range counts {
		i := c.Day - first
		if i < 0 || i >= int64(days) { // counted while a clock was ahead
			continue
		}
		switch c.Kind {
		case desk.DailyReceived:
			d.Days[i].Received += c.N
		case desk.DailySent:
			d.Days[i].Sent += c.N
		case desk.DailyReason:
			if reasons[c.Key] == nil {
				reasons[c.Key] = &FailureCount{Code: c.Key}
			}
			reasons[c.Key].Title, reasons[c.Key].N = c.Label, reasons[c.Key].N+c.N
		}
		if d.Sends.add(c); c.Key != "" && c.Kind != desk.DailyReason && c.Kind != desk.DailyReceived {
			if uses[c.Key] == nil {
				e := desk.Event{Key: c.Key}
				use := &TemplateUse{}
				use.Channel, use.Name, use.Language = e.TemplateKey()
				uses[c.Key] = use
			}
			uses[c.Key].add(c)
		}
	}
	d.Sends.close()
	for _, r := range reasons {
		d.Reasons = append(d.Reasons, *r)
	}
	slices.SortFunc(d.Reasons, func(x, y FailureCount) int { return cmp.Or(cmp.Compare(y.N, x.N), cmp.Compare(x.Code, y.Code)) })
	for _, key := range slices.Sorted(maps.Keys(uses)) {
		uses[key].close()
		d.Templates = append(d.Templates, *uses[key])
	}
	slices.SortStableFunc(d.Templates, func(x, y TemplateUse) int { return cmp.Compare(y.Sent, x.Sent) })
	return d, nil
}

func (f *Funnel) add(c desk.DailyCount) {
	switch c.Kind {
	case desk.DailySent:
		f.Sent += c.N
	case desk.DailyDelivered:
		f.Delivered += c.N
	case desk.DailyRead:
		f.Read += c.N
	case desk.DailyFailed:
		f.Failed += c.N
	}
}

// close makes the numbers consistent. A provider may report only that a message was read,
// so Delivered is at least Read. Neither can be greater than Sent.
func (f *Funnel) close() {
	f.Read = min(f.Read, f.Sent)
	f.Delivered = min(max(f.Delivered, f.Read), f.Sent)
}
