package stored

import (
	"cmp"
	"math"
	"strings"
	"time"

	"parley/desk"
	"parley/store"
)

// A FeedReader reads the events of one workspace. All its methods see one snapshot.
type FeedReader interface {
	// Settings must be called first.
	Settings() (*desk.Settings, error)

	// Ends returns the position before the oldest event, and the position of the newest
	// event.
	Ends() (floor, newest desk.EventPlace, err error)

	// At returns the position of the event with this number, or zero if there is none.
	At(seq int64) (desk.EventPlace, error)

	// Scan returns the first events of these types whose numbers are greater than after,
	// and at most upTo.
	Scan(after, upTo int64, types []desk.EventType, limit int) ([]desk.FeedEvent, error)

	// Records reads the records of the page's events, up to the largest size of a page,
	// and cuts the page there.
	Records(*store.EventPage) error
}

// ReadFeed reads a page of the feed (see store.Events). Its snapshot was not taken before the
// time began.
func ReadFeed(began time.Time, r FeedReader, q store.EventQuery, which func(*desk.Settings) ([]desk.EventType, error)) (*store.EventPage, error) {
	settings, err := r.Settings()
	if err != nil {
		return nil, err
	}
	types, err := which(settings)
	if err != nil {
		return nil, err
	}
	page := &store.EventPage{
		ReadAt: began, Settings: settings, Contacts: map[desk.ID]*desk.Contact{}, Conversations: map[desk.ID]*desk.Conversation{}, Messages: map[desk.ID]*desk.Message{},
		Notes: map[desk.ID]*desk.Note{}, Attempts: map[desk.ID]*desk.Attempt{},
	}
	if page.Oldest, page.Newest, err = r.Ends(); err != nil {
		return nil, err
	}
	if page.Newest.Seq <= page.Oldest.Seq { // the events that are left are older than the feed
		page.Newest = page.Oldest
	}
	switch q.From {
	case store.FromOldest:
		page.Next = page.Oldest
	case store.FromNewest:
		page.Next = page.Newest
	case store.AtPlace:
		page.Next = q.After
		if page.Events, err = r.Scan(q.After.Seq-1, q.After.Seq, types, 1); err != nil {
			return nil, err
		}
		if len(page.Events) == 0 || page.Events[0].Place != q.After {
			page.Events = nil
			return page, nil
		}
		return page, r.Records(page)
	case store.FromPlace:
		if page.Next = q.After; q.After.Seq < page.Oldest.Seq {
			page.Expired = desk.ExpiredByRetention
			return page, nil
		}
		there := page.Oldest
		if q.After.Seq > page.Oldest.Seq {
			if there, err = r.At(q.After.Seq); err != nil {
				return nil, err
			}
		}
		if there != q.After {
			page.Expired = desk.ExpiredByHistory
			return page, nil
		}
	}
	page.Start = page.Next
	if q.Limit == 0 || page.Next.Seq == page.Newest.Seq {
		page.More = page.Next.Seq < page.Newest.Seq
		return page, nil
	}
	upTo := min(page.Next.Seq+desk.MaxEventsLooked, page.Newest.Seq)
	if page.Events, err = r.Scan(page.Next.Seq, upTo, types, q.Limit); err != nil {
		return nil, err
	}
	switch {
	case len(page.Events) == q.Limit:
		page.Next = page.Events[len(page.Events)-1].Place
	case upTo == page.Newest.Seq:
		page.Next = page.Newest
	default:
		if page.Next, err = r.At(upTo); err != nil {
			return nil, err
		}
	}
	page.More = page.Next.Seq < page.Newest.Seq
	if q.Bare {
		return page, nil
	}
	return page, r.Records(page)
}

// Fill reads the records of a page's events one after the other, and ends the page as
// soon as it is full.
func Fill(page *store.EventPage, read func(*desk.FeedEvent) error) error {
	size := desk.NewPageSize(len(page.Events))
	for i := range page.Events {
		e := &page.Events[i]
		if err := read(e); err != nil {
			return err
		}
		if !size.Add(e.EventBytes() + page.DataBytes(e)) {
			page.Cut(i)
			break
		}
	}
	return nil
}

// Words splits a comma-separated list.
func Words(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

// A Created says where the webhook.created event of a new webhook is among the events of
// a change.
type Created struct {
	Tag   int64
	Later int // how many events of the change follow it
}

// CreatedAt finds the webhook.created event of a webhook. It returns nil if the webhook
// is not new.
func CreatedAt(w *desk.Webhook, events []desk.Event) *Created {
	for i, e := range events {
		if e.Type == desk.WebhookCreated && e.Subject == w.ID {
			return &Created{e.Tag(), len(events) - 1 - i}
		}
	}
	return nil
}

// ReadLog reads a page of the log of events (see store.Events). The callback scan returns
// the events of the types with numbers between from and before, newest first. It returns
// up to one event more than fits into a page.
func ReadLog(r FeedReader, types []desk.EventType, before int64, limit int, scan func(from, before int64, ofSettings bool) ([]desk.FeedEvent, error)) ([]desk.FeedEvent, int64, error) {
	if _, err := r.Settings(); err != nil {
		return nil, 0, err
	}
	oldest, newest, err := r.Ends()
	if err != nil {
		return nil, 0, err
	}
	if before == 0 {
		before = newest.Seq + 1
	}
	ofSettings, from := true, oldest.Seq
	for _, t := range types {
		ofSettings = ofSettings && t.OfSettings()
	}
	if !ofSettings {
		from = max(from, before-1-desk.MaxEventsLooked)
	}
	events, err := scan(from, before, ofSettings)
	switch {
	case err != nil:
		return nil, 0, err
	case len(events) > limit:
		return events[:limit], events[limit-1].Place.Seq, nil
	case from > oldest.Seq:
		return events, from + 1, nil
	}
	return events, 0, nil
}

// Before returns the number before which a list of events ends: 0 stands for the end of the
// feed.
func Before(seq int64) int64 {
	if seq == 0 {
		return math.MaxInt64
	}
	return seq
}

// NewestFirst compares events for a list that begins with the newest.
func NewestFirst(a, b desk.FeedEvent) int { return cmp.Compare(b.Place.Seq, a.Place.Seq) }
