package app

import (
	"sync"

	"parley/desk"
	"parley/store"
)

// pools are the workspaces in which somebody waits whom nobody has.
type pools struct {
	mu    sync.Mutex
	found map[desk.ID]store.Pool // by the last look
	vain  map[desk.ID]vainLook   // in which nobody was eligible
}

// A vainLook is a look at a workspace in which nobody was eligible. It need not be repeated
// while the workspace is as it was, and none of its hours have begun.
type vainLook struct {
	pool        store.Pool
	from, until desk.Time
}

// look returns a workspace as it was before a look at it begins.
func (p *pools) look(ws desk.ID) store.Pool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.found[ws]
}

// wasVain notes that nobody was eligible.
func (p *pools) wasVain(v vainLook) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.vain != nil {
		p.vain[v.pool.Workspace] = v
	}
}
