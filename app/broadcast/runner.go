package broadcast

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"parley/desk"

	"golang.org/x/time/rate"
)

// A runner is what a process remembers of a broadcast that runs. It is used by the drive's
// goroutine and by those of its flights.
type runner struct {
	since    desk.Time // when the run began
	mu       sync.Mutex
	buffer   []look           // judged, to be sent
	busy     map[desk.ID]bool // rows that are in the buffer, or are being sent
	after    desk.ID          // rows up to here were read
	flights  int
	halt     *halted              // why nothing may be claimed; nil: go on
	pause    desk.BroadcastReason // "": do not pause
	looked   time.Time            // when outcomes were last looked at
	bad      int                  // refusals for good and lost answers since then
	sent     int                  // flights that began since then
	flew     time.Time            // when a flight last ended
	noted    time.Time            // when it was last noted that the broadcast is driven
	notedAt  desk.Time            // the same by the wall clock of this process
	restored time.Time            // when rows that were left behind were last looked for

	refusals int           // refusals for now in a row, of no single person
	until    time.Duration // by Uptime: nothing is sent before
	resumes  desk.Time     // the same by the wall clock, as it is shown
	probing  bool          // one at a time, until one is taken

	claims []claims           // of ended flights, by second, oldest first; for the pace
	paced  desk.BroadcastPace // claims of earlier drivers that count for this pace are in the list
}

// claims are how many people were claimed in a second.
type claims struct {
	second int64
	n      int
}

func newRunner() *runner { return &runner{busy: map[desk.ID]bool{}} }

// claimed notes a claim for the pace.
func (r *runner) claimed(at desk.Time) {
	second := int64(at) / 1000
	if last := len(r.claims) - 1; last >= 0 && r.claims[last].second >= second {
		r.claims[last].n++
		return
	}
	r.claims = append(r.claims, claims{second, 1})
}

// room is how many people may be claimed now. If there is none, it also returns when there
// will be.
func (r *runner) room(p *desk.BroadcastPace, now desk.Time) (n int, at desk.Time) {
	oldest := int64(now)/1000 - 60*int64(p.Minutes)
	for len(r.claims) > 0 && r.claims[0].second < oldest {
		r.claims = r.claims[1:]
	}
	n = p.People - r.flights // which may have claimed
	for _, c := range r.claims {
		n -= c.n
	}
	if n > 0 {
		return n, 0
	}
	for _, c := range r.claims { // the first seconds whose claims leave the window
		if n += c.n; n > 0 {
			return 0, desk.Time((c.second + 1 + 60*int64(p.Minutes)) * 1000)
		}
	}
	return 0, now + 1000
}

// refused notes a refusal for now that is not of one person.
func (r *runner) refused(seconds int, uptime time.Duration, now desk.Time) {
	if uptime < r.until {
		return // another message that was under way was refused, too
	}
	r.refusals++
	r.wait(desk.BroadcastWait(seconds, r.refusals), uptime, now)
	r.probing = true
}

// wait lets nothing be sent for some time.
func (r *runner) wait(d, uptime time.Duration, now desk.Time) {
	r.until, r.resumes = uptime+d, now+desk.Time(d.Milliseconds())
}

// taken notes that the provider has taken a message.
func (r *runner) taken() { r.refusals, r.probing = 0, false }

// drop forgets the rows that were judged.
func (r *runner) drop() {
	for _, l := range r.buffer {
		delete(r.busy, l.Row.ID)
	}
	r.buffer, r.after = nil, desk.ID{}
}

// A drive is a workspace whose broadcasts this process sends.
type drive struct {
	ws      desk.ID
	cancel  context.CancelFunc
	flying  sync.WaitGroup
	woken   chan struct{} // has an element if there may be something to do
	runners map[desk.ID]*runner
	limits  map[desk.ID]*rate.Limiter // of channels

	collecting, tidying atomic.Bool // whether people are written down, or rows are cleared, aside
}
