package web

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"parley/desk"
)

// Upload returns the request's body for reading as it comes, in whatever memory the
// caller has: it does not count in the budget of bodies. The body may take a time in all,
// and stand still for another. Errors of its Read are those to answer.
func (w *Response) Upload(total, still time.Duration) io.Reader {
	return &upload{w: w, end: time.Now().Add(total), still: still}
}

type upload struct {
	w     *Response
	end   time.Time
	still time.Duration
}

func (u *upload) Read(b []byte) (int, error) {
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
	n, err := w.request.Body.Read(b)
	if err == io.EOF {
		if e := w.Patient(); e != nil { // or the time to handle it would be limited, too
			return n, e
		}
	}
	if err == nil || err == io.EOF {
		return n, err
	}
	w.Header()["Connection"] = []string{"close"} // the rest of it could be taken for the next request
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
