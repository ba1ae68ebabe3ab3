package app

import (
	"context"
	"sync"

	"parley/desk"
)

// The size of a group. A request of more than smallRequest operations is a large
// one; a group holds up to groupOps operations, or one larger request.
const (
	smallRequest = 16
	groupOps     = 1000
)

// abreastFrom is how many operations must wait for a flush to begin beside another: a
// few of them cost less in the next group than in one of their own.
const abreastFrom = 24

// A writer turns concurrent contact writes into few flushes (docs/adr/0001). Each
// workspace is a lane with as many flushes under way as the store gains from, one or
// few; what arrives meanwhile forms the next group, so a lone client never waits for
// company. There is no goroutine of its own: the first request of a group flushes it,
// and hands the lane to the first request of the next one.
type writer struct {
	store Store
	now   func() desk.Time
	newID func() desk.ID

	mu    sync.Mutex
	lanes map[desk.ID]*lane // those with a flush under way
}

// A lane holds the requests that wait, in order of arrival. Small and large ones
// take turns, so that single writes are not starved behind batches, nor batches
// behind a stream of singles.
type lane struct {
	flushes      int // under way
	flying       int // operations in them
	small, large []*request
	waiting      int // operations in both
	largeNext    bool
}

// A request is one caller's operations, which succeed or fail one by one.
type request struct {
	ops      []*desk.Op
	actor    desk.ID                               // the key that asks; zero for the command line
	check    func(*desk.Settings, desk.Time) error // whether it still may, asked inside the flush; nil: it may
	outcomes []desk.Outcome
	errs     []error
	refusal  error           // what check said
	err      error           // of the request as a whole
	turn     chan []*request // a group to lead, or nil when another has led it
}

// write carries out a request's operations in order and fills in its answers. It
// returns once they are durable, even if the caller has left meanwhile.
func (w *writer) write(ws desk.ID, r *request) {
	r.turn = make(chan []*request, 1)
	group := w.enter(ws, r)
	if group == nil {
		if group = <-r.turn; group == nil {
			return
		}
	}
	w.flush(ws, group)
	next := w.leave(ws, group)
	for _, other := range group {
		if other != r {
			other.turn <- nil
		}
	}
	if next != nil {
		next[0].turn <- next // woken last, which makes it the first to run
	}
}

// enter queues r and, if it is time to flush a group, hands that to its first request, or
// returns it when that is r.
func (w *writer) enter(ws desk.ID, r *request) []*request {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.lanes[ws]
	if l == nil {
		l = &lane{}
		w.lanes[ws] = l
	}
	l.waiting += len(r.ops)
	if len(r.ops) > smallRequest {
		l.large = append(l.large, r)
	} else {
		l.small = append(l.small, r)
	}
	group := w.begin(l)
	if group != nil && group[0] != r {
		group[0].turn <- group
		return nil
	}
	return group
}

// leave ends the flush of a group, and returns the next one if it is time for it.
func (w *writer) leave(ws desk.ID, group []*request) []*request {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.lanes[ws]
	l.flushes--
	for _, r := range group {
		l.flying -= len(r.ops)
	}
	next := w.begin(l)
	if l.flushes == 0 {
		delete(w.lanes, ws)
	}
	return next
}

// begin takes a group off a lane that is idle, or in which enough waits for one more
// flush.
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

// next takes the next group off the queues, which are not both empty.
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

// flush stores a group. When the database refuses it for a reason that is not the
// machine's, each request is tried alone, so that one can't fail its neighbours.
func (w *writer) flush(ws desk.ID, group []*request) {
	err := w.try(ws, group)
	alone := err != nil && len(group) > 1 && !desk.IsType(err, desk.Unavailable)
	for _, r := range group {
		r.err = err
		if alone {
			r.err = w.try(ws, []*request{r})
		}
		if r.err == nil {
			r.err = r.refusal
		}
	}
}

func (w *writer) try(ws desk.ID, group []*request) (err error) {
	defer caught("contact flush", &err) // or the lane would never move again
	ops := group[0].ops
	if len(group) > 1 {
		ops = nil
		for _, r := range group {
			ops = append(ops, r.ops...)
		}
	}
	// The callers' contexts don't count: a write that was taken runs to its end.
	return w.store.UpdateContacts(context.Background(), ws, ops, func(book *desk.Book) {
		now := w.now()
		for _, r := range group {
			r.apply(book, now, w.newID)
		}
	})
}

// apply runs the request's operations on the Book; it may be called anew with a
// fresh one.
func (r *request) apply(book *desk.Book, now desk.Time, newID func() desk.ID) {
	if r.refusal = nil; r.check != nil {
		r.refusal = r.check(book.Settings(), now)
	}
	if r.refusal != nil {
		return
	}
	n := len(r.ops)
	r.outcomes, r.errs = make([]desk.Outcome, n), make([]error, n)
	for i, op := range r.ops {
		r.outcomes[i], r.errs[i] = book.Apply(op, r.actor, now, newID)
	}
}
