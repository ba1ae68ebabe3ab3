package app

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"parley/desk"
)

// workspaceJobs does jobs of workspaces in the background. Each workspace has a limit, so that
// one with many jobs leaves places for the others.
type workspaceJobs struct {
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

// runJobs does the jobs until ctx ends, and returns when none is under way. It looks for
// work every while, and at once when it has done all that it found. A workspace that had no
// job after all is not asked again before the next look, and keeps nobody waiting.
func (a *App) runJobs(ctx context.Context, c workspaceJobs) {
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
		// Of those with as many under way, the one that has waited longest comes first.
		slices.SortStableFunc(due, func(v, w desk.ID) int { return cmp.Compare(served[v], served[w]) })
		found := make(map[desk.ID]bool, len(due))
		for _, ws := range due {
			found[ws] = true
		}
		done, timer := false, time.NewTimer(c.every)
		for again := false; !again; {
			next := -1
			for total < c.most {
				if next = c.pick(due, running); next < 0 {
					break
				}
				ws := due[next]
				due = append(slices.Delete(due, next, next+1), ws)
				turn++
				served[ws] = turn
				running[ws]++
				total++
				jobs.Go(func() {
					had, err := c.next(ctx, ws)
					if desk.IsType(err, desk.NotFound) { // the workspace was deleted
						err = nil
					}
					failed(err, "workspace_id", ws)
					ended <- ending{ws, had && err == nil}
				})
			}
			if done && next < 0 && total < c.most {
				break // what it had found is done or under way
			}
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
				if done = done || e.had; !e.had {
					due = slices.DeleteFunc(due, func(ws desk.ID) bool { return ws == e.ws })
				}
			}
		}
		timer.Stop()
		for ws := range served {
			if running[ws] == 0 && !found[ws] {
				delete(served, ws)
			}
		}
	}
}

// pick returns the place of the workspace whose job is next: the first of those with the
// fewest under way; less than 0: there is none. No more than c.most have any.
func (c workspaceJobs) pick(due []desk.ID, running map[desk.ID]int) int {
	best := -1
	for i, ws := range due {
		n := running[ws]
		if n < c.mostOf && (best < 0 || n < running[due[best]]) {
			best = i
		}
		if n == 0 {
			break
		}
	}
	return best
}
