package app

import (
	"sync"
	"time"

	"parley/app/feed"
	"parley/desk"
	"parley/store"
)

// pools are the workspaces with unassigned conversations in which a person waits.
type pools struct {
	mu    sync.Mutex
	news  *feed.News
	allAt time.Time              // when the pools of all workspaces were last read
	found map[desk.ID]store.Pool // as they were last read
	vain  map[desk.ID]vainLook   // the workspaces without an eligible member
}

// A vainLook is a look at a workspace in which no member was eligible. It need not be
// repeated until the workspace's pool changes, or its next hours begin.
type vainLook struct {
	pool        store.Pool
	from, until desk.Time
}

// look returns the pool of a workspace, as poolsDue has last found it.
func (p *pools) look(ws desk.ID) store.Pool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.found[ws]
}

// wasVain records that no member was eligible.
func (p *pools) wasVain(v vainLook) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.vain != nil {
		p.vain[v.pool.Workspace] = v
	}
}
