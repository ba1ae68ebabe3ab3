package app_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"parley/app"
	"parley/app/imports"
	"parley/desk"
	"parley/store"
	"parley/transfer"
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
	ending, err := w.Imports.Begin(t.Context(), w.operator(), [32]byte{1})
	if must(t, err); !ending.Resumed || ending.Run != next.Run {
		t.Errorf("after the last row: %+v, want %+v", ending.Run, next.Run)
	}
	if err := asleep.Finish(t.Context()); !desk.IsType(err, desk.Unavailable) {
		t.Errorf("the one that slept ends the import: %v", err)
	}
	must(t, ending.Finish(t.Context()))
	must(t, ending.End(t.Context()))
	again, err := w.Imports.Begin(t.Context(), w.operator(), [32]byte{1})
	if must(t, err); again.Resumed || again.Run.ID == next.Run.ID {
		t.Errorf("an import that has ended goes on: %+v", again.Run)
	}
	must(t, again.End(t.Context()))
}

// A heavyStore loads large contacts with those that an import names.
type heavyStore struct{ store.Store }

func (s heavyStore) Book(ctx context.Context, ws desk.ID, l desk.Lookup) (*desk.Book, error) {
	book, err := s.Store.Book(ctx, ws, l)
	return heavier(book, l), err
}

func (s heavyStore) InTx(ctx context.Context, ws desk.ID, do func(store.Tx) error) error {
	return s.Store.InTx(ctx, ws, func(tx store.Tx) error { return do(heavyTx{tx}) })
}

type heavyTx struct{ store.Tx }

func (tx heavyTx) Book(l desk.Lookup) (*desk.Book, error) {
	book, err := tx.Tx.Book(l)
	return heavier(book, l), err
}

func (tx heavyTx) Flush(book *desk.Book) error {
	if book.Full() {
		return errors.New("the contacts of these rows are too large to be stored together")
	}
	return tx.Tx.Flush(book)
}

// heavier adds a large contact for each that l names, up to what l allows.
func heavier(book *desk.Book, l desk.Lookup) *desk.Book {
	for n := range l.Identities {
		if book != nil && (l.Most == 0 || !book.Over(l.Most)) {
			book.Load(&desk.Contact{ID: desk.ID{1, byte(n), byte(n >> 8)}, Note: strings.Repeat("x", 1<<20)})
		}
	}
	return book
}

// largeRows returns 150 rows of 75 people. The last row is bad.
func largeRows() (rows []imports.Row) {
	for n := range 150 {
		op := &desk.Op{Kind: desk.OpUpsert}
		identified("external_id", fmt.Sprint("row-", n/2))(&op.Write)
		rows = append(rows, imports.Row{Op: op})
	}
	rows[149] = imports.Row{Err: desk.Invalidf("no row")}
	return rows
}

// TestImport_large: rows of large contacts are stored in smaller groups, all in one transaction.
func TestImport_large(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	heavy := w.node(heavyStore{w.file}, app.Bounds{})
	run, err := heavy.Imports.Begin(t.Context(), w.operator(), [32]byte{1})
	must(t, err)
	must(t, run.Store(t.Context(), largeRows(), true, func(_ store.Tx, errs []error) (int64, error) {
		if len(errs) != 150 || errs[148] != nil || errs[149] == nil {
			t.Errorf("errors of the rows: %v", errs)
		}
		return 0, nil
	}))
	if want := (desk.ImportCounts{Rows: 150, Created: 75, Unchanged: 74, Rejected: 1}); run.Run.ImportCounts != want {
		t.Errorf("%+v, want %+v", run.Run.ImportCounts, want)
	}
	must(t, run.End(t.Context()))
	w.holds(75, 0, 0)
}

// TestImport_dryLarge: a dry run judges rows of large contacts in smaller groups.
func TestImport_dryLarge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	heavy := w.node(heavyStore{w.file}, app.Bounds{})
	rows := largeRows()
	var n desk.ImportCounts
	errs, err := heavy.Imports.Try(t.Context(), w.operator(), rows, &n)
	must(t, err)
	// Of the 150 rows, the first and the second of a person are apart twice.
	if want := (desk.ImportCounts{Rows: 150, Created: 77, Unchanged: 72, Rejected: 1}); n != want || len(errs) != 150 || errs[148] != nil || errs[149] == nil {
		t.Errorf("%+v, want %+v; %d errors", n, want, len(errs))
	}
}

// TestImport_dryOptOuts: a dry run counts as the import does, which leaves a choice unchanged if a
// newer one is known or an earlier row says the same.
func TestImport_dryOptOuts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	file := func(rows ...string) *transfer.File {
		text := strings.Join(rows, "\n")
		file, err := transfer.Read(func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }, transfer.Options{Kind: desk.ImportOptOuts, JSONL: true})
		must(t, err)
		return file
	}
	row := func(number string, since int, optedOut bool) string {
		return fmt.Sprintf(`{"Number":%q,"Since":%d,"OptedOut":%t}`, number, since, optedOut)
	}
	keep := func(store.Tx, int64, []byte) error { return nil }
	store := func(key byte, file *transfer.File) desk.ImportCounts {
		t.Helper()
		run, err := w.Imports.Begin(t.Context(), w.operator(), [32]byte{key})
		must(t, err)
		must(t, run.StoreFile(t.Context(), file, keep, func() {}))
		must(t, run.End(t.Context()))
		return run.Run.ImportCounts
	}
	const out, back, none = "905321110000", "905321110001", "905321110002"
	store(1, file(row(out, 1000, true), row(back, 1000, true), row(back, 2000, false)))
	rows := []string{
		row(out, 3000, true), row(out, 500, false), row(back, 1500, true), row("905321110003", 0, false), "7", // all but the last unchanged
		row(back, 0, true), row(none, 0, true),
	}
	for _, number := range numbersFrom(0, 150) {
		rows = append(rows, row(number, 0, true))
	}
	rows = append(rows, row(none, 0, true)) // unchanged
	want := desk.ImportCounts{Rows: 158, Updated: 152, Unchanged: 5, Rejected: 1}
	got, err := w.Imports.TryFile(t.Context(), w.operator(), file(rows...), keep)
	must(t, err)
	if got != want {
		t.Errorf("the dry run: %+v, want %+v", got, want)
	}
	if got := store(2, file(rows...)); got != want {
		t.Errorf("the import: %+v, want %+v", got, want)
	}
}
