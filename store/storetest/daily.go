package storetest

import (
	"testing"

	"parley/desk"
	"parley/store"
)

// dailyCounts: counts are added up, but only if they begin at the place up to which
// events are already counted.
func dailyCounts(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	count := func(ws desk.ID, from, to desk.EventPlace, counts ...desk.DailyCount) {
		t.Helper()
		commit(t, s, ws, func(tx store.Tx) error { return tx.CountDays(from, to, counts) })
	}
	check := func(ws desk.ID, from int64, at desk.EventPlace, want ...desk.DailyCount) {
		t.Helper()
		got, err := s.Daily(t.Context(), ws, from)
		must(t, err)
		equal(t, "counts", got, want)
		place, err := s.DailyPlace(t.Context(), ws)
		must(t, err)
		equal(t, "place", place, at)
	}
	place := func(seq int64) desk.EventPlace { return desk.EventPlace{Seq: seq, Tag: seq * 7} }
	check(ws, 0, desk.EventPlace{})
	count(ws, desk.EventPlace{}, place(3))
	check(ws, 0, place(3))
	sent := desk.DailyCount{Day: 100, Kind: desk.DailySent, Key: "c/hello/en", N: 2}
	failed := desk.DailyCount{Day: 100, Kind: desk.DailyReason, Key: "131026", Label: "Not \"delivered\"", N: 1}
	later := desk.DailyCount{Day: 101, Kind: desk.DailySent, Key: "", N: 5}
	count(ws, place(3), place(9), failed, sent, later)
	check(ws, 100, place(9), failed, sent, later)
	check(ws, 101, place(9), later)
	count(ws, place(3), place(10), sent)                        // another process has counted them
	count(ws, desk.EventPlace{}, place(10), sent)               // the same
	count(ws, desk.EventPlace{Seq: 9, Tag: 1}, place(10), sent) // a place of another history
	count(other, desk.EventPlace{}, place(4), later)            // another workspace
	count(ws, place(9), place(11), desk.DailyCount{Day: 100, Kind: desk.DailyReason, Key: "131026", Label: "Undeliverable", N: 3}, sent)
	failed.N, failed.Label, sent.N = 4, "Undeliverable", 4
	check(ws, 100, place(11), failed, sent, later)
	commit(t, s, ws, func(tx store.Tx) error { return tx.DropDays(101) })
	check(ws, 0, place(11), later)
	check(other, 0, place(4), later)
}
