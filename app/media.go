package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"parley/app/steps"
	"parley/desk"
	"parley/provider"
	"parley/store"
)

const (
	// refLife is how long the id is used that a provider gave to a file, in milliseconds;
	// handOverTime is how long handing a file over may take.
	refLife      = desk.Time(29 * 24 * 60 * 60 * 1000)
	handOverTime = time.Minute

	// draftLife is after what time without a byte what is left of an upload is deleted: the
	// process died.
	draftLife = time.Hour

	// mediaGroup is how many files one step of the background work deletes.
	mediaGroup = 50
)

// MaxMedia is the greatest size of a file in bytes.
func (a *App) MaxMedia() int64 { return a.maxMedia }

// Upload stores a file as it comes. What is claimed of its type counts only for types
// that its content does not tell. A file that says how large it is, and for which the
// workspace has no room, is refused before its first byte is read. It returns InvalidRequest for an empty file,
// PayloadTooLarge, MediaQuota, and the error of content unchanged.
func (a *App) Upload(ctx context.Context, p desk.Principal, head desk.FileHead, content io.Reader) (*desk.Media, error) {
	leave, err := a.transfers.enter(ctx, p.Workspace())
	if err != nil {
		return nil, err
	}
	defer leave()
	in, err := a.store.NewContent(ctx, p.Workspace())
	if err != nil {
		return nil, err
	}
	defer in.Drop()
	room := &hold{a: a, ws: p.Workspace()}
	defer room.leave()
	if err := room.take(ctx, max(1, head.Size)); err != nil { // before the first byte is read
		return nil, err
	}
	room.size = 0
	sniffer := desk.NewSniffer(head.Type)
	n, err := io.CopyBuffer(io.MultiWriter(held{ctx, room}, in, sniffer), io.LimitReader(content, a.maxMedia+1), make([]byte, copyBytes))
	switch {
	case err != nil:
		return nil, err
	case n > a.maxMedia:
		return nil, a.tooLarge()
	case n == 0:
		return nil, desk.Invalidf("the file is empty")
	}
	m := &desk.Media{ID: a.newID(), Name: desk.MediaName(head.Name), Status: desk.MediaReady, CreatedAt: a.now()}
	if m.SHA256, m.Size, err = in.Keep(ctx, a.mediaPerWorkspace); err != nil {
		return nil, err
	}
	m.MIME, m.Trait = sniffer.Type()
	m.Kind = desk.KindOfMedia(m.MIME)
	err = a.store.InTx(ctx, p.Workspace(), func(tx store.Tx) error {
		if err := p.Still(tx.Settings(), desk.MessagesSend, a.now()); err != nil {
			return err
		}
		if err := tx.UseContent(m.SHA256); err != nil {
			return err
		}
		return tx.PutMedia(m)
	})
	if err != nil && !errors.Is(err, store.ErrCommitLost) {
		// If this fails, the content goes after an hour, as after a crash.
		_ = a.store.InTx(context.WithoutCancel(ctx), p.Workspace(), func(tx store.Tx) error { return dropKept(tx, m.SHA256) })
	}
	return m, err
}

// A held reserves room for what is written after it.
type held struct {
	ctx  context.Context
	room *hold
}

func (h held) Write(p []byte) (int, error) {
	if err := h.room.take(h.ctx, int64(len(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// dropKept leaves content that was kept, and that no file will have, to DropContents.
func dropKept(tx store.Tx, sum []byte) error {
	if err := tx.UseContent(sum); err != nil {
		return err
	}
	return tx.ReleaseContent(sum)
}

// copyBytes is the size of the buffer through which content is copied.
const copyBytes = 32 << 10

func (a *App) tooLarge() error {
	return desk.Errorf(desk.PayloadTooLarge, "the file is larger than the %d bytes that this server takes", a.maxMedia)
}

// Media returns the record of a file, or NotFound.
func (a *App) Media(ctx context.Context, p desk.Principal, id desk.ID) (*desk.Media, error) {
	return a.store.Media(ctx, p.Workspace(), id)
}

// MediaList returns up to limit files, of failed ones only or of all, newest first, with
// ids before the given one (zero: from the newest).
func (a *App) MediaList(ctx context.Context, p desk.Principal, failed bool, before desk.ID, limit int) ([]*desk.Media, error) {
	return a.store.MediaList(ctx, p.Workspace(), failed, before, limit)
}

// MediaContent opens the content of a file, which the caller must close. It returns
// NotFound, and MediaUnavailable unless the file is ready.
func (a *App) MediaContent(ctx context.Context, p desk.Principal, id desk.ID) (*desk.Media, io.ReadSeekCloser, error) {
	m, err := a.store.Media(ctx, p.Workspace(), id)
	if err != nil {
		return nil, nil, err
	}
	if err := m.Unavailable(); err != nil {
		return nil, nil, err
	}
	leave, err := a.transfers.enter(ctx, p.Workspace())
	if err != nil {
		return nil, nil, err
	}
	content, err := a.openContent(ctx, p.Workspace(), m)
	if err != nil {
		leave()
		return nil, nil, err
	}
	return m, &transfer{content, leave}, nil
}

// openContent opens the content of a file that is ready. Content that is missing, for
// example after a backup without it was restored, is a fault of the machine.
func (a *App) openContent(ctx context.Context, ws desk.ID, m *desk.Media) (io.ReadSeekCloser, error) {
	content, err := a.store.OpenContent(ctx, ws, m.SHA256)
	if desk.IsType(err, desk.NotFound) {
		return nil, &desk.Error{Type: desk.Unavailable, Message: "the content of this file can't be found", Err: fmt.Errorf("the content of the file %s is missing", m.ID)}
	}
	return content, err
}

// A transfer is content that is read in a slot.
type transfer struct {
	io.ReadSeekCloser
	leave func()
}

// Close ends the transfer.
func (t *transfer) Close() error {
	defer t.leave()
	return t.ReadSeekCloser.Close()
}

// transfers limits the uploads and downloads under way. Each has buffers of about a
// mebibyte.
type transfers struct {
	mu   sync.Mutex
	n    int
	of   map[desk.ID]int // by workspace
	left chan struct{}   // closed when one ends; nil: nobody waits
}

const (
	maxTransfers = 48

	// transferPatience is how long one waits for its turn.
	transferPatience = 5 * time.Second
)

var errNoTransfer = desk.Errorf(desk.Unavailable, "too many files are under way; send the request again")

// enter waits for a slot. A workspace may have half as many as are left to it, so the
// others always find some. The caller must call leave once.
func (t *transfers) enter(ctx context.Context, ws desk.ID) (leave func(), err error) {
	patience := time.NewTimer(transferPatience)
	defer patience.Stop()
	for {
		left := t.try(ws)
		if left == nil {
			return sync.OnceFunc(func() { t.leave(ws) }), nil
		}
		select {
		case <-left:
		case <-patience.C:
			return nil, errNoTransfer
		case <-ctx.Done():
			return nil, errNoTransfer
		}
	}
}

// try takes a slot, or returns what is closed when there may be one.
func (t *transfers) try(ws desk.ID) (left chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n < maxTransfers && (t.of[ws] == 0 || 2*t.of[ws] < maxTransfers-t.n) {
		if t.of == nil {
			t.of = map[desk.ID]int{}
		}
		t.n++
		t.of[ws]++
		return nil
	}
	if t.left == nil {
		t.left = make(chan struct{})
	}
	return t.left
}

func (t *transfers) leave(ws desk.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n--
	if t.of[ws]--; t.of[ws] == 0 {
		delete(t.of, ws)
	}
	if t.left != nil {
		close(t.left)
		t.left = nil
	}
}

// handOver gives a file that is ready to the provider of a channel, unless the provider
// has it, and returns the provider's id of it. Its errors are those of Send, and
// Unavailable.
func (a *App) handOver(ctx context.Context, at provider.Access, talker provider.Talker, m *desk.Media) (ref string, err error) {
	defer steps.Caught("provider", &err)
	ref, since, err := a.store.MediaRef(ctx, at.Workspace, m.ID, at.Channel.ID)
	if now := a.now(); err != nil || ref != "" && since <= now && since > now-refLife {
		return ref, err
	}
	ctx, cancel := context.WithTimeout(ctx, handOverTime)
	defer cancel()
	leave, err := a.transfers.enter(ctx, at.Workspace)
	if err != nil {
		return "", err
	}
	defer leave()
	content, err := a.openContent(ctx, at.Workspace, m)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	began := a.now()
	if ref, err = talker.Upload(ctx, at, m.MIME, m.Name, m.Size, content); err != nil {
		return "", err
	}
	return ref, a.store.PutMediaRef(context.WithoutCancel(ctx), at.Workspace, m.ID, at.Channel.ID, ref, began)
}

// DeleteMedia deletes the record of a file that is in no message. What others uploaded with
// the same content stays. It returns NotFound and MediaInUse.
func (a *App) DeleteMedia(ctx context.Context, p desk.Principal, id desk.ID) error {
	err := a.store.InTx(ctx, p.Workspace(), func(tx store.Tx) error {
		if err := p.Still(tx.Settings(), desk.MessagesSend, a.now()); err != nil {
			return err
		}
		m, err := tx.Media(id)
		if err != nil {
			return err
		}
		if m == nil {
			return desk.NoMedia()
		}
		used, err := tx.MediaInUse(id)
		if err == nil && used {
			err = m.InUse()
		}
		if err != nil {
			return err
		}
		return tx.DropMedia(id)
	})
	if err != nil {
		return err
	}
	// The bytes make room at once. If this fails, the background work does it.
	if _, err := a.store.DropContents(context.WithoutCancel(ctx), mediaGroup); err != nil {
		a.log.WarnContext(ctx, "the content of a deleted file is still there; it will be deleted later", "workspace_id", p.Workspace(), "media_id", id, "err", err)
	}
	return nil
}

// DropContents deletes content that no file has any more.
func (a *App) DropContents(ctx context.Context) error {
	return steps.InGroups(ctx, mediaGroup, func(limit int) (int, error) { return a.store.DropContents(ctx, limit) })
}

// forgetUploads deletes old uploads of a workspace that are in no message.
func (a *App) forgetUploads(ctx context.Context, ws desk.ID) error {
	return steps.InGroups(ctx, mediaGroup, func(limit int) (n int, err error) {
		err = a.store.InTx(ctx, ws, func(tx store.Tx) error {
			// A clock that is far ahead must not delete young ones.
			n, err = tx.DropUploads(min(tx.Now(), a.now())-desk.UploadLife, limit)
			return err
		})
		return n, err
	})
}

// ForgetMedia deletes the content of files of an age, unless another process did so within
// the hour. The records stay.
func (a *App) ForgetMedia(ctx context.Context, age time.Duration) error {
	ours, err := a.store.Lease(ctx, desk.ID{}, "forget media", forgetAgain)
	if err != nil || !ours {
		return err
	}
	workspaces, err := a.store.Workspaces(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, w := range workspaces {
		err := steps.InGroups(ctx, mediaGroup, func(limit int) (int, error) { return a.forgetMedia(ctx, w.ID, age, limit) })
		failed = append(failed, err) // the next workspace does not wait for this one
	}
	return errors.Join(failed...)
}

// mostMessages is how many messages with one file get an event when its content is
// deleted. An upload in more is rare, and its readers learn it when they look.
const mostMessages = 1000

func (a *App) forgetMedia(ctx context.Context, ws desk.ID, age time.Duration, limit int) (n int, err error) {
	err = a.store.InTx(ctx, ws, func(tx store.Tx) error {
		n = 0
		old, err := tx.OldMedia(min(tx.Now(), a.now())-desk.Time(age.Milliseconds()), limit)
		if err != nil {
			return err
		}
		for _, m := range old {
			n++
			sum := m.SHA256
			m.Status, m.SHA256 = desk.MediaDeleted, nil
			if err := tx.PutMedia(m); err != nil {
				return err
			}
			if err := tx.ReleaseContent(sum); err != nil {
				return err
			}
			with, err := tx.MessagesOf(m.ID, mostMessages)
			if err != nil {
				return err
			}
			for _, message := range with {
				if err := tx.Append(attachmentEvent(message, desk.Actor{Kind: desk.BySystem}, a.now())); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return n, err
}

// attachmentEvent is the event of a message whose attachment has changed.
func attachmentEvent(m *desk.Message, by desk.Actor, now desk.Time) desk.Event {
	e := messageEvent(desk.MessageUpdated, m, by, now)
	e.Changed = []string{"attachments"}
	return e
}

// OperatorOfMedia is Operator in the workspace of a file, or returns NotFound.
func (a *App) OperatorOfMedia(ctx context.Context, id desk.ID) (desk.Principal, error) {
	workspaces, err := a.store.Workspaces(ctx)
	if err != nil {
		return desk.Principal{}, err
	}
	for _, w := range workspaces {
		_, err := a.store.Media(ctx, w.ID, id)
		if err == nil {
			return a.Operator(ctx, w.ID)
		}
		if !desk.IsType(err, desk.NotFound) {
			return desk.Principal{}, err
		}
	}
	return desk.Principal{}, desk.NoMedia()
}
