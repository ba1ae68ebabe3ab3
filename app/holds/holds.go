// Package holds lets one call at a time work with an Idempotency-Key. Calls that have waited find
// the attempt of the first call, so they need no place in the provider's limits.
package holds

import (
	"context"
	"errors"
	"sync"
	"time"

	"parley/desk"
)

// Keys are the Idempotency-Keys with which calls of this process work now. The zero value has none.
// Its methods are safe for concurrent use.
type Keys struct {
	mu sync.Mutex
	of map[of]*Hold
}

type of struct {
	workspace desk.ID
	key       string
}

// A Hold is a call that works with a key.
type Hold struct {
	keys    *Keys
	of      of
	hash    [32]byte // of the call's body
	planned chan struct{}
	ended   chan struct{}
	refusal error // set before ended is closed
}

// Enter makes a call the holder of its key. While another call is the holder, Enter waits for its
// end and returns nil: the caller looks for the attempt that the other call may have stored, and
// enters again if there is none. Enter returns the refusal of a call with the same body for which
// it has waited, Reused once a call with another body has the key for itself, and InProgress if
// late or drained comes before.
func (k *Keys) Enter(ctx context.Context, workspace desk.ID, key string, hash [32]byte, late <-chan time.Time, drained <-chan struct{}) (*Hold, error) {
	mine := &Hold{keys: k, of: of{workspace, key}, hash: hash, planned: make(chan struct{}), ended: make(chan struct{})}
	other := k.take(mine)
	if other == nil {
		return mine, nil
	}
	planned, same := other.planned, other.hash == hash
	if same {
		planned = nil
	}
	select {
	case <-other.ended:
		if same {
			return nil, other.refusal
		}
		return nil, nil
	case <-planned:
		return nil, Reused()
	case <-late:
	case <-drained:
	case <-ctx.Done():
	}
	return nil, InProgress()
}

// take makes a call the holder of its key, or returns the present holder.
func (k *Keys) take(mine *Hold) (other *Hold) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if other := k.of[mine.of]; other != nil {
		return other
	}
	if k.of == nil {
		k.of = map[of]*Hold{}
	}
	k.of[mine.of] = mine
	return nil
}

// Plan tells that no attempt has the key, so that it is for this call's body. Before, it may be
// another body's: a call that only looks does not refuse others.
func (h *Hold) Plan() { close(h.planned) }

// Leave gives up the key. If the call was refused, those who wait with the same body get the same
// answer, unless it is one that another call, or another caller, may not get.
func (h *Hold) Leave(err error) {
	var refusal *desk.Error
	if errors.As(err, &refusal) {
		switch refusal.Type {
		case desk.Internal, desk.Unavailable, desk.Unauthorized, desk.Forbidden:
		default:
			h.refusal = err
		}
	}
	h.keys.mu.Lock()
	delete(h.keys.of, h.of)
	h.keys.mu.Unlock()
	close(h.ended)
}

// InProgress is the answer for a call that has waited too long for another one.
func InProgress() *desk.Error {
	e := desk.Errorf(desk.SendInProgress, "another call with this Idempotency-Key is still being sent: try again to get its answer")
	e.RetryAfter = 1
	return e
}

// Reused is the answer for a call whose key is another body's.
func Reused() *desk.Error {
	return desk.Errorf(desk.IdempotencyKeyReused, "this Idempotency-Key was used for another body: send a new value for each send, and the same one only to repeat it unchanged")
}
