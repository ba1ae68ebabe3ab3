package app

import (
	"context"
	"sync"
	"time"

	"parley/desk"
)

// holds lets only one call at a time work with an Idempotency-Key. Calls that have waited
// find the attempt of the first call, so they need no place in the provider's limits.
type holds struct {
	mu    sync.Mutex
	byKey map[holdOf]chan struct{} // closed when the call gives up the key
}

type holdOf struct {
	workspace desk.ID
	key       string
}

// enter makes a call the holder of the key, and returns a function with which the call
// gives up the key. While another call is the holder, enter waits for its end: then the call has
// not entered. That call may have another body: whether it keeps the key shows when it has stored
// its attempt. A call that waits too long gets SendInProgress.
func (c *holds) enter(ctx context.Context, of holdOf, most time.Duration, drained <-chan struct{}) (leave func(), entered bool, err error) {
	mine := make(chan struct{})
	other := c.take(of, mine)
	if other == nil {
		return sync.OnceFunc(func() {
			c.mu.Lock()
			delete(c.byKey, of)
			c.mu.Unlock()
			close(mine)
		}), true, nil
	}
	timeout := time.NewTimer(most)
	defer timeout.Stop()
	select {
	case <-other:
		return func() {}, false, nil
	case <-timeout.C:
	case <-drained:
	case <-ctx.Done():
	}
	return func() {}, false, inProgress()
}

// take makes a call the holder of a key, or returns what the present holder closes.
func (c *holds) take(of holdOf, mine chan struct{}) chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if other := c.byKey[of]; other != nil {
		return other
	}
	if c.byKey == nil {
		c.byKey = map[holdOf]chan struct{}{}
	}
	c.byKey[of] = mine
	return nil
}

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

func inProgress() *desk.Error {
	e := desk.Errorf(desk.SendInProgress, "another call with this Idempotency-Key is still being sent: try again to get its answer")
	e.RetryAfter = 1
	return e
}

func keyReused() *desk.Error {
	return desk.Errorf(desk.IdempotencyKeyReused, "this Idempotency-Key was used for another body: send a new value for each send, and the same one only to repeat it unchanged")
}
