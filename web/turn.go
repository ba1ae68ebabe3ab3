package web

import (
	"container/list"
	"context"
	"sync"
	"time"

	"parley/desk"
)

// maxTurns is how many writes of one workspace are under way at most. The size of an answer
// is only known once the write is stored. So the number of writes limits how many answers
// can wait for memory. A write of many records counts as several.
const maxTurns = 128

// A turns limits the calls of each owner that are under way. No owner waits for another
// one.
type turns struct {
	mu sync.Mutex
	of map[desk.ID]*turn
}

type turn struct {
	taken   int
	waiting list.List // of *queued, oldest first
}

// A queued call waits for a turn.
type queued struct {
	weight  int
	granted chan struct{} // closed when it has its turn
}

// take waits for a turn. It returns Unavailable if none comes.
func (l *turns) take(ctx context.Context, owner desk.ID, weight int) (err error) {
	l.mu.Lock()
	t := l.of[owner]
	if t == nil {
		if l.of == nil {
			l.of = map[desk.ID]*turn{}
		}
		t = &turn{}
		l.of[owner] = t
	}
	if t.waiting.Len() == 0 && t.taken+weight <= maxTurns {
		t.taken += weight
		l.mu.Unlock()
		return nil
	}
	q := &queued{weight, make(chan struct{})}
	place := t.waiting.PushBack(q)
	l.mu.Unlock()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-q.granted:
		return nil
	case <-late.C:
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-q.granted: // the turn came just now
		return nil
	default:
		t.waiting.Remove(place)
		t.grant() // the calls behind it may have their turn now
		return errNoRoom
	}
}

// leave ends a turn.
func (l *turns) leave(owner desk.ID, weight int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.of[owner]
	t.taken -= weight
	t.grant()
	if t.taken == 0 {
		delete(l.of, owner)
	}
}

// grant gives turns to the waiting calls, the oldest first.
func (t *turn) grant() {
	for first := t.waiting.Front(); first != nil; first = t.waiting.Front() {
		q := first.Value.(*queued)
		if t.taken+q.weight > maxTurns {
			return
		}
		t.taken += q.weight
		t.waiting.Remove(first)
		close(q.granted)
	}
}

// Turn waits until fewer writes of the workspace are under way. Then this call counts as so
// many writes as weight says, until Reply or the end of the answer. It returns Unavailable
// if too many writes stay under way.
func (w *Response) Turn(ws desk.ID, weight int) error {
	return w.takeTurn(&w.server.turns, ws, weight)
}

// AssistantTurn is Turn for an assistant's call. The protocol and its tools decide how
// large its answer is. Such calls do not wait behind writes.
func (w *Response) AssistantTurn(ws desk.ID) error {
	return w.takeTurn(&w.server.asked, ws, 1)
}

// pageTurn is how many writes a page counts as. It counts as two because it is made twice:
// once as texts and once with escapes.
const pageTurn = 2

// PageTurn is Turn for a page of the console, which may be larger than the memory that was
// reserved for it. Pages do not wait behind writes.
func (w *Response) PageTurn(ws desk.ID) error {
	return w.takeTurn(&w.server.pages, ws, pageTurn)
}

func (w *Response) takeTurn(l *turns, ws desk.ID, weight int) error {
	if w.turn > 0 {
		return nil
	}
	weight = min(weight, maxTurns)
	if err := l.take(w.request.Context(), ws, weight); err != nil {
		return err
	}
	w.turn, w.turnOf, w.turnIn = weight, ws, l
	return nil
}

func (w *Response) endTurn() {
	if w.turn > 0 {
		w.turnIn.leave(w.turnOf, w.turn)
		w.turn = 0
	}
}
