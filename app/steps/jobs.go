package steps

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"parley/desk"
)

// Jobs does background jobs of workspaces. Each workspace has a limit, so that one with many
// jobs leaves places for the others.
type Jobs struct {
	Work   string        // the name of the work, for the log
	Every  time.Duration // how often to look for jobs
	Most   int           // how many jobs to do at a time
	MostOf int           // how many jobs of one workspace to do at a time

	// Due returns the workspaces that have a job now.
	Due func(ctx context.Context) ([]desk.ID, error)

	// Next does the next job of a workspace, and tells whether there was one.
	Next func(ctx context.Context, ws desk.ID) (had bool, err error)
}

// DueNow returns the workspaces whose wait is 0.
func DueNow(waits map[desk.ID]time.Duration) (list []desk.ID) {
	for ws, wait := range waits {
		if wait == 0 {
			list = append(list, ws)
		}
	}
	return list
}

// Run does the jobs until ctx ends, and returns when no job is under way. It calls Due
// regularly, and also as soon as it has done all the jobs that it found. If Next finds no
// job in a workspace, this workspace is skipped until the next call of Due.
func (c Jobs) Run(ctx context.Context, log *slog.Logger) {
	var jobs sync.WaitGroup
	defer jobs.Wait()
	failed := func(err error, of ...any) {
		if err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "background work failed; it will be tried again", append(of, "work", c.Work, "err", err)...)
		}
	}
	running, served, turn := map[desk.ID]int{}, map[desk.ID]int64{}, int64(0)
	total := 0
	type ending struct {
		ws  desk.ID
		had bool
	}
	ended := make(chan ending, c.Most)
	for ctx.Err() == nil {
		due, err := c.Due(ctx)
		failed(err)
		// Of workspaces with the same number of jobs under way, the one that has waited longest
		// comes first.
		slices.SortStableFunc(due, func(v, w desk.ID) int { return cmp.Compare(served[v], served[w]) })
		found := make(map[desk.ID]bool, len(due))
		for _, ws := range due {
			found[ws] = true
		}
		done, timer := false, time.NewTimer(c.Every)
		for again := false; !again; {
			next := -1
			for total < c.Most {
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
					had, err := c.Next(ctx, ws)
					if desk.IsType(err, desk.NotFound) { // the workspace was deleted
						err = nil
					}
					failed(err, "workspace_id", ws)
					ended <- ending{ws, had && err == nil}
				})
			}
			if done && next < 0 && total < c.Most {
				break // all found jobs are done or under way
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

// pick returns the index of the workspace whose job is next: the first one with the fewest
// jobs under way. It returns -1 if there is none.
func (c Jobs) pick(due []desk.ID, running map[desk.ID]int) int {
	best := -1
	for i, ws := range due {
		n := running[ws]
		if n < c.MostOf && (best < 0 || n < running[due[best]]) {
			best = i
		}
		if n == 0 {
			break
		}
	}
	return best
}
