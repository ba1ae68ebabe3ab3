package app_test

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/desk"
	"parley/provider"
)

var (
	broadcastShifts = flag.Int("broadcast-shifts", 3, "around how many shifts of clocks TestBroadcast_hours sends. Long run: 20")
	broadcastADay   = flag.Int("broadcast-a-day", 25, "how many people TestBroadcast_aDay sends to in a day; it has 2.4 times as many. Long run: 500")
)

// sentAt makes the provider take all messages and note when.
func (w *world) sentAt() func() []time.Time {
	var mu sync.Mutex
	var list []time.Time
	w.provider.plays(func(ctx context.Context, d provider.Dispatch) (provider.Receipt, error) {
		mu.Lock()
		list = append(list, w.clock.now())
		mu.Unlock()
		return takes(ctx, d)
	})
	return func() []time.Time {
		mu.Lock()
		defer mu.Unlock()
		return append([]time.Time(nil), list...)
	}
}

// until sets the clock to a moment.
func (c *clock) until(at time.Time) { c.advance(at.Sub(c.now())) }

// shiftsOf returns n shifts of clocks after a moment, of several zones in turn.
func shiftsOf(t *testing.T, after time.Time, n int) (list []time.Time) {
	t.Helper()
	zones := []string{"Europe/Madrid", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Asia/Jerusalem"}
	next := make([]time.Time, len(zones))
	for i, name := range zones {
		zone, err := time.LoadLocation(name)
		must(t, err)
		next[i] = after.In(zone)
	}
	for i := range n {
		at := &next[i%len(zones)]
		_, end := at.ZoneBounds()
		*at = end.In(at.Location())
		list = append(list, *at)
	}
	return list
}

// TestBroadcast_hours: around shifts of clocks, a broadcast begins at send_at, sends at its hours
// by the wall clock and no faster than its pace, and what is not sent by stop_at is late.
func TestBroadcast_hours(t *testing.T) {
	t.Parallel()
	for i, shift := range shiftsOf(t, time.Now().Add(24*time.Hour), *broadcastShifts) {
		t.Run(fmt.Sprint(shift), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			sent := w.sentAt()
			before := shift.Add(-time.Minute)
			from := min((before.Hour()*60+before.Minute()+[]int{-20, 30, 90}[i%3])/5*5%(24*60), 23*60)
			isOpen := func(at time.Time) bool {
				minute := at.Hour()*60 + at.Minute()
				return minute >= from && minute < from+60
			}
			opens := shift.Add(-30 * time.Minute).Truncate(time.Minute)
			for isOpen(opens.Add(-time.Minute)) || !isOpen(opens) {
				opens = opens.Add(time.Minute)
			}
			begins, stops := opens.Add(-10*time.Minute), opens.Add(15*time.Minute)
			w.clock.until(begins.Add(-5 * time.Minute))

			b := w.draft(numbersFrom(0, 3)...)
			zone, week := shift.Location().String(), map[string][][]string{}
			for _, day := range []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"} {
				week[day] = [][]string{{clockTime(from), clockTime(from + 60)}}
			}
			_, err := w.Broadcasts.Edit(t.Context(), w.caller(), b.ID, &desk.BroadcastInput{
				Hours:  desk.Field[desk.HoursInput]{Set: true, Value: desk.HoursInput{TimeZone: &zone, Week: week}},
				SendAt: desk.Field[desk.Time]{Set: true, Value: desk.TimeOf(begins)}, StopAt: desk.Field[desk.Time]{Set: true, Value: desk.TimeOf(stops)},
				Pace: desk.Field[desk.BroadcastPace]{Set: true, Value: desk.BroadcastPace{People: 1, Minutes: 10}},
			})
			must(t, err)
			w.startBroadcast(b.ID)
			if b := w.broadcastNow(b.ID); b.State != desk.BroadcastScheduled {
				t.Fatalf("it is %s", b.State)
			}
			w.clock.until(begins)
			b = w.until(b.ID, "its hours", func(b *desk.Broadcast) bool { return b.Reason == desk.WaitsForHours })
			if b.ResumesAt != desk.TimeOf(opens) {
				t.Errorf("it waits until %s, want %s", b.ResumesAt, desk.TimeOf(opens))
			}
			for n, at := range []time.Time{opens, opens.Add(10 * time.Minute)} {
				w.clock.until(at)
				w.until(b.ID, "a message", func(*desk.Broadcast) bool { return len(sent()) > n })
				b = w.until(b.ID, "its pace", func(b *desk.Broadcast) bool { return b.Reason == desk.WaitsForPace })
			}
			w.clock.until(stops)
			b = w.until(b.ID, "its end", in(desk.BroadcastDone))
			times := sent()
			if len(times) != 2 || b.Counts.Skips[desk.SkipLate] != 1 || times[1].Sub(times[0]) < 9*time.Minute { // the first may be sent some time after its claim
				t.Errorf("sent at %v, skipped %v", times, b.Counts.Skips)
			}
			for _, at := range times {
				if !isOpen(at.In(shift.Location())) {
					t.Errorf("sent at %s", at.In(shift.Location()))
				}
			}
		})
	}
}

// clockTime writes a minute of a day.
func clockTime(minute int) string { return fmt.Sprintf("%02d:%02d", minute/60, minute%60) }

// TestBroadcast_aDay: in any day, no more people get a message than the pace allows, also if the
// broadcast is paused and another process goes on.
func TestBroadcast_aDay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sent := w.sentAt()
	total := *broadcastADay * 12 / 5
	b := w.draft(numbersFrom(0, total)...)
	_, err := w.Broadcasts.Edit(t.Context(), w.caller(), b.ID, &desk.BroadcastInput{Pace: desk.Field[desk.BroadcastPace]{Set: true, Value: desk.BroadcastPace{People: *broadcastADay, Minutes: 24 * 60}}})
	must(t, err)
	w.startBroadcast(b.ID)
	full := func(days int) {
		t.Helper()
		want := days * *broadcastADay
		b = w.until(b.ID, "its pace", func(b *desk.Broadcast) bool {
			return b.Reason == desk.WaitsForPace && b.Counts.ByStatus[desk.RowSending] == 0 && len(sent()) >= want
		})
		if n := len(sent()); n != want {
			t.Fatalf("%d were sent, want %d", n, want)
		}
	}
	jump := func(d time.Duration) { // nobody drives it meanwhile
		t.Helper()
		_, err := w.Broadcasts.Pause(t.Context(), w.caller(), b.ID)
		must(t, err)
		w.restsBroadcasts()
		w.clock.advance(d)
		_, err = w.Broadcasts.Resume(t.Context(), w.caller(), b.ID)
		must(t, err)
	}
	for day := range 2 {
		full(day + 1)
		first := desk.TimeOf(sent()[day**broadcastADay])
		if d := b.ResumesAt - first; d < 24*3600_000-60_000 || d > 24*3600_000+60_000 {
			t.Errorf("it waits until %s; the first one was sent at %s", b.ResumesAt, first)
		}
		if day == 0 {
			jump(23 * time.Hour)
			full(1)
			jump(time.Hour + time.Minute)
			continue
		}
		jump(24*time.Hour + time.Minute)
	}
	w.until(b.ID, "its end", in(desk.BroadcastDone))
	times := sent()
	if len(times) != total {
		t.Errorf("%d were sent", len(times))
	}
	for i := *broadcastADay; i < len(times); i++ {
		if d := times[i].Sub(times[i-*broadcastADay]); d < 24*time.Hour-time.Minute { // it was claimed before, on a busy machine seconds
			t.Errorf("%d messages within %s", *broadcastADay+1, d)
			break
		}
	}
}

// TestBroadcast_clockAhead: a server whose clock is ahead of the database's does not note in each
// round that it drives the broadcast.
func TestBroadcast_clockAhead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clock.server.Store(int64(5 * time.Minute))
	var stores atomic.Int64
	w.store.drives = func(*desk.Broadcast) { stores.Add(1) }
	var numbers []string
	for n := range 100 {
		numbers = append(numbers, fmt.Sprint(905320000000+n))
	}
	b := w.draft(numbers...)
	w.startBroadcast(b.ID)
	before := stores.Load()
	w.until(b.ID, "its end", in(desk.BroadcastDone))
	if n := stores.Load() - before; n > 10 { // each closure runs twice
		t.Errorf("it was stored %d times", n)
	}
}
