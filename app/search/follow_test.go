package search

import (
	"testing"
	"time"
)

// TestPace: a follower that is level gives way to writes that stay fast, neither to a burst nor
// to writes at an ordinary rate.
func TestPace(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		rates []int64 // changes a second, in each quarter of a second
		wait  time.Duration
	}{
		"ordinary":          {[]int64{600, 700, 600, 700, 600, 700, 600, 700}, 0},
		"a burst":           {[]int64{0, 4000, 0}, 0},
		"in a burst":        {[]int64{0, 4000}, 0},
		"with a pause":      {[]int64{900, 900, 900, 100, 900, 900, 900}, 0},
		"fast and long":     {[]int64{900, 900, 900, 900, 900, 900}, slow},
		"fast, then slower": {[]int64{900, 900, 900, 900, 900, 900, 600}, 0},
	} {
		p, now, stored := pace{}, time.Unix(1000, 0), int64(50_000)
		p.measure(now, stored, nil, nil)
		for _, rate := range of.rates {
			now, stored = now.Add(250*time.Millisecond), stored+rate/4
			p.measure(now, stored, nil, nil)
		}
		if wait := (&followed{}).wait(&p); wait != of.wait {
			t.Errorf("%s: it waits for %v, want %v", name, wait, of.wait)
		}
	}
	if wait := (&followed{behind: backlog + 1}).wait(&pace{rate: busy + 1}); wait != slow {
		t.Errorf("far behind, it waits for %v, want %v", wait, slow)
	}
}
