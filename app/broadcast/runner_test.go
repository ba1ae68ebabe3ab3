package broadcast

import (
	"testing"
	"testing/synctest"
	"time"

	"parley/desk"

	"golang.org/x/time/rate"
)

// A hundred is a machine whose channels send a hundred messages a second.
type hundred struct{ Machine }

func (hundred) PerSecond(*desk.Channel) float64 { return 100 }

func (hundred) EffectOf(*desk.Channel, *desk.Failure) desk.Effect { return desk.NoEffect }

// TestShare: the broadcasts of a channel take three quarters of its number's places together.
func TestShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &Service{Deps: Deps{Machine: hundred{}}}
		d := &drive{limits: map[desk.ID]*rate.Limiter{}}
		began, n := time.Now(), 0
		for time.Since(began) < 10*time.Second {
			if wait := a.placeOf(t.Context(), d, &desk.Channel{ID: desk.ID{1}}); wait > 0 {
				time.Sleep(wait) // in the bubble's time
				continue
			}
			n++
		}
		if n < 745 || n > 755 {
			t.Errorf("%d messages in ten seconds, want 750", n)
		}
	})
}

// TestRoom: in no 24 hours more than 500 of 1,200 people are claimed, however the claims are
// spread, also by a driver that begins anew in between.
func TestRoom(t *testing.T) {
	t.Parallel()
	const people, day = 1200, 24 * 60 * 60
	pace := &desk.BroadcastPace{People: 500, Minutes: 24 * 60}
	for _, pause := range []int64{1, 7, 60, 3600} { // seconds between two looks
		r := newRunner()
		var at []int64 // the second of each claim
		for second := int64(1_000_000); len(at) < people; second += pause {
			now := desk.Time(second*1000 + 999)
			room, until := r.room(pace, now)
			if room == 0 && until <= now {
				t.Fatalf("there is no room at %d, and there is room from %d on", now, until)
			}
			for range min(room, 90, people-len(at)) {
				r.claimed(now)
				at = append(at, second)
			}
			if len(at)%450 == 0 { // another process goes on: it reads the claims
				r = newRunner()
				for _, second := range at[max(0, len(at)-pace.People):] {
					r.claimed(desk.Time(second * 1000))
				}
			}
		}
		for i := pace.People; i < len(at); i++ {
			if at[i]-at[i-pace.People] < day {
				t.Fatalf("claim %d is %d seconds after the one 500 before it", i, at[i]-at[i-pace.People])
			}
		}
		if took := at[people-1] - at[0]; took > 2*day+5*pause+2*people {
			t.Errorf("with looks each %d seconds, it took %d seconds", pause, took)
		}
	}
}

// TestRunner_refused: the wait after refusals doubles up to a quarter of an hour, and messages
// that were under way do not lengthen it. Until one is taken, one at a time is tried.
func TestRunner_refused(t *testing.T) {
	t.Parallel()
	r, now := newRunner(), time.Duration(0)
	for i, want := range []time.Duration{2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900} {
		r.refused(2, now, 0)
		r.refused(2, now+time.Millisecond, 0)
		if want *= time.Second; r.until-now != want || !r.probes() || r.resumes != desk.Time(want.Milliseconds()) {
			t.Errorf("refusal %d: it waits %v, want %v", i, r.until-now, want)
		}
		now = r.until
	}
	if r.taken(); r.probes() {
		t.Error("it still tries one at a time")
	}
	if r.refused(2, now, 0); r.until-now != 2*time.Second {
		t.Errorf("after one was taken, it waits %v", r.until-now)
	}
}

// TestRunner_resumed: a flight of an earlier run is refused after the broadcast was resumed.
func TestRunner_resumed(t *testing.T) {
	t.Parallel()
	d := &drive{runners: map[desk.ID]*runner{}}
	b := &desk.Broadcast{ID: desk.ID{1}, ResumedAt: 1000}
	first := d.runner(b)
	if d.runner(b) != first {
		t.Error("a run has two runners")
	}
	b.ResumedAt = 2000
	again := d.runner(b)
	first.pause = desk.PausedTemplate
	if again.pause != "" || d.runner(b) != again {
		t.Error("the resumed broadcast is paused again")
	}
}
