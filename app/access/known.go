package access

import (
	"sync"
	"sync/atomic"

	"parley/desk"
)

// maxKnown limits how many principals are kept.
const maxKnown = 10_000

// known keeps the newest principal of each key.
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

// maxUses is how many keys are noted between two calls of StoreKeyUses.
const maxUses = 10_000

// keyUses are the times at which keys were used since these were last stored.
type keyUses struct {
	mu sync.RWMutex
	at map[keyRef]*atomic.Int64
}

type keyRef struct{ workspace, id desk.ID }

// note is called for each request, so it does little.
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
	if int64(now)-at.Load() >= 1000 { // the requests of a busy key need not share each moment
		at.Store(int64(now))
	}
}

// add returns nil if too many keys were noted.
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

// take removes and returns what was noted, by workspace.
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
