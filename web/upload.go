package web

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"parley/desk"
)

// Upload returns the request's body for reading as it comes. The memory is the caller's,
// and does not count in the budget of bodies. The number of uploads at the same time is
// limited, for a workspace to half of it. Upload waits for its turn, and returns
// Unavailable if none comes. The body may take the time total, and stand still for the time
// still; while others wait for a turn, only for a second. An error of Read is the answer to
// the client. The turn ends with the body, with Uploaded, or with the answer.
func (w *Response) Upload(ws desk.ID, total, still time.Duration) (io.Reader, error) {
	h := w.server.uploads.enter(ws, 1, w.stopReading)
	if err := h.grow(w.request.Context(), 1); err != nil {
		h.leave()
		w.Header()["Connection"] = []string{"close"} // the body was not read
		return nil, err
	}
	h.pause()
	w.upload = h
	return &upload{w: w, end: time.Now().Add(total), still: still}, nil
}

// Uploaded ends the turn of an upload. A handler calls it if it does not need the rest of
// the body.
func (w *Response) Uploaded() {
	if w.upload != nil {
		w.upload.leave()
		w.upload = nil
	}
}

// gaveWay returns the error of an upload that was dropped, and ends its turn.
func (w *Response) gaveWay() error {
	w.Header()["Connection"] = []string{"close"}
	w.Uploaded()
	return errGaveWay
}

type upload struct {
	w     *Response
	end   time.Time
	still time.Duration
}

func (u *upload) Read(b []byte) (n int, err error) {
	w := u.w
	until := time.Now().Add(u.still)
	if u.end.Before(until) {
		until = u.end
	}
	// In a test of a handler there is no connection to set a deadline of.
	if err := http.NewResponseController(w.ResponseWriter).SetReadDeadline(until); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	if c := w.conn(); c != nil {
		c.reading.Store(w)
		defer c.reading.Store(nil)
	}
	h := w.upload
	if h != nil && h.resume() { // checked after the deadline was set, because dropping the body also sets the deadline
		return 0, w.gaveWay()
	}
	n, err = w.request.Body.Read(b)
	if h != nil {
		h.progress(n)
		if gone := h.pause(); gone && err != nil && err != io.EOF {
			return 0, w.gaveWay()
		}
	}
	if err != nil {
		w.Uploaded()
	}
	if err == io.EOF {
		if e := w.Patient(); e != nil { // otherwise the time to handle the request would also be limited
			return n, e
		}
	}
	if err == nil || err == io.EOF {
		return n, err
	}
	w.Header()["Connection"] = []string{"close"} // the rest of the body could be taken for the next request
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded) && w.server.isStopping():
		return n, errStopping
	case errors.Is(err, os.ErrDeadlineExceeded):
		return n, desk.Invalidf("the body stood still for %v, or took longer than it may: send it again", u.still)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return n, desk.Invalidf("the body ended before its announced length")
	}
	return n, desk.Invalidf("the body could not be read to its end")
}
