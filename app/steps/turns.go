package steps

import (
	"context"
	"sync"

	"parley/desk"
)

// Turns lets the workspaces do something independently of each other, but each of them only
// once at a time. The zero ID can stand for all of them.
type Turns struct {
	mu    sync.Mutex
	ended map[desk.ID]chan struct{} // is closed when the workspace's turn has ended
}

// Begin waits until no other turn of the workspace runs, and begins one. It returns the
// function that ends it, or Unavailable when ctx ends first.
func (t *Turns) Begin(ctx context.Context, ws desk.ID) (end func(), err error) {
	for {
		t.mu.Lock()
		other := t.ended[ws]
		if other == nil {
			mine := make(chan struct{})
			if t.ended == nil {
				t.ended = map[desk.ID]chan struct{}{}
			}
			t.ended[ws] = mine
			t.mu.Unlock()
			return func() {
				t.mu.Lock()
				defer t.mu.Unlock()
				delete(t.ended, ws)
				close(mine)
			}, nil
		}
		t.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, &desk.Error{Type: desk.Unavailable, Message: "another request of this workspace must end first: try again", RetryAfter: 1, Err: ctx.Err()}
		}
	}
}
