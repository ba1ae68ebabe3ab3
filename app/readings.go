package app

import (
	"sync"

	"parley/desk"
	"parley/provider"
)

// A reading is the parsed content of a callback. It is kept between transactions,
// because a body may be large.
type reading struct {
	told   []provider.Update
	people []desk.Identity
	err    error
}

// readings caches the readings of callbacks that are being processed.
type readings struct {
	mu   sync.Mutex
	byID map[desk.ID]*reading
}

// maxReadings limits the cache. A callback can always be read again.
const maxReadings = 4 * inboundGroup

func (r *readings) get(id desk.ID) *reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byID[id]
}

func (r *readings) put(id desk.ID, one *reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID == nil || len(r.byID) >= maxReadings {
		r.byID = map[desk.ID]*reading{}
	}
	r.byID[id] = one
}

func (r *readings) drop(id desk.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byID, id)
}
