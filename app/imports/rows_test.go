package imports

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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

// TestGroups: while others wait for the database, an import stores few rows at a time. Then its
// groups meet the usual places again.
func TestGroups(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	table.WriteString("name,phone\n")
	for n := range 2*desk.ImportRows + 1 {
		fmt.Fprintf(&table, "Ada,+905320000%03d\n", n)
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
	i := &Import{service: &Service{Deps: Deps{Store: &contendedStore{next: []bool{true, false, true, true, false, false}}}}}
	var sizes []int
	err = groups(file, 0, func() int { return i.atOnce(desk.ImportRows) }, func(rows []transfer.Row, last bool) error {
		if sizes = append(sizes, len(rows)); last != (len(sizes) == 6) {
			t.Errorf("group %d is the last one: %v", len(sizes), last)
		}
		i.Run.Rows += int64(len(rows))
		return nil
	})
	few, many := desk.ImportRowsBeside, desk.ImportRows
	if want := []int{few, many - few, few, few, many - 2*few, 1}; err != nil || !slices.Equal(sizes, want) {
		t.Errorf("groups of %v rows, want %v; %v", sizes, want, err)
	}
}
