package storetest

import (
	"bytes"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"parley/desk"
	"parley/store"
)

// newCallback returns the inbound item of a callback.
func newCallback(channel desk.ID, at desk.Time) desk.InboundItem {
	return desk.InboundItem{Channel: channel, ID: newID(), Due: at, ReceivedAt: at, Body: []byte("{\"a\": \"ü\"}\n\x00\xff")}
}

// putCallback stores the body of a processed callback, and the people it names.
func putCallback(t *testing.T, s store.Store, ws desk.ID, n desk.InboundItem, people ...string) desk.InboundItem {
	t.Helper()
	commit(t, s, ws, func(tx store.Tx) error {
		return errors.Join(tx.PutCallback(n), tx.PutCallbackPeople(n, people))
	})
	return n
}

// checkCallbacks checks which bodies are stored.
func checkCallbacks(t *testing.T, s store.Store, ws desk.ID, kept bool, list ...desk.InboundItem) {
	t.Helper()
	commit(t, s, ws, func(tx store.Tx) error {
		for i, n := range list {
			body, err := tx.Callback(n)
			if err != nil {
				return err
			}
			if (body != nil) != kept || kept && !bytes.Equal(body, n.Body) {
				t.Errorf("callback %d, which is to be kept: %v, has a body of %d bytes (nil: %v), of %d", i, kept, len(body), body == nil, len(n.Body))
			}
		}
		return nil
	})
}

func checkNewest(t *testing.T, s store.Store, ws, channel desk.ID, want desk.Time) {
	t.Helper()
	at, err := s.NewestCallback(t.Context(), ws, channel)
	must(t, err)
	equal(t, "newest callback", at, want)
}

func callbackBodies(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	channel := newID()
	checkNewest(t, s, ws, channel, 0)
	first, second, empty, large := newCallback(channel, 10), newCallback(channel, 10), newCallback(newID(), 12), newCallback(channel, 11)
	empty.Body = []byte{}
	large.Body = make([]byte, 1<<20)
	_, _ = rand.Read(large.Body)
	plain := desk.InboundItem{Channel: channel, ID: newID(), Due: 13, Body: []byte("all of it"), Skip: 2}
	all := []desk.InboundItem{first, second, empty, large}
	commit(t, s, ws, func(tx store.Tx) error {
		for _, n := range all {
			if err := errors.Join(tx.PutCallback(n), tx.PutInbound(n)); err != nil {
				return err
			}
			body, err := tx.Callback(n)
			if err != nil {
				return err
			}
			if !bytes.Equal(body, n.Body) {
				t.Errorf("in its own transaction it has %d bytes of %d", len(body), len(n.Body))
			}
		}
		return tx.PutInbound(plain)
	})
	checkCallbacks(t, s, ws, true, all...)
	another, elsewhen := first, first
	another.ID, elsewhen.ReceivedAt = newID(), 11
	checkCallbacks(t, s, ws, false, another, elsewhen, plain)
	checkNewest(t, s, ws, channel, 11)
	checkNewest(t, s, ws, empty.Channel, 12)
	checkNewest(t, s, ws, newID(), 0)

	// The inbound items do not hold the bodies.
	bare := func(n desk.InboundItem) desk.InboundItem { n.Body = nil; return n }
	items := func(want ...desk.InboundItem) {
		t.Helper()
		got, _, err := s.InboundItems(t.Context(), ws, time.Hour, 10)
		must(t, err)
		if len(got) != len(want) {
			t.Errorf("%d inbound items, want %d", len(got), len(want))
			return
		}
		for i, n := range got {
			if n.ReceivedAt == 10 && n.ID != want[i].ID { // two items are due at the same time
				want[i], want[1-i] = want[1-i], want[i]
			}
			equal(t, "inbound item", n, want[i])
		}
	}
	items(bare(first), bare(second), bare(large), bare(empty), plain)

	// The inbound item contains the number of updates that are already processed. The
	// process that continues needs this number.
	rest := large
	rest.Skip = 70
	commit(t, s, ws, func(tx store.Tx) error {
		taken, err := tx.TakeInbound([]desk.InboundItem{large})
		equal(t, "taken", taken, []desk.InboundItem{bare(large)})
		return errors.Join(err, tx.PutInbound(rest))
	})
	items(bare(first), bare(second), bare(rest), bare(empty), plain)
	putInbound(t, s, ws, plain)
	stale := plain
	stale.Skip, stale.Body = 0, nil
	commit(t, s, ws, func(tx store.Tx) error {
		taken, err := tx.TakeInbound([]desk.InboundItem{bare(large), stale})
		equal(t, "taken", taken, []desk.InboundItem{bare(rest), plain})
		return err
	})
	checkCallbacks(t, s, ws, true, all...)

	first.Body, first.Channel = []byte("other"), empty.Channel
	commit(t, s, ws, func(tx store.Tx) error { return tx.PutCallback(first) }) // replaces the first
	checkCallbacks(t, s, ws, true, first, second)
}

func deleteErasesCallbacks(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	op := upsert("a@example.com", "905321112233")
	op.Write.Identities = desk.Field[[]desk.Identity]{Set: true, Value: []desk.Identity{
		{Kind: desk.KindPhone, Value: "4930123456"}, {Kind: desk.KindWhatsApp, Value: "4915112345678"},
		{Kind: desk.KindWhatsAppUser, Value: "TR.12\"3"}, {Kind: "twitter", Value: "ada"},
	}}
	op.Write.Sent = append(op.Write.Sent, op.Write.Identities.Value...)
	const second = "12025550143"
	contact, friend := put(t, s, ws, op), put(t, s, ws, upsert("b@example.com", second))
	put(t, s, other, op)
	put(t, s, ws, upsert("c@example.com", "")) // no callback can name this contact
	channel := newID()
	with := func(ws desk.ID, people ...string) desk.InboundItem {
		t.Helper()
		return putCallback(t, s, ws, newCallback(channel, now()), people...)
	}
	both := with(ws, second, "905321112233")
	gone := []desk.InboundItem{
		both, with(ws, "905321112233"), with(ws, "4930123456"), with(ws, "4915112345678", "4915112345678"), with(ws, "TR.12\"3", "x"),
		with(ws, "905321112233", "4915112345678", "TR.12\"3"),
	}
	kept := []desk.InboundItem{with(ws), with(ws, "ada"), with(ws, "a@example.com", "90532111223", "9053211122330", ""), with(ws, "905329999999")}
	friends, foreign := with(ws, second), with(other, "905321112233")

	// One callback is not processed yet. Another one is processed, but has the same id as
	// an unprocessed one.
	pending, taken := with(ws, "905321112233"), with(ws, "905321112233")
	namesake := taken
	namesake.ReceivedAt++
	for _, n := range []desk.InboundItem{pending, namesake} {
		n.Due = now() // postponed
		putInbound(t, s, ws, n)
	}
	plain := with(ws, "905321112233")
	putInbound(t, s, ws, desk.InboundItem{Channel: channel, ID: plain.ID, Due: plain.Due, Body: []byte("x")})
	gone = append(gone, taken, plain)

	// The people of a callback may be stored twice.
	commit(t, s, ws, func(tx store.Tx) error {
		return errors.Join(tx.PutCallbackPeople(both, []string{second, "905321112233"}), tx.PutCallbackPeople(both, nil))
	})
	put(t, s, ws, patch(contact.ID, desk.ContactWrite{Name: text("A")})) // an ordinary change erases nothing
	checkCallbacks(t, s, ws, true, append(gone, kept...)...)
	put(t, s, ws, remove(contact.ID))
	checkCallbacks(t, s, ws, false, gone...)
	checkCallbacks(t, s, ws, true, append(kept, friends, pending)...)
	checkCallbacks(t, s, other, true, foreign)

	// The people of a callback are deleted with it, so a new callback with the same id
	// names nobody. No people are stored for a deleted callback.
	putCallback(t, s, ws, both)
	lost := newCallback(channel, now())
	commit(t, s, ws, func(tx store.Tx) error { return tx.PutCallbackPeople(lost, []string{second}) })
	putCallback(t, s, ws, lost)
	commit(t, s, ws, func(tx store.Tx) error { // a deletion inside a caller's transaction does the same
		op := remove(friend.ID)
		book, err := tx.Book(op.Lookup())
		if err != nil {
			return err
		}
		if _, err := book.Apply(op, desk.Actor{}, now(), newID); err != nil {
			return err
		}
		return tx.Flush(book)
	})
	checkCallbacks(t, s, ws, false, friends)
	checkCallbacks(t, s, ws, true, append(kept, pending, both, lost)...)
}

func callbacksAreForgotten(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	contact := put(t, s, ws, upsert("", "905321112233"))
	channel := newID()
	var list []desk.InboundItem
	base, _, err := s.Clock(t.Context())
	must(t, err)
	// at returns a time in the past, counted in minutes.
	at := func(minute int) desk.Time { return base - desk.Time(100-minute)*60_000 }
	for _, minute := range []int{30, 10, 50, 20, 40} {
		list = append(list, putCallback(t, s, ws, newCallback(channel, at(minute)), "905321112233", "1"))
	}
	thirty, ten, fifty, twenty, forty := list[0], list[1], list[2], list[3], list[4]
	foreign := putCallback(t, s, other, newCallback(channel, at(10)), "1")
	forget := func(ws desk.ID, before, limit, want int) {
		t.Helper()
		n, err := s.ForgetCallbacks(t.Context(), ws, time.Duration(100-before)*time.Minute+30*time.Second, limit)
		must(t, err)
		equal(t, "callbacks that were forgotten", n, want)
	}
	forget(ws, 10, 10, 0)
	forget(ws, 50, 2, 2)
	checkCallbacks(t, s, ws, false, ten, twenty)
	checkCallbacks(t, s, ws, true, thirty, forty, fifty)
	forget(ws, 50, 3, 2)
	forget(ws, 50, 3, 0)
	checkCallbacks(t, s, ws, false, thirty, forty)
	checkCallbacks(t, s, ws, true, fifty)
	checkCallbacks(t, s, other, true, foreign)
	checkNewest(t, s, ws, channel, at(50))

	// The people of the deleted callbacks are deleted too.
	putCallback(t, s, ws, ten)
	put(t, s, ws, remove(contact.ID))
	checkCallbacks(t, s, ws, true, ten)
	checkCallbacks(t, s, ws, false, fifty)
	forget(ws, 11, 1, 1)
	checkNewest(t, s, ws, channel, at(50)) // the time of an erased callback
	forget(other, 99, 10, 1)
	checkCallbacks(t, s, other, false, foreign)
	checkNewest(t, s, other, channel, at(10)) // the time of a forgotten callback

	// A callback that is not processed is kept, however old it is, and is not counted in
	// the limit.
	waiting, taken := newCallback(channel, at(1)), newCallback(channel, at(2))
	waiting.Due = base + 3_600_000
	putCallback(t, s, ws, waiting, "1")
	putInbound(t, s, ws, waiting)
	putCallback(t, s, ws, taken, "1")
	forget(ws, 99, 1, 1)
	forget(ws, 99, 1, 0)
	checkCallbacks(t, s, ws, true, waiting)
	checkCallbacks(t, s, ws, false, taken)
	commit(t, s, ws, func(tx store.Tx) error {
		_, err := tx.TakeInbound([]desk.InboundItem{waiting})
		return err
	})
	forget(ws, 99, 1, 1)
	checkCallbacks(t, s, ws, false, waiting)
}

// callbacksAreSealed: two workspaces have the same callback of the same people.
func callbacksAreSealed(t *testing.T, s store.Store) {
	one, _ := newWorkspace(t, s)
	two, _ := newWorkspace(t, s)
	inOne := newCallback(newID(), 10)
	inTwo := inOne
	inTwo.Body, inTwo.Skip = []byte("two"), 5
	contacts := map[desk.ID]*desk.Contact{}
	for _, ws := range []desk.ID{one, two} {
		contacts[ws] = put(t, s, ws, upsert("", "905321112233"))
	}
	putCallback(t, s, one, inOne, "905321112233")
	checkCallbacks(t, s, two, false, inOne)
	checkNewest(t, s, two, inOne.Channel, 0)
	commit(t, s, two, func(tx store.Tx) error { return tx.PutCallbackPeople(inOne, []string{"905321112233"}) }) // the callback is not in this workspace
	putCallback(t, s, two, inTwo, "905321112233")
	checkCallbacks(t, s, one, true, inOne)
	checkCallbacks(t, s, two, true, inTwo)

	putInbound(t, s, two, inTwo) // an unprocessed callback protects only the callback of its own workspace
	put(t, s, one, remove(contacts[one].ID))
	checkCallbacks(t, s, one, false, inOne)
	checkCallbacks(t, s, two, true, inTwo)
	list, _, err := s.InboundItems(t.Context(), one, time.Hour, 10)
	must(t, err)
	equal(t, "inbound items of one", list, []desk.InboundItem(nil))
	commit(t, s, one, func(tx store.Tx) error {
		taken, err := tx.TakeInbound([]desk.InboundItem{inTwo})
		equal(t, "taken from two", taken, []desk.InboundItem(nil))
		return err
	})
	n, err := s.ForgetCallbacks(t.Context(), one, 0, 10)
	must(t, err)
	equal(t, "forgotten in one", n, 0)
	checkCallbacks(t, s, two, true, inTwo)
}
