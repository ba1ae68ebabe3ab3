package app

import (
	"sync"
	"time"

	"parley/desk"
	"parley/provider"
)

// inboundDue knows which workspaces have inbound items, and when to check each of them,
// by the monotonic clock. Whether an item is due is decided by the database.
type inboundDue struct {
	uptime  func() time.Duration
	mu      sync.Mutex
	due     map[desk.ID]time.Duration
	changed chan struct{} // has an element when due has changed
}

// after schedules a check of a workspace's inbound items after a wait.
func (g *inboundDue) after(ws desk.ID, wait time.Duration) {
	due := g.uptime() + wait
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.due == nil {
		g.due = map[desk.ID]time.Duration{}
	}
	if at, ok := g.due[ws]; ok && at <= due {
		return
	}
	g.due[ws] = due
	select {
	case g.changed <- struct{}{}:
	default:
	}
}

// take removes and returns the workspaces that are due, and how long to wait for the next
// one.
func (g *inboundDue) take() (list []desk.ID, wait time.Duration) {
	now := g.uptime()
	g.mu.Lock()
	defer g.mu.Unlock()
	next := now + time.Hour
	for ws, due := range g.due {
		switch {
		case due <= now:
			list = append(list, ws)
			delete(g.due, ws)
		case due < next:
			next = due
		}
	}
	return list, next - now
}

const (
	// postponed is how long an item waits after it could not be processed.
	postponed = time.Hour

	// longestWait is longer than any item waits. If an item is due later than that, the
	// clock was set back after it was stored.
	longestWait = 2 * postponed
)

// itemOf returns the inbound item for an update that is to be processed later. Its wait
// begins at from, by the database's clock.
func itemOf(l provider.Later, channel, id desk.ID, from desk.Time) desk.InboundItem {
	return desk.InboundItem{Channel: channel, ID: id, Due: from + desk.Time(l.Wait.Milliseconds()), Body: l.Body}
}

// inboundGroup is how many inbound items share a transaction. It is small because
// requests wait for the transaction.
const inboundGroup = 10

// gathered is how long a callback that only reports about messages waits, so that others of
// its workspace share its transaction. Nobody waits for such a report: a broadcast's come by
// the hundred. What people write is processed at once, with all that waits.
const gathered = 50 * time.Millisecond

// maxGathered is how many bytes a callback has at most that is read as soon as it is stored.
const maxGathered = 16 << 10
