package app_test

import (
	"fmt"
	"testing"

	"parley/app/imports"
	"parley/desk"
	"parley/store"
)

// TestImport_overtaken: a process that slept while another one went on with its import stores
// nothing more.
func TestImport_overtaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rows := func(from int) (list []imports.Row) {
		for n := from; n < from+3; n++ {
			op := &desk.Op{Kind: desk.OpUpsert}
			identified("external_id", fmt.Sprint("row-", n))(&op.Write)
			list = append(list, imports.Row{Op: op})
		}
		return append(list, imports.Row{Err: desk.Invalidf("no row")})
	}
	size := func(_ store.Tx, errs []error) (int64, error) {
		if len(errs) != 4 || errs[3] == nil {
			t.Errorf("errors of the rows: %v", errs)
		}
		return 7, nil
	}
	asleep, err := w.Imports.Begin(t.Context(), w.operator(), [32]byte{1})
	must(t, err)
	must(t, asleep.Store(t.Context(), rows(0), false, size))
	must(t, asleep.End(t.Context())) // as if its lease had ended
	next, err := w.Imports.Begin(t.Context(), w.operator(), [32]byte{1})
	must(t, err)
	want := desk.ImportCounts{Rows: 4, Created: 3, Rejected: 1}
	if !next.Resumed || next.Run != asleep.Run || next.Run.ImportCounts != want || next.Run.ErrorBytes != 7 {
		t.Errorf("%+v, want %+v", next.Run, asleep.Run)
	}
	must(t, next.Store(t.Context(), rows(2), false, size))
	want = desk.ImportCounts{Rows: 8, Created: 5, Unchanged: 1, Rejected: 2}
	if next.Run.ImportCounts != want {
		t.Errorf("%+v, want %+v", next.Run.ImportCounts, want)
	}
	if err := asleep.Store(t.Context(), rows(50), true, size); !desk.IsType(err, desk.Unavailable) {
		t.Errorf("the one that slept: %v", err)
	}
	w.holds(5, 0, 0)
	must(t, next.Store(t.Context(), nil, true, func(store.Tx, []error) (int64, error) { return 7, nil }))
	must(t, next.End(t.Context()))
	again, err := w.Imports.Begin(t.Context(), w.operator(), [32]byte{1})
	if must(t, err); again.Resumed || again.Run.ID == next.Run.ID {
		t.Errorf("an import that has ended goes on: %+v", again.Run)
	}
	must(t, again.End(t.Context()))
}
