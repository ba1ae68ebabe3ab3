package imports

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"parley/desk"
	"parley/transfer"
)

// A contendedStore says each time anew whether others have to wait.
type contendedStore struct {
	leaseStore
	next []bool
}

func (s *contendedStore) Contended() (is bool) {
	is, s.next = s.next[0], s.next[1:]
	return is
}

// fileOf returns a file of people with the given names.
func fileOf(t *testing.T, names iter.Seq[string]) *transfer.File {
	var table strings.Builder
	table.WriteString("name,phone\n")
	n := 0
	for name := range names {
		n++
		fmt.Fprintf(&table, "%s,+90532000%04d\n", name, n)
	}
	path := filepath.Join(t.TempDir(), "people.csv")
	if err := os.WriteFile(path, []byte(table.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := transfer.Open(path, transfer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Columns(nil); err != nil {
		t.Fatal(err)
	}
	return file
}

// times yields a name some times.
func times(n int, name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for range n {
			if !yield(name) {
				return
			}
		}
	}
}

// unread is a row that says nothing.
func unread(from transfer.Row) Row { return Row{from: from} }

// TestGroups: while others wait for the database, an import stores few rows at a time. Then its
// groups meet the usual places again.
func TestGroups(t *testing.T) {
	t.Parallel()
	file := fileOf(t, times(2*desk.ImportRows+1, "Ada"))
	i := &Import{service: &Service{Deps: Deps{Store: &contendedStore{next: []bool{true, false, true, true, false, false, false, false, false, false, false, false}}}}}
	var sizes []int
	err := groups(t.Context(), file, 0, unread, func() int { return i.atOnce(desk.ImportRows) }, func(rows []Row, last bool) error {
		for n, row := range rows {
			if line := int(i.Run.Rows) + n + 2; row.from.Line != line {
				t.Fatalf("line %d in the place of %d", row.from.Line, line)
			}
		}
		if sizes = append(sizes, len(rows)); last != (len(sizes) == 9) {
			t.Errorf("group %d is the last one: %v", len(sizes), last)
		}
		i.Run.Rows += int64(len(rows))
		return nil
	})
	few, many := desk.ImportRowsBeside, desk.ImportRows
	if want := []int{few, 2 * few, few, few, 2 * few, 4 * few, many - 11*few, many, 1}; err != nil || !slices.Equal(sizes, want) {
		t.Errorf("groups of %v rows, want %v; %v", sizes, want, err)
	}
}

// TestGroups_ahead: while a group is stored, the next one is read, and no more. If the group fails,
// or reading does, the other ends too.
func TestGroups_ahead(t *testing.T) {
	t.Parallel()
	small := fileOf(t, times(4*desk.ImportRows, "Ada"))
	large := fileOf(t, times(20, strings.Repeat("x", desk.ImportBytes/10)))
	failed := errors.New("failed")
	for _, test := range []struct {
		name        string
		file        *transfer.File
		most, ahead int
	}{
		{"rows", small, desk.ImportRows, desk.ImportRows},
		{"bytes", large, desk.ImportRows, 4}, // each counts twice: as a cell, and in the body of POST /contacts
	} {
		synctest.Test(t, func(t *testing.T) {
			read, group := 0, 0
			err := groups(t.Context(), test.file, 0, func(from transfer.Row) Row { read++; return unread(from) },
				func() int { return test.most },
				func(rows []Row, _ bool) error {
					group += len(rows)
					if synctest.Wait(); read != group+test.ahead+1 { // one waits for room
						t.Errorf("%s: %d rows are read while %d are stored, want %d ahead", test.name, read, group, test.ahead)
					}
					if group >= 2*len(rows) {
						return failed
					}
					return nil
				})
			if !errors.Is(err, failed) {
				t.Errorf("%s: %v, want the group's failure", test.name, err)
			}
		})
	}
	for why, read := range map[string]func(transfer.Row) Row{
		"a row panics": func(from transfer.Row) Row {
			if from.Line > desk.ImportRows+500 {
				panic("no such row")
			}
			return unread(from)
		},
		"the caller ends": unread,
	} {
		ctx, cancel := context.WithCancel(t.Context())
		stored := 0
		err := groups(ctx, small, 0, read, func() int { return desk.ImportRows }, func(rows []Row, _ bool) error {
			if stored += len(rows); why == "the caller ends" {
				cancel()
			}
			return nil
		})
		if cancel(); err == nil || stored != desk.ImportRows {
			t.Errorf("%s: %d rows are stored, %v", why, stored, err)
		}
	}
}
