package storetest

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/desk"
	"parley/store"
)

// everyType returns all event types.
func everyType(*desk.Settings) ([]desk.EventType, error) { return desk.EventTypes, nil }

// feed returns a page of the feed, and checks that AtOnce gives the same page.
func feed(t *testing.T, s store.Store, ws desk.ID, q store.EventQuery) *store.EventPage {
	t.Helper()
	return feedOf(t, s, ws, q, everyType)
}

func feedOf(t *testing.T, s store.Store, ws desk.ID, q store.EventQuery, which func(*desk.Settings) ([]desk.EventType, error)) *store.EventPage {
	t.Helper()
	read := func() *store.EventPage {
		began := time.Now()
		page, err := s.Events(t.Context(), ws, q, which)
		must(t, err)
		if page.ReadAt.Before(began) || page.ReadAt.After(time.Now()) {
			t.Errorf("a page of between %v and now says that it was read at %v", began, page.ReadAt)
		}
		page.ReadAt = time.Time{}
		return page
	}
	page := read()
	if q.From == store.AtPlace || q.From == store.FromPlace && q.Limit > 0 && !q.Bare {
		q.AtOnce = true
		if atOnce := read(); atOnce.Newest == page.Newest { // otherwise an event was written meanwhile
			equal(t, "the page at once", atOnce, page)
		}
	}
	return page
}

// follow reads the feed page by page from a place to its end.
func follow(t *testing.T, s store.Store, ws desk.ID, after desk.EventPlace, limit int) (events []desk.FeedEvent, end desk.EventPlace) {
	t.Helper()
	for {
		page := feed(t, s, ws, store.EventQuery{From: store.FromPlace, After: after, Limit: limit})
		if page.Expired != "" {
			t.Fatalf("%v has expired: %s", after, page.Expired)
		}
		events, after = append(events, page.Events...), page.Next
		if !page.More {
			return events, after
		}
	}
}

// eventFields: events keep their fields, and records are returned as they stand now.
func eventFields(t *testing.T, s store.Store) {
	ws, member := newWorkspace(t, s)
	start := feed(t, s, ws, store.EventQuery{From: store.FromNewest}).Next
	contact := put(t, s, ws, upsert("ada@example.com", ""))
	gone := put(t, s, ws, upsert("gone@example.com", ""))
	put(t, s, ws, remove(gone.ID))
	c := newConversation(newID(), contact.ID)
	m := newMessage(c)
	actor := desk.Actor{Kind: desk.ByProvider, ID: newID()}
	stored := []desk.Event{
		{Type: desk.ConversationUpdated, Subject: c.ID, Contact: contact.ID, Actor: actor, At: now(), Changed: []string{"assigned_member_id", "status"}},
		{Type: desk.MessageReceived, Subject: m.ID, Conversation: c.ID, Contact: contact.ID, TS: m.TS, Actor: actor, At: now()},
		{Type: desk.AttributeCreated, Key: "plan", Actor: desk.Actor{Kind: desk.ByKey, ID: newID()}, At: now()},
		{Type: desk.MemberUpdated, Subject: member.ID, Actor: desk.Actor{Kind: desk.ByCLI}, At: now(), Changed: []string{"name"}},
	}
	attempt := newAttempt("905321112233")
	attempt.Plan.Profile, attempt.Response = fullProfile(), []byte("{}")
	stored = append(stored, desk.Event{Type: desk.SendInDoubt, Subject: attempt.ID, Contact: contact.ID, Actor: actor, At: now()},
		desk.Event{Type: desk.SendSettled, Subject: newID(), Conversation: c.ID, Contact: contact.ID, Actor: actor, At: now()})
	commit(t, s, ws, func(tx store.Tx) error {
		if err := tx.PutConversation(c); err != nil {
			return err
		}
		if err := tx.PutMessage(m); err != nil {
			return err
		}
		if err := tx.PutAttempt(attempt); err != nil {
			return err
		}
		return tx.Append(stored...)
	})
	page := feed(t, s, ws, store.EventQuery{From: store.FromPlace, After: start, Limit: 50})
	if len(page.Events) != 9 || page.More || page.Next != page.Newest || page.Settings.ID != ws {
		t.Fatalf("page = %+v", page)
	}
	for i, e := range stored {
		equal(t, "event", page.Events[3+i].Event, e)
	}
	same(t, page.Contacts[contact.ID], contact)
	if page.Contacts[gone.ID] != nil {
		t.Error("a deleted contact is in the page")
	}
	equal(t, "conversation", page.Conversations[c.ID], c)
	equal(t, "message", page.Messages[m.ID], m)
	attempt.Plan.Profile, attempt.Response = nil, nil
	equal(t, "attempt", page.Attempts[attempt.ID], attempt)
	if page.Attempts[stored[5].Subject] != nil {
		t.Error("an attempt that was forgotten is in the page")
	}
	bare := feed(t, s, ws, store.EventQuery{From: store.FromPlace, After: start, Limit: 50, Bare: true})
	if len(bare.Events) != 9 || len(bare.Contacts)+len(bare.Conversations)+len(bare.Messages) != 0 {
		t.Errorf("bare page = %+v", bare)
	}
	other, _ := newWorkspace(t, s)
	if page := feed(t, s, other, store.EventQuery{Limit: 50}); len(page.Events) != 0 || page.Newest.Seq >= 7 {
		t.Errorf("another workspace has %+v", page)
	}
	_, err := s.Events(t.Context(), newID(), store.EventQuery{Limit: 1}, everyType)
	wantType(t, err, desk.NotFound)
	_, err = s.Events(t.Context(), ws, store.EventQuery{Limit: 1}, func(*desk.Settings) ([]desk.EventType, error) { return nil, desk.Errorf(desk.Forbidden, "no") })
	wantType(t, err, desk.Forbidden)
}

// eventPages: pages of any size follow each other without a gap. A page of rare types
// looks at a bounded number of events. No event is lost while others write.
func eventPages(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	const writers, each = 8, 40
	start := feed(t, s, ws, store.EventQuery{From: store.FromNewest}).Next
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for n := range each {
				put(t, s, ws, upsert(fmt.Sprintf("%d.%d@example.com", w, n), ""))
			}
		})
	}
	seen, end := follow(t, s, ws, start, 3)
	group.Wait()
	more, end := follow(t, s, ws, end, 7)
	seen = append(seen, more...)
	subjects := map[desk.ID]bool{}
	for i, e := range seen {
		subjects[e.Subject] = true
		if i > 0 && e.Place.Seq != seen[i-1].Place.Seq+1 {
			t.Errorf("after event %d comes %d", seen[i-1].Place.Seq, e.Place.Seq)
		}
	}
	if len(seen) != writers*each || len(subjects) != len(seen) {
		t.Errorf("%d events of %d contacts, want %d", len(seen), len(subjects), writers*each)
	}
	commit(t, s, ws, func(tx store.Tx) error {
		list := slices.Repeat([]desk.Event{{Type: desk.MemberUpdated, At: now()}}, desk.MaxEventsLooked+5)
		list[desk.MaxEventsLooked+1].Type = desk.KeyUpdated
		return tx.Append(list...)
	})
	keys := func(*desk.Settings) ([]desk.EventType, error) { return []desk.EventType{desk.KeyUpdated}, nil }
	page := feedOf(t, s, ws, store.EventQuery{From: store.FromPlace, After: end, Limit: 5}, keys)
	if len(page.Events) != 0 || !page.More || page.Next.Seq != end.Seq+desk.MaxEventsLooked {
		t.Errorf("the first page = %+v", page)
	}
	page = feedOf(t, s, ws, store.EventQuery{From: store.FromPlace, After: page.Next, Limit: 5}, keys)
	if len(page.Events) != 1 || page.More || page.Next != page.Newest {
		t.Errorf("the second page = %+v", page)
	}
	heads, err := s.Heads(t.Context(), []desk.ID{ws, newID()})
	must(t, err)
	equal(t, "heads", heads, map[desk.ID]store.Head{ws: {Event: page.Newest.Seq, Settings: page.Settings.Version}})
}

// newestEvents: after all workspaces, a reader gets those with new events. It may get others
// again, with the number that it knows.
func newestEvents(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	quiet, _ := newWorkspace(t, s)
	put(t, s, ws, upsert("ada@example.com", ""))
	put(t, s, quiet, upsert("ada@example.com", ""))
	known := map[desk.ID]int64{}
	mark := store.Mark(0)
	read := func() {
		t.Helper()
		newest, next, err := s.NewestEvents(t.Context(), mark)
		must(t, err)
		maps.Copy(known, newest)
		mark = next
	}
	want := func(when string) {
		t.Helper()
		heads, err := s.Heads(t.Context(), []desk.ID{ws, quiet})
		must(t, err)
		equal(t, when, known, map[desk.ID]int64{ws: heads[ws].Event, quiet: heads[quiet].Event})
	}
	read()
	want("all")
	for range 3 {
		put(t, s, ws, upsert("grace@example.com", ""))
		read()
		want("after an event")
	}
	read()
	want("after nothing")
	mark, known = 0, map[desk.ID]int64{}
	read()
	want("all, again")
}

// eventPageBytes: a page ends earlier if its records are large.
func eventPageBytes(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	const contacts = 40
	for n := range contacts {
		op := upsert(fmt.Sprintf("%d@example.com", n), "")
		op.Write.Note = text(strings.Repeat("n", 10_000))
		put(t, s, ws, op)
	}
	for range 12 { // the same contacts again: their bytes count for each event
		for _, c := range all(t, s, ws) {
			commit(t, s, ws, func(tx store.Tx) error {
				return tx.Append(desk.Event{Type: desk.ContactUpdated, Subject: c.ID, At: now(), Changed: []string{"note"}})
			})
		}
	}
	bytes, pages := 0, 0
	after := desk.EventPlace{}
	from := store.FromOldest
	for {
		page := feed(t, s, ws, store.EventQuery{From: from, After: after, Limit: 500})
		size := 0
		for i := range page.Events {
			size += page.DataBytes(&page.Events[i])
		}
		if size > desk.MaxPage || len(page.Events) == 0 {
			t.Errorf("a page of %d events has %d bytes", len(page.Events), size)
		}
		bytes, pages, after, from = bytes+size, pages+1, page.Next, store.FromPlace
		if !page.More {
			break
		}
	}
	if pages < 2 || bytes < contacts*13*10_000 {
		t.Errorf("%d pages of %d bytes", pages, bytes)
	}
}

// eventLog: the log is newest first. Events of settings are found among any number of
// other events; for other types, a page looks at a bounded number of events.
func eventLog(t *testing.T, s store.Store) {
	ws, member := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	appendTypes := func(ws desk.ID, types ...desk.EventType) {
		commit(t, s, ws, func(tx store.Tx) error {
			for _, kind := range types {
				if err := tx.Append(desk.Event{Type: kind, Subject: newID(), Key: "x", Actor: desk.Actor{Kind: desk.ByMember, ID: member.ID}, At: now()}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	log := func(types []desk.EventType, limit int) (got []desk.EventType, pages int) {
		t.Helper()
		last := int64(0)
		for before := int64(0); before != 0 || pages == 0; pages++ {
			list, next, err := s.EventLog(t.Context(), ws, types, before, limit)
			must(t, err)
			for i, e := range list {
				if len(list) > limit || last != 0 && e.Place.Seq >= last || e.Actor.ID != member.ID || before != 0 && e.Place.Seq >= before {
					t.Fatalf("event %d of a page before %d: %+v", i, before, e)
				}
				last = e.Place.Seq
				got = append(got, e.Type)
			}
			before = next
		}
		return got, pages
	}
	if got, pages := log(desk.EventTypes, 5); got != nil || pages != 1 {
		t.Fatalf("of no events: %v in %d pages", got, pages)
	}
	appendTypes(other, desk.MemberUpdated, desk.ContactCreated)
	appendTypes(ws, desk.EventTypes...)
	everything := slices.Clone(desk.EventTypes)
	slices.Reverse(everything)
	settings := slices.DeleteFunc(slices.Clone(everything), func(e desk.EventType) bool { return !e.OfSettings() })
	for name, c := range map[string]struct{ types, want []desk.EventType }{
		"all":      {desk.EventTypes, everything},
		"settings": {desk.SettingsTypes(), settings},
		"some":     {[]desk.EventType{desk.ContactCreated, desk.KeyUpdated}, []desk.EventType{desk.KeyUpdated, desk.ContactCreated}},
		"one":      {[]desk.EventType{desk.KeyUpdated}, []desk.EventType{desk.KeyUpdated}},
	} {
		for _, limit := range []int{1, 4, len(c.want), 100} {
			got, pages := log(c.types, limit)
			if most := (len(c.want) + limit - 1) / limit; !slices.Equal(got, c.want) || pages != most {
				t.Errorf("%s in pages of %d: %v in %d pages, want %v", name, limit, got, pages, c.want)
			}
		}
	}
	many := make([]desk.EventType, desk.MaxEventsLooked+10)
	for i := range many {
		many[i] = desk.ContactUpdated
	}
	appendTypes(ws, many...)
	if got, pages := log(desk.SettingsTypes(), 100); !slices.Equal(got, settings) || pages != 1 {
		t.Errorf("settings behind others: %v in %d pages", got, pages)
	}
	if got, pages := log([]desk.EventType{desk.ContactDeleted}, 100); len(got) != 1 || pages != 2 {
		t.Errorf("a rare one behind others: %v in %d pages", got, pages)
	}
	_, _, err := s.EventLog(t.Context(), newID(), desk.EventTypes, 0, 1)
	wantType(t, err, desk.NotFound)
}

// eventsExpire: the feed reports places whose events have expired, and numbers continue.
// A place whose event is missing, or is another one, is reported too.
func eventsExpire(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	add := func(n int) {
		commit(t, s, ws, func(tx store.Tx) error {
			return tx.Append(slices.Repeat([]desk.Event{{Type: desk.KeyCreated, Subject: newID(), At: now()}}, n)...)
		})
	}
	add(5)
	events, end := follow(t, s, ws, feed(t, s, ws, store.EventQuery{}).Oldest, 50)
	want := func(place desk.EventPlace, expired string) {
		t.Helper()
		if page := feed(t, s, ws, store.EventQuery{From: store.FromPlace, After: place, Limit: 50}); page.Expired != expired {
			t.Errorf("%v has expired by %q, want %q", place, page.Expired, expired)
		}
	}
	third := events[len(events)-3].Place
	want(desk.EventPlace{}, "")
	want(third, "")
	want(desk.EventPlace{Seq: third.Seq, Tag: third.Tag + 1}, desk.ExpiredByHistory)
	want(desk.EventPlace{Seq: end.Seq + 1, Tag: 1}, desk.ExpiredByHistory)
	drop := func(before desk.Time, limit, want int) {
		t.Helper()
		if n, err := s.DropEvents(t.Context(), ws, desk.Expired{Before: before, Now: now()}, limit); n != want || err != nil {
			t.Errorf("dropped %d, %v; want %d", n, err, want)
		}
	}
	drop(events[0].At, 100, 0)
	old := now()
	drop(old, len(events)-2, len(events)-2)
	want(desk.EventPlace{}, desk.ExpiredByRetention)
	want(events[0].Place, desk.ExpiredByRetention)
	want(third, "")
	want(desk.EventPlace{Seq: third.Seq, Tag: third.Tag + 1}, desk.ExpiredByHistory)
	drop(old, 100, 2)
	drop(old, 100, 0)
	want(end, "")
	want(third, desk.ExpiredByRetention)
	if page := feed(t, s, ws, store.EventQuery{Limit: 50}); page.Next != end || page.Oldest != end || page.Newest != end || len(page.Events) != 0 {
		t.Errorf("an emptied feed = %+v", page)
	}
	add(1)
	if more, _ := follow(t, s, ws, end, 50); len(more) != 1 || more[0].Place.Seq != end.Seq+1 {
		t.Errorf("after all have expired comes %+v", more)
	}
}

var fed = flag.Int("fed", 25_000, "among how many events TestConformance/events/one_of_many looks for one. Long run: -fed 1000000")

// oneOfMany: a filter finds the only event of its type, whatever comes before and after
// it. Each page looks at a bounded number of events.
func oneOfMany(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	const atOnce = 5000
	start := feed(t, s, ws, store.EventQuery{From: store.FromNewest}).Next
	for from := 0; from < *fed; from += atOnce {
		list := slices.Repeat([]desk.Event{{Type: desk.MemberUpdated, At: now(), Changed: []string{"name"}}}, min(atOnce, *fed-from))
		if from <= *fed*2/3 && *fed*2/3 < from+atOnce {
			list[*fed*2/3-from].Type = desk.KeyUpdated
		}
		commit(t, s, ws, func(tx store.Tx) error { return tx.Append(list...) })
	}
	after, found, pages := start, 0, 0
	var took []time.Duration
	for more := true; more; pages++ {
		begun := time.Now()
		page, err := s.Events(t.Context(), ws, store.EventQuery{From: store.FromPlace, After: after, Limit: 50}, func(*desk.Settings) ([]desk.EventType, error) {
			return []desk.EventType{desk.KeyUpdated}, nil
		})
		must(t, err)
		took = append(took, time.Since(begun))
		if looked := page.Next.Seq - after.Seq; looked > desk.MaxEventsLooked {
			t.Fatalf("a page looked at %d events", looked)
		}
		for _, e := range page.Events {
			found++
			if e.Place.Seq != start.Seq+int64(*fed*2/3)+1 {
				t.Errorf("found %+v", e)
			}
		}
		after, more = page.Next, page.More
	}
	if most := *fed/desk.MaxEventsLooked + 2; found != 1 || pages > most {
		t.Errorf("%d found in %d pages, want 1 in %d", found, pages, most)
	}
	t.Logf("1 of %d events in %d pages: p50 %v, max %v", *fed, pages, percentile(took, 50), percentile(took, 100))
}
