package app

import (
	"sync"

	"parley/desk"
)

// receipts counts the receipts on their way to providers.
type receipts struct {
	mu sync.Mutex
	of map[desk.ID]int // by workspace
	n  int
}

const (
	// maxReceipts is how many receipts may be on their way at a time; maxReceiptsOf is the
	// limit for one workspace. Further receipts are left out.
	maxReceipts   = 64
	maxReceiptsOf = 16
	// receiptLife is how old a message may be for its receipt, in milliseconds.
	receiptLife = desk.Time(30 * 24 * 60 * 60 * 1000)
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
