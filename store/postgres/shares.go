package postgres

import (
	"context"
	"errors"
	"sync"

	"parley/desk"
	"parley/store/internal/stored"
)

// A process that hangs may keep rows of a workspace locked. The transactions of other
// processes that wait for these rows must not take all connections. So all transactions
// on one workspace together, also those that store deliveries, may have only a share of a
// node's connections. Transactions that assign by policy exclude each other. Only one of
// them has a connection; the others wait before they get one.

// shares holds a share for each workspace with running transactions.
type shares struct {
	mu   sync.Mutex
	most int
	byID map[desk.ID]*share
}

// A share limits the connections for one workspace.
type share struct {
	users   int           // under mu of shares
	slots   chan struct{} // has an element for each transaction with a connection
	assigns chan struct{} // has an element while a transaction assigns
}

// shareOf returns how many of a pool's connections one workspace may have: three
// quarters.
func shareOf(connections int32) int { return max(1, int(connections)-max(1, int(connections)/4)) }

// use returns the share of a workspace. The caller must call done when it no longer needs
// the share.
func (s *shares) use(ws desk.ID) (v *share, done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v = s.byID[ws]; v == nil {
		v = &share{slots: make(chan struct{}, s.most), assigns: make(chan struct{}, 1)}
		if s.byID == nil {
			s.byID = map[desk.ID]*share{}
		}
		s.byID[ws] = v
	}
	v.users++
	return v, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if v.users--; v.users == 0 {
			delete(s.byID, ws)
		}
	}
}

// errAssigning means that another transaction of this process assigns in the workspace.
var errAssigning = errors.New("another transaction assigns")

// takePlace waits until the channel places has room, and adds an element.
func takePlace(ctx context.Context, places chan struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	default:
	}
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return stored.Unavailable(ctx.Err())
	}
}
