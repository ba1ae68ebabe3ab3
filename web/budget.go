package web

import (
	"container/list"
	"context"
	"slices"
	"sync"
	"time"

	"parley/desk"
)

// Free is the size in bytes up to which a body does not count.
const Free = 16 << 10

const (
	// budgetBytes is the memory that bodies in flight share; one workspace can use half.
	// Bodies of more than middling bytes can use only largeBytes of it, so smaller bodies
	// always have some.
	budgetBytes = 64 << 20
	largeBytes  = 40 << 20

	// uncheckedBytes is the memory of bodies whose callers are not authenticated yet. It is
	// separate from the memory of other bodies.
	uncheckedBytes = 64 << 20
	middling       = 1 << 20
	// maxUploads is how many bodies are read as they come, at the same time. They do not
	// count in the budgets of memory. One workspace can have half of them.
	maxUploads = 24
	// stillAfter is a time. A body that moves too few bytes in it stands still, and may be
	// dropped.
	stillAfter = time.Second
	// stir is how many bytes a body must move in stillAfter. With fewer it stands still: a
	// client that sends a byte now and then must not hold megabytes.
	stir = 4 << 10
	// lookEvery is the time between two checks: whether a body stands still, or whether a
	// delayed write goes on.
	lookEvery = stillAfter / 4
	// patience is how long a body waits for memory.
	patience = 5 * time.Second
	// maxWaits is how many bodies of one owner may wait at a time. Each request for memory
	// looks at all waiting bodies, so very many of them would delay the others.
	maxWaits = 1000
)

var (
	errNoRoom  = desk.Errorf(desk.Unavailable, "too many large requests are under way; send this one again")
	errGaveWay = desk.Errorf(desk.Unavailable, "the body stood still while others needed its room; send the request again")
)

// A budget limits the memory of large bodies in flight, in total and for each owner. The
// budget of uploads counts bodies instead of bytes.
//
// Bodies are read, processed, and written. Only while they are read or written do they
// depend on a client, so only then can they be dropped.
//
// If many bodies grew at the same time, they could use all memory, and none could finish.
// So memory is reserved for the oldest moving body, and for the oldest of each owner, to
// finish. The others wait. One after the other becomes the oldest.
type budget struct {
	limit, share int

	mu     sync.Mutex
	used   int
	waits  int         // number of waiting bodies
	look   *time.Timer // calls settle again and again while bodies wait, because other bodies may stop moving
	owners map[desk.ID]int
	queues map[desk.ID]int // number of waiting bodies, by owner
	holds  list.List       // of *hold, oldest first
}

func newBudget(limit, share int) *budget {
	return &budget{limit: limit, share: share, owners: map[desk.ID]int{}, queues: map[desk.ID]int{}}
}

// A hold is the memory of one body in a budget. The budget's mutex protects its fields.
type hold struct {
	budget    *budget
	owner     desk.ID
	place     *list.Element
	size, max int
	phase     phase
	want      int           // while it waits: the size it needs
	granted   chan struct{} // closed when it gets this size
	moved     time.Time     // while it moves: when it last moved enough bytes
	paused    time.Time     // while its client waits for us: since when
	stirred   int           // while it moves: bytes since the time in moved
	cut       func()        // while it moves: ends the reading or writing
	gone      bool          // it was dropped
}

type phase int

const (
	working phase = iota // it depends on this process only
	moving               // it depends on the client
	waiting              // for memory
)

// enter begins a hold of no bytes, for a body of up to limit bytes. cut is a function that
// ends the reading, or nil if the body is not read.
func (b *budget) enter(owner desk.ID, limit int, cut func()) *hold {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := &hold{budget: b, owner: owner, max: limit, cut: cut}
	h.place = b.holds.PushBack(h)
	return h
}

// leave ends a hold.
func (h *hold) leave() {
	b := h.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	had := h.size
	b.set(h, 0)
	b.holds.Remove(h.place)
	if b.owners[h.owner] == 0 {
		delete(b.owners, h.owner)
	}
	if had > 0 { // otherwise it leaves no memory for waiting bodies
		b.settle()
	}
}

// try takes size bytes if they are free now.
func (h *hold) try(size int) bool {
	h.budget.mu.Lock()
	defer h.budget.mu.Unlock()
	if !h.ask(size) {
		h.stopWaiting()
		return false
	}
	return true
}

// grow waits until the body may take size bytes. It returns Unavailable if there is no
// memory, if too many bodies of its owner wait already, or if the body was dropped.
func (h *hold) grow(ctx context.Context, size int) error {
	b := h.budget
	b.mu.Lock()
	if h.gone {
		b.mu.Unlock()
		return errGaveWay
	}
	if b.queues[h.owner] >= maxWaits { // ask would look at all of them again
		b.mu.Unlock()
		return errNoRoom
	}
	ok, granted := h.ask(size), h.granted
	b.mu.Unlock()
	if ok {
		return nil
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-granted:
		return nil
	case <-late.C:
	case <-ctx.Done():
	}
	return h.giveUp()
}

// giveUp ends the wait for memory, unless the memory was just granted.
func (h *hold) giveUp() error {
	h.budget.mu.Lock()
	defer h.budget.mu.Unlock()
	if h.phase != waiting {
		return nil
	}
	h.stopWaiting()
	return errNoRoom
}

// work records that the reading or writing has ended, and tells whether the body was
// dropped. From now on, the body can't be dropped.
func (h *hold) work() (gone bool) {
	h.budget.mu.Lock()
	defer h.budget.mu.Unlock()
	h.phase, h.cut = working, nil
	return h.gone
}

// force gives the body size bytes even if they are not free, because the process uses them
// already.
func (h *hold) force(size int) {
	h.budget.mu.Lock()
	defer h.budget.mu.Unlock()
	h.budget.set(h, size)
	h.budget.settle()
}

// most returns the size that the body may have without asking for more.
func (h *hold) most() int {
	h.budget.mu.Lock()
	defer h.budget.mu.Unlock()
	return h.size
}

// move records that the writing of the body begins. cut is a function that ends the
// writing.
func (h *hold) move(cut func()) {
	h.budget.mu.Lock()
	defer h.budget.mu.Unlock()
	h.phase, h.moved, h.stirred, h.cut = moving, time.Now(), 0, cut
}

// progress counts n bytes that the client has sent or read.
func (h *hold) progress(n int) {
	h.budget.mu.Lock()
	defer h.budget.mu.Unlock()
	if h.stirred += n; h.stirred >= stir {
		h.moved, h.stirred = time.Now(), 0
	}
}

// pause records that the client waits for this process. The body does not stand still until
// resume. pause tells whether the body was dropped.
func (h *hold) pause() (gone bool) {
	h.budget.mu.Lock()
	defer h.budget.mu.Unlock()
	if h.phase == moving {
		h.phase, h.paused = working, time.Now()
	}
	return h.gone
}

// resume ends a pause, and tells whether the body was dropped.
func (h *hold) resume() (gone bool) {
	h.budget.mu.Lock()
	defer h.budget.mu.Unlock()
	if !h.paused.IsZero() {
		h.phase, h.moved, h.paused = moving, h.moved.Add(time.Since(h.paused)), time.Time{}
	}
	return h.gone
}

// lookAgain calls settle again and again, until no body waits.
func (b *budget) lookAgain() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waits == 0 {
		b.look = nil
		return
	}
	b.settle()
	b.look.Reset(lookEvery)
}

func (b *budget) bytes() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// The following methods need the mutex.

func (b *budget) set(h *hold, size int) {
	b.used += size - h.size
	b.owners[h.owner] += size - h.size
	h.size = size
}

// ask tells whether the body gets size bytes now. If not, the body begins to wait for them.
// While most of the memory is free, the body gets them at once, because even the largest
// body could still finish.
func (h *hold) ask(size int) bool {
	b, need := h.budget, size-h.size
	if b.used+need <= b.limit/5 && b.owners[h.owner]+need <= b.share/5 {
		h.take(size)
		return true
	}
	h.phase, h.want, h.granted = waiting, size, make(chan struct{})
	b.queues[h.owner]++
	if b.waits++; b.look == nil {
		b.look = time.AfterFunc(lookEvery, b.lookAgain)
	}
	if b.queues[h.owner] == 1 { // otherwise it waits behind others, for which settle is called soon
		b.settle()
	}
	return h.phase != waiting
}

func (h *hold) take(size int) {
	h.budget.set(h, size)
	h.phase, h.moved, h.stirred = moving, time.Now(), 0
	if h.cut == nil {
		h.phase = working
	}
}

func (h *hold) stopWaiting() {
	b := h.budget
	h.phase = working
	b.waits--
	if b.queues[h.owner]--; b.queues[h.owner] == 0 {
		delete(b.queues, h.owner)
	}
}

// settle grants memory to waiting bodies, the oldest first. If some must go on waiting, it
// drops bodies that stand still.
func (b *budget) settle() {
	if b.waits == 0 {
		return
	}
	var oldest *hold
	oldestOf := map[desk.ID]*hold{}
	var stood []*hold // bodies that stand still
	var wait []*hold
	leaving, leavingOf := 0, map[desk.ID]int{}
	now := time.Now()
	for e := b.holds.Front(); e != nil; e = e.Next() {
		h := e.Value.(*hold)
		switch {
		case h.gone:
			leaving += h.size
			leavingOf[h.owner] += h.size
			continue
		case h.phase == working:
			continue
		case h.phase == waiting:
			wait = append(wait, h)
		case now.Sub(h.moved) >= stillAfter:
			stood = append(stood, h)
			continue
		}
		if oldest == nil {
			oldest = h
		}
		if oldestOf[h.owner] == nil {
			oldestOf[h.owner] = h
		}
	}
	slices.SortStableFunc(stood, func(a, b *hold) int { return a.moved.Compare(b.moved) })
	for _, h := range wait {
		kept := func(other *hold) int { // returns the bytes that are reserved for another body to finish
			if other == nil || other == h {
				return 0
			}
			return max(0, other.max-other.size)
		}
		need := h.want - h.size
		over := b.used + need + kept(oldest) - b.limit
		overOwn := b.owners[h.owner] + need + kept(oldestOf[h.owner]) - b.share
		if over <= 0 && overOwn <= 0 {
			h.stopWaiting()
			h.take(h.want)
			close(h.granted)
			continue
		}
		over, overOwn = over-leaving, overOwn-leavingOf[h.owner]
		for over > 0 || overOwn > 0 {
			// If an owner's own share is used up, another owner's memory does not help.
			i := slices.IndexFunc(stood, func(s *hold) bool { return overOwn <= 0 || s.owner == h.owner })
			if i < 0 {
				break
			}
			s := stood[i]
			stood = slices.Delete(stood, i, i+1)
			s.gone = true
			s.cut()
			over -= s.size
			leaving += s.size
			leavingOf[s.owner] += s.size
			if s.owner == h.owner {
				overOwn -= s.size
			}
		}
	}
}
