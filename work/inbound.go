package work

import (
	"context"
	"slices"
	"sync"
	"time"

	"parley/desk"
)

// abreast is the number of workspaces whose inbound items are processed at the same time.
const abreast = 4

// dueEvery is the longest wait between two searches for due items. A longer wait could miss
// its time, because the server's clock may be set, or stop while the machine sleeps.
const dueEvery = time.Second

// inbound processes due items. A workspace has at most one step under way. Its next step
// waits until all other waiting workspaces have had one.
func (r runner) inbound(ctx context.Context) {
	var steps sync.WaitGroup
	defer steps.Wait()
	var waiting []desk.ID
	queued, running := map[desk.ID]bool{}, map[desk.ID]bool{}
	ended := make(chan desk.ID, abreast)
	for {
		due, next := r.app.InboundDue()
		for _, ws := range due {
			if !queued[ws] {
				queued[ws], waiting = true, append(waiting, ws)
			}
		}
		for i := 0; i < len(waiting) && len(running) < abreast; {
			ws := waiting[i]
			if running[ws] {
				i++
				continue
			}
			waiting = slices.Delete(waiting, i, i+1)
			delete(queued, ws)
			running[ws] = true
			steps.Go(func() {
				r.attempt(ctx, "take in inbound items", func(ctx context.Context) error { return r.app.TakeInbound(ctx, ws) })
				ended <- ws
			})
		}
		timer := time.NewTimer(min(next, dueEvery))
		select {
		case <-ctx.Done():
		case <-r.app.InboundNoted():
		case <-timer.C:
		case ws := <-ended:
			delete(running, ws)
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}
