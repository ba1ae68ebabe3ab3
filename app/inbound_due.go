package app

import (
	"context"
	"sync"
	"time"

	"parley/desk"
)

// inboundDue knows which workspaces have inbound items, and when to check each of them,
// by the monotonic clock. The database decides what is due.
type inboundDue struct {
	mu      sync.Mutex
	due     map[desk.ID]time.Duration
	changed chan struct{} // has an element when due has
}

func (g *inboundDue) note(ws desk.ID, due time.Duration) {
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

// take removes and returns the workspaces that are due at now, and the time of the next
// one.
func (g *inboundDue) take(now time.Duration) (list []desk.ID, next time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	next = now + time.Hour
	for ws, due := range g.due {
		switch {
		case due <= now:
			list = append(list, ws)
			delete(g.due, ws)
		case due < next:
			next = due
		}
	}
	return list, next
}

// InboundDue returns the workspaces with inbound items that are due, and how long to
// wait for the next one. It returns each workspace once, until inboundAfter is called
// for it again.
func (a *App) InboundDue() (list []desk.ID, next time.Duration) {
	now := a.uptime()
	list, due := a.inboundDue.take(now)
	return list, due - now
}

// inboundAfter schedules a check of a workspace's inbound items after a wait.
func (a *App) inboundAfter(ws desk.ID, wait time.Duration) { a.inboundDue.note(ws, a.uptime()+wait) }

// InboundNoted has an element if InboundDue may return more than before.
func (a *App) InboundNoted() <-chan struct{} { return a.inboundDue.changed }

// LookForInbound adds the inbound items that other processes have stored to inboundDue.
func (a *App) LookForInbound(ctx context.Context) error {
	due, err := a.store.InboundDue(ctx, longestWait)
	for ws, wait := range due {
		a.inboundAfter(ws, wait)
	}
	return err
}
