package web

import (
	"errors"
	"io"
	"math/bits"
	"net/http"
	"os"
	"sync"
	"time"

	"parley/desk"
)

// Body reads the request's body, of up to limit bytes, for an authenticated caller of a
// workspace. Memory is taken for the bytes that arrive, not for the announced length. The
// caller may use the bytes until Release.
func (w *Response) Body(limit int, ws desk.ID) ([]byte, error) {
	most := limit
	if n := w.request.ContentLength; n >= 0 {
		most = min(most, int(n))
		w.passOver(n, int64(limit))
	}
	return w.read(w.server.budget(most), limit, ws)
}

// heard is a factor. If a body is not larger than heard times its limit, it is read to its
// end, so that the client gets the answer that the body is too large.
const heard = 4

// passOver reads a body that is too large, and keeps nothing of it. Many clients send
// everything before they read, and would lose the answer if the connection were closed.
// A client that waits for 100 Continue gets the answer at once.
func (w *Response) passOver(length, limit int64) {
	if length > limit && length <= heard*limit && w.request.Header.Get("Expect") == "" {
		_, _ = io.Copy(io.Discard, w.request.Body) // the answer is the same if it breaks off
	}
}

// UncheckedBody is like Body, for a caller who is not authenticated yet. The bodies of such
// callers have their own budget.
func (w *Response) UncheckedBody(limit int) ([]byte, error) {
	return w.read(w.server.unchecked, limit, desk.ID{})
}

// Release gives back the body's memory.
func (w *Response) Release() {
	if w.body != nil {
		w.body.put()
		w.body = nil
	}
	if w.hold != nil {
		w.hold.leave()
		w.hold = nil
	}
}

func (w *Response) read(b *budget, limit int, ws desk.ID) ([]byte, error) {
	r := w.request
	if c, ok := r.Context().Value(connKey{}).(*conn); ok {
		c.reading.Store(w)
		defer c.reading.Store(nil)
	}
	if r.ContentLength > int64(limit) {
		return nil, tooLarge(limit)
	}
	most := limit + 1 // one byte more shows that the body is too large
	if r.ContentLength >= 0 {
		most = int(r.ContentLength) + 1
	}
	w.body = newBuffer(firstBuffer)
	for {
		if len(w.body.b) == cap(w.body.b) {
			if err := w.grow(b, min(nextSize(cap(w.body.b)), max(most, maxPooled)), most, ws); err != nil {
				return nil, w.unread(err)
			}
		}
		have := w.body.b
		n, err := r.Body.Read(have[len(have):cap(have)])
		w.body.b = have[:len(have)+n]
		if w.hold != nil {
			w.hold.progress(n)
		}
		switch {
		case len(w.body.b) > limit:
			return nil, w.unread(tooLarge(limit))
		case err == io.EOF:
			if w.hold != nil {
				w.hold.work()
			}
			return w.body.b, nil
		case err != nil:
			return nil, w.unread(err)
		}
	}
}

// errStopping is the answer to a client that has stopped sending while the server
// stops.
var errStopping = desk.Errorf(desk.Unavailable, "the server is stopping, and the body stood still; send the request again")

func tooLarge(limit int) error {
	if limit < 1<<20 {
		return desk.Errorf(desk.PayloadTooLarge, "the body is too large: this endpoint takes less than %d KiB", (limit+1)>>10)
	}
	return desk.Errorf(desk.PayloadTooLarge, "the body is larger than the %d MiB that this endpoint takes", limit>>20)
}

// grow moves the body to a buffer of size bytes, once the budget has space for it.
func (w *Response) grow(b *budget, size, most int, ws desk.ID) error {
	if size > Free {
		if w.hold == nil {
			w.hold = b.enter(ws, most, w.stopReading)
		}
		if err := w.hold.grow(w.request.Context(), size); err != nil {
			return err
		}
	}
	larger := newBuffer(size)
	larger.b = append(larger.b, w.body.b...)
	w.body.put()
	w.body = larger
	return nil
}

// stopReading makes a read of the body fail.
func (w *Response) stopReading() {
	// Without a connection, as in a test of a handler, nothing needs to be stopped.
	_ = http.NewResponseController(w.ResponseWriter).SetReadDeadline(time.Now())
}

// unread returns the error of a body that could not be read to its end.
func (w *Response) unread(err error) error {
	w.Header()["Connection"] = []string{"close"} // the rest of the body could be taken for the next request
	gone := w.hold != nil && w.hold.work()
	switch {
	case gone:
		return errGaveWay
	case errors.As(err, new(*desk.Error)):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded) && w.server.isStopping():
		return errStopping
	case errors.Is(err, io.ErrUnexpectedEOF):
		return desk.Invalidf("the body ended before its announced length")
	}
	return desk.Invalidf("the body could not be read to its end: send it whole, within a minute")
}

// A buffer holds a body while it arrives.
type buffer struct{ b []byte }

const (
	firstBuffer = 2 << 10 // enough for nearly all bodies
	maxPooled   = 1 << 20
)

// nextSize returns the size of the buffer that replaces a full one.
func nextSize(size int) int {
	if size < Free {
		return Free
	}
	return 2 * size
}

// pools keep buffers of up to maxPooled bytes, by the number of bits of their size.
var pools [32]sync.Pool

func newBuffer(size int) *buffer {
	if size <= maxPooled {
		if kept, ok := pools[bits.Len(uint(size))].Get().(*buffer); ok {
			return kept
		}
	}
	return &buffer{make([]byte, 0, size)}
}

func (b *buffer) put() {
	if cap(b.b) <= maxPooled {
		b.b = b.b[:0]
		pools[bits.Len(uint(cap(b.b)))].Put(b)
	}
}
