package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/desk"
)

// TestEveryTableIsCopied fails for a table or column that is missing in Tables: it would
// not be copied.
func TestEveryTableIsCopied(t *testing.T) {
	t.Parallel()
	left := map[string]string{
		"goose_db_version": "the other database has migrations of its own",
		"installation":     "BindSecret writes it",
		"claim_rules":      "opening a database writes it",
		"large_values":     "columns of contacts",
		"leases":           "they end by themselves",
		"pace":             "it ends by itself",
		"search_places":    "the other installation builds the terms anew",
		"search_terms":     "the other installation builds the terms anew",
		"send_answers":     "a column of attempts",
		"uptime":           "Hour reads it, and SetHour stores it",
	}
	c := openStore(t).writer
	copied := map[string]Table{}
	for _, table := range Tables() {
		copied[table.Name] = table
	}
	text := func(s *stmt) string { return s.readText() }
	names, err := all("tables", c.stmt(`SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`), text)
	if err != nil || len(names) != len(copied)+len(left) {
		t.Errorf("%d tables, of which %d are copied and %d are not: %v", len(names), len(copied), len(left), err)
	}
	for _, name := range names {
		table, ok := copied[name]
		if left[name] != "" {
			continue
		}
		if !ok {
			t.Errorf("the table %s is neither in Tables nor left behind on purpose", name)
			continue
		}
		columns, err := all("columns", c.stmt(`SELECT name FROM pragma_table_info(?)`).text(name), text)
		key, err2 := all("key", c.stmt(`SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk`).text(name), text)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		if name == attemptsTable {
			columns = append(columns, answerColumn)
		}
		if got := table.Columns[:table.Key]; !slices.Equal(got, key) {
			t.Errorf("%s: the key is %s, want %s", name, got, key)
		}
		slices.Sort(columns)
		if got := slices.Sorted(slices.Values(table.Columns)); !slices.Equal(got, columns) {
			t.Errorf("%s: the columns are\n%s, want\n%s", name, got, columns)
		}
	}
}

// TestEveryTableIsDecided checks each table of the schema. If the table's key begins with
// workspace_id, its rows are deleted with the workspace. Otherwise the test must list the
// table with a reason.
func TestEveryTableIsDecided(t *testing.T) {
	t.Parallel()
	others := map[string]string{
		"workspaces":       "EraseWorkspace deletes the row last",
		"directory":        "DeleteWorkspace deletes its entries",
		"installation":     "of all workspaces",
		"goose_db_version": "of all workspaces",
		"claim_rules":      "of all workspaces",
		"uptime":           "of all workspaces",
	}
	c := openStore(t).writer
	names, err := all("tables", c.stmt(`SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`), (*stmt).readText)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := workspaceTables(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		of := slices.ContainsFunc(tables, func(t Table) bool { return t.Name == name })
		if of == (others[name] != "") {
			t.Errorf("the table %s: its key leads with workspace_id: %v, decided otherwise: %q", name, of, others[name])
		}
	}
	for _, table := range tables {
		if table.Columns[0] != "workspace_id" {
			t.Errorf("%s has the key %q", table.Name, table.Columns)
		}
		for _, step := range planOf(t, c, eraseQuery(table)) {
			if strings.HasPrefix(step, "SCAN") {
				t.Errorf("%s: %s", table.Name, step)
			}
		}
	}
}

// TestPagesAreSought fails if finding a page reads the rows before it.
func TestPagesAreSought(t *testing.T) {
	t.Parallel()
	c := openStore(t).writer
	for _, table := range Tables() {
		steps, err := all("plan", c.stmt("EXPLAIN QUERY PLAN "+pageQuery(table, true)), func(s *stmt) string {
			s.col = 3
			return s.readText()
		})
		if err != nil || len(steps) == 0 || !strings.HasPrefix(steps[0], "SEARCH c USING") ||
			strings.Contains(strings.Join(steps, ""), "TEMP B-TREE") {
			t.Errorf("%s: %q, %v", table.Name, steps, err)
		}
	}
}

func TestExport(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	const n = 25
	for i := range n {
		ws := desk.ID{15: byte(200 - i)}
		if err := s.CreateWorkspace(t.Context(), desk.Workspace{ID: ws, Name: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	workspaces := Tables()[slices.IndexFunc(Tables(), func(table Table) bool { return table.Name == "workspaces" })]
	err := s.Export(t.Context(), func(e *Export) error {
		var rows [][]any
		for last := []any(nil); ; {
			page, err := e.Page(workspaces, last, 4)
			if err != nil || len(page) == 0 {
				break
			}
			rows = append(rows, page...)
			last = page[len(page)-1][:workspaces.Key]
		}
		sorted := slices.IsSortedFunc(rows, func(a, b []any) int {
			return cmp.Or(bytes.Compare(a[0].([]byte), b[0].([]byte)), -1)
		})
		if len(rows) != n || !sorted || rows[0][1] != "24" || rows[0][3] != int64(1) {
			t.Errorf("%d rows, want %d in order: %v", len(rows), n, rows)
		}

		// During the export, no other connection can write.
		other, err := open(s.path, readerCache)
		if err != nil {
			return err
		}
		defer other.Close()
		other.SetBusyTimeout(0)
		if err := other.stmt(`UPDATE workspaces SET name = 'x'`).run(); !byMachine(err) {
			t.Errorf("a write during the export: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CreateWorkspace(t.Context(), desk.Workspace{ID: desk.ID{1}, Name: "after"}); err != nil {
		t.Errorf("a write after the export: %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	err = s.Export(ctx, func(e *Export) error {
		cancel()
		for { // the interrupt comes from another goroutine
			if _, err := e.Page(workspaces, nil, n); err != nil {
				return err
			}
		}
	})
	if !desk.IsType(err, desk.Unavailable) {
		t.Errorf("an export whose caller has left: %v", err)
	}
}
