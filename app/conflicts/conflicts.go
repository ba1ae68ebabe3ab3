// Package conflicts remembers writes that were refused because their identities belong to
// different contacts, and carries out what a person decides about them. conflicts.go is the
// service with its lists, remember.go remembers, resolve.go decides.
package conflicts

import (
	"context"
	"encoding/binary"
	"log/slog"
	"sync"
	"time"

	"parley/app/cursors"
	"parley/app/merges"
	"parley/desk"
	"parley/store"
)

// Deps are the parts of a Service. All are required.
type Deps struct {
	Store   store.Store
	Merges  *merges.Service
	Cursors cursors.Sealer
	Now     func() desk.Time
	NewID   func() desk.ID
	Uptime  func() time.Duration // a monotonic clock
	Log     *slog.Logger
}

// A Service keeps conflicts. Its methods are safe for concurrent use.
type Service struct {
	Deps

	noted chan struct{} // gets an element when something waits

	mu      sync.Mutex
	waiting map[desk.ID]*waiting // by workspace
	sets    int                  // in all of them
}

// New builds a Service.
func New(d Deps) *Service {
	return &Service{Deps: d, noted: make(chan struct{}, 1), waiting: map[desk.ID]*waiting{}}
}

// A Named is a conflict with the names of its contacts. A contact that was merged has none.
type Named struct {
	*desk.Conflict
	Names map[desk.ID]string
}

// Conflict returns a conflict, or NotFound.
func (a *Service) Conflict(ctx context.Context, p desk.Principal, id desk.ID) (*Named, error) {
	if err := p.Allow(desk.ContactsRead); err != nil {
		return nil, err
	}
	return a.conflict(ctx, p, id)
}

// conflict is Conflict for whoever decides: a decision's answer shows the conflict, also to those
// who may not read others.
func (a *Service) conflict(ctx context.Context, p desk.Principal, id desk.ID) (*Named, error) {
	found, err := a.Store.ConflictsByID(ctx, p.Workspace(), []desk.ID{id})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, noConflict()
	}
	list, err := a.named(ctx, p, found)
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

func noConflict() error { return desk.NotFoundf("no conflict in this workspace has this id") }

// Conflicts returns a page of the conflicts with a status, the newest refusal first, and the
// cursor of the next page, "" if there is none. It returns InvalidRequest for a cursor that it
// did not give out.
func (a *Service) Conflicts(ctx context.Context, p desk.Principal, status desk.ConflictStatus, cursor string, limit int) ([]*Named, string, error) {
	if err := p.Allow(desk.ContactsRead); err != nil {
		return nil, "", err
	}
	list := cursors.List{Workspace: p.Workspace(), Name: "conflicts", Filter: string(status)}
	var after *store.ConflictPlace
	if cursor != "" {
		place, err := a.Cursors.Open(list, cursor)
		if err != nil {
			return nil, "", err
		}
		after = &store.ConflictPlace{LastAt: desk.Time(binary.BigEndian.Uint64(place)), ID: desk.ID(place[8:])}
	}
	page, next, err := a.Store.Conflicts(ctx, p.Workspace(), status, after, limit)
	if err != nil {
		return nil, "", err
	}
	named, err := a.named(ctx, p, page)
	if err != nil || next == nil {
		return named, "", err
	}
	return named, a.Cursors.Seal(list, append(binary.BigEndian.AppendUint64(nil, uint64(next.LastAt)), next.ID[:]...)), nil
}

// Of returns a page of the conflicts of a contact, in the order of ids, after one of them; more
// tells whether others follow.
func (a *Service) Of(ctx context.Context, p desk.Principal, contact, after desk.ID, limit int) (list []*Named, more bool, err error) {
	page, err := a.Store.ConflictsOf(ctx, p.Workspace(), contact, after, limit)
	if err != nil {
		return nil, false, err
	}
	list, err = a.named(ctx, p, page)
	return list, len(page) == limit, err
}

// named adds the names of contacts.
func (a *Service) named(ctx context.Context, p desk.Principal, list []*desk.Conflict) ([]*Named, error) {
	var ids []desk.ID
	known := map[desk.ID]bool{}
	for _, c := range list {
		for _, id := range c.Contacts {
			if !known[id] {
				known[id] = true
				ids = append(ids, id)
			}
		}
	}
	names, err := a.Store.ContactNames(ctx, p.Workspace(), ids)
	named := make([]*Named, len(list))
	for i, c := range list {
		named[i] = &Named{c, names}
	}
	return named, err
}

// Forget deletes conflicts without a refusal for long, up to limit, and returns how many.
func (a *Service) Forget(ctx context.Context, ws desk.ID, limit int) (int, error) {
	now, _, err := a.Store.Clock(ctx)
	if err != nil {
		return 0, err
	}
	return a.Store.ForgetConflicts(ctx, ws, desk.Ago(desk.KeepConflict, now, a.Now()), limit)
}

// A waiting has the refusals of a workspace that are not stored yet, by set of contacts.
type waiting struct {
	sets  map[[32]byte]*desk.Conflict
	order [][32]byte
	room  float64 // how many more sets may come now
	at    time.Duration
}
