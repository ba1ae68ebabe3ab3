package app_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/app"
	"parley/app/feed"
	"parley/desk"
	"parley/provider"
)

// TestEventID: ids are in the order of numbers and lead back to their place. An id with a
// flipped bit, or of another workspace, is not accepted.
func TestEventID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.another()
	r := rand.New(rand.NewPCG(1, 2))
	last := ""
	for i := range 200 {
		place := desk.EventPlace{Seq: int64(i) * (1 + r.Int64N(3)) << (i / 8), Tag: r.Int64N(1 << 48)}
		if i == 0 {
			place = desk.EventPlace{}
		}
		id := w.Feed.EventID(w.ws, place)
		if len(id) != 36 || !strings.HasPrefix(id, "evt_") || strings.Trim(id[4:], "0123456789abcdefghijklmnopqrstuv") != "" {
			t.Fatalf("%q", id)
		}
		if place.Seq > 0 {
			if before := w.Feed.EventID(w.ws, desk.EventPlace{Seq: place.Seq - 1, Tag: r.Int64N(1 << 48)}); before >= id {
				t.Errorf("the id of %d is not before that of %d", place.Seq-1, place.Seq)
			}
		}
		if got, ok := w.Feed.EventPlace(w.ws, id); !ok || got != place {
			t.Errorf("%s: %v %v, want %v", id, got, ok, place)
		}
		if _, ok := w.Feed.EventPlace(other.ws, id); ok {
			t.Errorf("%s is an id of another workspace", id)
		}
		last = id
	}
	for range 1000 {
		b := []byte(last)
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		if _, ok := w.Feed.EventPlace(w.ws, string(b)); ok {
			t.Errorf("%q is taken for an id", b)
		}
	}
	for _, text := range []string{"", "evt_", last[4:], last + "0", last[:35], strings.ToUpper(last), last[:20] + "\n" + last[20:], " " + last, "evt_" + strings.Repeat("0", 32)} {
		if _, ok := w.Feed.EventPlace(w.ws, text); ok {
			t.Errorf("%q is taken for an id", text)
		}
	}
}

// latest returns the cursor of the newest place of the feed.
func (w *world) latest() string {
	w.t.Helper()
	page, err := w.Feed.Page(w.t.Context(), w.caller(), feed.Query{Cursor: "latest", Limit: 1})
	must(w.t, err)
	return w.Feed.Cursor(page)
}

// edit makes a change that has an event.
func (w *world) edit() {
	w.t.Helper()
	name := fmt.Sprint("Acme ", time.Now().UnixNano())
	_, err := w.EditWorkspace(context.Background(), w.operator(), app.WorkspaceEdit{Name: &name})
	must(w.t, err)
}

// TestFollow_wakes: a follower gets an event right after its commit, and an event of
// another process after the next look. An event that comes while the follower is being
// added also wakes it.
func TestFollow_wakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, page, err := w.Feed.Follow(t.Context(), w.caller(), feed.Query{Cursor: "latest", Limit: 10})
	must(t, err)
	defer f.Close()
	if len(page.Events) != 0 {
		t.Fatalf("%+v", page.Events)
	}
	next := func() string {
		t.Helper()
		page, err := f.Next(t.Context(), 10*time.Second)
		must(t, err)
		if len(page.Events) != 1 {
			t.Fatalf("%d events", len(page.Events))
		}
		return page.Events[0].ID
	}
	w.edit()
	first := next()
	w.edit() // so that the first wake of the follower is used
	if second := next(); second <= first {
		t.Errorf("%s after %s", second, first)
	}
	other := w.node(w.file, app.Bounds{})
	name := "Of another process"
	_, err = other.EditWorkspace(t.Context(), w.operator(), app.WorkspaceEdit{Name: &name})
	must(t, err)
	must(t, w.Feed.Look(t.Context()))
	if second := next(); second <= first {
		t.Errorf("%s after %s", second, first)
	}
	if page, err := f.Next(t.Context(), time.Millisecond); err != nil || len(page.Events) != 0 || w.Feed.Cursor(page) != w.latest() {
		t.Errorf("%+v %v", page, err)
	}
	// Commits are made while followers come and go.
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			w.edit()
		}
	}()
	for range 200 {
		f, _, err := w.Feed.Follow(t.Context(), w.caller(), feed.Query{Cursor: "latest", Limit: 10})
		must(t, err)
		f.Close()
	}
	stop.Store(true)
	<-done
	if n := w.Feed.Followers(); n != 1 {
		t.Errorf("%d followers are left", n)
	}
}

// TestFollow_again: Again reads the last page from its start.
func TestFollow_again(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	start := w.latest()
	w.edit()
	w.edit()
	f, page, err := w.Feed.Follow(t.Context(), w.caller(), feed.Query{Cursor: start, Limit: 1})
	must(t, err)
	defer f.Close()
	again, err := f.Again(t.Context())
	must(t, err)
	if !slices.Equal(ids(page), ids(again)) || len(page.Events) != 1 {
		t.Errorf("%v, then %v", ids(page), ids(again))
	}
	next, err := f.Next(t.Context(), time.Second)
	must(t, err)
	if len(next.Events) != 1 || next.Events[0].ID <= page.Events[0].ID {
		t.Errorf("%v after %v", ids(next), ids(page))
	}
}

func ids(page *feed.Page) (list []string) {
	for _, e := range page.Events {
		list = append(list, e.ID)
	}
	return list
}

// TestFollow_beside_webhooks: webhooks that a node serves do not use places of streams.
func TestFollow_beside_webhooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 2000 {
		w.Feed.Watch(w.ws, make(chan struct{}, 1))
	}
	f, _, err := w.Feed.Follow(t.Context(), w.caller(), feed.Query{Cursor: "latest", Limit: 10})
	must(t, err)
	f.Close()
}

// TestForgetEvents_wrong_clock: a node whose clock is an hour ahead of the database's drops
// only events that are old by both clocks.
func TestForgetEvents_wrong_clock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.edit()
	kept := func() int {
		page, err := w.Feed.Page(t.Context(), w.caller(), feed.Query{Limit: 200})
		must(t, err)
		return len(page.Events)
	}
	before := kept()
	w.clock.advance(time.Hour)
	w.store.ahead.Store(-time.Hour.Milliseconds())
	must(t, w.Feed.Forget(t.Context(), time.Minute))
	if n := kept(); n != before {
		t.Errorf("%d events are left of %d", n, before)
	}
	w.store.ahead.Store(0)
	must(t, w.Feed.Forget(t.Context(), time.Minute))
	if n := kept(); n != 0 {
		t.Errorf("%d old events are left", n)
	}
}

// TestFollow_ends: a follower ends if the database is away, after a drain, or with its
// context.
func TestFollow_ends(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	follow := func() *feed.Follower {
		t.Helper()
		f, _, err := w.Feed.Follow(t.Context(), w.caller(), feed.Query{Cursor: "latest", Limit: 10})
		must(t, err)
		_, err = f.Next(t.Context(), time.Millisecond)
		must(t, err)
		return f
	}
	f := follow()
	defer f.Close()
	w.store.away.Store(true)
	if err := w.Feed.Look(t.Context()); err == nil {
		t.Error("the database is not away")
	}
	_, err := f.Next(t.Context(), time.Minute)
	refused(t, err, desk.Unavailable)
	w.store.away.Store(false)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := follow().Next(ctx, time.Minute); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	f = follow()
	go w.Drain()
	if page, err := f.Next(t.Context(), time.Minute); err != nil || len(page.Events) != 0 || !w.Draining() {
		t.Errorf("%v %v", page, err)
	}
}

// TestFollow_permission: a follower's key loses a permission. The follower gets no more
// events that need the permission, not even in a page that is waiting to be written. The
// same holds if the key is revoked.
func TestFollow_permission(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	contacts, err := desk.ParseEventFilter([]string{"contact.*"})
	must(t, err)
	keeps := func(p desk.Permission) func(desk.ID) error {
		return func(id desk.ID) error {
			left := string(p)
			_, err := w.EditKey(t.Context(), w.operator(), id, app.KeyEdit{Permissions: &left})
			return err
		}
	}
	for name, c := range map[string]struct {
		types desk.EventFilter
		lose  func(id desk.ID) error
		want  desk.ErrorType
	}{
		"the permission of a type that was named": {contacts, keeps(desk.EventsRead), desk.Forbidden},
		"the permission of one of all types":      {desk.EventFilter{}, keeps(desk.EventsRead), desk.Forbidden},
		"the feed's permission":                   {desk.EventFilter{}, keeps(desk.ContactsRead), desk.Forbidden},
		"the key": {desk.EventFilter{}, func(id desk.ID) error {
			_, err := w.RevokeKey(t.Context(), w.operator(), id)
			return err
		}, desk.Unauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			key, id := w.newKey("events:read,contacts:read")
			p, err := w.Access.Authenticate(t.Context(), key)
			must(t, err)
			f, _, err := w.Feed.Follow(t.Context(), p, feed.Query{Cursor: "latest", Limit: 10, Types: c.types})
			must(t, err)
			defer f.Close()
			_, err = f.Next(t.Context(), time.Millisecond) // so that the first wake is used
			must(t, err)
			still := f.Still(t.Context())
			if !still() {
				t.Fatal("it may not read at all")
			}
			must(t, c.lose(id))
			if still() {
				t.Error("a page that waits would still be written")
			}
			w.edit()
			_, err = f.Next(t.Context(), time.Minute)
			refused(t, err, c.want)
		})
	}
}

// TestEvents_early_statuses: a status came before its message. In the feed, its event comes
// after the message's event, even if a late report of the send brings both.
func TestEvents_early_statuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	start := w.latest()
	w.provider.plays(meanwhile(func(d provider.Dispatch) {
		w.tell(saidEarly(d.Attempt, desk.Read), saidEarly(d.Attempt, desk.Delivered))
		w.takeIn()
	}, takes))
	w.sent("k")
	page, err := w.Feed.Page(t.Context(), w.caller(), feed.Query{Cursor: start, Limit: 50})
	must(t, err)
	var got []string
	for _, e := range page.Events {
		got = append(got, string(e.Type)+" by "+string(e.Actor.Kind))
	}
	want := []string{"contact.created by key", "conversation.created by key", "message.sent by key", "message.delivered by provider", "message.read by provider"}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// TestEventLog: admins read the log of events, newest first, and its part about settings.
func TestEventLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, admin := t.Context(), "admin"
	_, err := w.EditMember(ctx, w.operator(), w.grace.ID, app.MemberEdit{Role: &admin})
	must(t, err)
	boss, err := w.Access.Member(ctx, w.ws, w.grace.ID)
	must(t, err)
	agent, err := w.Access.Member(ctx, w.ws, w.ada.ID)
	must(t, err)
	for _, p := range []desk.Principal{agent, w.caller()} {
		_, err = w.Feed.Log(ctx, p, nil, "", 10)
		refused(t, err, desk.Forbidden)
	}
	w.put(phoned(number))
	name := "Renamed"
	_, err = w.EditKey(ctx, boss, w.keyID, app.KeyEdit{Name: &name})
	must(t, err)
	read := func(types []desk.EventType, limit int) (list []desk.FeedEvent) {
		t.Helper()
		for cursor := ""; ; {
			l, err := w.Feed.Log(ctx, boss, types, cursor, limit)
			must(t, err)
			list = append(list, l.Events...)
			if cursor = l.Next; cursor == "" {
				return list
			}
			_, err = w.Feed.Log(ctx, boss, []desk.EventType{desk.KeyCreated}, cursor, limit)
			refused(t, err, desk.InvalidRequest)
		}
	}
	everything, settings := read(nil, 2), read(desk.SettingsTypes(), 2)
	if everything[0].Type != desk.KeyUpdated || everything[0].Actor != boss.Actor || everything[0].Subject != w.keyID || everything[1].Type != desk.ContactCreated {
		t.Errorf("the newest are %+v", everything[:2])
	}
	if len(settings) >= len(everything) || settings[0].ID != everything[0].ID || !strings.HasPrefix(settings[0].ID, "evt_") || settings[1].Type != desk.MemberUpdated {
		t.Errorf("of settings: %+v", settings)
	}
}
