package imports

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"parley/app/broadcast"
	"parley/app/steps"
	"parley/desk"
	"parley/store"
	"parley/transfer"
)

const (
	// listed is how many uploads List returns.
	listed = 50

	// PreviewRows is how many rows of a file a page shows.
	PreviewRows = 20

	// part is how many bytes of rejected rows are stored, and read, together.
	part = 256 << 10

	// group is how many old uploads one step deletes.
	group = 20
)

var errNoUpload = desk.NotFoundf("no import has this id")

// List returns the newest uploads.
func (a *Service) List(ctx context.Context, p desk.Principal) ([]*desk.Upload, error) {
	return a.Store.Uploads(ctx, p.Workspace(), listed)
}

// Upload returns an upload and how it is read, or NotFound.
func (a *Service) Upload(ctx context.Context, p desk.Principal, id desk.ID) (*desk.Upload, transfer.Options, error) {
	var o transfer.Options
	u, err := a.Store.Upload(ctx, p.Workspace(), id)
	if err == nil && u == nil {
		err = errNoUpload
	}
	if err == nil {
		err = json.Unmarshal([]byte(u.Options), &o)
	}
	return u, o, err
}

// Room returns an error if no more files can be uploaded now: of people of a broadcast (the zero
// id: of contacts).
func (a *Service) Room(ctx context.Context, p desk.Principal, broadcast desk.ID) error {
	return a.Store.InTx(ctx, p.Workspace(), func(tx store.Tx) error {
		_, err := a.slot(tx, p, broadcast)
		return err
	})
}

// slot returns a slot for a new upload.
func (a *Service) slot(tx store.Tx, p desk.Principal, draft desk.ID) (int, error) {
	if err := p.Still(tx.Settings(), desk.Administer, a.Now()); err != nil {
		return 0, err
	}
	if !draft.IsZero() {
		if _, err := a.People.AddIn(tx, p, draft, broadcast.Named{}, nil); err != nil { // it takes no people
			return 0, err
		}
	}
	taken, err := tx.UploadSlots()
	if err != nil {
		return 0, err
	}
	free := 1
	for slices.Contains(taken, free) {
		free++
	}
	if free > desk.MaxUploads {
		return 0, desk.Errorf(desk.InvalidRequest, "%d files are there already: wait until one is imported, or discard one", desk.MaxUploads)
	}
	return free, nil
}

// Add adds an upload of a file that is stored, of people of a broadcast (the zero id: of contacts).
func (a *Service) Add(ctx context.Context, p desk.Principal, m *desk.Media, broadcast desk.ID, o transfer.Options) (*desk.Upload, error) {
	u := &desk.Upload{ID: a.NewID(), MediaID: m.ID, MemberID: p.Actor.ID, Broadcast: broadcast, Name: m.Name, Size: m.Size, Options: written(o), State: desk.UploadOpen, CreatedAt: m.CreatedAt}
	err := a.Store.InTx(ctx, p.Workspace(), func(tx store.Tx) error {
		slot, err := a.slot(tx, p, broadcast)
		if err != nil {
			return err
		}
		u.Slot = slot
		return tx.PutUpload(u)
	})
	return u, err
}

func written(o transfer.Options) string {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // it has only texts and booleans
	}
	return string(text)
}

// Peek returns the first rows of an upload, as the options read it.
func (a *Service) Peek(ctx context.Context, p desk.Principal, u *desk.Upload, o transfer.Options) (*transfer.File, [][]string, error) {
	return transfer.Peek(a.source(ctx, p, u), o, PreviewRows)
}

// source opens the file of an upload.
func (a *Service) source(ctx context.Context, p desk.Principal, u *desk.Upload) transfer.Source {
	return func() (io.ReadCloser, error) { return a.Open(ctx, p, u.MediaID) }
}

// Choose stores how an upload is read. What a check has found with other options is
// forgotten.
func (a *Service) Choose(ctx context.Context, p desk.Principal, id desk.ID, o transfer.Options) error {
	return a.change(ctx, p, id, func(tx store.Tx, u *desk.Upload) error {
		if u.State != desk.UploadOpen {
			return errUnderWay
		}
		if u.Options == written(o) && u.Problem == "" {
			return nil
		}
		u.Options, u.Problem, u.ProblemAt = written(o), "", ""
		return dropRun(tx, u)
	})
}

var errUnderWay = desk.Errorf(desk.Changed, "somebody has started or stopped this import meanwhile")

// Start queues a check of an upload, or its import.
func (a *Service) Start(ctx context.Context, p desk.Principal, id desk.ID, o transfer.Options, state desk.UploadState) error {
	err := a.change(ctx, p, id, func(tx store.Tx, u *desk.Upload) error {
		if u.State != desk.UploadOpen {
			return errUnderWay
		}
		if err := dropRun(tx, u); err != nil {
			return err
		}
		u.Options, u.State, u.MemberID, u.QueuedAt = written(o), state, p.Actor.ID, a.Now()
		u.Problem, u.ProblemAt, u.RunID = "", "", a.NewID()
		return tx.PutImport(desk.ImportRun{ID: u.RunID, Key: sha256.Sum256(u.RunID[:]), StartedAt: a.Now()})
	})
	if err == nil {
		a.due.Again()
	}
	return err
}

var errWentOn = desk.Errorf(desk.Changed, "this import went on meanwhile, so nothing was stopped")

// Stop ends a check or an import, or discards a file for which nothing is under way. It returns
// Changed if the upload is in another state than was: the one that the member wants to end.
func (a *Service) Stop(ctx context.Context, p desk.Principal, id desk.ID, was desk.UploadState) error {
	return a.change(ctx, p, id, func(tx store.Tx, u *desk.Upload) error {
		if u.State != was {
			return errWentOn
		}
		switch u.State {
		case desk.UploadChecking:
			u.State, u.QueuedAt = desk.UploadOpen, 0
			return dropRun(tx, u)
		case desk.UploadOpen, desk.UploadImporting:
			return a.end(tx, u, desk.UploadStopped, "")
		}
		return nil
	})
}

// change changes an upload, in a transaction in which the member is an admin.
func (a *Service) change(ctx context.Context, p desk.Principal, id desk.ID, do func(store.Tx, *desk.Upload) error) error {
	return a.Store.InTx(ctx, p.Workspace(), func(tx store.Tx) error {
		if err := p.Still(tx.Settings(), desk.Administer, a.Now()); err != nil {
			return err
		}
		u, err := tx.Upload(id)
		if err == nil && u == nil {
			err = errNoUpload
		}
		if err == nil {
			err = do(tx, u)
		}
		if err != nil {
			return err
		}
		return tx.PutUpload(u)
	})
}

// end ends an upload and its run, and deletes its file. If nothing was imported, it forgets what
// a check found.
func (a *Service) end(tx store.Tx, u *desk.Upload, state desk.UploadState, problem string) error {
	imported := u.State == desk.UploadImporting
	u.End(state, problem, a.Now())
	if !imported {
		if err := dropRun(tx, u); err != nil {
			return err
		}
	} else if !u.RunID.IsZero() {
		run, err := tx.Import(u.RunID)
		if err != nil {
			return err
		}
		if run != nil && run.EndedAt == 0 {
			run.EndedAt = a.Now()
			if err := tx.PutImport(*run); err != nil {
				return err
			}
		}
	}
	return dropFile(tx, u)
}

// Deleted ends the uploads of a broadcast that is deleted.
func (a *Service) Deleted(tx store.Tx, broadcast desk.ID) error {
	list, err := tx.UploadsOf(broadcast)
	for _, u := range list {
		if err == nil {
			err = a.end(tx, u, desk.UploadFailed, deleted)
		}
		if err == nil {
			err = tx.PutUpload(u)
		}
	}
	return err
}

// dropFile deletes the file of an upload, unless a message has it by now.
func dropFile(tx store.Tx, u *desk.Upload) error {
	m, err := tx.Media(u.MediaID)
	if err != nil || m == nil {
		return err
	}
	if used, err := tx.MediaInUse(m.ID); err != nil || used {
		return err
	}
	return tx.DropMedia(m.ID)
}

// dropRun forgets the run of an upload, and its rejected rows.
func dropRun(tx store.Tx, u *desk.Upload) error {
	if u.RunID.IsZero() {
		return nil
	}
	run := u.RunID
	u.RunID = desk.ID{}
	return tx.DropRun(run)
}

// Rejected writes the file of rejected rows of an upload.
func (a *Service) Rejected(ctx context.Context, p desk.Principal, u *desk.Upload, to io.Writer) error {
	for at := int64(0); at < u.Run.ErrorBytes; {
		rows, err := a.Store.Rejected(ctx, p.Workspace(), u.RunID, at)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return fmt.Errorf("the rejected rows of %s end at %d, want %d", u.ID, at, u.Run.ErrorBytes)
		}
		if _, err := to.Write(rows); err != nil {
			return err
		}
		at += int64(len(rows))
	}
	return nil
}

// FirstRejected returns the first rejected rows of an upload.
func (a *Service) FirstRejected(ctx context.Context, p desk.Principal, u *desk.Upload, o transfer.Options) ([]transfer.Rejected, error) {
	var rows []byte
	for len(rows) < part && int64(len(rows)) < u.Run.ErrorBytes {
		more, err := a.Store.Rejected(ctx, p.Workspace(), u.RunID, int64(len(rows)))
		if err != nil || len(more) == 0 {
			return nil, err
		}
		rows = append(rows, more...)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	cut := int64(len(rows)) < u.Run.ErrorBytes
	list, err := transfer.FirstRejected(rows, o, PreviewRows)
	if cut {
		if err == nil && len(list) < PreviewRows {
			list = list[:max(len(list)-1, 0)]
		}
		err = nil // the last row is cut off
	}
	return list, err
}

// Forget ends uploads whose file is too old, and deletes the records of those that have ended
// long ago.
func (a *Service) Forget(ctx context.Context, ws desk.ID) error {
	return steps.InGroups(ctx, group, func(limit int) (n int, err error) {
		err = a.Store.InTx(ctx, ws, func(tx store.Tx) error {
			ago := func(age time.Duration) desk.Time { return desk.Ago(age, tx.Now(), a.Now()) }
			old, err := tx.OldUploads(ago(desk.UploadLife), ago(desk.KeepUpload), limit)
			n = len(old)
			for _, u := range old {
				if err != nil {
					break
				}
				if u.EndedAt != 0 {
					err = tx.DropUpload(u)
				} else if err = a.end(tx, u, desk.UploadFailed, tooOld); err == nil {
					err = tx.PutUpload(u)
				}
			}
			return err
		})
		return n, err
	})
}

// Why an upload fails.
const (
	tooOld   = "the file was deleted after a day"
	gone     = "the file is not there any more"
	noMember = "the member who started it is no longer an admin"
)

// Problem returns why a file can't be read with its options, and which option is to be
// changed: encoding, delimiter, or columns with the index of a column. ok is false for
// another error.
func Problem(err error) (text, at string, ok bool) {
	if e, is := errors.AsType[*transfer.FileError](err); is {
		text = e.Message
		if e.Line > 0 {
			text = "line " + strconv.Itoa(e.Line) + " " + text
		}
		return text, e.At, true
	}
	if e, is := errors.AsType[*transfer.ColumnError](err); is {
		if len(e.Columns) > 0 {
			at = "columns." + strconv.Itoa(e.Columns[len(e.Columns)-1])
		}
		return e.Message, at, true
	}
	if e, is := errors.AsType[*desk.Error](err); is && e.Type == desk.InvalidRequest {
		if len(e.At) > 0 {
			at = e.At[1:]
		}
		return e.Message, at, true
	}
	return "", "", false
}
