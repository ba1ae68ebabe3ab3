package storetest

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/desk"
	"parley/store"
)

// pace takes a place, or expects a refusal. The wait must be at most the given one, and at
// most a minute less, because the test itself takes less than a minute.
func pace(t *testing.T, s store.Store, ws desk.ID, most time.Duration, wantOK bool, want time.Duration, buckets ...desk.Bucket) {
	t.Helper()
	wait, ok, err := s.Pace(t.Context(), ws, buckets, most)
	must(t, err)
	if ok != wantOK || wait > want || wait < max(0, want-time.Minute) {
		t.Errorf("pace: %v after %v, want %v after %v", ok, wait, wantOK, want)
	}
}

func hourly(name string, burst int) desk.Bucket {
	return desk.Bucket{Name: name, Interval: time.Hour, Burst: burst}
}

func paceWaits(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	for range 3 {
		pace(t, s, ws, 0, true, 0, hourly("burst", 3))
	}
	for range 2 { // a refusal takes no place
		pace(t, s, ws, 0, false, time.Hour, hourly("burst", 3))
		pace(t, s, ws, 59*time.Minute, false, time.Hour, hourly("burst", 3))
	}
	for n := range 5 { // a caller that can wait takes future places
		pace(t, s, ws, 10*time.Hour, true, time.Duration(n+1)*time.Hour, hourly("burst", 3))
	}
	pace(t, s, ws, 5*time.Hour, false, 6*time.Hour, hourly("burst", 3))

	pace(t, s, ws, 0, true, 0, hourly("one", 1))
	pace(t, s, ws, 0, false, time.Hour, hourly("one", 1))
	pace(t, s, ws, time.Hour, true, time.Hour, hourly("one", 1))
	pace(t, s, ws, time.Hour, false, 2*time.Hour, hourly("one", 1))

	for range 100 { // places that are used at once do not delay later callers
		pace(t, s, ws, 0, true, 0, desk.Bucket{Name: "fast", Burst: 1})
	}
	pace(t, s, ws, 0, true, 0)
}

func paceTakesAll(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	a, b, c := hourly("a", 2), hourly("b", 1), hourly("c", 3)
	pace(t, s, ws, 0, true, 0, c, b, a)
	for range 3 {
		pace(t, s, ws, 0, false, time.Hour, a, b, c) // because of b
	}
	pace(t, s, ws, 0, true, 0, a)
	pace(t, s, ws, 0, true, 0, c)
	pace(t, s, ws, 3*time.Hour, true, time.Hour, b)
	pace(t, s, ws, 3*time.Hour, true, 2*time.Hour, a, b, c) // the longest wait counts
	pace(t, s, ws, time.Hour, false, 2*time.Hour, a)
	pace(t, s, ws, 0, false, time.Hour, c)
	pace(t, s, ws, 2*time.Hour, false, 3*time.Hour, hourly("new", 1), b)
	pace(t, s, ws, 0, true, 0, hourly("new", 1)) // the refusals took no place of it
}

// paceRaces: if many callers ask at once, they get exactly the places that exist.
func paceRaces(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	const callers, burst = 16, 5
	buckets := []desk.Bucket{hourly("each", callers), hourly("raced", burst), hourly("wide", callers)}
	var got atomic.Int32
	var group sync.WaitGroup
	for n := range callers {
		group.Go(func() {
			list := slices.Clone(buckets)
			if n%2 == 0 {
				slices.Reverse(list)
			}
			wait, ok, err := s.Pace(t.Context(), ws, list, 0)
			if err != nil || ok != (wait == 0) {
				t.Errorf("pace: %v after %v, %v", ok, wait, err)
			}
			if ok {
				got.Add(1)
			}
		})
	}
	group.Wait()
	equal(t, "places taken", got.Load(), int32(burst))
	for range callers - burst { // the other buckets have lost no more places
		pace(t, s, ws, 0, true, 0, buckets[0], buckets[2])
	}
	pace(t, s, ws, 0, false, time.Hour, buckets[0])
}

// paceIsVoid: places that are impossibly far ahead were taken when the clock was ahead.
// They delay nobody, and are deleted.
func paceIsVoid(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	ahead := func() {
		t.Helper()
		pace(t, s, ws, 0, true, 0, desk.Bucket{Name: "a", Interval: 8760 * time.Hour, Burst: 1}) // as if a clock was a year ahead
	}
	ahead()
	pace(t, s, ws, time.Hour, true, 0, hourly("a", 1))
	pace(t, s, ws, time.Hour, true, time.Hour, hourly("a", 1)) // new places count again
	pace(t, s, ws, time.Hour, false, 2*time.Hour, hourly("a", 1))

	other, _ := newWorkspace(t, s)
	ws = other
	ahead()
	must(t, s.ForgetPace(t.Context(), ws, 8761*time.Hour))
	pace(t, s, ws, 8760*time.Hour, true, 8760*time.Hour, hourly("a", 1))
	must(t, s.ForgetPace(t.Context(), ws, 24*time.Hour))
	pace(t, s, ws, 8760*time.Hour, true, 0, hourly("a", 1))
}

func paceIsForgotten(t *testing.T, s store.Store) {
	ws, _ := newWorkspace(t, s)
	must(t, s.ForgetPace(t.Context(), ws, 1000*time.Hour))
	over := desk.Bucket{Name: "over", Burst: 1}
	pace(t, s, ws, 0, true, 0, hourly("held", 1), over)
	must(t, s.ForgetPace(t.Context(), ws, 1000*time.Hour))
	pace(t, s, ws, 0, false, time.Hour, hourly("held", 1))
	pace(t, s, ws, 0, true, 0, over)
}

func paceIsSealed(t *testing.T, s store.Store) {
	one, _ := newWorkspace(t, s)
	two, _ := newWorkspace(t, s)
	for _, ws := range []desk.ID{one, two, {}} { // the zero id has buckets of the whole installation
		pace(t, s, ws, 0, true, 0, hourly("a", 2), hourly("b", 1))
		pace(t, s, ws, 0, false, time.Hour, hourly("b", 1))
	}
	pace(t, s, one, 0, true, 0, hourly("a", 2))
	must(t, s.ForgetPace(t.Context(), one, 1000*time.Hour))
	pace(t, s, one, 0, false, time.Hour, hourly("a", 2))
	pace(t, s, two, 0, true, 0, hourly("a", 2))
}
