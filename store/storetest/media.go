package storetest

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"parley/desk"
	"parley/store"
)

// filler returns n bytes of content in which no two chunks are equal.
func filler(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i) ^ byte(i>>8) ^ byte(i>>16) ^ seed
	}
	return b
}

// keep stores content in steps, and returns its hash.
func keep(t *testing.T, s store.Store, ws desk.ID, content []byte) []byte {
	t.Helper()
	d, err := s.NewContent(t.Context(), ws)
	must(t, err)
	defer d.Drop()
	for rest := content; len(rest) > 0; {
		n := min(300_000, len(rest))
		_, err := d.Write(rest[:n])
		must(t, err)
		rest = rest[n:]
	}
	sum, size, err := d.Keep(t.Context(), 0)
	must(t, err)
	if want := sha256.Sum256(content); !bytes.Equal(sum, want[:]) || size != int64(len(content)) {
		t.Fatalf("kept %d bytes with the hash %x, want %d with %x", size, sum, len(content), want)
	}
	return sum
}

// newFile stores a file with content. contact is zero for an upload.
func newFile(t *testing.T, s store.Store, ws, contact desk.ID, content []byte) *desk.Media {
	t.Helper()
	sum := keep(t, s, ws, content)
	m := &desk.Media{
		ID: newID(), ContactID: contact, Kind: desk.KindImage, MIME: "image/webp", Trait: desk.TraitAnimated, Name: "a \"b\".webp",
		Size: int64(len(content)), SHA256: sum, Status: desk.MediaReady, CreatedAt: now(),
	}
	commit(t, s, ws, func(tx store.Tx) error {
		if err := tx.UseContent(sum); err != nil {
			return err
		}
		return tx.PutMedia(m)
	})
	return m
}

func readContent(t *testing.T, s store.Store, ws desk.ID, sum []byte) []byte {
	t.Helper()
	c, err := s.OpenContent(t.Context(), ws, sum)
	must(t, err)
	b, err := io.ReadAll(c)
	must(t, err)
	must(t, c.Close())
	return b
}

func noContent(t *testing.T, s store.Store, ws desk.ID, sum []byte) {
	t.Helper()
	_, err := s.OpenContent(t.Context(), ws, sum)
	wantType(t, err, desk.NotFound)
}

// dropAll deletes all content that no file has.
func dropAll(t *testing.T, s store.Store) {
	t.Helper()
	for {
		n, err := s.DropContents(t.Context(), 2)
		must(t, err)
		if n == 0 {
			return
		}
	}
}

// mediaInUse: a file is in use while a message has it, or an attempt that is not
// settled. Then neither its age nor the deletion of another contact deletes it.
func mediaInUse(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	m := newFile(t, s, ws, desk.ID{}, filler(10, 1))
	equal := func(what string, want bool) {
		t.Helper()
		commit(t, s, ws, func(tx store.Tx) error {
			if _, err := tx.Media(m.ID); err != nil {
				return err
			}
			used, err := tx.MediaInUse(m.ID)
			if used != want {
				t.Errorf("%s: in use is %v", what, used)
			}
			return err
		})
	}
	drop := func() {
		t.Helper()
		commit(t, s, ws, func(tx store.Tx) error {
			_, err := tx.DropUploads(now()+1000, 10)
			return err
		})
	}
	equal("an upload", false)
	a := newAttempt("905321112233")
	a.Plan.Media = m.ID
	put := func(phase desk.Phase) {
		t.Helper()
		a.Phase = phase
		commit(t, s, ws, func(tx store.Tx) error { return tx.PutAttempt(a) })
	}
	for _, phase := range []desk.Phase{desk.Dispatching, desk.InDoubt} {
		put(phase)
		equal(string(phase), true)
		drop()
		if found, err := s.Media(t.Context(), ws, m.ID); found == nil || err != nil {
			t.Fatalf("%s: %v, %v", phase, found, err)
		}
	}
	put(desk.Released)
	equal("released", false)
	commit(t, s, ws, func(tx store.Tx) error { return tx.DropMedia(m.ID) })
	missing(s.Media(t.Context(), ws, m.ID))(t)
	dropAll(t, s)
	noContent(t, s, ws, m.SHA256)
	m = newFile(t, s, ws, desk.ID{}, filler(10, 2))
	drop()
	missing(s.Media(t.Context(), ws, m.ID))(t)
}

// mediaUsed: a workspace's content stays within its limit, even if many store at once.
// Equal content counts once, and deleted content makes room.
func mediaUsed(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	used := func(want int64) {
		t.Helper()
		for range 2 {
			if got, err := s.MediaUsed(t.Context(), ws); err != nil || got != want {
				t.Fatalf("used: %d, %v, want %d", got, err, want)
			}
			must(t, s.CountMedia(t.Context(), ws)) // counting anew gives the same number
		}
	}
	used(0)
	m := newFile(t, s, ws, desk.ID{}, filler(100, 1))
	newFile(t, s, ws, desk.ID{}, filler(100, 1))
	newFile(t, s, other, desk.ID{}, filler(100, 3))
	used(100)
	var all sync.WaitGroup
	var mu sync.Mutex
	kept := 0
	for i := range 12 {
		all.Go(func() {
			d, err := s.NewContent(t.Context(), ws)
			if err == nil {
				defer d.Drop()
				_, err = d.Write(filler(100, byte(10+i)))
			}
			if err == nil {
				_, _, err = d.Keep(t.Context(), 450)
			}
			mu.Lock()
			defer mu.Unlock()
			switch full := (*desk.Error)(nil); {
			case err == nil:
				kept++
			case !errors.As(err, &full) || full.Type != desk.MediaQuota || full.Details.(desk.UsedMedia).Limit != 450:
				t.Errorf("%v", err)
			}
		})
	}
	all.Wait()
	if kept != 3 {
		t.Errorf("%d were kept", kept)
	}
	used(400)
	d, err := s.NewContent(t.Context(), ws) // content that is stored already needs no room
	must(t, err)
	defer d.Drop()
	_, err = d.Write(filler(100, 1))
	must(t, err)
	_, _, err = d.Keep(t.Context(), 400)
	must(t, err)
	commit(t, s, ws, func(tx store.Tx) error { return tx.UseContent(m.SHA256) })
	commit(t, s, ws, func(tx store.Tx) error {
		_, err := tx.DropUploads(now()+1000, 10)
		return err
	})
	dropAll(t, s)
	used(300) // content that was kept for files which are still to be stored
	g, err := s.Metrics(t.Context(), now())
	must(t, err)
	if g.Stored < 400 {
		t.Errorf("the gauge: %d", g.Stored)
	}
}

// mediaContent: content is returned unchanged, from any offset. All files of a workspace
// with equal content share it, and it is deleted with the last of them.
func mediaContent(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	for _, size := range []int{0, 1, 1<<20 - 1, 1 << 20, 1<<20 + 1, 3<<20 + 7} {
		content := filler(size, 1)
		m := newFile(t, s, ws, desk.ID{}, content)
		if got := readContent(t, s, ws, m.SHA256); !bytes.Equal(got, content) {
			t.Fatalf("%d bytes come back as %d others", size, len(got))
		}
		noContent(t, s, other, m.SHA256)
		c, err := s.OpenContent(t.Context(), ws, m.SHA256)
		must(t, err)
		for _, at := range []int{size, size / 2, 0, size - 1, 1 << 20} {
			if at < 0 || at > size {
				continue
			}
			for whence, offset := range map[int]int{io.SeekStart: at, io.SeekEnd: at - size} {
				place, err := c.Seek(int64(offset), whence)
				must(t, err)
				rest, err := io.ReadAll(io.LimitReader(c, 10))
				must(t, err)
				if place != int64(at) || !bytes.Equal(rest, content[at:min(at+10, size)]) {
					t.Errorf("of %d bytes, from %d (%d): %d %x", size, at, whence, place, rest)
				}
			}
		}
		must(t, c.Close())
	}

	content := filler(2<<20, 2)
	first, second := newFile(t, s, ws, desk.ID{}, content), newFile(t, s, ws, desk.ID{}, content)
	elsewhere := newFile(t, s, other, desk.ID{}, content)
	sum := second.SHA256
	drop := func(ws desk.ID, m *desk.Media) {
		t.Helper()
		m.Status, m.SHA256, m.MIME, m.Size = desk.MediaDeleted, nil, "", 0
		commit(t, s, ws, func(tx store.Tx) error {
			if err := tx.PutMedia(m); err != nil {
				return err
			}
			return tx.ReleaseContent(sum)
		})
		dropAll(t, s)
	}
	drop(ws, first)
	if !bytes.Equal(readContent(t, s, ws, sum), content) {
		t.Error("the content went with the first of two files")
	}
	drop(ws, second)
	noContent(t, s, ws, sum)
	if !bytes.Equal(readContent(t, s, other, elsewhere.SHA256), content) {
		t.Error("the content of another workspace went")
	}
	wantType(t, s.InTx(t.Context(), ws, func(tx store.Tx) error { return tx.UseContent(sum) }), desk.Unavailable)
	if again := newFile(t, s, ws, desk.ID{}, content); !bytes.Equal(readContent(t, s, ws, again.SHA256), content) {
		t.Error("content that was deleted can't be stored again")
	}
}

// StuckContent checks a store that keeps content in a directory: if one file can't be
// deleted, the others still are.
func StuckContent(t *testing.T, s store.Store, dir string) {
	t.Helper()
	var stuck string
	type content struct {
		ws  desk.ID
		sum []byte
	}
	var all []content
	for n := range 3 {
		ws, _ := newWorkspace(t, s)
		for i := range 3 {
			m := newFile(t, s, ws, desk.ID{}, filler(1000, byte(10*n+i)))
			sum := m.SHA256
			m.Status, m.SHA256 = desk.MediaDeleted, nil
			commit(t, s, ws, func(tx store.Tx) error {
				if err := tx.PutMedia(m); err != nil {
					return err
				}
				return tx.ReleaseContent(sum)
			})
			all = append(all, content{ws, sum})
		}
	}
	slices.SortFunc(all, func(a, b content) int { return cmp.Or(a.ws.Compare(b.ws), bytes.Compare(a.sum, b.sum)) })
	name := hex.EncodeToString(all[0].sum)
	folder := filepath.Join(dir, all[0].ws.String(), name[:2])
	stuck = filepath.Join(folder, name)
	must(t, os.Rename(folder, folder+"-elsewhere"))
	must(t, os.WriteFile(folder, nil, 0o600)) // this path is now a file, so no file below it can be deleted
	for range 2 {
		_, err := s.DropContents(t.Context(), 50)
		wantType(t, err, desk.Unavailable)
	}
	for _, c := range all[1:] {
		noContent(t, s, c.ws, c.sum)
	}
	for _, draft := range []string{"0 stuck/x", "zzz"} {
		must(t, os.MkdirAll(filepath.Join(dir, "drafts", draft), 0o700))
	}
	wantType(t, s.DropDrafts(t.Context(), -time.Hour), desk.Unavailable)
	if left, err := os.ReadDir(filepath.Join(dir, "drafts")); err != nil || len(left) != 1 {
		t.Errorf("drafts: %v, %v", left, err)
	}
	must(t, os.Remove(folder))
	must(t, os.Rename(folder+"-elsewhere", folder))
	n, err := s.DropContents(t.Context(), 50)
	must(t, err)
	equal(t, "deleted at last", n, 1)
	if _, err := os.Stat(stuck); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

// mediaDrafts: dropped or abandoned drafts leave nothing, and kept content stays for a
// while.
func mediaDrafts(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	content := filler(2<<20+5, 3)
	for range 2 {
		d, err := s.NewContent(t.Context(), ws)
		must(t, err)
		_, err = d.Write(content)
		must(t, err)
		d.Drop()
		d.Drop()
	}
	left, err := s.NewContent(t.Context(), ws) // as if the process of this draft had died
	must(t, err)
	_, err = left.Write(content)
	must(t, err)
	must(t, s.DropDrafts(t.Context(), time.Hour))
	must(t, s.DropDrafts(t.Context(), time.Hour))
	// A process was stopped for very long: its draft is gone, and nothing of it is kept.
	late, err := s.NewContent(t.Context(), ws)
	must(t, err)
	_, err = late.Write(content)
	must(t, err)
	must(t, s.DropDrafts(t.Context(), -time.Hour))
	_, _, err = late.Keep(t.Context(), 0)
	wantType(t, err, desk.Unavailable)
	late.Drop()
	sum := keep(t, s, ws, content)
	dropAll(t, s)
	if !bytes.Equal(readContent(t, s, ws, sum), content) {
		t.Error("kept content is gone")
	}
	d, err := s.NewContent(t.Context(), newID())
	must(t, err)
	defer d.Drop()
	_, err = d.Write([]byte("of no workspace"))
	must(t, err)
	_, _, err = d.Keep(t.Context(), 0)
	wantType(t, err, desk.NotFound)
}

// mediaRaces: the same content is deleted and stored again at the same time. The new file
// always has its content afterwards.
func mediaRaces(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	content := filler(100_000, 4)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 15 {
				m := newFile(t, s, ws, desk.ID{}, content)
				if got := readContent(t, s, ws, m.SHA256); !bytes.Equal(got, content) {
					t.Errorf("%d bytes", len(got))
				}
				sum := m.SHA256
				m.Status, m.SHA256 = desk.MediaDeleted, nil
				commit(t, s, ws, func(tx store.Tx) error {
					if err := tx.PutMedia(m); err != nil {
						return err
					}
					return tx.ReleaseContent(sum)
				})
				if _, err := s.DropContents(t.Context(), 10); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	dropAll(t, s)
	sum := sha256.Sum256(content)
	noContent(t, s, ws, sum[:])
}

func mediaFields(t *testing.T, s store.Store) {
	ctx := t.Context()
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	ready := newFile(t, s, ws, desk.ID{}, []byte("hello"))
	pending := &desk.Media{ID: idAt(now()), ContactID: newID(), Kind: desk.KindAudio, Status: desk.MediaPending, CreatedAt: now()}
	failed := &desk.Media{ID: idAt(now()), ContactID: newID(), Kind: desk.KindVideo, Name: "x", Status: desk.MediaFailed, Reason: desk.MediaGone, CreatedAt: now()}
	commit(t, s, ws, func(tx store.Tx) error {
		if err := tx.PutMedia(pending); err != nil {
			return err
		}
		return tx.PutMedia(failed)
	})
	for _, m := range []*desk.Media{ready, pending, failed} {
		got, err := s.Media(ctx, ws, m.ID)
		must(t, err)
		equal(t, "media", got, m)
		commit(t, s, ws, func(tx store.Tx) error {
			got, err := tx.Media(m.ID)
			equal(t, "media in a transaction", got, m)
			return err
		})
		missing(s.Media(ctx, other, m.ID))(t)
	}
	list, err := s.MediaList(ctx, ws, true, desk.ID{}, 10)
	must(t, err)
	equal(t, "failed", list, []*desk.Media{failed})
	list, err = s.MediaList(ctx, ws, false, failed.ID, 1)
	must(t, err)
	if len(list) != 1 || list[0].ID == failed.ID {
		t.Errorf("before the failed one: %v", list)
	}
	list, err = s.MediaList(ctx, other, false, desk.ID{}, 10)
	must(t, err)
	if len(list) != 0 {
		t.Errorf("another workspace lists %v", list)
	}
	commit(t, s, ws, func(tx store.Tx) error {
		old, err := tx.OldMedia(ready.CreatedAt, 10)
		if err != nil || len(old) != 0 {
			t.Errorf("before it was stored: %v", old)
		}
		if old, err = tx.OldMedia(ready.CreatedAt+1, 10); err == nil {
			equal(t, "old", old, []*desk.Media{ready})
		}
		return err
	})

	channel := newID()
	ref, at, err := s.MediaRef(ctx, ws, ready.ID, channel)
	must(t, err)
	equal(t, "no ref", []any{ref, at}, []any{"", desk.Time(0)})
	for _, want := range []string{"1", "2"} {
		must(t, s.PutMediaRef(ctx, ws, ready.ID, channel, want, 77))
		ref, at, err = s.MediaRef(ctx, ws, ready.ID, channel)
		must(t, err)
		equal(t, "ref", []any{ref, at}, []any{want, desk.Time(77)})
	}
	must(t, s.PutMediaRef(ctx, ws, newID(), channel, "of none", 77))
	must(t, s.PutMediaRef(ctx, ws, ready.ID, other, "3", 77))
	commit(t, s, ws, func(tx store.Tx) error { return tx.DropMediaRef(ready.ID, channel) })
	for on, want := range map[desk.ID]string{channel: "", other: "3"} {
		ref, _, err := s.MediaRef(ctx, ws, ready.ID, on)
		must(t, err)
		equal(t, "ref after one was dropped", ref, want)
	}
}

// mediaUploads: an old upload that no message uses is deleted, with all that belongs to
// it.
func mediaUploads(t *testing.T, s store.Store) {
	ctx := t.Context()
	ws, _ := newWorkspace(t, s)
	young, old := newFile(t, s, ws, desk.ID{}, []byte("young")), newFile(t, s, ws, desk.ID{}, []byte("old"))
	sent := newFile(t, s, ws, newID(), []byte("sent by a person"))
	old.CreatedAt, sent.CreatedAt = 1000, 1000
	must(t, s.PutMediaRef(ctx, ws, old.ID, newID(), "ref", 1))
	commit(t, s, ws, func(tx store.Tx) error {
		if err := tx.PutMedia(old); err != nil {
			return err
		}
		return tx.PutMedia(sent)
	})
	for _, want := range []int{1, 0} {
		commit(t, s, ws, func(tx store.Tx) error {
			n, err := tx.DropUploads(2000, 10)
			if err == nil && n != want {
				t.Errorf("looked at %d, want %d", n, want)
			}
			return err
		})
	}
	dropAll(t, s)
	missing(s.Media(ctx, ws, old.ID))(t)
	noContent(t, s, ws, old.SHA256)
	for _, m := range []*desk.Media{young, sent} {
		if found, err := s.Media(ctx, ws, m.ID); found == nil || err != nil {
			t.Errorf("found %v, %v", found, err)
		}
		readContent(t, s, ws, m.SHA256)
	}
}

// newJob stores a pending file of a contact with its job.
func newJob(t *testing.T, s store.Store, ws, contact desk.ID, due desk.Time) store.MediaJob {
	t.Helper()
	job := store.MediaJob{
		Media: newID(), Channel: newID(), Contact: contact, Conversation: newID(), Message: newID(), TS: now(),
		Ref: "ref", MIME: "image/jpeg", Size: 77, SHA256: []byte{1, 2, 3}, Tries: 2, Due: due,
	}
	commit(t, s, ws, func(tx store.Tx) error {
		if err := tx.PutMedia(&desk.Media{ID: job.Media, ContactID: contact, Kind: desk.KindImage, Status: desk.MediaPending, CreatedAt: now()}); err != nil {
			return err
		}
		return tx.PutMediaJob(job)
	})
	return job
}

// mediaJobs: one holder at a time has a job, until its lease ends.
func mediaJobs(t *testing.T, s store.Store) {
	ctx := t.Context()
	const longest = 3 * time.Hour
	ws, _ := newWorkspace(t, s)
	other, _ := newWorkspace(t, s)
	clock, _, err := s.Clock(ctx)
	must(t, err)
	second := newJob(t, s, ws, newID(), clock-1000)
	first := newJob(t, s, ws, newID(), clock-2000)
	far := newJob(t, s, ws, newID(), clock+desk.Time((longest+time.Hour).Milliseconds()))
	newJob(t, s, ws, newID(), clock+desk.Time(time.Hour.Milliseconds()))
	newJob(t, s, other, newID(), clock+desk.Time(time.Hour.Milliseconds()))
	due, err := s.MediaDue(ctx, longest)
	must(t, err)
	if due[ws] != 0 || due[other] < 59*time.Minute || due[other] > time.Hour {
		t.Errorf("due %v", due)
	}
	mine, theirs := newID(), newID()
	take := func(holder desk.ID, lease time.Duration, want *store.MediaJob) {
		t.Helper()
		got, err := s.TakeMediaJob(ctx, ws, holder, lease, longest)
		must(t, err)
		if want != nil && got != nil {
			if got.Due < clock {
				t.Errorf("the lease ends %d ms ago", clock-got.Due)
			}
			expect := *want
			expect.Due, expect.Holder = got.Due, holder
			want = &expect
		}
		equal(t, "job", got, want)
	}
	take(mine, time.Hour, &first)
	take(theirs, time.Hour, &second)
	take(theirs, time.Hour, &far)
	take(theirs, time.Hour, nil)
	held := func(media, holder desk.ID, want bool) {
		t.Helper()
		got, err := s.HoldMediaJob(ctx, ws, media, holder, 0)
		must(t, err)
		equal(t, "held", got, want)
	}
	held(first.Media, theirs, false)
	held(first.Media, mine, true) // its lease ends at once
	take(theirs, time.Hour, &first)
	held(first.Media, mine, false)
	commit(t, s, ws, func(tx store.Tx) error {
		got, err := tx.MediaJob(first.Media)
		if err != nil {
			return err
		}
		if got == nil || got.Holder != theirs {
			t.Errorf("the job is %+v", got)
		}
		return tx.DropMediaJob(first.Media)
	})
	commit(t, s, ws, func(tx store.Tx) error {
		got, err := tx.MediaJob(first.Media)
		if got != nil {
			t.Errorf("the job is still %+v", got)
		}
		return err
	})
}

// deleteErasesMedia: files that a person sent are deleted with the person, but their
// content stays if another person has sent the same bytes. Uploads stay.
func deleteErasesMedia(t *testing.T, s store.Store) {
	ctx := t.Context()
	ws, _ := newWorkspace(t, s)
	gone, stays := put(t, s, ws, upsert("a@example.com", "")), put(t, s, ws, upsert("b@example.com", ""))
	own, shared := newFile(t, s, ws, gone.ID, []byte("own")), newFile(t, s, ws, gone.ID, []byte("shared"))
	theirs := newFile(t, s, ws, stays.ID, []byte("shared"))
	upload := newFile(t, s, ws, desk.ID{}, []byte("upload"))
	clock, _, err := s.Clock(ctx)
	must(t, err)
	job := newJob(t, s, ws, gone.ID, clock-1000)
	put(t, s, ws, remove(gone.ID))
	for _, id := range []desk.ID{own.ID, shared.ID, job.Media} {
		missing(s.Media(ctx, ws, id))(t)
	}
	if left, err := s.TakeMediaJob(ctx, ws, newID(), time.Hour, 3*time.Hour); left != nil || err != nil {
		t.Errorf("a job is left: %v, %v", left, err)
	}
	dropAll(t, s)
	noContent(t, s, ws, own.SHA256)
	for _, m := range []*desk.Media{theirs, upload} {
		if found, err := s.Media(ctx, ws, m.ID); found == nil || err != nil {
			t.Errorf("found %v, %v", found, err)
		}
		readContent(t, s, ws, m.SHA256)
	}
}

// say stores a message of a contact with a file, in a new conversation.
func say(t *testing.T, s store.Store, ws, contact, media desk.ID) *desk.Message {
	t.Helper()
	c := newConversation(newID(), contact)
	c.Status = desk.StatusClosed
	m := newMessage(c)
	m.Media, m.Kind, m.ExternalID = media, desk.KindImage, newID().String()
	commit(t, s, ws, func(tx store.Tx) error {
		if err := tx.PutConversation(c); err != nil {
			return err
		}
		if err := tx.PutMessage(m); err != nil {
			return err
		}
		return tx.Append(desk.Event{Type: desk.MessageReceived, Subject: m.ID, Conversation: c.ID, Contact: contact, TS: m.TS, Actor: desk.Actor{Kind: desk.BySystem}, At: now()})
	})
	return m
}

// mediaOfMessages: messages are returned with the records of their files. An upload is
// deleted with the last person who got it, and not before.
func mediaOfMessages(t *testing.T, s store.Store) {
	ctx := t.Context()
	ws, _ := newWorkspace(t, s)
	first, second := put(t, s, ws, upsert("a@example.com", "")), put(t, s, ws, upsert("b@example.com", ""))
	shared, own := newFile(t, s, ws, desk.ID{}, []byte("shared")), newFile(t, s, ws, desk.ID{}, []byte("own"))
	m := say(t, s, ws, first.ID, shared.ID)
	say(t, s, ws, first.ID, own.ID)
	theirs := say(t, s, ws, second.ID, shared.ID)
	m.Attachment = shared
	list, _, err := s.Messages(ctx, ws, m.ConversationID, nil, 10)
	must(t, err)
	equal(t, "messages", list, []*desk.Message{m})
	list, err = s.MessagesBy(ctx, ws, []desk.MessageRef{{Channel: m.ChannelID, ExternalID: m.ExternalID}})
	must(t, err)
	equal(t, "messages by reference", list, []*desk.Message{m})
	alone, err := s.Message(ctx, ws, m.ConversationID, m.ID)
	must(t, err)
	alone.ContactID = m.ContactID // messages in lists have no contact
	equal(t, "message", alone, m)
	page := feed(t, s, ws, store.EventQuery{Limit: 100})
	equal(t, "message of an event", page.Messages[m.ID], m)
	page = feed(t, s, ws, store.EventQuery{From: store.FromPlace, After: page.Oldest, Limit: 100})
	equal(t, "message of an event", page.Messages[m.ID], m)
	commit(t, s, ws, func(tx store.Tx) error {
		with, err := tx.MessagesOf(shared.ID, 10)
		if err == nil && len(with) != 2 {
			t.Errorf("%d messages have the upload", len(with))
		}
		again, err := tx.Message(m.ConversationID, m.ID)
		if err != nil {
			return err
		}
		return tx.PutMessage(again) // storing the message again keeps its file
	})
	shared.CreatedAt = 1000
	commit(t, s, ws, func(tx store.Tx) error {
		if err := tx.PutMedia(shared); err != nil {
			return err
		}
		_, err := tx.DropUploads(2000, 10)
		return err
	})

	put(t, s, ws, remove(first.ID))
	dropAll(t, s)
	missing(s.Media(ctx, ws, own.ID))(t)
	noContent(t, s, ws, own.SHA256)
	list, _, err = s.Messages(ctx, ws, theirs.ConversationID, nil, 10)
	must(t, err)
	if len(list) != 1 || list[0].Attachment == nil {
		t.Errorf("the other person's message is %+v", list)
	}
	readContent(t, s, ws, shared.SHA256)
	put(t, s, ws, remove(second.ID))
	dropAll(t, s)
	missing(s.Media(ctx, ws, shared.ID))(t)
	noContent(t, s, ws, shared.SHA256)
}
