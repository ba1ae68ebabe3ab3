package postgres

import (
	"testing"

	"parley/desk"
	"parley/store"
	"parley/store/postgres/pgtest"
)

// TestOneRoundTrip: reading a page of events with their records, reading a single event,
// and storing the deliveries of events each take one round trip. On a cluster, where a statement
// costs more than a round trip, pages and events take four.
func TestOneRoundTrip(t *testing.T) {
	t.Parallel()
	p := pgtest.NewProxy(t, pgtest.Database(t))
	s, err := Open(t.Context(), Config{URL: p.URL, MaxConns: 1})
	check(t, err)
	t.Cleanup(func() { check(t, s.Close()) })
	ws := newID()
	check(t, s.CreateWorkspace(t.Context(), desk.Workspace{ID: ws, Name: "Acme", Country: "TR"}))
	contact, conversation, message := newID(), newID(), newID()
	check(t, s.InTx(t.Context(), ws, func(tx store.Tx) error {
		return tx.Append(
			desk.Event{Type: desk.ContactUpdated, Subject: contact, Contact: contact, At: 1000},
			desk.Event{Type: desk.MessageReceived, Subject: message, Conversation: conversation, Contact: contact, TS: 999, At: 1001},
		)
	}))
	every := func(*desk.Settings) ([]desk.EventType, error) { return desk.EventTypes, nil }
	read := func(q store.EventQuery) *store.EventPage {
		t.Helper()
		page, err := s.Events(t.Context(), ws, q, every)
		check(t, err)
		return page
	}
	trips := func(what string, want int, do func()) {
		t.Helper()
		do() // prepares the statements
		before := p.Requests()
		do()
		if n := p.Requests() - before; n != want {
			t.Errorf("%s: %d round trips", what, n)
		}
	}
	reading := 1
	if pgtest.Citus() {
		reading = 4
	}
	oldest := read(store.EventQuery{Limit: 1}).Oldest
	var page *store.EventPage
	trips("a page", reading, func() { page = read(store.EventQuery{From: store.FromPlace, After: oldest, Limit: 50, AtOnce: true}) })
	if len(page.Events) != 2 {
		t.Fatalf("%d events", len(page.Events))
	}
	trips("an event", reading, func() { page = read(store.EventQuery{From: store.AtPlace, After: page.Newest, AtOnce: true}) })
	if len(page.Events) != 1 {
		t.Fatalf("%d events", len(page.Events))
	}
	me, webhook := newID(), newID()
	ref := store.LeaseRef{Workspace: ws, Task: "deliver"}
	calls, err := s.HoldLeases(t.Context(), []store.LeaseRef{ref}, me, 10_000)
	check(t, err)
	hold := store.DeliveryHold{WebhookRef: store.WebhookRef{Workspace: ws, ID: webhook}, Task: ref.Task, Holder: me, Calls: calls[ref], Settings: 1}
	var list []*desk.WebhookDelivery
	for range 100 {
		list = append(list, &desk.WebhookDelivery{ID: newID(), Event: page.Newest, Type: desk.MessageReceived, Contact: contact, Status: desk.DeliveryPending,
			Tries: []desk.WebhookTry{{At: 5, StatusCode: 500, Error: "status", Response: "no"}}})
	}
	trips("deliveries", 1, func() {
		stored, err := s.StoreDeliveries(t.Context(), hold, desk.WebhookState{Cursor: page.Newest}, list)
		if err != nil || !stored {
			t.Errorf("stored: %t, %v", stored, err)
		}
	})
}
