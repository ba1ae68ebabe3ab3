// Package imports stores the rows of files, in groups. Each group is one transaction with the
// place in the file, so an import that was interrupted goes on where it was.
//
//	imports.go  an import: its lease, its place, its transactions
//	rows.go     rows as operations, in groups; the file of rejected rows
//	uploads.go  files that members import in the console: choosing, starting, stopping
//	work.go     the uploads that this process imports
package imports

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"parley/app/broadcast"
	"parley/app/feed"
	"parley/desk"
	"parley/store"
	"parley/transfer"
)

// lookEvery is how often a waiting import asks for the lease.
const lookEvery = 500 * time.Millisecond

// Deps are the parts of a Service. All are required.
type Deps struct {
	Store  store.Store
	Feed   *feed.Service
	People *broadcast.Service
	Now    func() desk.Time
	NewID  func() desk.ID
	Log    *slog.Logger
	Hash   func(ws desk.ID, handle string) store.NumberHash                                             // of a number, as opt-outs have it
	OptOut func(tx store.OptOutTx, number store.NumberHash, o desk.OptOutRow) (changed bool, err error) // stores a choice

	ReadContact  func(body []byte, s *desk.Settings) (*desk.Op, error)        // reads a body of POST /contacts
	ReadRow      func(body []byte, s *desk.Settings) (desk.RowInput, error)   // reads a row of POST /broadcasts/{id}/rows
	ReadOptOut   func(body []byte, s *desk.Settings) (*desk.OptOutRow, error) // reads a row of opt-outs
	PutAttribute func(ctx context.Context, p desk.Principal, in desk.AttributeInput) error

	Open    func(ctx context.Context, p desk.Principal, media desk.ID) (io.ReadCloser, error) // opens the file of an upload
	Refused func(ctx context.Context, p desk.Principal, refusals []error)                     // remembers why rows were refused; nil for a row that was not
}

// A Service imports files. Its methods are safe for concurrent use.
type Service struct {
	Deps
	due *feed.Due // uploads
}

// New builds a Service.
func New(d Deps) *Service {
	due := d.Feed.Due(func(ctx context.Context) (map[desk.ID]time.Duration, error) {
		return d.Store.UploadsDue(ctx, desk.ImportLease)
	})
	return &Service{d, due}
}

// An Import is an import that this process does. It is used by one goroutine.
type Import struct {
	service *Service
	p       desk.Principal
	lease   store.LeaseRef
	holder  desk.ID
	mu      sync.Mutex
	until   time.Time // the lease is extended before
	Run     desk.ImportRun
	Resumed bool // it goes on with an earlier run
	step    int  // how many rows a transaction stores; 0: there was none

	upload *desk.Upload                                             // nil: a command imports
	dry    bool                                                     // it is a check of the upload
	moves  func(tx store.Tx, next *desk.ImportRun, last bool) error // of an upload: may end it
}

// A Row is a row of a file. Err is set if the row was refused before it was tried.
type Row struct {
	Op     *desk.Op
	OptOut *desk.OptOutRow
	Person desk.RowInput // of a broadcast
	Err    error

	from transfer.Row
}

// Begin takes the workspace for an import, and goes on with an interrupted import of the same
// key. If another import is at work, Begin waits desk.ImportWait for it; then it returns
// Unavailable.
func (a *Service) Begin(ctx context.Context, p desk.Principal, key [32]byte) (*Import, error) {
	i := &Import{service: a, p: p, lease: leaseOf(p.Workspace()), holder: a.NewID()}
	for stop := time.Now().Add(desk.ImportWait); ; {
		held, err := a.hold(ctx, i)
		if err != nil {
			return nil, err
		}
		if held {
			break
		}
		if time.Now().After(stop) {
			return nil, desk.Errorf(desk.Unavailable, "another import is at work in this workspace: wait for it to end")
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lookEvery):
		}
	}
	err := a.begin(ctx, i, key)
	if err != nil {
		_ = i.End(ctx) // the lease ends by itself, too
		return nil, err
	}
	return i, nil
}

// begin finds the run that goes on, or begins a new one.
func (a *Service) begin(ctx context.Context, i *Import, key [32]byte) error {
	p, now := i.p, a.Now()
	if err := a.Store.ForgetImports(ctx, p.Workspace(), now-desk.Time(desk.KeepImport.Milliseconds())); err != nil {
		return err
	}
	run, err := a.Store.ImportOf(ctx, p.Workspace(), key)
	if err != nil {
		return err
	}
	if run != nil && run.EndedAt == 0 {
		i.Run, i.Resumed = *run, true
		return nil
	}
	return i.Anew(ctx, key)
}

// Anew begins the import at the first row.
func (i *Import) Anew(ctx context.Context, key [32]byte) error {
	i.Run = desk.ImportRun{ID: i.service.NewID(), Key: key, StartedAt: i.service.Now()}
	i.Resumed = false
	return i.service.Store.InTx(ctx, i.p.Workspace(), func(tx store.Tx) error { return tx.PutImport(i.Run) })
}

// leaseOf is what an import of the workspace holds.
func leaseOf(ws desk.ID) store.LeaseRef {
	return store.LeaseRef{Workspace: ws, Task: store.ImportTask}
}

func (a *Service) hold(ctx context.Context, i *Import) (bool, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	before := time.Now()
	held, err := a.Store.HoldLeases(ctx, []store.LeaseRef{i.lease}, i.holder, desk.Time(desk.ImportLease.Milliseconds()))
	if _, ours := held[i.lease]; err != nil || !ours {
		return false, err
	}
	i.until = before.Add(desk.ImportLease / 3)
	return true, nil
}

// End gives the workspace back.
func (i *Import) End(ctx context.Context) error {
	return i.service.Store.EndLease(context.WithoutCancel(ctx), i.lease, i.holder)
}

// errMoved means that another process goes on with this import.
var errMoved = desk.Errorf(desk.Unavailable, "another process goes on with this import: run the command again to wait for it")

// Store stores rows, all in one transaction with the new place. errs has an element for each
// row, nil for those that are stored. errorBytes is called before the commit with these
// errors; it returns the size of the file of rejected rows. last tells that no rows follow.
// A member must still be an admin. With them, an upload ends; the import of a command ends by
// Finish.
func (i *Import) Store(ctx context.Context, rows []Row, last bool, errorBytes func(tx store.Tx, errs []error) (int64, error)) error {
	a := i.service
	if i.lapses() {
		if held, err := a.hold(ctx, i); err != nil || !held {
			if err == nil {
				err = errMoved
			}
			return err
		}
	}
	var next desk.ImportRun
	tried := i.Run.ImportCounts
	var refused []error
	var people broadcast.Named
	var err error
	switch {
	case i.people():
		people, err = a.People.Find(ctx, i.p.Workspace(), peopleOf(rows))
	case i.dry:
		refused, err = a.Try(ctx, i.p, rows, &tried)
	}
	if err != nil {
		return err
	}
	err = a.Store.InTx(ctx, i.p.Workspace(), func(tx store.Tx) error {
		if err := i.unmoved(tx); err != nil {
			return err
		}
		if err := i.p.Still(tx.Settings(), desk.Administer, a.Now()); err != nil {
			return err
		}
		next = i.Run
		switch {
		case i.people():
			refused, err = i.storePeople(tx, people, &next.ImportCounts)
		case i.dry:
			next.ImportCounts = tried
		default:
			refused, err = i.storeAll(tx, rows, &next.ImportCounts)
		}
		if err != nil {
			return err
		}
		if next.ErrorBytes, err = errorBytes(tx, refused); err != nil {
			return err
		}
		if i.moves != nil {
			if err := i.moves(tx, &next, last); err != nil {
				return err
			}
		}
		return tx.PutImport(next)
	})
	if err == nil {
		i.Run = next
		if !i.dry {
			a.Refused(ctx, i.p, refused)
		}
	}
	return err
}

// unmoved returns errMoved if another process was faster, or has begun anew.
func (i *Import) unmoved(tx store.Tx) error {
	stored, err := tx.Import(i.Run.ID)
	if err == nil && (stored == nil || *stored != i.Run) {
		err = errMoved
	}
	return err
}

// Finish ends the import of a command, after all that the command leaves behind is in its place.
// Until then, the same command goes on, even if no rows are left.
func (i *Import) Finish(ctx context.Context) error {
	next := i.Run
	next.EndedAt = i.service.Now()
	err := i.service.Store.InTx(ctx, i.p.Workspace(), func(tx store.Tx) error {
		if err := i.unmoved(tx); err != nil {
			return err
		}
		return tx.PutImport(next)
	})
	if err == nil {
		i.Run = next
	}
	return err
}

// lapses tells whether the lease must be extended now.
func (i *Import) lapses() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return time.Now().After(i.until)
}

// storeAll stores a group.
func (i *Import) storeAll(tx store.Tx, rows []Row, n *desk.ImportCounts) (errs []error, err error) {
	errs = make([]error, len(rows))
	err = i.storeSome(tx, rows, errs, n)
	n.Rows += int64(len(rows))
	return errs, err
}

// people tells whether the rows are people of a broadcast.
func (i *Import) people() bool { return i.upload != nil && !i.upload.Broadcast.IsZero() }

// A closed error says why a broadcast takes no more people.
type closed struct{ why string }

func (c closed) Error() string { return c.why }

// Why an upload of people fails.
const (
	noDraft = "the broadcast is not a draft any more"
	deleted = "the broadcast was deleted"
)

// peopleOf returns the rows of a group as a broadcast takes them.
func peopleOf(rows []Row) []desk.RowInput {
	people := make([]desk.RowInput, len(rows))
	for at, r := range rows {
		people[at] = r.Person
		people[at].Err = r.Err
	}
	return people
}

// storePeople adds a group to the broadcast of the upload. A check stores nothing.
func (i *Import) storePeople(tx store.Tx, people broadcast.Named, n *desk.ImportCounts) (errs []error, err error) {
	var tried *int64
	if i.dry {
		tried = &n.Created
	}
	results, err := i.service.People.AddIn(tx, i.p, i.upload.Broadcast, people, tried)
	switch {
	case desk.IsType(err, desk.NotFound):
		return nil, closed{deleted}
	case desk.IsType(err, desk.BroadcastInState):
		return nil, closed{noDraft}
	case desk.IsType(err, desk.InvalidRequest):
		return nil, closed{desk.AsError(err).Message}
	case err != nil:
		return nil, err
	}
	for _, r := range results {
		switch errs = append(errs, r.Err); {
		case r.Err != nil:
			n.Rejected++
		case r.Status == "added":
			n.Created++
		case r.Status == "replaced":
			n.Updated++
		default:
			n.Unchanged++
		}
	}
	n.Rows += int64(len(results))
	return errs, nil
}

// storeSome stores some rows of a group. If their contacts are large, it stores them in parts.
func (i *Import) storeSome(tx store.Tx, rows []Row, errs []error, n *desk.ImportCounts) error {
	named := lookupOf(rows)
	if len(rows) > 1 {
		named.Most = desk.MaxBookBytes
	}
	book, err := tx.Book(named)
	if err != nil {
		return err
	}
	if half := len(rows) / 2; named.Most > 0 && book.Full() {
		if err := i.storeSome(tx, rows[:half], errs[:half], n); err != nil {
			return err
		}
		return i.storeSome(tx, rows[half:], errs[half:], n)
	}
	now := i.service.Now()
	for at, r := range rows {
		switch {
		case r.Err != nil:
			errs[at] = r.Err
		case r.OptOut != nil:
			changed, err := i.service.OptOut(tx, i.service.Hash(i.p.Workspace(), r.OptOut.Number), *r.OptOut)
			if err != nil {
				return err
			}
			if !changed {
				n.Unchanged++
				continue
			}
			n.Updated++
			if c := book.Oldest(numberOf(r.OptOut)); c != nil {
				event := desk.Event{Type: desk.ContactOptedIn, Subject: c.ID, Actor: i.p.Actor, At: now}
				if r.OptOut.OptedOut {
					event.Type = desk.ContactOptedOut
				}
				if err := tx.Append(event); err != nil {
					return err
				}
			}
		default:
			errs[at] = i.service.apply(book, r.Op, i.p.Actor, now, n)
		}
		if errs[at] != nil {
			n.Rejected++
		}
	}
	return tx.Flush(book)
}

// lookupOf names the contacts that rows can change, or tell of.
func lookupOf(rows []Row) (named desk.Lookup) {
	for _, r := range rows {
		switch {
		case r.Err != nil:
		case r.OptOut != nil:
			named.Identities = append(named.Identities, numberOf(r.OptOut))
		default:
			named.Identities = append(named.Identities, r.Op.Identities()...)
		}
	}
	return named
}

// apply applies a row's operation to a book, and counts it unless it is refused.
func (a *Service) apply(book *desk.Book, op *desk.Op, actor desk.Actor, now desk.Time, n *desk.ImportCounts) error {
	before := len(book.Events())
	outcome, err := book.Apply(op, actor, now, a.NewID)
	switch {
	case err != nil:
	case outcome.Status == desk.StatusCreated:
		n.Created++
	case len(book.Events()) > before:
		n.Updated++
	default:
		n.Unchanged++
	}
	return err
}

// numberOf is the identity of the person whose choice a row has.
func numberOf(o *desk.OptOutRow) desk.Identity {
	return desk.Identity{Kind: desk.KindPhone, Value: o.Number}
}

// Try is Store as a dry run: it stores nothing. It judges the rows together, but does not see
// rows of other calls. If their contacts are large, it judges them in parts. It returns the errors,
// and adds to the counts. Rows of opt-outs are for tryOptOuts.
func (a *Service) Try(ctx context.Context, p desk.Principal, rows []Row, n *desk.ImportCounts) (errs []error, err error) {
	errs = make([]error, len(rows))
	named := lookupOf(rows)
	if len(rows) > 1 {
		named.Most = 8 * desk.MaxBookBytes
	}
	book, err := a.Store.Book(ctx, p.Workspace(), named)
	if err != nil {
		return nil, err
	}
	if named.Most > 0 && book.Over(named.Most) {
		first, err := a.Try(ctx, p, rows[:len(rows)/2], n)
		if err != nil {
			return nil, err
		}
		rest, err := a.Try(ctx, p, rows[len(rows)/2:], n)
		return append(first, rest...), err
	}
	book.As(p.Settings) // a dry run may have planned attributes
	now := a.Now()
	for at, r := range rows {
		if errs[at] = r.Err; r.Err == nil {
			errs[at] = a.apply(book, r.Op, p.Actor, now, n)
		}
		if errs[at] != nil {
			n.Rejected++
		}
	}
	n.Rows += int64(len(rows))
	return errs, nil
}

// choices are marketing choices of a dry run, which changes only its copy of them.
type choices map[store.NumberHash]store.OptOut

func (c choices) OptOut(number store.NumberHash) (store.OptOut, error) { return c[number], nil }

func (c choices) SetOptOut(number store.NumberHash, o store.OptOut) error {
	c[number] = o
	return nil
}

// tryOptOuts is Try for rows of opt-outs.
func (a *Service) tryOptOuts(ctx context.Context, p desk.Principal, rows []Row, n *desk.ImportCounts) (errs []error, err error) {
	errs = make([]error, len(rows))
	var numbers []store.NumberHash
	for _, r := range rows {
		if r.Err == nil {
			numbers = append(numbers, a.Hash(p.Workspace(), r.OptOut.Number))
		}
	}
	known, err := a.Store.Choices(ctx, p.Workspace(), numbers)
	if err != nil {
		return nil, err
	}
	for at, r := range rows {
		if errs[at] = r.Err; r.Err != nil {
			n.Rejected++
			continue
		}
		changed, err := a.OptOut(choices(known), numbers[0], *r.OptOut)
		if err != nil {
			return nil, err
		}
		if numbers = numbers[1:]; changed {
			n.Updated++
		} else {
			n.Unchanged++
		}
	}
	n.Rows += int64(len(rows))
	return errs, nil
}
