package storetest

import (
	"testing"

	"parley/desk"
	"parley/store"
)

func importRuns(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	run := desk.ImportRun{ID: idAt(now()), Key: [32]byte{1}, StartedAt: now()}
	find := func(ws desk.ID, key byte) *desk.ImportRun {
		t.Helper()
		found, err := s.ImportOf(t.Context(), ws, [32]byte{key})
		must(t, err)
		return found
	}
	put := func(run desk.ImportRun) {
		t.Helper()
		commit(t, s, ws, func(tx store.Tx) error { return tx.PutImport(run) })
	}
	put(run)
	equal(t, "begun", find(ws, 1), &run)
	run.EndedAt, run.ErrorBytes = now(), 7
	run.ImportCounts = desk.ImportCounts{Rows: 15, Created: 1, Updated: 2, Unchanged: 3, Rejected: 9}
	put(run)
	later := desk.ImportRun{ID: idAt(now()), Key: run.Key, StartedAt: now()}
	put(later)
	equal(t, "the newest of a key", find(ws, 1), &later)
	if find(ws, 2) != nil || find(other, 1) != nil {
		t.Error("the import of another key, or of another workspace, is found")
	}
	commit(t, s, ws, func(tx store.Tx) error {
		stored, err := tx.Import(run.ID)
		equal(t, "stored", stored, &run)
		return err
	})
	must(t, s.ForgetImports(t.Context(), ws, later.StartedAt))
	commit(t, s, ws, func(tx store.Tx) error {
		stored, err := tx.Import(run.ID)
		if stored != nil {
			t.Error("an old import is left")
		}
		return err
	})
	equal(t, "the newer one", find(ws, 1), &later)
}
