package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"parley/desk"
	"parley/store"
	"parley/store/postgres/pgtest"
)

// rowsOf counts the rows of each table.
func rowsOf(t *testing.T, s *Store) map[string]string {
	t.Helper()
	rows := map[string]string{}
	for table := range placements {
		rows[table] = query(t, s, `SELECT count(*)::text FROM `+table)[0]
	}
	return rows
}

// TestDistribute: an installation that has data moves to all servers of a cluster, also if
// the move is interrupted. Without Citus, the command says what is missing.
func TestDistribute(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	distribute := func(ctx context.Context, step func(n int)) (Distribution, error) {
		return Distribute(ctx, Config{URL: url}, func(_ string, n, _ int) { step(n) })
	}
	nothing := func(int) {}
	if !pgtest.Citus() {
		check(t, openAt(t, url).Ready(t.Context()))
		if _, err := distribute(t.Context(), nothing); !desk.IsType(err, desk.InvalidRequest) || !strings.Contains(err.Error(), "CREATE EXTENSION citus") {
			t.Errorf("without the extension: %v", err)
		}
		return
	}
	s, err := open(t.Context(), Config{URL: url, MaxConns: 4}, leaveLocal)
	check(t, err)
	ws := newWorkspace(t, s)
	for n := range 50 {
		_, err := update(s, ws, upsertOf(identity("a", n), identity("b", n)))
		check(t, err)
	}
	check(t, s.BindSecret(t.Context(), "fingerprint"))
	before := rowsOf(t, s)
	if _, err := distribute(t.Context(), nothing); !desk.IsType(err, desk.InvalidRequest) || !strings.Contains(err.Error(), "are connected") {
		t.Errorf("beside another process: %v", err)
	}
	check(t, s.Close())

	for _, at := range []int{1, 10} { // after the thirtieth, only empty tables are left, which a server moves by itself
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := distribute(ctx, func(n int) {
			if n == at {
				cancel()
			}
		}); err == nil {
			t.Fatalf("it was not interrupted after %d tables", at)
		}
		for entrance := range 2 {
			if half, err := Open(t.Context(), Config{URL: pgtest.Entrance(t, url, entrance)}); err == nil {
				t.Errorf("a server starts at the entrance %d on a half of the tables: %v", entrance, half.Close())
			}
		}
	}
	d, err := distribute(t.Context(), nothing)
	check(t, err)
	if len(d.Tables) == 0 || len(d.Servers) < 2 {
		t.Errorf("distributed %v", d)
	}
	for entrance := range 2 {
		s := openAt(t, pgtest.Entrance(t, url, entrance))
		if after := rowsOf(t, s); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("the rows are %v, want %v", after, before)
		}
		if left := query(t, s, strings.ReplaceAll(leftQuery, "$1", "'{"+strings.Join(tableList(), ",")+"}'")); len(left) > 0 {
			t.Errorf("rows are left behind in %v", left)
		}
		_, err := update(s, ws, upsertOf(identity("a", 1)))
		check(t, err)
		if n := query(t, s, `SELECT count(*)::text FROM contacts`); n[0] != "50" {
			t.Errorf("%s contacts", n[0])
		}
	}
	if d, err := distribute(t.Context(), nothing); err != nil || len(d.Tables) != 0 { // beside servers: it only sets up
		t.Errorf("again: %v, %v", d, err)
	}
}

func tableList() (list []string) {
	for table := range placements {
		list = append(list, table)
	}
	return list
}

// TestWorkerLostAtCommit: if the coordinator of a cluster loses the worker during the commit, the
// outcome is unknown. It reports an internal error, which is anything else on a single server.
func TestWorkerLostAtCommit(t *testing.T) {
	t.Parallel()
	onOneServer(t, "Citus has no triggers on distributed tables")
	database := pgtest.Database(t)
	s := openAt(t, database)
	ws := newWorkspace(t, s)
	for _, sql := range []string{
		`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = 'XX000'; END $$`,
		`CREATE CONSTRAINT TRIGGER t AFTER INSERT ON contacts DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()`,
		`CREATE CONSTRAINT TRIGGER t AFTER UPDATE ON installation DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()`,
	} {
		_, err := s.pool.Exec(t.Context(), sql)
		check(t, err)
	}
	check(t, s.BindSecret(t.Context(), "one"))
	for _, onCitus := range []bool{false, true} {
		s, err := Open(t.Context(), Config{URL: database, asOnCitus: onCitus})
		check(t, err)
		defer s.Close()
		if _, err := update(s, ws, upsertOf(identity("a", 1))); errors.Is(err, store.ErrCommitLost) != onCitus || desk.IsType(err, desk.Unavailable) != onCitus {
			t.Errorf("on Citus: %v: a contact: %v", onCitus, err)
		}
		if err := s.SetResealed(t.Context()); errors.Is(err, store.ErrCommitLost) != onCitus {
			t.Errorf("on Citus: %v: one statement: %v", onCitus, err)
		}
	}
}

// TestHoldLeases_at_commit: a lease whose commit fails is not held.
func TestHoldLeases_at_commit(t *testing.T) {
	t.Parallel()
	onOneServer(t, "Citus has no triggers on distributed tables")
	s := openAt(t, pgtest.Database(t))
	ws := newWorkspace(t, s)
	for _, sql := range []string{
		`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$`,
		`CREATE CONSTRAINT TRIGGER t AFTER INSERT OR UPDATE ON leases DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()`,
	} {
		_, err := s.pool.Exec(t.Context(), sql)
		check(t, err)
	}
	held, err := s.HoldLeases(t.Context(), []store.LeaseRef{{Workspace: ws, Task: "one"}}, newID(), 10_000)
	if err == nil || len(held) > 0 {
		t.Errorf("held %v, %v", held, err)
	}
}
