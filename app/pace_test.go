package app_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/app"
	"parley/desk"
)

// TestPace: a send beyond the provider's limits is refused before anything is stored, and
// its key stays free. A repeated call gets its stored answer and needs no place. The
// sandbox has no limits.
func TestPace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.connect(metaNumber, metaBusiness)
	full := func([]desk.Bucket, time.Duration) (time.Duration, bool, error) {
		return 2100 * time.Millisecond, false, nil
	}
	w.store.pace = full
	e := refusalOf(t, w.send("k", on(channel), profile(named("Ann"))).err, desk.ProviderUnavailable)
	if f, ok := e.Details.(desk.Failure); !ok || f.Code != 130429 || e.RetryAfter != 3 {
		t.Errorf("refused with %+v, again after %d", e.Details, e.RetryAfter)
	}
	if len(w.meta.calls) != 0 || len(w.attempts()) != 0 || w.holder("k") != nil {
		t.Errorf("stored: %+v", w.attempts())
	}
	w.holds(0, 0, 0)
	w.store.pace = func([]desk.Bucket, time.Duration) (time.Duration, bool, error) { return 0, false, lost() }
	refused(t, w.send("k", on(channel)).err, desk.Unavailable)

	w.store.pace = nil
	if m := w.sent("k", on(channel)); m.Kind != desk.WhatsAppChannel || len(w.meta.calls) != 1 {
		t.Errorf("sent %+v", m)
	}
	w.store.pace = full
	if r := w.send("k", on(channel)); r.err != nil || !r.Replayed {
		t.Errorf("again: %+v, %v", r, r.err)
	}
	w.sent("sandbox", on(w.channel))
	w.holds(1, 2, 2)
}

// TestPace_buckets: places are counted for each of the workspace's numbers, and for each pair
// of such a number and a person, however the person's number is spelled. The buckets' names
// do not show the numbers of people.
func TestPace_buckets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel, sibling := w.connect(metaNumber, metaBusiness), w.connect("200300400500601", metaBusiness)
	var asked [][]desk.Bucket
	w.store.pace = func(b []desk.Bucket, most time.Duration) (time.Duration, bool, error) {
		if most != 2*time.Second {
			t.Errorf("it may wait %s", most)
		}
		asked = append(asked, b)
		return 0, true, nil
	}
	usual := 0
	_, err := w.EditChannel(t.Context(), w.operator(), sibling, app.ChannelEdit{PerSecond: &usual})
	must(t, err)
	w.sent("1", on(channel), to(brazil))
	w.sent("2", on(channel), to(brazilShort))
	w.sent("3", on(channel), to(number))
	w.sent("4", on(sibling), to(brazil))
	if len(asked) != 4 {
		t.Fatalf("asked %d times", len(asked))
	}
	names := map[string]bool{}
	for i, b := range asked {
		interval := time.Millisecond // 1,000 a second
		if i == 3 {
			interval = time.Second / 80
		}
		if len(b) != 2 || b[0].Interval != interval || b[0].Burst != 1 || b[1].Interval != 6*time.Second || b[1].Burst != 10 {
			t.Fatalf("asked for %+v", b)
		}
		for _, b := range b {
			names[b.Name] = true
			for _, n := range []string{brazil, brazilShort, number} {
				if strings.Contains(b.Name, n) {
					t.Errorf("a bucket is called %s", b.Name)
				}
			}
		}
	}
	if asked[0][0].Name != asked[2][0].Name || asked[0][1].Name != asked[1][1].Name || len(names) != 2+3 {
		t.Errorf("the buckets: %v", names)
	}
}

// TestPace_waits: calls wait for their places in the limits, which all nodes share.
func TestPace_waits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.connect(metaNumber, metaBusiness)
	slow := 5
	_, err := w.EditChannel(t.Context(), w.operator(), channel, app.ChannelEdit{PerSecond: &slow})
	must(t, err)
	nodes := []*app.App{w.App, w.node(&faultyStore{Store: w.file}, app.Bounds{})}
	p := w.caller()
	began := time.Now()
	var group sync.WaitGroup
	for n := range 4 {
		group.Go(func() {
			key := fmt.Sprint(n)
			if r := w.sendBy(nodes[n%2], p, key, on(channel), to(fmt.Sprint("90532111000", n))); r.err != nil {
				t.Error(r.err)
			}
		})
	}
	group.Wait()
	if took := time.Since(began); took < 590*time.Millisecond { // three intervals of 200 ms
		t.Errorf("four messages took %s", took)
	}
	w.holds(4, 4, 4)
}

// TestPace_and_keys: calls with one key take one place, and all get the same answer, on any
// process.
func TestPace_and_keys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.connect(metaNumber, metaBusiness)
	var places atomic.Int64
	w.store.pace = func([]desk.Bucket, time.Duration) (time.Duration, bool, error) {
		if places.Add(1) > 1 {
			return 6 * time.Second, false, nil
		}
		return 50 * time.Millisecond, true, nil // in this time the other calls come
	}
	elsewhere := &faultyStore{Store: w.file, pace: func([]desk.Bucket, time.Duration) (time.Duration, bool, error) {
		waitFor(t, "the key to be claimed", func() bool { return w.holder("k") != nil })
		return 6 * time.Second, false, nil
	}}
	nodes := []*app.App{w.App, w.node(elsewhere, app.Bounds{})}
	p := w.caller()
	var group sync.WaitGroup
	var replayed atomic.Int64
	for n := range 8 {
		group.Go(func() {
			r := w.sendBy(nodes[min(1, n%4)^1], p, "k", on(channel))
			if r.err != nil {
				t.Error(r.err)
			}
			if r.Replayed {
				replayed.Add(1)
			}
		})
	}
	group.Wait()
	if len(w.meta.calls) != 1 || replayed.Load() != 7 || places.Load() != 1 {
		t.Errorf("sent %d times, replayed %d times, %d places asked for", len(w.meta.calls), replayed.Load(), places.Load())
	}
	w.holds(1, 1, 1)
}
