package app_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/app"
	"parley/app/feed"
	"parley/app/media"
	"parley/desk"
	"parley/provider"
	"parley/store"
)

// A courier is the world's provider with files and read receipts.
type courier struct {
	*scripted
	mu    sync.Mutex
	files map[string]fetches
	tries map[string]int

	uploading func() // called while a file is handed over
	refuses   error  // the error when a file is handed over

	deaf int      // this many read receipts fail
	read []string // the messages for which read receipts came, including those that failed
}

// A fetches function is the provider's part of a fetch of a file.
type fetches func(ctx context.Context, try int, told func(provider.FetchedMedia) error, w io.Writer) (provider.FetchedMedia, error)

func (c *courier) Upload(_ context.Context, _ provider.Access, mime, name string, size int64, content io.Reader) (string, error) {
	if c.uploading != nil {
		c.uploading()
	}
	b, err := io.ReadAll(content)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tries["upload"]++
	err = errors.Join(err, c.refuses)
	return fmt.Sprint(mime, " ", name, " ", size, " ", len(b), " ", c.tries["upload"]), err
}

func (c *courier) MarkRead(_ context.Context, _ provider.Access, externalID string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = append(c.read, externalID)
	if len(c.read) <= c.deaf {
		return errors.New("not heard")
	}
	return nil
}

// receipts returns the messages for which the provider got a read receipt.
func (c *courier) receipts() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.read)
}

func (c *courier) Fetch(ctx context.Context, _ provider.Access, ref string, told func(provider.FetchedMedia) error, w io.Writer) (provider.FetchedMedia, error) {
	c.mu.Lock()
	f := c.files[ref]
	c.tries[ref]++
	try := c.tries[ref]
	c.mu.Unlock()
	return f(ctx, try, told, w)
}

func (c *courier) asked(ref string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tries[ref]
}

// has returns a fetches function that sends a file without data about it.
func has(content string) fetches {
	return func(_ context.Context, _ int, _ func(provider.FetchedMedia) error, w io.Writer) (provider.FetchedMedia, error) {
		_, err := io.WriteString(w, content)
		return provider.FetchedMedia{}, err
	}
}

// tells returns a fetches function that reports data about a file and sends it.
func tells(content string, of provider.FetchedMedia) fetches {
	return func(_ context.Context, _ int, told func(provider.FetchedMedia) error, w io.Writer) (provider.FetchedMedia, error) {
		if err := told(of); err != nil {
			return of, err
		}
		_, err := io.WriteString(w, content)
		return of, err
	}
}

// after returns a fetches function that fails a number of times. After these failures, it
// calls the function in then.
func after(fails int, then fetches) fetches {
	return func(ctx context.Context, try int, told func(provider.FetchedMedia) error, w io.Writer) (provider.FetchedMedia, error) {
		if try <= fails {
			_, _ = io.WriteString(w, "a part")
			return provider.FetchedMedia{}, errors.New("the line broke")
		}
		return then(ctx, try, told, w)
	}
}

func newCourier(t *testing.T) (*world, *courier) {
	t.Helper()
	w := newWorld(t)
	w.stop()
	c := &courier{scripted: w.provider, files: map[string]fetches{}, tries: map[string]int{}}
	w.others = map[desk.ChannelKind]provider.Provider{desk.SandboxChannel: c}
	w.start(app.Bounds{})
	return w, c
}

// gets receives a message with a file, and returns its conversation and the file's record.
// The function f fetches the file.
func (w *world) gets(c *courier, ref string, f fetches, in provider.InboundMedia) (*desk.Conversation, *desk.Media) {
	w.t.Helper()
	c.mu.Lock()
	c.files[ref] = f
	c.mu.Unlock()
	in.Ref = ref
	conversation, err := w.Receive(w.t.Context(), w.ws, w.channel, provider.InboundMessage{
		ExternalID: "in-" + ref, Number: number, Text: "[image]", At: desk.TimeOf(time.Now()), Kind: desk.KindImage, Media: &in,
	})
	must(w.t, err)
	return conversation, w.fileOf(conversation.ID, "in-"+ref)
}

func (w *world) fileOf(conversation desk.ID, externalID string) *desk.Media {
	w.t.Helper()
	list, _, err := w.Messages(w.t.Context(), w.operator(), conversation, "", 200)
	must(w.t, err)
	for _, m := range list {
		if m.ExternalID == externalID {
			return m.Attachment
		}
	}
	w.t.Fatalf("no message %s", externalID)
	return nil
}

// fetched waits until a file is not pending any more, and returns its record.
func (w *world) fetched(conversation desk.ID, externalID string) (m *desk.Media) {
	w.t.Helper()
	waitFor(w.t, "the file of "+externalID, func() bool {
		m = w.fileOf(conversation, externalID)
		return m.Status != desk.MediaPending
	})
	return m
}

func (w *world) contentOf(m *desk.Media) string {
	w.t.Helper()
	_, content, err := w.Media.Open(w.t.Context(), w.operator(), m.ID)
	must(w.t, err)
	b, err := io.ReadAll(content)
	must(w.t, err)
	must(w.t, content.Close())
	return string(b)
}

// again makes the fetch of a file due now, as if time had passed.
func (w *world) again(m *desk.Media) {
	w.t.Helper()
	must(w.t, w.file.InTx(w.t.Context(), w.ws, func(tx store.Tx) error {
		job, err := tx.MediaJob(m.ID)
		if err != nil || job == nil || !job.Holder.IsZero() {
			return err
		}
		job.Due = tx.Now()
		return tx.PutMediaJob(*job)
	}))
}

const picture = "\xff\xd8\xff\xe0 a picture"

// A message is stored at once, with a pending file. The file follows later, with an event.
func TestFetchMedia(t *testing.T) {
	t.Parallel()
	w, c := newCourier(t)
	sum := sha256.Sum256([]byte(picture))
	conversation, m := w.gets(c, "1", has(picture), provider.InboundMedia{MIME: "image/png", Name: "../a.jpg", Size: int64(len(picture)), SHA256: sum[:]})
	if m == nil || m.Status != desk.MediaPending || m.Kind != desk.KindImage || m.Name != "a.jpg" || m.MIME != "" {
		t.Fatalf("at first it is %+v", m)
	}
	if _, _, err := w.Media.Open(t.Context(), w.operator(), m.ID); !desk.IsType(err, desk.MediaUnavailable) || desk.AsError(err).RetryAfter == 0 {
		t.Errorf("its content: %v", err)
	}
	w.run()
	m = w.fetched(conversation.ID, "in-1")
	if m.Status != desk.MediaReady || m.MIME != "image/jpeg" || !bytes.Equal(m.SHA256, sum[:]) || m.ContactID != conversation.ContactID || w.contentOf(m) != picture {
		t.Errorf("it is %+v", m)
	}
	page, err := w.file.Events(t.Context(), w.ws, store.EventQuery{Limit: 100}, func(*desk.Settings) ([]desk.EventType, error) {
		return []desk.EventType{desk.MessageUpdated}, nil
	})
	must(t, err)
	if len(page.Events) != 1 || fmt.Sprint(page.Events[0].Changed) != "[attachments]" || page.Messages[page.Events[0].Subject].Attachment.Status != desk.MediaReady {
		t.Errorf("events: %+v", page.Events)
	}
	waitFor(t, "the count, which follows the commit", func() bool { return w.Media.FetchCounts() == media.FetchCounts{Ready: 1} })
}

// A provider that fails is asked again, and the content must match the reported size and
// hash.
func TestFetchMedia_failures(t *testing.T) {
	t.Parallel()
	w, c := newCourier(t)
	sum := sha256.Sum256([]byte(picture))
	w.run()
	for ref, tc := range map[string]struct {
		in    provider.InboundMedia
		f     fetches
		tries int
		want  desk.MediaReason
	}{
		"breaks": {f: after(2, has(picture)), tries: 3},
		"shorter": {f: func(ctx context.Context, try int, told func(provider.FetchedMedia) error, w io.Writer) (provider.FetchedMedia, error) {
			if try == 1 {
				return tells(picture[:5], provider.FetchedMedia{Size: int64(len(picture))})(ctx, try, told, w)
			}
			return has(picture)(ctx, try, told, w)
		}, tries: 2},
		"other bytes": {in: provider.InboundMedia{SHA256: sum[:]}, f: func(ctx context.Context, try int, told func(provider.FetchedMedia) error, w io.Writer) (provider.FetchedMedia, error) {
			if try == 1 {
				return has(strings.ToUpper(picture))(ctx, try, told, w)
			}
			return has(picture)(ctx, try, told, w)
		}, tries: 2},
		"panics": {f: func(ctx context.Context, try int, told func(provider.FetchedMedia) error, w io.Writer) (provider.FetchedMedia, error) {
			if try == 1 {
				panic("a bug")
			}
			return has(picture)(ctx, try, told, w)
		}, tries: 2},
		"gone": {f: func(context.Context, int, func(provider.FetchedMedia) error, io.Writer) (provider.FetchedMedia, error) {
			return provider.FetchedMedia{}, fmt.Errorf("404: %w", provider.ErrMediaGone)
		}, tries: 1, want: desk.MediaGone},
		"lost by the provider": {f: func(context.Context, int, func(provider.FetchedMedia) error, io.Writer) (provider.FetchedMedia, error) {
			return provider.FetchedMedia{}, fmt.Errorf("131052: %w", provider.ErrMediaFailed)
		}, tries: 1, want: desk.MediaProvider},
		"told too large": {f: tells(picture, provider.FetchedMedia{Size: desk.DefaultMaxMedia + 1}), tries: 1, want: desk.MediaTooLarge},
		"endless": {f: func(_ context.Context, _ int, _ func(provider.FetchedMedia) error, w io.Writer) (provider.FetchedMedia, error) {
			for part := make([]byte, 1<<20); ; {
				if _, err := w.Write(part); err != nil {
					return provider.FetchedMedia{}, err
				}
			}
		}, tries: 1, want: desk.MediaTooLarge},
	} {
		conversation, m := w.gets(c, ref, tc.f, tc.in)
		waitFor(t, "the file "+ref, func() bool {
			w.again(m)
			return w.fileOf(conversation.ID, "in-"+ref).Status != desk.MediaPending
		})
		m = w.fileOf(conversation.ID, "in-"+ref)
		if m.Reason != tc.want || (tc.want == "") != (m.Status == desk.MediaReady) || c.asked(ref) != tc.tries {
			t.Errorf("%s: %+v after %d tries, want %d", ref, m, c.asked(ref), tc.tries)
		}
		if tc.want == "" && w.contentOf(m) != picture {
			t.Errorf("%s: other content", ref)
		}
	}
}

// If our own storage fails, this does not count as a try: the file is fetched again after
// half a minute. Meanwhile, no bytes of it stay stored.
func TestFetchMedia_storage_fails(t *testing.T) {
	t.Parallel()
	w, c := newCourier(t)
	w.store.full.Store(true)
	conversation, m := w.gets(c, "1", has(picture), provider.InboundMedia{})
	w.run()
	var job *store.MediaJob
	waitFor(t, "the storage to fail", func() bool {
		must(t, w.file.InTx(t.Context(), w.ws, func(tx store.Tx) (err error) {
			job, err = tx.MediaJob(m.ID)
			return err
		}))
		return job.Holder.IsZero() && w.Media.FetchCounts().Storage > 0
	})
	if wait := time.Duration(job.Due-desk.TimeOf(w.clock.now())) * time.Millisecond; job.Tries != 0 || wait > 30*time.Second || wait < time.Second {
		t.Errorf("after a failure of the storage, the job is %+v, due in %v", job, wait)
	}
	if got := w.fileOf(conversation.ID, "in-1"); got.Status != desk.MediaPending {
		t.Errorf("it is %+v", got)
	}
	_, err := w.Media.Upload(t.Context(), w.caller(), desk.FileHead{Name: "a.jpg"}, strings.NewReader(picture))
	refused(t, err, desk.Unavailable)
	w.store.full.Store(false)
	w.again(m)
	if m = w.fetched(conversation.ID, "in-1"); m.Status != desk.MediaReady || w.contentOf(m) != picture {
		t.Errorf("once there is room: %+v", m)
	}
	drafts, err := os.ReadDir(filepath.Join(filepath.Dir(w.path), "media", "drafts"))
	if err != nil || len(drafts) != 0 {
		t.Errorf("drafts are left: %v, %v", drafts, err)
	}
}

// The fetch of a file fails if the provider can't get the file, or if the file is too old.
// A failed file can be fetched again on request.
func TestFetchMedia_given_up(t *testing.T) {
	t.Parallel()
	w, c := newCourier(t)
	conversation, m := w.gets(c, "", nil, provider.InboundMedia{})
	if m.Status != desk.MediaFailed || m.Reason != desk.MediaProvider {
		t.Errorf("without an id: %+v", m)
	}
	_, err := w.Media.Retry(t.Context(), w.operator(), m.ID)
	refused(t, err, desk.InvalidRequest)
	_, m = w.gets(c, "old", after(2, has(picture)), provider.InboundMedia{})
	must(t, w.file.InTx(t.Context(), w.ws, func(tx store.Tx) error {
		job, err := tx.MediaJob(m.ID)
		job.TS -= 8 * 24 * 60 * 60 * 1000
		return errors.Join(err, tx.PutMediaJob(*job))
	}))
	w.run()
	if m = w.fetched(conversation.ID, "in-old"); m.Status != desk.MediaFailed || m.Reason != desk.MediaExpired {
		t.Errorf("after 7 days: %+v", m)
	}
	failed, err := w.Media.List(t.Context(), w.operator(), true, desk.ID{}, 10)
	must(t, err)
	if len(failed) != 2 {
		t.Errorf("%d have failed", len(failed))
	}
	for range 2 {
		m, err = w.Media.Retry(t.Context(), w.operator(), m.ID)
		must(t, err)
		if m.Status != desk.MediaPending || m.Reason != "" {
			t.Errorf("again: %+v", m)
		}
		m = w.fetched(conversation.ID, "in-old")
	}
	if m.Status != desk.MediaReady {
		t.Errorf("at last: %+v", m)
	}
	_, err = w.Media.Retry(t.Context(), w.operator(), m.ID)
	refused(t, err, desk.InvalidRequest)
	_, err = w.Media.Retry(t.Context(), w.operator(), desk.ID{1})
	refused(t, err, desk.NotFound)
}

// A workspace whose fetches hang does not stop those of another workspace.
func TestFetchMedia_is_fair(t *testing.T) {
	t.Parallel()
	w, c := newCourier(t)
	hang := func(ctx context.Context, _ int, _ func(provider.FetchedMedia) error, _ io.Writer) (provider.FetchedMedia, error) {
		<-ctx.Done()
		return provider.FetchedMedia{}, ctx.Err()
	}
	for i := range 20 {
		w.gets(c, fmt.Sprint("hangs", i), hang, provider.InboundMedia{})
	}
	other := w.another()
	other.channel = other.addChannel()
	w.run()
	waitFor(t, "files that hang", func() bool { return c.asked("hangs0") > 0 && c.asked("hangs1") > 0 && c.asked("hangs2") > 0 })
	for i := range 5 {
		ref := fmt.Sprint("comes", i)
		conversation, _ := other.gets(c, ref, has(picture), provider.InboundMedia{})
		if m := other.fetched(conversation.ID, "in-"+ref); m.Status != desk.MediaReady {
			t.Errorf("%+v", m)
		}
	}
}

// If a person is deleted while their file is fetched, nothing is stored. A process that has
// lost its job also stores nothing.
func TestFetchMedia_overtaken(t *testing.T) {
	t.Parallel()
	w, c := newCourier(t)
	reached, release := make(chan struct{}), make(chan struct{})
	conversation, m := w.gets(c, "1", func(_ context.Context, _ int, _ func(provider.FetchedMedia) error, out io.Writer) (provider.FetchedMedia, error) {
		close(reached)
		<-release
		_, err := io.WriteString(out, picture)
		return provider.FetchedMedia{}, err
	}, provider.InboundMedia{})
	w.run()
	<-reached
	w.deleteContact(conversation.ContactID)
	close(release)
	sum := sha256.Sum256([]byte(picture))
	waitFor(t, "the job to end", func() bool {
		_, err := w.file.OpenContent(t.Context(), w.ws, sum[:])
		return err == nil || w.Media.FetchCounts() != media.FetchCounts{}
	})
	_, err := w.Media.Record(t.Context(), w.operator(), m.ID)
	refused(t, err, desk.NotFound)
	if counts := w.Media.FetchCounts(); counts.Ready != 0 {
		t.Errorf("%+v", counts)
	}
	w.stop()
	must(t, w.Media.DropContents(t.Context()))
	_, err = w.file.OpenContent(t.Context(), w.ws, sum[:])
	refused(t, err, desk.NotFound)
}

// jobOf returns the job that fetches a file, or nil if there is none.
func (w *world) jobOf(m *desk.Media) (job *store.MediaJob) {
	w.t.Helper()
	must(w.t, w.file.InTx(w.t.Context(), w.ws, func(tx store.Tx) (err error) {
		job, err = tx.MediaJob(m.ID)
		return err
	}))
	return job
}

// TestFetchMedia_two: two processes fetch one file, because the first process stood still
// for longer than its lease. Only the process that has the job now stores its result.
func TestFetchMedia_two(t *testing.T) {
	t.Parallel()
	fails := func(err error) fetches {
		return func(context.Context, int, func(provider.FetchedMedia) error, io.Writer) (provider.FetchedMedia, error) {
			return provider.FetchedMedia{}, err
		}
	}
	for name, first := range map[string]fetches{
		"gets it":      has(strings.ToUpper(picture)),
		"is told gone": fails(provider.ErrMediaGone),
		"fails":        fails(errors.New("the line broke")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, c := newCourier(t)
			began := []chan struct{}{make(chan struct{}), make(chan struct{})}
			goOn := []chan struct{}{make(chan struct{}), make(chan struct{})}
			conversation, m := w.gets(c, "1", func(ctx context.Context, try int, told func(provider.FetchedMedia) error, out io.Writer) (provider.FetchedMedia, error) {
				close(began[try-1])
				<-goOn[try-1]
				if try == 1 {
					return first(ctx, try, told, out)
				}
				return has(picture)(ctx, try, told, out)
			}, provider.InboundMedia{})
			other := w.node(&faultyStore{Store: w.file}, app.Bounds{})
			t.Cleanup(other.Close)
			var results [2]chan error
			for i, node := range []*app.App{w.App, other} {
				results[i] = make(chan error, 1)
				go func() {
					had, err := node.Media.FetchNext(context.Background(), w.ws)
					if !had && err == nil {
						err = errors.New("there was no job")
					}
					results[i] <- err
				}()
				select {
				case <-began[i]:
				case err := <-results[i]:
					t.Fatal(i, err)
				}
				if i == 0 {
					w.clock.advance(2 * time.Minute) // for this time the first process stood still
				}
			}
			has := w.jobOf(m)
			close(goOn[0])
			must(t, <-results[0])
			if got := w.fileOf(conversation.ID, "in-1"); got.Status != desk.MediaPending {
				t.Errorf("the process that lost the job made it %+v", got)
			}
			if now := w.jobOf(m); now == nil || now.Holder != has.Holder || now.Due != has.Due {
				t.Errorf("the job is %+v, was %+v", now, has)
			}
			close(goOn[1])
			must(t, <-results[1])
			if got := w.fileOf(conversation.ID, "in-1"); got.Status != desk.MediaReady || w.contentOf(got) != picture || w.jobOf(m) != nil {
				t.Errorf("the process that has the job made it %+v", got)
			}
			if told := w.told(desk.MessageUpdated); told != 1 {
				t.Errorf("%d events tell of it", told)
			}
		})
	}
}

// TestFetchMedia_lost: a process learns that another process has its job. It stops
// fetching, and neither counts nor logs a failure.
func TestFetchMedia_lost(t *testing.T) {
	t.Parallel()
	w, c := newCourier(t)
	w.stop()
	w.start(app.Bounds{Fetch: 300 * time.Millisecond}) // so the process checks its job every 100 ms
	began, why := make(chan struct{}), make(chan error, 1)
	_, m := w.gets(c, "1", func(ctx context.Context, _ int, _ func(provider.FetchedMedia) error, _ io.Writer) (provider.FetchedMedia, error) {
		close(began)
		<-ctx.Done()
		why <- context.Cause(ctx)
		return provider.FetchedMedia{}, ctx.Err()
	}, provider.InboundMedia{})
	fetched := make(chan error, 1)
	go func() {
		_, err := w.Media.FetchNext(context.Background(), w.ws)
		fetched <- err
	}()
	<-began
	holder := w.clock.newID()
	waitFor(t, "another to take the job", func() bool {
		w.clock.advance(time.Minute)
		job, err := w.file.TakeMediaJob(t.Context(), w.ws, holder, time.Hour, 2*time.Hour)
		must(t, err)
		return job != nil
	})
	if err := <-why; !errors.Is(err, media.ErrLeaseLost) {
		t.Errorf("it stopped because %v", err)
	}
	must(t, <-fetched)
	if job := w.jobOf(m); job == nil || job.Holder != holder {
		t.Errorf("the job is %+v, and %s has it", job, holder)
	}
	if counts := w.Media.FetchCounts(); counts != (media.FetchCounts{}) {
		t.Errorf("counts %+v", counts)
	}
	if lines := w.log.find("a file of an inbound message"); len(lines) != 0 {
		t.Errorf("logged %q", lines)
	}
}

// If the record of an upload can't be stored, its content is deleted at once.
func TestUpload_not_stored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.caller()
	_, err := w.RevokeKey(t.Context(), w.operator(), w.keyID)
	must(t, err)
	_, err = w.Media.Upload(t.Context(), p, desk.FileHead{Name: "a.jpg"}, strings.NewReader(picture))
	refused(t, err, desk.Unauthorized)
	must(t, w.Media.DropContents(t.Context()))
	sum := sha256.Sum256([]byte(picture))
	_, err = w.file.OpenContent(t.Context(), w.ws, sum[:])
	refused(t, err, desk.NotFound)
}

// If a retention time is set, the content of old files is deleted, with an event for each
// message.
func TestForgetMedia(t *testing.T) {
	t.Parallel()
	w, c := newCourier(t)
	conversation, _ := w.gets(c, "1", has(picture), provider.InboundMedia{})
	w.run()
	m := w.fetched(conversation.ID, "in-1")
	must(t, w.Media.ForgetOld(t.Context(), time.Hour))
	if got := w.fileOf(conversation.ID, "in-1"); got.Status != desk.MediaReady {
		t.Errorf("a young file is %+v", got)
	}
	sum := m.SHA256
	w.clock.advance(2 * time.Hour)
	must(t, w.Media.ForgetOld(t.Context(), time.Hour))
	if m = w.fileOf(conversation.ID, "in-1"); m.Status != desk.MediaDeleted || m.SHA256 != nil || m.MIME != "image/jpeg" {
		t.Errorf("an old file is %+v", m)
	}
	must(t, w.Media.DropContents(t.Context()))
	_, err := w.file.OpenContent(t.Context(), w.ws, sum)
	refused(t, err, desk.NotFound)
}

// TestForget_clocks: if the server's or the database's clock is far ahead, no new data are
// deleted.
func TestForget_clocks(t *testing.T) {
	t.Parallel()
	w, c := newCourier(t)
	const days = (desk.KeepDays + 2) * 24 * time.Hour
	conversation, _ := w.gets(c, "1", has(picture), provider.InboundMedia{})
	_, err := w.Media.FetchNext(t.Context(), w.ws)
	must(t, err)
	upload, err := w.Media.Upload(t.Context(), w.caller(), desk.FileHead{Name: "a.jpg"}, strings.NewReader("\xff\xd8\xff\xe0 an upload"))
	must(t, err)
	must(t, w.Daily.Count(t.Context()))
	w.leapt(days, func(whose string, old bool) {
		must(t, w.Forget(t.Context()))
		must(t, w.Media.ForgetOld(t.Context(), days/2))
		if _, err := w.Media.Record(t.Context(), w.caller(), upload.ID); (err != nil) != old {
			t.Errorf("%s is ahead: the upload: %v", whose, err)
		}
		if m := w.fileOf(conversation.ID, "in-1"); (m.Status != desk.MediaReady) != old {
			t.Errorf("%s is ahead: the file is %+v", whose, m)
		}
		if counts, err := w.file.Daily(t.Context(), w.ws, 0); err != nil || len(counts) == 0 != old {
			t.Errorf("%s is ahead: the counts are %v, %v", whose, counts, err)
		}
		w.clock.advance(time.Hour) // files are forgotten once an hour
	})
}

// A file is given to the provider of a channel once, and again when its id may have
// expired.
func TestHandOver(t *testing.T) {
	t.Parallel()
	w, c := newCourier(t)
	m, err := w.Media.Upload(t.Context(), w.caller(), desk.FileHead{Name: "a.jpg"}, strings.NewReader(picture))
	must(t, err)
	at := provider.Access{Workspace: w.ws, Channel: w.operator().Settings.Channel(w.channel)}
	for i, want := range []string{"image/jpeg a.jpg 14 14 1", "image/jpeg a.jpg 14 14 1", "image/jpeg a.jpg 14 14 2"} {
		if i == 2 {
			w.clock.advance(29*24*time.Hour + time.Minute)
		}
		if ref, handed, err := w.Media.HandOver(t.Context(), at, c, m); err != nil || ref != want || handed != (i != 1) {
			t.Errorf("%q, %v; want %q", ref, err, want)
		}
	}
}

// told counts the events of a type.
func (w *world) told(of desk.EventType) (n int) {
	w.t.Helper()
	page, err := w.Feed.Page(w.t.Context(), w.operator(), feed.Query{Cursor: "oldest", Limit: 200})
	must(w.t, err)
	for _, e := range page.Events {
		if e.Type == of {
			n++
		}
	}
	return n
}
