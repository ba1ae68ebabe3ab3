package postgres

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"parley/desk"
	"parley/store/postgres/pgtest"

	"github.com/jackc/pgx/v5"
)

var (
	eventsTable   = Table{"events", []string{"workspace_id", "seq", "at", "kind", "subject_id", "actor_id", "changed"}, 2}
	channelsTable = Table{"channels", []string{"workspace_id", "id", "kind", "external_id", "enabled", "created_at", "library", "bindings"}, 2}
)

func blob(first byte) []byte { return append([]byte{first}, make([]byte, 15)...) }

func TestImport(t *testing.T) {
	t.Parallel()
	s := openAt(t, pgtest.Database(t))
	var want [][]any
	for ws := range 3 {
		for seq := range 5 {
			want = append(want, []any{blob(byte(ws)), int64(seq + 1), int64(0), "made", blob(1), blob(2), ""})
		}
	}
	channel := []any{blob(1), blob(2), "sandbox", "x", int64(1), int64(5), int64(7), "[]"}
	stop := errors.New("stop")
	err := s.Import(t.Context(), "f", func(i *Import) error {
		if last, err := i.Last(t.Context(), eventsTable); last != nil || err != nil {
			t.Errorf("the last of no rows is %v, %v", last, err)
		}
		if err := i.Put(t.Context(), eventsTable, want[:7]); err != nil {
			t.Error(err)
		}
		// Put stores all rows or none: the last row is stored already.
		if err := i.Put(t.Context(), eventsTable, append(slices.Clone(want[7:9]), want[0])); err == nil {
			t.Error("a row was stored twice")
		}
		if err := s.Import(t.Context(), "f", nil); !desk.IsType(err, desk.InvalidRequest) {
			t.Errorf("a second import at the same time: %v", err)
		}
		return stop
	})
	if !errors.Is(err, stop) {
		t.Fatal(err)
	}
	if err := s.BindSecret(t.Context(), "f"); !desk.IsType(err, desk.InvalidRequest) || !strings.Contains(err.Error(), "being copied") {
		t.Errorf("a server on half a copy: %v", err)
	}
	if err := s.Import(t.Context(), "other", nil); !desk.IsType(err, desk.InvalidRequest) {
		t.Errorf("an import of another installation: %v", err)
	}
	err = s.Import(t.Context(), "f", func(i *Import) error {
		last, err := i.Last(t.Context(), eventsTable)
		if err != nil || len(last) != 2 || string(last[0].([]byte)) != string(blob(1)) || last[1] != int64(2) {
			t.Errorf("the last key is %v, %v", last, err)
		}
		err = errors.Join(i.Put(t.Context(), eventsTable, want[7:]), i.Put(t.Context(), channelsTable, [][]any{channel}))
		if err != nil {
			return err
		}
		var got [][]any
		keep := func(row []any) { got = append(got, row) }
		for after, n := []any(nil), -1; n != len(got); after = got[len(got)-1][:2] {
			n = len(got)
			if err := i.Each(t.Context(), eventsTable, after, 4, keep); err != nil {
				return err
			}
		}
		if !slices.EqualFunc(got, want, sameRow) {
			t.Errorf("it holds\n%v, want\n%v", got, want)
		}
		got = nil
		if err := i.Each(t.Context(), channelsTable, nil, 4, keep); err != nil || len(got) != 1 || !sameRow(got[0], channel) {
			t.Errorf("it holds %v, want %v: %v", got, channel, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := query(t, s, `SELECT seq::text FROM event_counters`); !slices.Equal(got, []string{"5", "5", "5"}) {
		t.Errorf("the counters are %v", got)
	}
	if got := query(t, s, `SELECT to_regclass('migration_progress') IS NULL || ''`); got[0] != "true" {
		t.Error("an import that has ended leaves its mark")
	}
	if got := query(t, s, `SELECT count(*)::text FROM pg_stats WHERE tablename = 'events' AND attname = 'seq'`); got[0] == "0" && !s.citus { // a cluster has them at the shards
		t.Error("the planner knows nothing about the imported rows")
	}
	if err := s.BindSecret(t.Context(), "f"); err != nil {
		t.Error(err)
	}
}

func sameRow(a, b []any) bool {
	return slices.EqualFunc(a, b, func(a, b any) bool {
		x, ok := a.([]byte)
		y, both := b.([]byte)
		if ok && both {
			return string(x) == string(y)
		}
		return !ok && !both && a == b
	})
}

// TestImportSeeks: a page is found by its whole key.
func TestImportSeeks(t *testing.T) {
	t.Parallel()
	s := openAt(t, pgtest.Database(t))
	id := strings.Repeat("0", 32)
	for _, c := range []struct {
		table Table
		after []any
	}{
		{Table{"messages", []string{"workspace_id", "conversation_id", "ts", "id", "text"}, 4}, []any{id, id, 1, id}},
		{Table{"directory", []string{"kind", "ref", "workspace_id"}, 2}, []any{"key", "x"}},
		{eventsTable, []any{id, 1}},
	} {
		rows, err := s.pool.Query(context.Background(), "EXPLAIN "+pageQuery(c.table, true, 10), c.after...)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		plan := strings.Join(lines, "\n")
		if _, ofShard, distributed := strings.Cut(plan, "->  Task"); distributed { // the coordinator sorts the pages of the shards
			plan = ofShard
		}
		if err != nil || strings.Contains(plan, "Sort") || !strings.Contains(plan, "Index Cond: (ROW(") {
			t.Errorf("%s: %v\n%s", c.table.Name, err, plan)
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
		"claim_rules":      "of all workspaces",
		"uptime":           "of all workspaces",
		"goose_db_version": "of all workspaces",
	}
	s := openAt(t, pgtest.Database(t))
	of := query(t, s, `SELECT name FROM (`+workspaceTablesQuery+`) t (name, key)`)
	for _, name := range query(t, s, `SELECT relname::text FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace`) {
		if slices.Contains(of, name) == (others[name] != "") {
			t.Errorf("the table %s: its key leads with workspace_id: %v, decided otherwise: %q", name, slices.Contains(of, name), others[name])
		}
	}
}
