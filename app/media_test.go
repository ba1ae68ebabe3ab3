package app_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/app"
	"parley/desk"
	"parley/provider"
)

// However an upload or a download ends, its slot is free again.
func TestTransfers_end(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const more = 50 // more transfers than there are slots
	m, err := w.Media.Upload(t.Context(), w.caller(), desk.FileHead{Name: "a.jpg"}, strings.NewReader(picture))
	must(t, err)
	for range more {
		_, err := w.Media.Upload(t.Context(), w.caller(), desk.FileHead{}, io.MultiReader(strings.NewReader("a part"), broken{}))
		if err == nil {
			t.Fatal("it is stored")
		}
		_, err = w.Media.Upload(t.Context(), w.caller(), desk.FileHead{}, strings.NewReader(""))
		refused(t, err, desk.InvalidRequest)
		_, content, err := w.Media.Open(t.Context(), w.operator(), m.ID)
		must(t, err)
		must(t, content.Close())
	}
	must(t, os.RemoveAll(filepath.Join(filepath.Dir(w.path), "media", w.ws.String())))
	for range more {
		_, _, err := w.Media.Open(t.Context(), w.operator(), m.ID)
		refused(t, err, desk.Unavailable)
	}
	_, err = w.Media.Upload(t.Context(), w.caller(), desk.FileHead{Name: "b.jpg"}, strings.NewReader(picture))
	must(t, err)
	left, err := os.ReadDir(filepath.Join(filepath.Dir(w.path), "media", "drafts"))
	if err != nil || len(left) != 0 {
		t.Errorf("drafts are left: %v, %v", left, err)
	}
}

// broken is the content of an upload whose connection breaks.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestDeleteMedia: an upload can be deleted, with its bytes unless another file has the same.
// A file in a message, or in a reply that is being sent or in doubt, stays.
func TestDeleteMedia(t *testing.T) {
	t.Parallel()
	w, _ := newCourier(t)
	c := w.opens(number)
	upload := func() *desk.Media {
		m, err := w.Media.Upload(t.Context(), w.caller(), desk.FileHead{Name: "a.jpg"}, strings.NewReader(picture))
		must(t, err)
		return m
	}
	remove := func(m *desk.Media) error { return w.Media.Delete(t.Context(), w.caller(), m.ID) }
	first, second := upload(), upload()
	must(t, remove(first))
	refused(t, remove(first), desk.NotFound)
	_, content, err := w.Media.Open(t.Context(), w.caller(), second.ID)
	must(t, err)
	must(t, content.Close())
	must(t, remove(second))
	if _, err := w.file.OpenContent(t.Context(), w.ws, second.SHA256); !desk.IsType(err, desk.NotFound) {
		t.Errorf("the bytes are still there: %v", err)
	}

	attached := func(m *desk.Media) func(*desk.ReplyRequest) {
		return func(r *desk.ReplyRequest) { r.Text, r.Attachment = "", &desk.SentAttachment{Media: m.ID} }
	}
	sent := upload()
	_, err = w.replies("sent", c.ID, attached(sent))
	must(t, err)
	refused(t, remove(sent), desk.MediaInUse)

	// A file also stays while a reply with it is on its way, and while the outcome of the
	// reply is unknown.
	doubtful := upload()
	w.provider.plays(func(context.Context, provider.Dispatch) (provider.Receipt, error) {
		refused(t, remove(doubtful), desk.MediaInUse)
		return provider.Receipt{}, broken{}.err()
	})
	_, err = w.replies("doubt", c.ID, attached(doubtful))
	refused(t, err, desk.SendOutcomeUnknown)
	refused(t, remove(doubtful), desk.MediaInUse)
	w.clock.advance(25 * time.Hour)
	unused := upload()
	must(t, w.Forget(t.Context()))
	if _, err := w.Media.Record(t.Context(), w.caller(), doubtful.ID); err != nil {
		t.Errorf("after a day: %v", err)
	}
	_, err = w.Release(t.Context(), w.operator(), w.holder("doubt").ID, false)
	must(t, err)
	must(t, w.Forget(t.Context()))
	_, err = w.Media.Record(t.Context(), w.caller(), doubtful.ID)
	refused(t, err, desk.NotFound)
	for _, m := range []*desk.Media{sent, unused} {
		_, err = w.Media.Record(t.Context(), w.caller(), m.ID)
		must(t, err)
	}
	w.clock.advance(25 * time.Hour)
	must(t, w.Forget(t.Context()))
	_, err = w.Media.Record(t.Context(), w.caller(), unused.ID)
	refused(t, err, desk.NotFound)
}

func (broken) err() error { return io.ErrUnexpectedEOF }

// TestDeleteMedia_race: a reply with a file and a deletion of this file come at once. One
// of them is refused, so that no message loses its file.
func TestDeleteMedia_race(t *testing.T) {
	t.Parallel()
	w, courier := newCourier(t)
	replied, deleted := 0, 0
	for i := range 20 {
		c := w.opens(number)
		m, err := w.Media.Upload(t.Context(), w.caller(), desk.FileHead{Name: "a.jpg"}, strings.NewReader(picture))
		must(t, err)
		start := make(chan struct{})
		courier.uploading = sync.OnceFunc(func() { close(start) })
		var removal error
		var both sync.WaitGroup
		both.Go(func() {
			<-start
			removal = w.Media.Delete(context.WithoutCancel(t.Context()), w.caller(), m.ID)
		})
		_, err = w.replies(string(rune('a'+i)), c.ID, func(r *desk.ReplyRequest) { r.Text, r.Attachment = "", &desk.SentAttachment{Media: m.ID} })
		both.Wait()
		switch {
		case err == nil && desk.IsType(removal, desk.MediaInUse):
			replied++
			if list := w.messages(c.ID); list[0].Attachment == nil {
				t.Error("the message has lost its file")
			}
		case desk.IsType(err, desk.NotFound) && removal == nil:
			deleted++
		default:
			t.Errorf("reply: %v, deletion: %v", err, removal)
		}
	}
	t.Logf("%d were sent, %d deleted", replied, deleted)
}

// TestUpload_quota: a workspace stays within its limit, however many uploads there are at
// once. A deleted file makes room. A fetched file without room has failed.
func TestUpload_quota(t *testing.T) {
	t.Parallel()
	w, courier := newCourier(t)
	w.stop()
	w.files = app.Deps{MediaPerWorkspace: 25e6}
	w.start(app.Bounds{})
	var all sync.WaitGroup
	var mu sync.Mutex
	var kept []*desk.Media
	for i := range 8 {
		all.Go(func() {
			m, err := w.Media.Upload(t.Context(), w.caller(), desk.FileHead{}, io.LimitReader(letters('a'+i), 6e6))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				kept = append(kept, m)
			} else if e := refusalOf(t, err, desk.MediaQuota); e.Details.(desk.UsedMedia).Limit != 25e6 {
				t.Errorf("%+v", e.Details)
			}
		})
	}
	all.Wait()
	room, err := w.Media.Room(t.Context(), w.caller())
	must(t, err)
	if n := int64(len(kept)); n == 0 || n > 4 || room.Used != n*6e6 || room.Limit != 25e6 || room.Known != (w.path != "") || room.Known && room.Free == 0 {
		t.Errorf("%d were kept, %+v", n, room)
	}
	for i := len(kept); i < 4; i++ { // if they are uploaded one after the other, all files fit
		m, err := w.Media.Upload(t.Context(), w.caller(), desk.FileHead{}, io.LimitReader(letters('k'+i), 6e6))
		must(t, err)
		kept = append(kept, m)
	}
	_, err = w.Media.Upload(t.Context(), w.caller(), desk.FileHead{}, io.LimitReader(letters('z'), 6e6))
	if e := refusalOf(t, err, desk.MediaQuota); e.Details != (desk.UsedMedia{Limit: 25e6, Used: 24e6}) {
		t.Errorf("%+v", e.Details)
	}
	_, file := w.gets(courier, "large", has(strings.Repeat("x", 2e6)), provider.InboundMedia{})
	_, err = w.Media.FetchNext(t.Context(), w.ws)
	must(t, err)
	if m, err := w.Media.Record(t.Context(), w.caller(), file.ID); err != nil || m.Status != desk.MediaFailed || m.Reason != desk.MediaTooLarge {
		t.Errorf("%+v, %v", m, err)
	}
	must(t, w.Media.Delete(t.Context(), w.caller(), kept[0].ID))
	_, err = w.Media.Upload(t.Context(), w.caller(), desk.FileHead{Size: 8e6}, broken{}) // no byte of it is read
	refused(t, err, desk.MediaQuota)
	_, err = w.Media.Upload(t.Context(), w.caller(), desk.FileHead{Size: 6e6}, io.LimitReader(letters('z'), 6e6))
	must(t, err)
}

// A letters reader is an endless text of one letter.
type letters byte

func (l letters) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(l)
	}
	return len(b), nil
}

// TestUpload_room: while the disk has too little free space, uploads are refused and fetches
// wait; everything else works. Once there is room, uploads and fetches work again.
func TestUpload_room(t *testing.T) {
	t.Parallel()
	w, courier := newCourier(t)
	w.stop()
	w.files = app.Deps{KeepFree: 1 << 30}
	w.start(app.Bounds{})
	w.store.room = func() (free, total int64, known bool) { return 1<<30 - 1, 100 << 30, true }
	_, err := w.Media.Upload(t.Context(), w.caller(), desk.FileHead{}, strings.NewReader(picture))
	refused(t, err, desk.Unavailable)
	c, file := w.gets(courier, "waits", has(picture), provider.InboundMedia{})
	if due, err := w.Media.FetchesDue(t.Context()); err != nil || len(due) != 0 {
		t.Errorf("%v, %v", due, err)
	}
	_, err = w.replies("k", c.ID)
	must(t, err)
	for _, room := range []func() (free, total int64, known bool){
		func() (free, total int64, known bool) { return 1 << 30, 100 << 30, true },
		func() (free, total int64, known bool) { return 1 << 20, 20 << 20, true }, // the disk is small
		func() (free, total int64, known bool) { return 0, 0, false },             // the files are in the database
	} {
		w.store.room = room
		_, err = w.Media.Upload(t.Context(), w.caller(), desk.FileHead{}, strings.NewReader(picture))
		must(t, err)
	}
	if due, err := w.Media.FetchesDue(t.Context()); err != nil || len(due) != 1 {
		t.Errorf("%v, %v", due, err)
	}
	_, err = w.Media.FetchNext(t.Context(), w.ws)
	must(t, err)
	if m, err := w.Media.Record(t.Context(), w.caller(), file.ID); err != nil || m.Status != desk.MediaReady {
		t.Errorf("%+v, %v", m, err)
	}
}
