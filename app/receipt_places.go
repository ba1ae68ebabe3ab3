package app

import (
	"sync"

	"parley/desk"
)

// receipts has the number of read receipts that are on their way to providers.
type receipts struct {
	mu sync.Mutex
	of map[desk.ID]int // by workspace
	n  int
}

const (
	// maxReceipts is how many receipts are on their way at a time. maxReceiptsOf is the limit
	// for one workspace. Receipts above these limits are not sent.
	maxReceipts   = 64
	maxReceiptsOf = 16
)

func (r *receipts) enter(ws desk.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n >= maxReceipts || r.of[ws] >= maxReceiptsOf {
		return false
	}
	if r.of == nil {
		r.of = map[desk.ID]int{}
	}
	r.n++
	r.of[ws]++
	return true
}

func (r *receipts) leave(ws desk.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n--
	if r.of[ws]--; r.of[ws] == 0 {
		delete(r.of, ws)
	}
}
