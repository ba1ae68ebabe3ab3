package web

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"parley/desk"
)

// A Response is the answer to one request. Reply answers at once; Stream answers as
// long as the client reads.
type Response struct {
	http.ResponseWriter
	server  *Server
	request *http.Request
	status  int // 0 until the answer has begun
	body    *buffer
	hold    *hold // of the budget: the body
	room    *hold // of the budget: the answer
	upload  *hold // the turn of a body that is read as it comes
	turn    int   // as how many writes of the workspace turnOf it counts
	turnOf  desk.ID
	turnIn  *turns
	actorID desk.ID
	role    string // the kind of id in actorID
	streams *conn  // if the answer is a stream
	values  [3]string
}

// setHeader sets a header to one value. Its slice is a part of the Response, because
// allocating one for each header of each answer takes time.
func (w *Response) setHeader(name string, n int, value string) {
	w.values[n] = value
	w.Header()[name] = w.values[n : n+1 : n+1]
}

// Unwrap implements what http.ResponseController needs.
func (w *Response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader begins the answer.
func (w *Response) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK { // lower statuses are only hints
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write writes a part of the answer.
func (w *Response) Write(b []byte) (int, error) {
	w.status = w.Status()
	return w.ResponseWriter.Write(b)
}

// Status is the status that the client gets.
func (w *Response) Status() int { return cmp.Or(w.status, http.StatusOK) }

// Reply answers with a body. It does not report whether the client got it.
func (w *Response) Reply(status int, contentType string, body []byte) {
	w.endTurn() // the memory of the answer is counted by now
	if status != http.StatusNoContent {
		w.setHeader("Content-Type", 1, contentType)
		w.setHeader("Content-Length", 2, strconv.Itoa(len(body)))
	}
	w.WriteHeader(status)
	if w.room != nil {
		defer w.moving()()
	}
	_, _ = w.Write(body) // it is not an error if the client has left
}

// moving begins to write the answer in the memory of w.room, and returns a function for the
// end of the writing. Until then, a client that does not read may be cut off when others
// need the memory.
func (w *Response) moving() (end func()) {
	c := w.conn()
	if c != nil {
		w.room.move(func() { _ = c.Close() })
		c.held.Store(w.room)
	}
	return func() {
		if c != nil {
			c.held.Store(nil)
		}
		w.Unreserve()
	}
}

// conn is the connection; nil in a test of a handler.
func (w *Response) conn() *conn {
	c, _ := w.request.Context().Value(connKey{}).(*conn)
	return c
}

// Patient removes the time limit for reading the request. Otherwise the limit would also
// end a request that has been read and is waiting.
func (w *Response) Patient() error {
	err := http.NewResponseController(w.ResponseWriter).SetReadDeadline(time.Time{})
	if errors.Is(err, http.ErrNotSupported) { // in a test of a handler
		return nil
	}
	return err
}

// Stream begins an answer without an end. It removes the time limit for reading the
// request.
func (w *Response) Stream(contentType string) error {
	if c := w.conn(); c != nil {
		w.streams = c
		c.streams.Store(true)
	}
	w.Header()["Content-Type"] = []string{contentType}
	w.WriteHeader(http.StatusOK)
	if err := w.Patient(); err != nil {
		return err
	}
	return w.flush()
}

// Part sends a part of a stream, in the memory that TryRoom or Reserve has reserved.
// It returns an error if the client has left, or does not read. A client that reads
// slowly may take hours: every second, Part asks whether the stream may go on, and ends
// the connection if not.
func (w *Response) Part(b []byte, goOn func() bool) error {
	if w.room != nil {
		defer w.moving()()
	}
	defer w.while(goOn)()
	if _, err := w.Write(b); err != nil {
		return err
	}
	return w.flush()
}

// partWatch is how often Part asks whether the stream may go on.
const partWatch = time.Second

// while is a watch over a write. Every second it asks whether the write may go on, and
// closes the connection if not. The watch ends when end is called.
func (w *Response) while(goOn func() bool) (end func()) {
	c := w.conn()
	if c == nil {
		return func() {}
	}
	var mu sync.Mutex
	ended := false
	var timer *time.Timer
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(partWatch, func() {
		may := goOn()
		mu.Lock()
		defer mu.Unlock()
		switch {
		case ended:
		case may:
			timer.Reset(partWatch)
		default:
			_ = c.Close()
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		ended = true
		timer.Stop()
	}
}

func (w *Response) flush() error { return http.NewResponseController(w.ResponseWriter).Flush() }

// end ends the answer.
func (w *Response) end() {
	if w.streams != nil {
		w.streams.streams.Store(false)
	}
	w.Uploaded()
	w.endTurn()
	w.Release()
	w.Unreserve()
}

// Actor sets the caller for the log. role is the kind of id, such as key_id.
func (w *Response) Actor(role string, id desk.ID) { w.role, w.actorID = role, id }

func (w *Response) actor() slog.Attr {
	if w.role == "" {
		return slog.Attr{}
	}
	return slog.String(w.role, w.actorID.String())
}

// RequestID is the id that the answer carries.
func (w *Response) RequestID() string { return w.Header().Get("X-Request-Id") }

func (w *Response) requestID() slog.Attr { return slog.String("request_id", w.RequestID()) }

// Begun tells whether the answer has begun.
func (w *Response) Begun() bool { return w.status != 0 }

// Explain logs an error which the room answers itself, as web does for the errors that
// handlers return.
func (w *Response) Explain(e *desk.Error) {
	w.server.explain(w, w.request, w.request.Pattern, e)
}
