package access

import (
	"sync"
	"sync/atomic"

	"parley/desk"
)

// maxKnown limits how many principals are kept.
const maxKnown = 10_000

// known is a cache with the newest principal of each key.
type known struct {
	mu       sync.RWMutex
	byPublic map[string]desk.Principal
}

func (k *known) get(public string) (desk.Principal, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	p, ok := k.byPublic[public]
	return p, ok
}

func (k *known) put(public string, p desk.Principal) {
	if old, ok := k.get(public); ok && old.SameSettings(p) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byPublic == nil || len(k.byPublic) >= maxKnown {
		k.byPublic = map[string]desk.Principal{}
	}
	k.byPublic[public] = p
}

// maxUses is for how many keys the last use is recorded between two calls of StoreKeyUses.
const maxUses = 10_000

// keyUses has the times at which keys were used, until they are stored.
type keyUses struct {
	mu sync.RWMutex
	at map[keyRef]*atomic.Int64
}

type keyRef struct{ workspace, id desk.ID }

// note records the use of a key. It is called for each request, so it must be fast.
func (u *keyUses) note(p desk.Principal, now desk.Time) {
	ref := keyRef{p.Settings.ID, p.Key.ID}
	u.mu.RLock()
	at := u.at[ref]
	u.mu.RUnlock()
	if at == nil {
		if at = u.add(ref); at == nil {
			return
		}
	}
	if int64(now)-at.Load() >= 1000 { // once a second, because requests of a busy key contend for this value
		at.Store(int64(now))
	}
}

// add returns the value for the time of a key, or nil if there are too many keys.
func (u *keyUses) add(ref keyRef) *atomic.Int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	at := u.at[ref]
	if at != nil || len(u.at) >= maxUses {
		return at
	}
	if u.at == nil {
		u.at = map[keyRef]*atomic.Int64{}
	}
	at = new(atomic.Int64)
	u.at[ref] = at
	return at
}

// take removes and returns the recorded times, by workspace.
func (u *keyUses) take() map[desk.ID]map[desk.ID]desk.Time {
	u.mu.Lock()
	noted := u.at
	u.at = nil
	u.mu.Unlock()
	uses := map[desk.ID]map[desk.ID]desk.Time{}
	for ref, at := range noted {
		if uses[ref.workspace] == nil {
			uses[ref.workspace] = map[desk.ID]desk.Time{}
		}
		uses[ref.workspace][ref.id] = desk.Time(at.Load())
	}
	return uses
}
