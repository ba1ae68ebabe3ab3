package imports

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"parley/app/steps"
	"parley/desk"
	"parley/store"
	"parley/transfer"
)

const (
	// uploadsEvery is how often a process looks for uploads.
	uploadsEvery = time.Second

	// atWork is how many uploads a process works on at a time.
	atWork = 2
)

// ImportUploads imports uploads, and checks them, until ctx ends. Of each workspace it works
// on one at a time.
func (a *Service) ImportUploads(ctx context.Context) {
	steps.Jobs{Work: "import uploads", Every: uploadsEvery, Most: atWork, MostOf: 1, Due: a.due.Now, Next: a.NextUpload}.Run(ctx, a.Log)
}

// NextUpload works on the next upload of a workspace, if nobody else imports there. It
// reports whether there was one. It goes on where another process has ended.
func (a *Service) NextUpload(ctx context.Context, ws desk.ID) (had bool, err error) {
	defer steps.Caught("import", &err)
	settings, err := a.Store.Settings(ctx, ws)
	if err != nil {
		return false, err
	}
	i := &Import{service: a, lease: leaseOf(ws), holder: a.NewID(), p: desk.Principal{Settings: settings}}
	if held, err := a.hold(ctx, i); err != nil || !held {
		return false, err
	}
	u, err := a.Store.NextUpload(ctx, ws)
	if err == nil && u != nil {
		i.upload, i.moves = u, i.moveUpload
		err = i.work(ctx)
	}
	switch {
	case err == nil || ctx.Err() != nil:
		_ = i.End(ctx) // the lease ends by itself, too
		a.due.Again()
		return u != nil && err == nil, nil
	case errors.Is(err, errMoved):
		return false, nil
	}
	return false, err // when the lease has ended, it is tried again
}

// work does what is to be done for the upload.
func (i *Import) work(ctx context.Context) error {
	err := i.Hold(ctx, i.workHeld)
	stop, ends := errors.AsType[closed](err)
	switch text, at, problem := Problem(err); {
	case ends:
		return i.fail(ctx, stop.why)
	case err == nil || desk.IsType(err, desk.Unavailable) || ctx.Err() != nil:
		return err
	case problem:
		return i.settle(ctx, func(tx store.Tx, u *desk.Upload) error {
			u.State, u.QueuedAt, u.Problem, u.ProblemAt = desk.UploadOpen, 0, text, at
			return dropRun(tx, u)
		})
	case desk.IsType(err, desk.Forbidden) || desk.IsType(err, desk.Unauthorized):
		return i.fail(ctx, noMember)
	case desk.IsType(err, desk.NotFound) || desk.IsType(err, desk.MediaUnavailable):
		return i.fail(ctx, gone)
	}
	return err
}

func (i *Import) workHeld(ctx context.Context) error {
	a, u := i.service, i.upload
	if u.Expired(a.Now()) {
		return i.fail(ctx, tooOld)
	}
	p, err := desk.MemberPrincipal(i.p.Settings, u.MemberID)
	if err == nil {
		err = p.Allow(desk.Administer)
	}
	if err != nil {
		return err
	}
	i.p, i.Run, i.dry = p, u.Run, u.State == desk.UploadChecking
	var o transfer.Options
	if err := json.Unmarshal([]byte(u.Options), &o); err != nil {
		return err
	}
	file, err := transfer.Read(a.source(ctx, p, u), o)
	if err != nil {
		return err
	}
	if err := file.Columns(p.Settings.Attributes); err != nil {
		return err
	}
	if u.Rows != file.Rows {
		if err := i.settle(ctx, func(_ store.Tx, u *desk.Upload) error { u.Rows = file.Rows; return nil }); err != nil {
			return err
		}
	}
	if i.dry {
		i.p, err = planned(p, file)
	} else {
		err = i.Make(ctx, file)
	}
	if err != nil {
		return err
	}
	return i.StoreFile(ctx, file, i.keep, func() {})
}

// Hold extends the lease while do is at work. If another process has taken the workspace, the
// context of do ends, and Hold returns Unavailable, unless do had all done before.
func (i *Import) Hold(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		i.extend(ctx, cancel)
	}()
	err := do(ctx)
	cancel(nil)
	<-ended // else it might extend the lease after End
	if err != nil && errors.Is(context.Cause(ctx), errMoved) {
		return errMoved
	}
	return err
}

// extend extends the lease until ctx ends, or ends it if another process has the lease.
func (i *Import) extend(ctx context.Context, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(desk.ImportLease / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if held, err := i.service.hold(ctx, i); err == nil && !held {
			cancel(errMoved)
		}
	}
}

// keep stores rejected rows with the rows beside them.
func (i *Import) keep(tx store.Tx, before int64, rows []byte) error {
	for len(rows) > 0 {
		n := min(part, len(rows))
		if err := tx.PutRejected(i.Run.ID, before, rows[:n]); err != nil {
			return err
		}
		rows, before = rows[n:], before+int64(n)
	}
	return nil
}

// moveUpload ends the upload, or its check, with the last row, or if too many are rejected.
func (i *Import) moveUpload(tx store.Tx, next *desk.ImportRun, last bool) error {
	if !last && !next.TooManyRejected() {
		return nil
	}
	u, err := i.ours(tx)
	if err != nil {
		return err
	}
	next.EndedAt = i.service.Now()
	if i.dry {
		u.State, u.QueuedAt = desk.UploadOpen, 0
		return tx.PutUpload(u)
	}
	state := desk.UploadDone
	if !last {
		state = desk.UploadFull
	}
	u.End(state, "", next.EndedAt)
	if err := dropFile(tx, u); err != nil {
		return err
	}
	return tx.PutUpload(u)
}

// ours returns the upload as it is stored, or errMoved if this run of it is no longer queued.
func (i *Import) ours(tx store.Tx) (*desk.Upload, error) {
	u, err := tx.Upload(i.upload.ID)
	if err == nil && (u == nil || u.RunID != i.upload.RunID || u.QueuedAt == 0) {
		err = errMoved
	}
	return u, err
}

// settle changes the upload.
func (i *Import) settle(ctx context.Context, do func(store.Tx, *desk.Upload) error) error {
	return i.service.Store.InTx(ctx, i.p.Workspace(), func(tx store.Tx) error {
		u, err := i.ours(tx)
		if err == nil {
			err = do(tx, u)
		}
		if err != nil {
			return err
		}
		return tx.PutUpload(u)
	})
}

// fail ends the upload.
func (i *Import) fail(ctx context.Context, why string) error {
	return i.settle(ctx, func(tx store.Tx, u *desk.Upload) error { return i.service.end(tx, u, desk.UploadFailed, why) })
}
