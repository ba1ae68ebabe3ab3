package postgres

import (
	"testing"

	"parley/desk"
	"parley/store"
	"parley/store/postgres/pgtest"
)

// TestUploads_older: a server of an older release takes up an upload whose queued_at is above 0, as
// contacts. So one of people of a broadcast never has such a time, not even from that server.
func TestUploads_older(t *testing.T) {
	t.Parallel()
	s := openAt(t, pgtest.Database(t))
	ws := newWorkspace(t, s)
	for slot, broadcast := range []desk.ID{{}, {1}} {
		u := &desk.Upload{ID: desk.ID{byte(slot)}, Slot: slot + 1, Broadcast: broadcast, State: desk.UploadImporting, QueuedAt: 5}
		if err := s.InTx(t.Context(), ws, func(tx store.Tx) error { return tx.PutUpload(u) }); err != nil {
			t.Fatal(err)
		}
	}
	var found int
	if err := s.pool.QueryRow(t.Context(), `SELECT count(*) FROM import_uploads WHERE queued_at > 0`).Scan(&found); err != nil || found != 1 {
		t.Errorf("an older release finds %d uploads, %v", found, err)
	}
	if _, err := s.pool.Exec(t.Context(), `UPDATE import_uploads SET queued_at = 6`); err == nil {
		t.Error("an older release queues people of a broadcast")
	}
}
