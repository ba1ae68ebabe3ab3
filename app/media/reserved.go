package media

import (
	"sync"

	"parley/desk"
)

// reserved counts the bytes that transfers of this process may still store, by workspace.
// With what is stored, they stay below the workspace's limit. Those of other processes are
// not in it: what is stored for good is counted in the transaction that stores it.
type reserved struct {
	mu sync.Mutex
	of map[desk.ID]int64
}

// add changes the bytes of a workspace, if they then do not exceed most (below 0: no limit),
// and returns what others have reserved.
func (r *reserved) add(ws desk.ID, n, most int64) (others int64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	others = r.of[ws]
	if most >= 0 && others+n > most {
		return others, false
	}
	if r.of == nil {
		r.of = map[desk.ID]int64{}
	}
	if r.of[ws] += n; r.of[ws] == 0 {
		delete(r.of, ws)
	}
	return others, true
}
