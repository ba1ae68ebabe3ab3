package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/desk"
	"parley/store"
)

func putInbound(t *testing.T, s store.Store, ws desk.ID, n desk.InboundItem) {
	t.Helper()
	commit(t, s, ws, func(tx store.Tx) error { return tx.PutInbound(n) })
}

func inboundDue(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	var list []desk.InboundItem
	now, _, err := s.Clock(t.Context())
	must(t, err)
	for i := range 6 {
		n := desk.InboundItem{Channel: newID(), ID: newID(), Due: now - desk.Time(10-i/2), Body: fmt.Appendf(nil, "body \x00\xff %d", i)}
		list = append(list, n)
		putInbound(t, s, ws, n)
	}
	const hour = desk.Time(3_600_000)
	for _, ws := range []desk.ID{ws, other} {
		putInbound(t, s, ws, desk.InboundItem{ID: newID(), Due: now + hour, Body: []byte("x")})
	}
	inAnHour := func(wait time.Duration) bool { return wait > 50*time.Minute && wait <= time.Hour }
	slices.SortFunc(list, func(a, b desk.InboundItem) int {
		return cmp.Or(cmp.Compare(a.Due, b.Due), slices.Compare(a.ID[:], b.ID[:]))
	})
	check := func(limit int, want []desk.InboundItem, more bool) {
		t.Helper()
		got, next, err := s.InboundItems(t.Context(), ws, 2*time.Hour, limit)
		must(t, err)
		equal(t, fmt.Sprintf("up to %d inbound items", limit), got, want)
		if more && next != 0 || !more && !inAnHour(next) {
			t.Errorf("the next after up to %d is due in %v", limit, next)
		}
	}
	check(1, list[:1], true)
	check(5, list[:5], true)
	check(6, list, false)
	check(10, list, false)
	changed := list[0]
	changed.Body = []byte("other")
	putInbound(t, s, ws, changed) // replaces the first
	check(2, []desk.InboundItem{changed, list[1]}, true)
	take := func(from, want []desk.InboundItem) {
		t.Helper()
		commit(t, s, ws, func(tx store.Tx) error {
			got, err := tx.TakeInbound(from)
			equal(t, "taken", got, want)
			return err
		})
	}
	take(nil, nil)
	take(list[:3], []desk.InboundItem{changed, list[1], list[2]}) // as they are stored now
	take(list[:4], list[3:4])                                     // the other items are gone already
	take(list[:4], nil)
	check(10, list[4:], false)
	due, err := s.InboundDue(t.Context(), 2*time.Hour)
	must(t, err)
	if wait, there := due[ws]; !there || wait != 0 || !inAnHour(due[other]) {
		t.Errorf("due in %v", due)
	}
	take(list[4:], list[4:])
	check(10, nil, false)
	none, next, err := s.InboundItems(t.Context(), newID(), 2*time.Hour, 10)
	if none != nil || next >= 0 || err != nil {
		t.Errorf("of a workspace without any: %v, the next in %v, %v", none, next, err)
	}
}

func leases(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	lease := func(ws desk.ID, task string, millis desk.Time, want bool) {
		t.Helper()
		got, err := s.Lease(t.Context(), ws, task, millis)
		must(t, err)
		equal(t, "lease of "+task, got, want)
	}
	lease(ws, "a", 1_000_000, true)
	lease(ws, "a", 1_000_000, false)
	lease(ws, "b", -1, true)
	lease(ws, "b", 1_000_000, true) // the lease has ended
	lease(ws, "b", 1_000_000, false)
	lease(desk.ID{}, "a", 1_000_000, true)
	lease(ws, "c", 31_536_000_000, true) // as if a clock was a year ahead
	lease(ws, "c", 1_000_000, true)      // a lease that is too long is invalid
	lease(ws, "c", 1_000_000, false)

	var got atomic.Int32
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			ours, err := s.Lease(t.Context(), ws, "raced", 1_000_000)
			if err != nil {
				t.Error(err)
			}
			if ours {
				got.Add(1)
			}
		})
	}
	callers.Wait()
	equal(t, "holders of a lease", got.Load(), int32(1))
}

func earlyStatuses(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	channel := newID()
	keep := func(ws, channel desk.ID, list ...desk.StatusUpdate) {
		t.Helper()
		commit(t, s, ws, func(tx store.Tx) error {
			for _, n := range list {
				if err := tx.KeepStatus(channel, n); err != nil {
					return err
				}
			}
			return nil
		})
	}
	take := func(ws, channel desk.ID, externalID string, want ...desk.StatusUpdate) {
		t.Helper()
		commit(t, s, ws, func(tx store.Tx) error {
			got, err := tx.TakeStatuses(channel, externalID)
			slices.SortFunc(got, func(a, b desk.StatusUpdate) int {
				return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Delivery, b.Delivery))
			})
			equal(t, "statuses", got, want)
			return err
		})
	}
	sent := desk.StatusUpdate{ExternalID: "x", Delivery: desk.Sent, At: 10}
	delivered := desk.StatusUpdate{ExternalID: "x", Attempt: newID(), Delivery: desk.Delivered, UserID: "TR.9A", At: 11}
	failed := desk.StatusUpdate{ExternalID: "x", Delivery: desk.Failed, At: 11, Failure: &desk.Failure{Code: 1, Title: "a", Fix: "b"}}
	late := desk.StatusUpdate{ExternalID: "x", Delivery: desk.Sent, At: 12}
	elsewhere := desk.StatusUpdate{ExternalID: "y", Delivery: desk.Sent, At: 12}
	take(ws, channel, "x")
	keep(ws, channel, delivered, sent, failed, late, elsewhere)
	keep(ws, channel, sent, failed)
	take(ws, newID(), "x")
	take(ws, channel, "x", sent, delivered, failed, late)
	take(ws, channel, "x")
	take(ws, channel, "y", elsewhere)

	other, _ := newWorkspace(t, s)
	keep(ws, channel, sent, delivered, late)
	keep(other, channel, sent)
	serve(t, s, 2)
	keep(ws, channel, sent, elsewhere) // the first is kept already, and storing it again does not make it younger
	drop := func(hours int64) {
		t.Helper()
		commit(t, s, ws, func(tx store.Tx) error { return tx.DropStatuses(hours) })
	}
	drop(3)
	take(ws, channel, "x", sent, delivered, late)
	keep(ws, channel, sent)
	serve(t, s, 1)
	keep(ws, channel, late)
	drop(1)
	take(ws, channel, "x", late)
	take(ws, channel, "y")
	take(other, channel, "x", sent)
}

// deleteErasesStatuses: a status that names the provider's id of a contact is deleted
// with the contact.
func deleteErasesStatuses(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	op := upsert("", "905321112233")
	op.Write.Identities = desk.Field[[]desk.Identity]{Set: true, Value: []desk.Identity{
		{Kind: desk.KindWhatsAppUser, Value: "TR.9A"}, {Kind: desk.KindWhatsAppUser, Value: "TR.9B"}, {Kind: "twitter", Value: "TR.9C"},
	}}
	op.Write.Sent = append(op.Write.Sent, op.Write.Identities.Value...)
	contact, channel := put(t, s, ws, op), newID()
	keep := func(ws desk.ID, externalID, user string) {
		t.Helper()
		commit(t, s, ws, func(tx store.Tx) error {
			return tx.KeepStatus(channel, desk.StatusUpdate{ExternalID: externalID, Delivery: desk.Sent, UserID: user, At: 1})
		})
	}
	keep(other, "1", "TR.9A")
	for n, user := range []string{"TR.9A", "TR.9B", "TR.9C", ""} {
		keep(ws, fmt.Sprint(n+1), user)
	}
	put(t, s, ws, remove(contact.ID))
	kept := func(ws desk.ID, externalID string, want bool) {
		t.Helper()
		commit(t, s, ws, func(tx store.Tx) error {
			got, err := tx.TakeStatuses(channel, externalID)
			equal(t, "kept "+externalID, len(got) == 1, want)
			return err
		})
	}
	kept(other, "1", true)
	for n, want := range []bool{false, false, true, true} {
		kept(ws, fmt.Sprint(n+1), want)
	}
}

func optOuts(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	number := store.NumberHash{1, 31: 2}
	check := func(ws desk.ID, number store.NumberHash, want store.OptOut) {
		t.Helper()
		commit(t, s, ws, func(tx store.Tx) error {
			got, err := tx.OptOut(number)
			equal(t, "opt-out", got, want)
			return err
		})
		choices, err := s.Choices(t.Context(), ws, []store.NumberHash{{31: 9}, number})
		must(t, err)
		equal(t, "choice", choices[number], want)
		equal(t, "others who chose", len(choices), min(1, int(want.At)))
	}
	check(ws, number, store.OptOut{})
	for _, o := range []store.OptOut{{Since: 5, At: 7}, {At: 9}, {Since: 11, At: 11}} {
		commit(t, s, ws, func(tx store.Tx) error { return tx.SetOptOut(number, o) })
		check(ws, number, o)
	}
	check(ws, store.NumberHash{1}, store.OptOut{})
	check(other, number, store.OptOut{})
}

// inboundFarAhead: an item whose due time is impossibly far ahead was stored when the
// clock was ahead. It counts as due. Other items are not affected.
func inboundFarAhead(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	now, _, err := s.Clock(t.Context())
	must(t, err)
	const hour = desk.Time(3_600_000)
	far := desk.InboundItem{Channel: newID(), ID: newID(), Due: now + 8760*hour, Body: []byte("far")}
	putInbound(t, s, ws, far)
	for range 3 {
		putInbound(t, s, ws, desk.InboundItem{Channel: newID(), ID: newID(), Due: now + hour, Body: []byte("near")})
		putInbound(t, s, other, desk.InboundItem{Channel: newID(), ID: newID(), Due: now + hour, Body: []byte("near")})
	}
	check := func(limit int, more bool, want ...desk.InboundItem) {
		t.Helper()
		list, next, err := s.InboundItems(t.Context(), ws, 2*time.Hour, limit)
		must(t, err)
		equal(t, "due", list, want)
		if more != (next == 0) || next > time.Hour || next < 0 {
			t.Errorf("the next of up to %d in %v", limit, next)
		}
	}
	check(1, false, far)
	check(10, false, far)
	due, err := s.InboundDue(t.Context(), 2*time.Hour)
	must(t, err)
	if wait, there := due[ws]; !there || wait != 0 || due[other] < 50*time.Minute || due[other] > time.Hour {
		t.Errorf("due in %v", due)
	}
	early := desk.InboundItem{Channel: newID(), ID: newID(), Due: now - hour, Body: []byte("early")}
	putInbound(t, s, ws, early)
	check(1, true, early)
	check(2, false, early, far)
	commit(t, s, ws, func(tx store.Tx) error {
		taken, err := tx.TakeInbound([]desk.InboundItem{early, far})
		equal(t, "taken", taken, []desk.InboundItem{early, far})
		return err
	})
	check(10, false)
}
