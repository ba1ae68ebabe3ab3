package app

import (
	"sync"

	"parley/desk"
)

// flights are the attempts of this process that have no answer yet.
type flights struct {
	mu   sync.Mutex
	byID map[desk.ID]*flight
}

type flight struct {
	done   chan struct{}
	answer SendAnswer
	err    error
}

// landed returns a channel that is closed once there is an answer. For a nil flight it is
// never closed.
func (f *flight) landed() <-chan struct{} {
	if f == nil {
		return nil
	}
	return f.done
}

func (f *flights) begin(id desk.ID) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byID == nil {
		f.byID = map[desk.ID]*flight{}
	}
	f.byID[id] = &flight{done: make(chan struct{})}
	return f.byID[id]
}

func (f *flights) of(id desk.ID) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byID[id]
}

func (f *flights) end(id desk.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.byID[id].done)
	delete(f.byID, id)
}

// A SendAnswer is the body of the answer to a send that the provider accepted.
type SendAnswer struct {
	Body     []byte
	Replayed bool // an earlier call with the same key sent the message
}
