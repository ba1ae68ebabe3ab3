package media

import (
	"sync"

	"parley/desk"
)

// reserved has the number of bytes that transfers of this process have reserved, by
// workspace. Stored and reserved bytes together stay below the workspace's limit. Transfers
// of other processes are not counted here; the transaction that stores a file checks the
// limit again.
type reserved struct {
	mu sync.Mutex
	of map[desk.ID]int64
}

// add adds n to the reserved bytes of a workspace, unless the sum would exceed the limit
// most (below 0: no limit). It returns the number of bytes that were reserved before.
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
