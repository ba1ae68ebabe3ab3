package media

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	"parley/app/steps"
	"parley/desk"
	"parley/provider"
	"parley/store"
)

// fetchWaits are the waits between tries to fetch a file; the last one repeats.
var fetchWaits = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour}

const (
	// storageWait is the wait after our own storage failed. Such a failure does not count as
	// a try.
	storageWait = 30 * time.Second

	// maxFetches is how many files a process fetches at a time. maxFetchesOf is the limit for
	// one workspace, so that there is always a place for others.
	maxFetches   = 4
	maxFetchesOf = 3

	// fetchTime is how long a try may take. A try also ends after fetchStill without a byte.
	fetchTime  = 10 * time.Minute
	fetchStill = 30 * time.Second

	// fetchEvery is how often a process looks for jobs.
	fetchEvery = time.Second
)

// Keep stores the pending file of an inbound message with the job that fetches it,
// in the message's transaction, and returns its id.
func (a *Service) Keep(tx store.Tx, m *desk.Message, in *provider.InboundMedia) (desk.ID, error) {
	if in == nil {
		return desk.ID{}, nil
	}
	file := &desk.Media{
		ID: a.NewID(), ContactID: m.ContactID, Kind: attachmentKind(m.Kind), Name: desk.MediaName(in.Name),
		Status: desk.MediaPending, CreatedAt: tx.Now(),
	}
	if !in.Stored.IsZero() {
		stored, err := tx.Media(in.Stored)
		if err != nil {
			return desk.ID{}, err
		}
		if stored != nil && stored.Status == desk.MediaReady {
			file.Kind, file.MIME, file.Trait, file.Size, file.SHA256, file.Status = stored.Kind, stored.MIME, stored.Trait, stored.Size, stored.SHA256, desk.MediaReady
			return file.ID, tx.PutMedia(file)
		}
	}
	if in.Ref == "" {
		file.Status, file.Reason = desk.MediaFailed, desk.MediaProvider
		return file.ID, tx.PutMedia(file)
	}
	if err := tx.PutMedia(file); err != nil {
		return desk.ID{}, err
	}
	return file.ID, tx.PutMediaJob(store.MediaJob{
		Media: file.ID, Channel: m.ChannelID, Contact: m.ContactID, Conversation: m.ConversationID, Message: m.ID, TS: m.TS,
		Ref: in.Ref, MIME: in.MIME, Size: in.Size, SHA256: in.SHA256, Due: tx.Now(),
	})
}

// attachmentKind is the kind of a pending file, by the kind of its message.
func attachmentKind(k desk.MessageKind) desk.MessageKind {
	switch k {
	case desk.KindImage, desk.KindVideo, desk.KindAudio, desk.KindSticker:
		return k
	}
	return desk.KindDocument
}

// Fetch fetches the files of inbound messages until ctx ends.
func (a *Service) Fetch(ctx context.Context) {
	steps.Jobs{Work: "fetch media", Every: fetchEvery, Most: maxFetches, MostOf: maxFetchesOf, Due: a.FetchesDue, Next: a.FetchNext}.Run(ctx, a.Log)
}

// FetchesDue returns the workspaces with files to fetch now. While the server has too little
// room it returns none, so that the files wait.
func (a *Service) FetchesDue(ctx context.Context) ([]desk.ID, error) {
	if a.roomLeft() != nil {
		return nil, nil
	}
	return a.due.Now(ctx)
}

// FetchNext fetches the next file of a workspace, if one is due. It reports whether there
// was one.
func (a *Service) FetchNext(ctx context.Context, ws desk.ID) (had bool, err error) {
	holder := a.NewID()
	job, err := a.Store.TakeMediaJob(ctx, ws, holder, a.Lease, longestFetchWait)
	if err != nil || job == nil {
		return false, err
	}
	content, failure := a.fetch(ctx, ws, job)
	if content != nil {
		defer content.draft.Drop()
		defer content.room.leave()
	}
	if failure == nil {
		failure = a.keepFetched(ctx, ws, job, content)
	}
	defer a.due.Again()
	if failure != nil {
		err = a.fetchFailed(context.WithoutCancel(ctx), ws, job, failure, ctx.Err() != nil)
	}
	return true, err
}

// A storageError is a failure of our own storage.
type storageError struct{ error }

func (e *storageError) Unwrap() error { return e.error }

// errFetchTooLarge ends a fetch at the size limit.
var errFetchTooLarge = errors.New("the file is larger than this server takes")

// fetched is a writer that receives the content of a file from a provider.
type fetched struct {
	draft   store.Draft
	sniffer *desk.Sniffer
	most    int64
	size    int64
	sum     []byte
	moved   func() // called after each part
	ctx     context.Context
	room    *hold
}

func (f *fetched) Write(p []byte) (int, error) {
	f.moved()
	if f.size += int64(len(p)); f.size > f.most {
		return 0, errFetchTooLarge
	}
	if err := f.room.take(f.ctx, int64(len(p))); err != nil {
		return 0, noRoomFor(err)
	}
	if n, err := f.draft.Write(p); err != nil {
		return n, &storageError{err}
	}
	return f.sniffer.Write(p)
}

// noRoomFor is the error of a fetch without room. If the workspace has reached its limit,
// the file is given up. If the server has no room, or other transfers have reserved it, the
// fetch is tried again.
func noRoomFor(err error) error {
	if desk.IsType(err, desk.MediaQuota) && !errors.As(err, new(*crowded)) {
		return fmt.Errorf("%w (%w)", errFetchTooLarge, err)
	}
	return &storageError{err}
}

// fetch gets the content from the provider, and checks it against the size and the hash
// that the provider reported.
func (a *Service) fetch(ctx context.Context, ws desk.ID, job *store.MediaJob) (content *fetched, err error) {
	defer steps.Caught("provider", &err)
	settings, err := a.Store.Settings(ctx, ws)
	if err != nil {
		return nil, &storageError{err}
	}
	channel := settings.Channel(job.Channel)
	if channel == nil {
		return nil, provider.ErrMediaGone // channels are never removed
	}
	talker, ok := a.Providers[channel.Kind].(provider.Talker)
	if !ok {
		return nil, errNoFiles
	}
	at, err := a.Access(ws, channel)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, fetchTime, errors.New("it took too long"))
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	still := time.AfterFunc(fetchStill, func() { stop(errors.New("no byte came for too long")) })
	defer still.Stop()
	defer a.holdJob(ctx, ws, job, stop)()

	draft, err := a.Store.NewContent(ctx, ws)
	if err != nil {
		return nil, &storageError{err}
	}
	content = &fetched{draft: draft, sniffer: desk.NewSniffer(job.MIME), most: a.MaxSize, ctx: ctx, room: &hold{a: a, ws: ws}, moved: func() { still.Reset(fetchStill) }}
	told := provider.FetchedMedia{Size: job.Size, SHA256: job.SHA256}
	hash := sha256.New()
	got, err := talker.Fetch(ctx, at, job.Ref, func(t provider.FetchedMedia) error {
		if told = told.With(t); told.Size > a.MaxSize {
			return errFetchTooLarge
		}
		return nil
	}, io.MultiWriter(content, hash))
	if err != nil {
		if why := context.Cause(ctx); why != nil {
			err = fmt.Errorf("%w (%w)", err, why)
		}
		return content, err
	}
	told, content.sum = told.With(got), hash.Sum(nil)
	switch {
	case content.size == 0:
		return content, errors.New("the provider sent an empty file")
	case told.Size != 0 && told.Size != content.size:
		return content, fmt.Errorf("the provider sent %d bytes of %d", content.size, told.Size)
	case len(told.SHA256) > 0 && !bytes.Equal(told.SHA256, content.sum):
		return content, errors.New("the provider sent other bytes than it told the hash of")
	}
	return content, nil
}

// errNoFiles is not final: the fetch is tried again, because a later release may support it.
var errNoFiles = errors.New("files of this kind of channel can't be fetched")

// ErrLeaseLost is the cause with which the provider's call ends if another process has the job.
var ErrLeaseLost = errors.New("another process has the job")

// holdJob extends the lease of a job until end is called, and stops the work if another
// process has the job.
func (a *Service) holdJob(ctx context.Context, ws desk.ID, job *store.MediaJob, stop context.CancelCauseFunc) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var holding sync.WaitGroup
	holding.Go(func() {
		tick := time.NewTicker(a.Lease / 3)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			// If the database does not answer, the work goes on: the lease is checked again
			// before the result is stored.
			if held, err := a.Store.HoldMediaJob(ctx, ws, job.Media, job.Holder, a.Lease); err == nil && !held {
				stop(ErrLeaseLost)
			}
		}
	})
	return func() {
		cancel()
		holding.Wait()
	}
}

// keepFetched stores the content and the file's record, unless the person was deleted or
// another process has the job.
func (a *Service) keepFetched(ctx context.Context, ws desk.ID, job *store.MediaJob, content *fetched) error {
	sum, size, err := content.draft.Keep(ctx, a.PerWorkspace)
	if err != nil {
		return noRoomFor(err)
	}
	stored := false
	err = a.Store.InTx(ctx, ws, func(tx store.Tx) error {
		stored = false
		err := a.endJob(tx, job, func(m *desk.Media) error {
			stored = true
			m.Status, m.SHA256, m.Size = desk.MediaReady, sum, size
			m.MIME, m.Trait = content.sniffer.Type()
			m.Kind = desk.KindOfMedia(m.MIME)
			if err := tx.UseContent(sum); err != nil {
				return err
			}
			return tx.DropMediaJob(job.Media)
		})
		if err == nil && !stored { // the person was deleted, or another process has the job
			err = dropKept(tx, sum)
		}
		return err
	})
	if err != nil {
		return &storageError{err}
	}
	if stored {
		a.fetching.ready.Add(1)
	}
	return nil
}

// endJob changes the file of a job and appends the event of its message, unless the job was
// deleted or another process has it.
func (a *Service) endJob(tx store.Tx, job *store.MediaJob, change func(*desk.Media) error) error {
	now, err := tx.MediaJob(job.Media)
	if err != nil || now == nil || now.Holder != job.Holder {
		return err
	}
	m, err := tx.Media(job.Media)
	if err != nil || m == nil {
		return err
	}
	if err := change(m); err != nil {
		return err
	}
	if err := tx.PutMedia(m); err != nil {
		return err
	}
	of := &desk.Message{ID: job.Message, ConversationID: job.Conversation, ContactID: now.Contact, TS: job.TS}
	return tx.Append(changed(of, desk.Actor{Kind: desk.ByProvider, ID: job.Channel}, a.Now()))
}

// fetchFailed gives up a job, or schedules another try. A try that ended because this
// process stops does not count.
func (a *Service) fetchFailed(ctx context.Context, ws desk.ID, job *store.MediaJob, failure error, stopping bool) error {
	var storage *storageError
	ours := errors.As(failure, &storage)
	reason := desk.MediaReason("")
	if stopping && !ours && !errors.Is(failure, provider.ErrMediaGone) && !errors.Is(failure, provider.ErrMediaFailed) {
		ours = true
	}
	if errors.Is(failure, ErrLeaseLost) {
		return nil
	}
	var wait time.Duration
	err := a.Store.InTx(ctx, ws, func(tx store.Tx) error {
		next := *job
		next.Holder, wait, reason = desk.ID{}, 0, ""
		switch {
		case stopping && ours:
		case ours:
			wait = storageWait
		case errors.Is(failure, provider.ErrMediaGone):
			reason = desk.MediaGone
		case errors.Is(failure, provider.ErrMediaFailed):
			reason = desk.MediaProvider
		case errors.Is(failure, errFetchTooLarge):
			reason = desk.MediaTooLarge
		default:
			wait = fetchWaits[min(job.Tries, len(fetchWaits)-1)]
			next.Tries++
			if tx.Now()+desk.Time(wait.Milliseconds()) > job.TS+desk.Time(desk.FetchLife.Milliseconds()) {
				reason = desk.MediaExpired
			}
		}
		if reason != "" {
			return a.endJob(tx, job, func(m *desk.Media) error {
				m.Status, m.Reason = desk.MediaFailed, reason
				next.Contact = m.ContactID // it may have been merged since
				next.Ended, next.Due = true, math.MaxInt64
				return tx.PutMediaJob(next)
			})
		}
		held, err := tx.MediaJob(job.Media)
		if err != nil || held == nil || held.Holder != job.Holder {
			return err
		}
		next.Contact = held.Contact // it may have been merged since
		next.Due = tx.Now() + desk.Time(wait.Milliseconds())
		return tx.PutMediaJob(next)
	})
	if err != nil {
		return err // the lease ends, and the file is fetched again
	}
	switch log := a.Log.With("workspace_id", ws, "channel_id", job.Channel, "media_id", job.Media, "err", failure); {
	case reason != "":
		a.fetching.failed.Add(1)
		log.WarnContext(ctx, "a file of an inbound message can't be fetched; it is given up", "reason", string(reason))
	case ours && !stopping:
		a.fetching.storage.Add(1)
		log.ErrorContext(ctx, "a file of an inbound message can't be stored; it will be fetched again", "after", wait)
	case !ours:
		a.fetching.again.Add(1)
		log.InfoContext(ctx, "a file of an inbound message could not be fetched; it will be tried again", "after", wait, "tries", job.Tries+1)
	}
	return nil
}

// Retry schedules another fetch of a failed file. It returns NotFound, and InvalidRequest
// if there is nothing to fetch.
func (a *Service) Retry(ctx context.Context, p desk.Principal, id desk.ID) (m *desk.Media, err error) {
	err = a.Store.InTx(ctx, p.Workspace(), func(tx store.Tx) error {
		if m, err = tx.Media(id); err != nil {
			return err
		}
		if m == nil {
			return desk.NoMedia()
		}
		job, err := tx.MediaJob(id)
		if err != nil {
			return err
		}
		if m.Status != desk.MediaFailed || job == nil {
			return desk.Invalidf("only a file that failed and that the provider may have can be fetched again; this one is %s", m.Status)
		}
		job.Ended, job.Tries, job.Due, job.Holder = false, 0, tx.Now(), desk.ID{}
		if err := tx.PutMediaJob(*job); err != nil {
			return err
		}
		m.Status, m.Reason = desk.MediaPending, ""
		if err := tx.PutMedia(m); err != nil {
			return err
		}
		of := &desk.Message{ID: job.Message, ConversationID: job.Conversation, ContactID: job.Contact, TS: job.TS}
		return tx.Append(changed(of, p.Actor, a.Now()))
	})
	return m, err
}
