package sqlite

import (
	"testing"

	"parley/desk"
	"parley/store"
)

// TestUploads_older: a server of an older release takes up an upload whose queued_at is above 0, as
// contacts. So one of people of a broadcast never has such a time, not even from that server.
func TestUploads_older(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	ws := newWorkspace(t, s)
	for slot, broadcast := range []desk.ID{{}, {1}} {
		u := &desk.Upload{ID: desk.ID{byte(slot)}, Slot: slot + 1, Broadcast: broadcast, State: desk.UploadImporting, QueuedAt: 5}
		if err := s.InTx(t.Context(), ws, func(tx store.Tx) error { return tx.PutUpload(u) }); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.write(t.Context(), func(c conn) error {
		found, err := all("queued", c.stmt(`SELECT id FROM import_uploads WHERE queued_at > 0`), (*stmt).readID)
		if len(found) != 1 || found[0] != (desk.ID{}) {
			t.Errorf("an older release finds %v", found)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	if err := s.write(t.Context(), func(c conn) error { return c.stmt(`UPDATE import_uploads SET queued_at = 6`).run() }); err == nil {
		t.Error("an older release queues people of a broadcast")
	}
}
