package storetest

import (
	"sync"
	"testing"
	"time"

	"parley/desk"
	"parley/store"
)

// anUpload returns an upload that has just been made.
func anUpload(slot int) *desk.Upload {
	return &desk.Upload{ID: idAt(now()), Slot: slot, MediaID: newID(), MemberID: newID(), Name: "people.csv", Size: 7, Options: "{}", State: desk.UploadOpen, CreatedAt: now()}
}

func putUpload(t *testing.T, s store.Store, ws desk.ID, u *desk.Upload) {
	t.Helper()
	commit(t, s, ws, func(tx store.Tx) error { return tx.PutUpload(u) })
}

func uploads(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	u, later := anUpload(1), anUpload(2)
	later.Broadcast, later.QueuedAt = newID(), now()
	putUpload(t, s, ws, u)
	putUpload(t, s, ws, later)
	commit(t, s, ws, func(tx store.Tx) error {
		of, err := tx.UploadsOf(later.Broadcast)
		equal(t, "of a broadcast", of, []*desk.Upload{later})
		return err
	})
	commit(t, s, other, func(tx store.Tx) error {
		of, err := tx.UploadsOf(later.Broadcast)
		equal(t, "those of another workspace's broadcast", len(of), 0)
		return err
	})
	u.Slot, u.MemberID, u.Rows, u.Options, u.State = 3, newID(), 5, `{"a":1}`, desk.UploadImporting
	u.Problem, u.ProblemAt, u.QueuedAt, u.EndedAt, u.RunID = "line 3", "encoding", now(), now(), idAt(now())
	putUpload(t, s, ws, u)
	run := desk.ImportRun{ID: u.RunID, Key: [32]byte{2}, StartedAt: now(), ImportCounts: desk.ImportCounts{Rows: 4, Created: 1, Rejected: 3}, ErrorBytes: 9}
	commit(t, s, ws, func(tx store.Tx) error {
		if err := tx.PutImport(run); err != nil {
			return err
		}
		for at, rows := range map[int64]string{0: "one", 3: "two", 6: "six"} {
			if err := tx.PutRejected(run.ID, at, []byte(rows)); err != nil {
				return err
			}
		}
		return tx.PutRejected(run.ID, 6, []byte("three")) // a transaction may run again
	})
	commit(t, s, ws, func(tx store.Tx) error {
		stored, err := tx.Upload(u.ID)
		equal(t, "in a transaction", stored, u)
		return err
	})
	u.Run = run
	found, err := s.Upload(t.Context(), ws, u.ID)
	must(t, err)
	equal(t, "one", found, u)
	list, err := s.Uploads(t.Context(), ws, 5)
	must(t, err)
	equal(t, "the newest first", list, []*desk.Upload{later, u})
	list, err = s.Uploads(t.Context(), ws, 1)
	must(t, err)
	equal(t, "one only", list, []*desk.Upload{later})
	for at, want := range map[int64]string{0: "one", 3: "two", 6: "three", 11: "", 1: ""} {
		rows, err := s.Rejected(t.Context(), ws, run.ID, at)
		if must(t, err); string(rows) != want {
			t.Errorf("rejected rows at %d: %q, want %q", at, rows, want)
		}
	}
	found, err = s.Upload(t.Context(), other, u.ID)
	must(t, err)
	rows, err := s.Rejected(t.Context(), other, run.ID, 0)
	if must(t, err); found != nil || rows != nil {
		t.Error("another workspace sees them")
	}
	later.End(desk.UploadDone, "", now())
	putUpload(t, s, ws, later)
	commit(t, s, ws, func(tx store.Tx) error {
		of, err := tx.UploadsOf(later.Broadcast)
		equal(t, "those of a broadcast, after the end", len(of), 0)
		return err
	})
	must(t, s.ForgetImports(t.Context(), ws, now()+1))
	if found, err := s.Upload(t.Context(), ws, u.ID); err != nil || found.Run.ID.IsZero() {
		t.Error("the run of an upload was forgotten", err)
	}
	commit(t, s, ws, func(tx store.Tx) error { return tx.DropUpload(u) })
	found, err = s.Upload(t.Context(), ws, u.ID)
	must(t, err)
	rows, err = s.Rejected(t.Context(), ws, run.ID, 3)
	if must(t, err); found != nil || rows != nil {
		t.Error("something of a deleted upload is left")
	}
	commit(t, s, ws, func(tx store.Tx) error {
		left, err := tx.Import(run.ID)
		if left != nil {
			t.Error("the run of a deleted upload is left")
		}
		return err
	})
}

// uploadSlots: of many uploads at once, each has a slot of its own.
func uploadSlots(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			err := s.InTx(t.Context(), ws, func(tx store.Tx) error {
				taken, err := tx.UploadSlots()
				if err != nil || len(taken) == desk.MaxUploads {
					return err
				}
				u := anUpload(1)
				for _, slot := range taken {
					u.Slot = max(u.Slot, slot+1)
				}
				return tx.PutUpload(u)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	list, err := s.Uploads(t.Context(), ws, 20)
	if must(t, err); len(list) != desk.MaxUploads {
		t.Errorf("%d uploads", len(list))
	}
	commit(t, s, ws, func(tx store.Tx) error {
		list[0].End(desk.UploadStopped, "", now())
		return tx.PutUpload(list[0])
	})
	commit(t, s, ws, func(tx store.Tx) error {
		if taken, err := tx.UploadSlots(); err != nil || len(taken) != desk.MaxUploads-1 {
			t.Errorf("taken: %v, %v", taken, err)
		}
		return nil
	})
}

func uploadsDue(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	first, second, rests := anUpload(1), anUpload(2), anUpload(3)
	first.QueuedAt, second.QueuedAt, second.Broadcast = 20, 10, newID()
	for _, u := range []*desk.Upload{first, second, rests} {
		putUpload(t, s, ws, u)
	}
	putUpload(t, s, other, anUpload(1))
	due := func() map[desk.ID]time.Duration {
		t.Helper()
		due, err := s.UploadsDue(t.Context(), time.Minute)
		must(t, err)
		if _, ok := due[other]; ok {
			t.Error("a workspace without queued uploads is due")
		}
		return due
	}
	if wait, ok := due()[ws]; !ok || wait != 0 {
		t.Errorf("due in %v, %v", wait, ok)
	}
	next, err := s.NextUpload(t.Context(), ws)
	must(t, err)
	equal(t, "the next", next, second)
	if next, err := s.NextUpload(t.Context(), other); next != nil || err != nil {
		t.Error(next, err)
	}
	ref, holder := store.LeaseRef{Workspace: ws, Task: store.ImportTask}, newID()
	if held, err := s.HoldLeases(t.Context(), []store.LeaseRef{ref}, holder, 30_000); err != nil || len(held) != 1 {
		t.Fatal(held, err)
	}
	if wait := due()[ws]; wait <= 20*time.Second || wait > 30*time.Second {
		t.Errorf("beside another import due in %v", wait)
	}
	must(t, s.EndLease(t.Context(), ref, holder))
	if wait, ok := due()[ws]; !ok || wait != 0 {
		t.Errorf("after another import due in %v, %v", wait, ok)
	}
	if held, err := s.HoldLeases(t.Context(), []store.LeaseRef{ref}, holder, 3_600_000); err != nil || len(held) != 1 {
		t.Fatal(held, err)
	}
	if wait, ok := due()[ws]; !ok || wait != 0 {
		t.Errorf("beside a lease that ends too late due in %v, %v", wait, ok)
	}
}

func oldUploads(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	at := now()
	list := []*desk.Upload{anUpload(1), anUpload(2), anUpload(0), anUpload(0)} // old, new, ended long ago, ended
	list[0].CreatedAt, list[1].CreatedAt = at-10, at
	list[2].CreatedAt, list[2].EndedAt = at-99, at-50
	list[3].CreatedAt, list[3].EndedAt = at-99, at-5
	for _, u := range list {
		putUpload(t, s, ws, u)
	}
	commit(t, s, ws, func(tx store.Tx) error {
		old, err := tx.OldUploads(at, at-20, 10)
		equal(t, "old", old, []*desk.Upload{list[0], list[2]})
		if err == nil {
			old, err = tx.OldUploads(at, at-20, 1)
			equal(t, "the first of them", old, list[:1])
		}
		return err
	})
}
