package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"parley/desk"
	"parley/store/sqlite"
)

// TestInterruptedDeletionIsListed: the list shows a workspace whose deletion was
// interrupted, with the command that finishes the deletion.
func TestInterruptedDeletionIsListed(t *testing.T) {
	t.Parallel()
	m := migrationTest{dir: t.TempDir()}
	var made struct {
		ID string `json:"workspace_id"`
	}
	if err := json.Unmarshal([]byte(m.parley(t, 0, "workspace", "create", "--name", "Acme")), &made); err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(m.dir, "parley.db")})
	if err != nil {
		t.Fatal(err)
	}
	id, _ := desk.ParseID(made.ID)
	if err := store.DeleteWorkspace(t.Context(), id, func(string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	wantWords(t, m.parley(t, 0, "workspace", "list"), made.ID, `"state":"being deleted"`, "workspace delete "+made.ID, "--name NAME")
	m.parley(t, 0, "workspace", "delete", made.ID, "--name", "Acme")
	if list := m.parley(t, 0, "workspace", "list"); strings.Contains(list, made.ID) {
		t.Errorf("after the end: %s", list)
	}
}
