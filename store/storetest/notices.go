package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"parley/app"
	"parley/desk"
)

func noticesDue(t *testing.T, s app.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	var list []app.Notice
	for i := range 6 {
		n := app.Notice{Channel: newID(), ID: newID(), Due: desk.Time(10 + i/2), Body: fmt.Appendf(nil, "body \x00\xff %d", i)}
		list = append(list, n)
		if i%2 == 0 {
			must(t, s.PutNotice(t.Context(), ws, n))
		} else {
			store(t, s, ws, func(tx app.Tx) error { return tx.PutNotice(n) })
		}
	}
	must(t, s.PutNotice(t.Context(), other, app.Notice{ID: newID(), Due: 1, Body: []byte("x")}))
	slices.SortFunc(list, func(a, b app.Notice) int {
		return cmp.Or(cmp.Compare(a.Due, b.Due), slices.Compare(a.ID[:], b.ID[:]))
	})
	check := func(at desk.Time, limit int, want []app.Notice, wantNext desk.Time) {
		t.Helper()
		got, next, err := s.Notices(t.Context(), ws, at, limit)
		must(t, err)
		equal(t, fmt.Sprintf("notices at %d", at), got, want)
		if next != wantNext {
			t.Errorf("at %d the next of up to %d is due at %d, want %d", at, limit, next, wantNext)
		}
	}
	check(9, 10, nil, 10)
	check(10, 10, list[:2], 11)
	check(11, 4, list[:4], 12)
	check(11, 3, list[:3], 11)
	check(12, 6, list, 0)
	check(12, 5, list[:5], 12)
	check(99, 10, list, 0)
	changed := list[0]
	changed.Body = []byte("other")
	store(t, s, ws, func(tx app.Tx) error { return tx.PutNotice(changed) }) // in the place of the first
	check(10, 10, []app.Notice{changed, list[1]}, 11)
	take := func(from, want []app.Notice) {
		t.Helper()
		store(t, s, ws, func(tx app.Tx) error {
			got, err := tx.TakeNotices(from)
			equal(t, "taken", got, want)
			return err
		})
	}
	take(nil, nil)
	take(list[:3], []app.Notice{changed, list[1], list[2]}) // as they are by now
	take(list[:4], list[3:4])                               // the others are gone already
	take(list[:4], nil)
	check(99, 10, list[4:], 0)
	due, err := s.NoticesDue(t.Context())
	must(t, err)
	equal(t, "due", [2]desk.Time{due[ws], due[other]}, [2]desk.Time{list[4].Due, 1})
	_, next, err := s.Notices(t.Context(), other, 0, 10)
	must(t, err)
	equal(t, "next of the other workspace", next, desk.Time(1))
}

func leases(t *testing.T, s app.Store) {
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
	lease(ws, "b", 1_000_000, true) // it has ended
	lease(ws, "b", 1_000_000, false)
	lease(desk.ID{}, "a", 1_000_000, true)
	until := func(ws desk.ID, task string) desk.Time {
		t.Helper()
		until, err := s.LeaseOf(t.Context(), ws, task)
		must(t, err)
		return until
	}
	var began desk.Time
	store(t, s, ws, func(tx app.Tx) error { began = tx.Now(); return nil })
	equal(t, "lease of what nobody has had", until(ws, "c"), desk.Time(0))
	lease(ws, "c", 1_000_000, true)
	given := until(ws, "c")
	if given < began+1_000_000 {
		t.Errorf("a lease given at %d for 1000 seconds ends at %d", began, given)
	}
	lease(ws, "c", 5_000_000, false)
	equal(t, "lease that another asked for", until(ws, "c"), given)
	equal(t, "lease in another workspace", until(desk.ID{}, "c"), desk.Time(0))

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

func earlyStatuses(t *testing.T, s app.Store) {
	ws, _ := newWorkspace(t, s)
	channel := newID()
	keep := func(ws, channel desk.ID, list ...desk.StatusNotice) {
		t.Helper()
		store(t, s, ws, func(tx app.Tx) error {
			for _, n := range list {
				if err := tx.KeepStatus(channel, n); err != nil {
					return err
				}
			}
			return nil
		})
	}
	take := func(ws, channel desk.ID, externalID string, want ...desk.StatusNotice) {
		t.Helper()
		store(t, s, ws, func(tx app.Tx) error {
			got, err := tx.TakeStatuses(channel, externalID)
			slices.SortFunc(got, func(a, b desk.StatusNotice) int {
				return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Delivery, b.Delivery))
			})
			equal(t, "statuses", got, want)
			return err
		})
	}
	sent := desk.StatusNotice{ExternalID: "x", Delivery: desk.Sent, At: 10}
	delivered := desk.StatusNotice{ExternalID: "x", Attempt: newID(), Delivery: desk.Delivered, At: 11}
	failed := desk.StatusNotice{ExternalID: "x", Delivery: desk.Failed, At: 11, Failure: &desk.Failure{Code: 1, Title: "a", Fix: "b"}}
	late := desk.StatusNotice{ExternalID: "x", Delivery: desk.Sent, At: 12}
	elsewhere := desk.StatusNotice{ExternalID: "y", Delivery: desk.Sent, At: 12}
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
	store(t, s, ws, func(tx app.Tx) error { return tx.DropStatuses(11) })
	take(ws, channel, "x", delivered, late)
	take(other, channel, "x", sent)
}

func optOuts(t *testing.T, s app.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	number := app.NumberHash{1, 31: 2}
	check := func(ws desk.ID, number app.NumberHash, want app.OptOut) {
		t.Helper()
		store(t, s, ws, func(tx app.Tx) error {
			got, err := tx.OptOut(number)
			equal(t, "opt-out", got, want)
			return err
		})
		since, err := s.OptedOut(t.Context(), ws, number)
		must(t, err)
		equal(t, "opted out since", since, want.Since)
	}
	check(ws, number, app.OptOut{})
	for _, o := range []app.OptOut{{Since: 5, At: 7}, {At: 9}, {Since: 11, At: 11}} {
		store(t, s, ws, func(tx app.Tx) error { return tx.SetOptOut(number, o) })
		check(ws, number, o)
	}
	check(ws, app.NumberHash{1}, app.OptOut{})
	check(other, number, app.OptOut{})
}
