package imports

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"parley/app/steps"
	"parley/desk"
	"parley/store"
	"parley/transfer"

	"golang.org/x/sync/semaphore"
)

// Keep keeps the rejected rows of a group. before is the size of the file of rejected rows
// without them, and rows what is added to it. The transaction that stores the other rows
// commits afterwards, unless tx is nil: then nothing is stored. It may call Keep again.
type Keep func(tx store.Tx, before int64, rows []byte) error

// StoreFile stores the rows of a file after those that are stored, in groups. after is called
// after each group. It ends before the last row if the import has ended.
func (i *Import) StoreFile(ctx context.Context, file *transfer.File, keep Keep, after func()) error {
	most := desk.ImportRows
	if file.Options.Kind == desk.ImportOptOuts {
		most = desk.ImportOptOutRows
	}
	read := i.service.reader(file, i.p.Settings)
	err := groups(ctx, file, i.Run.Rows, read, func() int { return i.atOnce(most) }, func(rows []Row, last bool) error {
		err := i.Store(ctx, rows, last, func(tx store.Tx, errs []error) (int64, error) {
			return reject(tx, file, i.Run.ErrorBytes, rows, errs, keep)
		})
		if after(); err == nil && i.Run.EndedAt != 0 && !last {
			err = errEnded
		}
		return err
	})
	if errors.Is(err, errEnded) {
		return nil
	}
	return err
}

// atOnce returns how many rows the next transaction stores: at most as many as are left up to a
// multiple of most, so that the end of an import with many bad rows does not depend on who else was
// at work. It is few while others wait for the database; after that, each transaction stores twice as
// many, because the others often come again.
func (i *Import) atOnce(most int) int {
	if i.step = min(2*i.step, most); i.step == 0 {
		i.step = most
	}
	if i.service.Store.Contended() {
		i.step = desk.ImportRowsBeside
	}
	return min(i.step, most-int(i.Run.Rows%int64(most)))
}

// errEnded ends an import before the last row.
var errEnded = errors.New("the import has ended")

// TryFile judges the rows of a file, and stores nothing.
func (a *Service) TryFile(ctx context.Context, p desk.Principal, file *transfer.File, keep Keep) (n desk.ImportCounts, err error) {
	if p, err = planned(p, file); err != nil {
		return n, err
	}
	try := a.Try
	if file.Options.Kind == desk.ImportOptOuts {
		try = a.tryOptOuts
	}
	size := int64(0)
	read := a.reader(file, p.Settings)
	err = groups(ctx, file, 0, read, func() int { return desk.ImportRows }, func(rows []Row, _ bool) error {
		errs, err := try(ctx, p, rows, &n)
		if err == nil {
			size, err = reject(nil, file, size, rows, errs, keep)
		}
		return err
	})
	return n, err
}

// Make makes the attributes that a file needs, unless rows are stored already.
func (i *Import) Make(ctx context.Context, file *transfer.File) error {
	a, ws := i.service, i.p.Workspace()
	if i.Run.Rows == 0 {
		for _, in := range file.Created {
			if err := a.PutAttribute(ctx, i.p, in); err != nil {
				return fmt.Errorf("make the attribute %s: %w", in.Key, err)
			}
		}
	}
	settings, err := a.Store.Settings(ctx, ws) // with the new attributes
	if err == nil {
		err = i.p.Still(settings, desk.Administer, a.Now())
	}
	if err == nil {
		i.p = i.p.In(settings)
	}
	return err
}

// planned returns the principal as if the attributes that a file needs were there.
func planned(p desk.Principal, file *transfer.File) (desk.Principal, error) {
	if len(file.Created) == 0 {
		return p, nil
	}
	settings := *p.Settings
	settings.Attributes = maps.Clone(p.Settings.Attributes)
	for n, in := range file.Created {
		a, err := in.Apply(nil, len(settings.Attributes), n)
		if err != nil {
			return p, err
		}
		settings.Attributes[a.Key] = &a
	}
	p.Settings = &settings
	return p, nil
}

// groups calls do for the rows after some, as many of them as atOnce says or ImportBytes at a time,
// and for the rest. last tells that no rows follow. While do stores a group, the rows after it are
// read: up to ImportRows or ImportBytes of them.
func groups(ctx context.Context, file *transfer.File, after int64, read func(transfer.Row) Row, atOnce func() int, do func(rows []Row, last bool) error) error {
	ctx, cancel := context.WithCancel(ctx)
	ahead, room := make(chan Row, desk.ImportRows), semaphore.NewWeighted(desk.ImportBytes)
	var readErr error // set before ahead is closed
	go func() {
		defer close(ahead)
		defer steps.Caught("read a file", &readErr)
		readErr = file.Each(after, func(from transfer.Row) error {
			row := read(from)
			err := room.Acquire(ctx, row.size())
			if err == nil {
				ahead <- row
			}
			return err
		})
	}()
	defer func() {
		cancel()
		for range ahead { // until the reader has ended
		}
	}()
	var rows []Row
	size, most := int64(0), atOnce()
	for row := range ahead {
		room.Release(row.size())
		rows, size = append(rows, row), size+row.size()
		if len(rows) < most && size < desk.ImportBytes {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := do(rows, false); err != nil {
			return err
		}
		rows, size, most = nil, 0, atOnce()
	}
	if err := cmp.Or(readErr, ctx.Err()); err != nil {
		return err
	}
	return do(rows, true)
}

// size is how many bytes of a file the row takes, at most ImportBytes.
func (r Row) size() int64 {
	size := len(r.from.Body) + len(r.from.Raw)
	for _, cell := range r.from.Cells {
		size += len(cell)
	}
	return int64(min(size, desk.ImportBytes))
}

// reader returns what makes operations of a file's rows.
func (a *Service) reader(file *transfer.File, s *desk.Settings) func(transfer.Row) Row {
	return func(from transfer.Row) Row {
		row := Row{from: from, Err: from.Err}
		if row.Err != nil {
			return row
		}
		switch file.Options.Kind {
		case desk.ImportOptOuts:
			row.OptOut, row.Err = a.readOptOut(from.Body, s)
		case desk.ImportPeople:
			row.Person, row.Err = a.ReadRow(from.Body, s)
		default:
			row.Op, row.Err = a.ReadContact(from.Body, s)
		}
		return row
	}
}

// readOptOut reads a row of opt-outs, which can't be of the future.
func (a *Service) readOptOut(body []byte, s *desk.Settings) (*desk.OptOutRow, error) {
	row, err := a.ReadOptOut(body, s)
	if err == nil && row.Since > desk.TimeOf(time.Now().Add(time.Minute)) {
		return nil, desk.InvalidAt("/since", "this is in the future")
	}
	return row, err
}

// reject keeps the rejected rows of a group, and returns the size of the file of rejected
// rows.
func reject(tx store.Tx, file *transfer.File, before int64, rows []Row, errs []error, keep Keep) (int64, error) {
	var b bytes.Buffer
	to := file.NewErrorsFile(&b, before)
	for n, err := range errs {
		if err == nil {
			continue
		}
		e := desk.AsError(err)
		kind, reason := e.Type, rejection(e)
		if _, ours := errors.AsType[*desk.Error](err); !ours {
			kind, reason = desk.InvalidRequest, err.Error()
		}
		object, err := json.Marshal(map[string]string{"type": string(kind), "message": reason})
		if err == nil {
			err = to.Reject(rows[n].from, kind, reason, object)
		}
		if err != nil {
			return 0, err
		}
	}
	size, err := to.Flush()
	if err == nil {
		err = keep(tx, before, b.Bytes())
	}
	return size, err
}

// rejection says why a row was rejected, with what the error names.
func rejection(e *desk.Error) string {
	text := e.Worded(strings.TrimPrefix(strings.TrimPrefix(e.At, "/"), "to/"), advice)
	var named []string
	switch list := e.Details.(type) {
	case []desk.AttributeProblem:
		for _, p := range list {
			named = append(named, p.Key+": "+p.Message)
		}
	case []desk.Identity:
		for _, v := range list {
			named = append(named, v.Kind+" "+v.Value)
		}
	}
	if len(named) > 0 {
		text += " (" + strings.Join(named, "; ") + ")"
	}
	return text
}

// advice is what a file of rejected rows says. It is the same file whether a command or a page
// made it, so it names neither.
var advice = map[desk.AdviceKind]string{
	desk.ClearField:       "clear its %s instead",
	desk.ClearOwner:       "clear the owner instead",
	desk.RemoveIdentities: "remove some first",
}
