package app

import (
	"context"
	"slices"
	"sync"
	"time"

	"parley/app/steps"
	"parley/desk"
	"parley/store"
)

// The size of a group. A request of more than smallRequest operations is large. A group
// holds up to groupOps operations, or one larger request.
const (
	smallRequest = 16
	groupOps     = 1000
)

// groupBytes limits the bytes of contacts in the outcomes of a group, without those of its
// last request. They are kept in memory until the group is stored.
const groupBytes = desk.MaxBookBytes

// abreastFrom is how many operations must wait before a second flush begins beside the
// first. Fewer operations cost less in the next group than in a group of their own.
const abreastFrom = 24

// longestQueued is how long a request may have waited when a flush before it fails because
// the database does not answer. A request that has waited longer gets the same error: in a
// database that hangs, its own flush would wait as long once more.
const longestQueued = 3 * time.Second

// A writer combines concurrent contact writes into few flushes (docs/adr/0001). Each
// workspace is a lane. A lane has as many flushes at a time as the store can use, one
// or a few; requests that arrive meanwhile form the next group. So a single client
// never waits for others. The writer has no goroutine of its own: the first request of
// a group flushes it, and then passes the lane to the first request of the next group.
type writer struct {
	store store.Store
	now   func() desk.Time
	newID func() desk.ID

	longest time.Duration // longestQueued, but in tests

	trials steps.Turns // large dry runs, at most one for each workspace, and one in all

	mu    sync.Mutex
	lanes map[desk.ID]*lane // only lanes with a flush under way
}

// tryLarge waits until no other large dry run runs, to limit memory. It returns the function
// that ends this one, or Unavailable when ctx ends first. However many of them a workspace
// sends, only one waits beside those of other workspaces.
func (w *writer) tryLarge(ctx context.Context, ws desk.ID) (end func(), err error) {
	endOwn, err := w.trials.Begin(ctx, ws)
	if err != nil {
		return nil, err
	}
	endAll, err := w.trials.Begin(ctx, desk.ID{})
	if err != nil {
		endOwn()
		return nil, err
	}
	return func() { endAll(); endOwn() }, nil
}

// A lane holds the waiting requests, in order of arrival. Groups of small requests and of
// large ones take turns. So single writes do not wait for many batches, and batches do not
// wait for many single writes.
type lane struct {
	flushes      int // flushes under way
	flying       int // operations in these flushes
	small, large []*request
	waiting      int // operations in both
	largeNext    bool
}

// A request is one caller's operations, which succeed or fail one by one.
type request struct {
	ops      []*desk.Op
	actor    desk.Actor
	check    func(*desk.Settings, desk.Time) error // whether the key may still do this, checked inside the flush; nil: it may
	outcomes []desk.Outcome
	errs     []error
	bytes    int             // approximate size of the contacts in the outcomes
	refusal  error           // the error of check
	err      error           // the error of the whole request
	since    time.Time       // when it was queued
	turn     chan []*request // receives a group that this request must flush, or nil when another request has flushed this one
}

// write runs a request's operations in order and stores the outcomes in it. It returns
// once they are durable, even if the caller has left meanwhile.
func (w *writer) write(ws desk.ID, r *request) {
	r.turn = make(chan []*request, 1)
	group := w.enter(ws, r)
	if group == nil {
		if group = <-r.turn; group == nil {
			return
		}
	}
	done := w.flush(ws, group)
	next, late := w.leave(ws, group, done)
	for _, other := range slices.Concat(group[:done], late) {
		if other != r {
			other.turn <- nil
		}
	}
	if next != nil {
		next[0].turn <- next // woken last, so it runs first
	}
}

// enter queues r. If a group can be flushed now and r is its first request, enter returns
// the group; otherwise it passes the group to its first request.
func (w *writer) enter(ws desk.ID, r *request) []*request {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.lanes[ws]
	if l == nil {
		l = &lane{}
		w.lanes[ws] = l
	}
	l.waiting += len(r.ops)
	r.since = time.Now()
	queue := l.queueOf(r)
	*queue = append(*queue, r)
	group := w.begin(l)
	if group != nil && group[0] != r {
		group[0].turn <- group
		return nil
	}
	return group
}

// leave ends the flush of a group and returns the next group, if it can be flushed now. The
// requests in group[:done] are finished; the others go back to the front of their queue.
// late are requests that have waited too long for a flush that failed; they fail, too.
func (w *writer) leave(ws desk.ID, group []*request, done int) (next, late []*request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.lanes[ws]
	l.flushes--
	for n, r := range group {
		l.flying -= len(r.ops)
		if n >= done {
			l.waiting += len(r.ops)
		}
	}
	if rest := group[done:]; len(rest) > 0 {
		queue := l.queueOf(rest[0])
		*queue = slices.Concat(rest, *queue)
	}
	if err := group[0].err; desk.IsType(err, desk.Unavailable) {
		late = l.late(w.longest)
		for _, r := range late {
			r.err = err
		}
	}
	next = w.begin(l)
	if l.flushes == 0 {
		delete(w.lanes, ws)
	}
	return next, late
}

// late takes the requests from the queues that have waited longer than this.
func (l *lane) late(longest time.Duration) (late []*request) {
	for _, queue := range []*[]*request{&l.small, &l.large} {
		*queue = slices.DeleteFunc(*queue, func(r *request) bool {
			if time.Since(r.since) < longest {
				return false
			}
			late, l.waiting = append(late, r), l.waiting-len(r.ops)
			return true
		})
	}
	return late
}

// queueOf returns the queue in which a request waits.
func (l *lane) queueOf(r *request) *[]*request {
	if len(r.ops) > smallRequest {
		return &l.large
	}
	return &l.small
}

// begin takes a group from a lane that is idle, or in which enough operations wait for
// a second flush.
func (w *writer) begin(l *lane) []*request {
	switch {
	case len(l.small)+len(l.large) == 0:
		return nil
	case l.flushes > 0 && (l.flushes == w.store.FlushesAbreast() || l.waiting < min(abreastFrom, l.flying)):
		return nil
	}
	l.flushes++
	return l.next()
}

// next takes the next group from the queues. At least one queue has a request.
func (l *lane) next() []*request {
	queue := &l.small
	if len(l.large) > 0 && (l.largeNext || len(l.small) == 0) {
		queue = &l.large
	}
	l.largeNext = queue == &l.small
	n, ops := 0, 0
	for n < len(*queue) && (n == 0 || ops+len((*queue)[n].ops) <= groupOps) {
		ops += len((*queue)[n].ops)
		n++
	}
	group := (*queue)[:n:n]
	*queue = (*queue)[n:]
	l.waiting, l.flying = l.waiting-ops, l.flying+ops
	return group
}

// flush stores a group, or as many of its requests as the size of the outcomes allows,
// and returns how many are done. If the database refuses the group with an error other than
// Unavailable, each request is tried alone, so that one can't make the others fail.
func (w *writer) flush(ws desk.ID, group []*request) (done int) {
	done, err := w.try(ws, group)
	if err != nil && len(group) > 1 && !desk.IsType(err, desk.Unavailable) {
		bytes := 0
		for done = 0; done < len(group) && bytes < groupBytes; done++ {
			r := group[done]
			_, r.err = w.try(ws, group[done:done+1])
			bytes += r.bytes
		}
	} else {
		for _, r := range group[:done] {
			r.err = err
		}
	}
	for _, r := range group[:done] {
		if r.err == nil {
			r.err = r.refusal
		}
	}
	return done
}

// try flushes a group in one transaction. If it returns an error, no request of the group
// is stored.
func (w *writer) try(ws desk.ID, group []*request) (done int, err error) {
	defer func() {
		if err != nil {
			done = len(group)
		}
	}()
	defer steps.Caught("contact flush", &err) // a panic would block the lane for ever
	ops := group[0].ops
	if len(group) > 1 {
		ops = nil
		for _, r := range group {
			ops = append(ops, r.ops...)
		}
	}
	// The callers' contexts do not matter: a write is finished even if its caller
	// leaves.
	var now desk.Time
	err = w.store.UpdateContacts(context.Background(), ws, ops, func(book *desk.Book, from, to int) {
		if from == 0 { // the first part of a run; the transaction may run again
			now = w.now()
			for _, r := range group {
				r.begin(book.Settings(), now)
			}
		}
		first, bytes := 0, 0 // the index of the request's first operation, and the size of the outcomes before it
		for n, r := range group {
			if first >= from && bytes >= groupBytes { // end here, unless an earlier part has begun this request
				book.End()
				done = n
				return
			}
			r.apply(book, max(from-first, 0), min(to-first, len(r.ops)), now, w.newID)
			first, bytes = first+len(r.ops), bytes+r.bytes
		}
		done = len(group)
	})
	return done, err
}

// begin checks the request's key, in the transaction that stores the request.
func (r *request) begin(settings *desk.Settings, now desk.Time) {
	if r.refusal = nil; r.check != nil {
		r.refusal = r.check(settings, now)
	}
	r.outcomes, r.errs, r.bytes = make([]desk.Outcome, len(r.ops)), make([]error, len(r.ops)), 0
}

// apply runs the operations ops[from:to] of the request on a Book.
func (r *request) apply(book *desk.Book, from, to int, now desk.Time, newID func() desk.ID) {
	if r.refusal != nil {
		return
	}
	for i := from; i < to; i++ {
		r.outcomes[i], r.errs[i] = book.Apply(r.ops[i], r.actor, now, newID)
		if r.ops[i].Brief {
			r.outcomes[i].Contact = nil
		} else if c := r.outcomes[i].Contact; c != nil {
			r.bytes += c.Size()
		}
	}
}
