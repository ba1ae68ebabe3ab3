package web

import "parley/desk"

// Reserve waits for memory for an answer of up to most bytes, before the answer is made. It
// returns Unavailable if there is none. Fit gives back the memory that the answer does not
// need. All of it is given back by Unreserve, or when the client has read the answer.
func (w *Response) Reserve(most int, ws desk.ID) error {
	return w.reserve(w.answers(most), most, ws)
}

// answers returns the budget for an answer of n bytes. If the request still holds its body,
// this is the budget of large bodies, because smaller bodies are not in it. Otherwise
// bodies that fill the share of a workspace would all wait for one another.
func (w *Response) answers(n int) *budget {
	if w.hold != nil {
		return w.server.large
	}
	return w.server.budget(n)
}

// ReserveUnchecked is like Reserve, for a caller who is not authenticated. The answers to
// such callers share a budget with their bodies.
func (w *Response) ReserveUnchecked(most int) error {
	return w.reserve(w.server.unchecked, most, desk.ID{})
}

func (w *Response) reserve(b *budget, most int, ws desk.ID) error {
	w.Unreserve()
	if most <= Free {
		return nil
	}
	h := b.enter(ws, most, nil)
	if err := h.grow(w.request.Context(), most); err != nil {
		h.leave()
		return err
	}
	w.room = h
	return nil
}

// TryRoom reserves memory for an answer of n bytes if there is any now. If not, the
// caller drops the answer, waits with Reserve, and makes it again.
func (w *Response) TryRoom(n int, ws desk.ID) bool {
	w.Unreserve()
	if n <= Free {
		return true
	}
	h := w.answers(n).enter(ws, n, nil)
	if !h.try(n) {
		h.leave()
		return false
	}
	w.room = h
	return true
}

// Fit keeps n bytes of the reserved memory, gives the rest back, and returns true. If less
// than n bytes are reserved, it gives all of them back and returns false.
func (w *Response) Fit(n int) bool {
	switch {
	case n <= Free:
		w.Unreserve()
		return true
	case w.room == nil:
		return false
	case n > w.room.most():
		w.Unreserve()
		return false
	}
	w.room.force(n)
	return true
}

// Room reserves memory for an answer of n bytes that exists already and can't be dropped,
// because it reports a finished write. If there is no memory, it waits. If there is still
// none after the wait, the answer takes the memory anyway, and others of its workspace wait
// longer.
func (w *Response) Room(n int, ws desk.ID) {
	if w.Fit(n) || w.Reserve(n, ws) == nil {
		return
	}
	w.room = w.answers(n).enter(ws, n, nil)
	w.room.force(n)
}

// Unreserve gives back what is reserved for the answer.
func (w *Response) Unreserve() {
	if w.room != nil {
		w.room.leave()
		w.room = nil
	}
}
