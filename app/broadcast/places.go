package broadcast

import (
	"context"
	"sync"

	"parley/desk"

	"golang.org/x/sync/semaphore"
)

// flights is how many messages of broadcasts a process sends at a time.
const flights = 256

// Places are those of the messages that a process sends at a time. The workspaces that send share
// them, and wait for one in turn.
type places struct {
	free  *semaphore.Weighted
	mu    sync.Mutex
	taken map[desk.ID]int // by workspaces that have places, or wait for one
}

func newPlaces() *places {
	return &places{free: semaphore.NewWeighted(flights), taken: map[desk.ID]int{}}
}

// take takes a place for a message of a workspace, and waits for it until ctx ends. It returns false
// if the workspace has its share already, or if ctx ends.
func (p *places) take(ctx context.Context, ws desk.ID) bool {
	if !p.asks(ws) {
		return false
	}
	err := p.free.Acquire(ctx, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.taken[ws]++
	} else if p.taken[ws] == 0 {
		delete(p.taken, ws)
	}
	return err == nil
}

// asks notes that a workspace wants a place. It tells whether it may have another one.
func (p *places) asks(ws desk.ID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := p.taken[ws]
	p.taken[ws] = taken
	return taken < min(desk.BroadcastFlights, max(1, flights/len(p.taken)))
}

func (p *places) leave(ws desk.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken[ws]--; p.taken[ws] == 0 {
		delete(p.taken, ws)
	}
	p.free.Release(1)
}

// of returns how many places a workspace has.
func (p *places) of(ws desk.ID) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken[ws]
}
