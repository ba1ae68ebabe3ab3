package media

import (
	"context"
	"io"
	"sync"
	"time"

	"parley/desk"
)

// transfers limits the uploads and downloads under way. Each has buffers of about a
// mebibyte.
type transfers struct {
	mu   sync.Mutex
	n    int
	of   map[desk.ID]int // by workspace
	left chan struct{}   // closed when a transfer ends; nil: no call waits
}

const (
	maxTransfers = 48

	// transferPatience is how long a transfer waits for a slot.
	transferPatience = 5 * time.Second
)

var errNoTransfer = desk.Errorf(desk.Unavailable, "too many files are under way; send the request again")

// enter waits for a slot. A workspace gets another slot only if it has fewer than half as
// many slots as are free. So other workspaces always find a free slot. The caller must call
// leave once.
func (t *transfers) enter(ctx context.Context, ws desk.ID) (leave func(), err error) {
	patience := time.NewTimer(transferPatience)
	defer patience.Stop()
	for {
		left := t.try(ws)
		if left == nil {
			return sync.OnceFunc(func() { t.leave(ws) }), nil
		}
		select {
		case <-left:
		case <-patience.C:
			return nil, errNoTransfer
		case <-ctx.Done():
			return nil, errNoTransfer
		}
	}
}

// try takes a slot and returns nil. If there is none, it returns a channel that is closed
// when there may be one.
func (t *transfers) try(ws desk.ID) (left chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n < maxTransfers && (t.of[ws] == 0 || 2*t.of[ws] < maxTransfers-t.n) {
		if t.of == nil {
			t.of = map[desk.ID]int{}
		}
		t.n++
		t.of[ws]++
		return nil
	}
	if t.left == nil {
		t.left = make(chan struct{})
	}
	return t.left
}

func (t *transfers) leave(ws desk.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n--
	if t.of[ws]--; t.of[ws] == 0 {
		delete(t.of, ws)
	}
	if t.left != nil {
		close(t.left)
		t.left = nil
	}
}

// A transfer is the content of a file that occupies a slot while it is read.
type transfer struct {
	io.ReadSeekCloser
	leave func()
}

// Close ends the transfer.
func (t *transfer) Close() error {
	defer t.leave()
	return t.ReadSeekCloser.Close()
}
