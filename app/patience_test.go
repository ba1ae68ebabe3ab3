package app

import (
	"testing"
	"time"

	"parley/desk"
)

// TestPatience: an endpoint that may begin nothing does not look all the time for what it
// could begin.
func TestPatience(t *testing.T) {
	t.Parallel()
	const up = time.Hour
	for name, c := range map[string]struct {
		change   func(*endpoint)
		patience time.Duration
	}{
		"there is more":            {func(*endpoint) {}, time.Millisecond},
		"attempts under way":       {func(e *endpoint) { e.inFlight = desk.MaxInFlight }, idleStep},
		"the lease may have ended": {func(e *endpoint) { e.until.Store(int64(up)) }, idleStep},
		"it is stopping":           {func(e *endpoint) { e.quit() }, idleStep},
		"results to store": {func(e *endpoint) {
			e.inFlight, e.since = desk.MaxInFlight, time.Now().Add(-time.Minute)
		}, time.Millisecond},
	} {
		for _, more := range []bool{true, false} { // else there may be: an event was stored
			e := &endpoint{app: &App{clock: time.Now, uptime: func() time.Duration { return up }}, stopped: make(chan struct{}), more: more, news: true}
			e.until.Store(int64(up + 10*time.Second))
			c.change(e)
			if got := e.patience(false); got != c.patience {
				t.Errorf("%s: it waits %v, want %v", name, got, c.patience)
			}
		}
	}
}
