package app

import (
	"context"
	"slices"
	"sync"
	"time"

	"parley/desk"
)

// A crew does jobs of workspaces in the background. Each workspace has a limit, so that
// one with many jobs leaves places for the others.
type crew struct {
	work   string        // what it does, for the log
	every  time.Duration // how often it looks for work
	most   int           // how many jobs it does at a time
	mostOf int           // of one workspace

	// due returns the workspaces that have a job now.
	due func(ctx context.Context) ([]desk.ID, error)

	// next does the next job of a workspace, and tells whether there was one.
	next func(ctx context.Context, ws desk.ID) (had bool, err error)
}

// dueNow returns the workspaces that need not wait.
func dueNow(waits map[desk.ID]time.Duration) (list []desk.ID) {
	for ws, wait := range waits {
		if wait == 0 {
			list = append(list, ws)
		}
	}
	return list
}

// runCrew does the jobs until ctx ends, and returns when none is under way.
func (a *App) runCrew(ctx context.Context, c crew) {
	var jobs sync.WaitGroup
	defer jobs.Wait()
	failed := func(err error, of ...any) {
		if err != nil && ctx.Err() == nil {
			a.log.WarnContext(ctx, "background work failed; it will be tried again", append(of, "work", c.work, "err", err)...)
		}
	}
	running, served, turn := map[desk.ID]int{}, map[desk.ID]int64{}, int64(0)
	total := 0
	type ending struct {
		ws  desk.ID
		had bool
	}
	ended := make(chan ending, c.most)
	for ctx.Err() == nil {
		due, err := c.due(ctx)
		failed(err)
		for total < c.most {
			// The workspace with the fewest under way comes first, and of these the one
			// that has waited longest.
			best, found := desk.ID{}, false
			for _, ws := range due {
				switch n := running[ws]; {
				case n >= c.mostOf:
				case !found || n < running[best] || n == running[best] && served[ws] < served[best]:
					best, found = ws, true
				}
			}
			if !found {
				break
			}
			turn++
			served[best] = turn
			running[best]++
			total++
			jobs.Go(func() {
				had, err := c.next(ctx, best)
				if desk.IsType(err, desk.NotFound) { // the workspace was deleted
					err = nil
				}
				failed(err, "workspace_id", best)
				ended <- ending{best, had && err == nil}
			})
		}
		// After a job it asks for more at once, otherwise when some time has passed.
		timer := time.NewTimer(c.every)
		for again := false; !again; {
			select {
			case <-ctx.Done():
				again = true
			case <-timer.C:
				again = true
			case e := <-ended:
				total--
				if running[e.ws]--; running[e.ws] == 0 {
					delete(running, e.ws)
				}
				again = e.had
			}
		}
		timer.Stop()
		for ws := range served {
			if running[ws] == 0 && !slices.Contains(due, ws) {
				delete(served, ws)
			}
		}
	}
}
