package feed

import (
	"sync"
	"sync/atomic"

	"parley/app/steps"
	"parley/desk"
	"parley/store"
)

// followers has the readers that wait for events, by workspace.
type followers struct {
	count atomic.Int64 // read without the lock, so that a write without followers costs nothing
	mu    sync.Mutex
	of    map[desk.ID]*followed
	byKey map[desk.ID]int
}

// followed is the record of a workspace that has followers.
type followed struct {
	head  store.Head             // at the last look
	woken map[chan struct{}]bool // true: a follower of parley's own
	count int                    // the followers without parley's own
}

// add adds a follower, which is woken when the workspace may have new events. The parameter
// by is the key or the member to whose limit the follower counts. The zero id stands for
// parley itself, which has no limits.
func (f *followers) add(ws, by desk.ID, woken chan struct{}) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.full(ws, by); e != nil {
		e.RetryAfter = 5
		return e
	}
	if f.of == nil {
		f.of, f.byKey = map[desk.ID]*followed{}, map[desk.ID]int{}
	}
	if f.of[ws] == nil {
		f.of[ws] = &followed{woken: map[chan struct{}]bool{}}
	}
	f.of[ws].woken[woken] = by.IsZero()
	if !by.IsZero() {
		f.of[ws].count++
	}
	f.byKey[by]++
	f.count.Add(1)
	return nil
}

// full returns an error if there is no place for a follower. The followers of parley itself
// don't count.
func (f *followers) full(ws, by desk.ID) *desk.Error {
	of := f.of[ws]
	switch {
	case by.IsZero():
		return nil
	case f.byKey[by] >= desk.MaxKeyFollowers:
		return desk.Errorf(desk.RateLimited, "this key has %d streams and waiting reads already: close one first", desk.MaxKeyFollowers)
	case of != nil && of.count >= desk.MaxWorkspaceFollowers:
		return desk.Errorf(desk.RateLimited, "this workspace has %d streams and waiting reads already: close one first", desk.MaxWorkspaceFollowers)
	case f.count.Load()-int64(f.byKey[desk.ID{}]) >= desk.MaxFollowers:
		return desk.Errorf(desk.Unavailable, "this server has %d streams and waiting reads already", desk.MaxFollowers)
	}
	return nil
}

func (f *followers) remove(ws, by desk.ID, woken chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := f.of[ws]
	if !by.IsZero() {
		of.count--
	}
	if delete(of.woken, woken); len(of.woken) == 0 {
		delete(f.of, ws)
	}
	if f.byKey[by]--; f.byKey[by] == 0 {
		delete(f.byKey, by)
	}
	f.count.Add(-1)
}

// wake wakes the followers of a workspace.
func (f *followers) wake(ws desk.ID) {
	if f.count.Load() == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wakeLocked(ws, false)
}

// wakeLocked wakes the followers of a workspace. If away is true, the database can't be
// read. Then it does not wake the followers of parley itself, which notice this on their
// own.
func (f *followers) wakeLocked(ws desk.ID, away bool) {
	if of := f.of[ws]; of != nil {
		for woken, own := range of.woken {
			if !away || !own {
				steps.Wake(woken)
			}
		}
	}
}

func (f *followers) workspaces() (list []desk.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for ws := range f.of {
		list = append(list, ws)
	}
	return list
}
