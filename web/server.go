package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"parley/desk"

	"github.com/prometheus/client_golang/prometheus"
)

// Config has the parts of a Server. All but the last three are
// required.
type Config struct {
	Log     *slog.Logger
	NewID   func() desk.ID              // of requests
	Ready   func(context.Context) error // tells whether requests can be answered now
	Drain   func()                      // is called when no more requests are accepted
	Version string                      // of the program, for /metrics
	Bounds  Bounds                      // 0 means the default

	Certificate  *Certificate // for TLS; nil: plain HTTP
	MetricsApart bool         // /metrics is answered by ServeMetrics only
}

// A Server answers HTTP for all rooms. It is safe for concurrent use once all
// handlers are registered.
type Server struct {
	log       *slog.Logger
	newID     func() desk.ID
	ready     func(context.Context) error
	drain     func()
	bounds    Bounds
	mux       *http.ServeMux
	unknown   map[string]http.Handler // by prefix: the handler of paths without a route
	diverts   func(*http.Request) bool
	diverted  http.Handler // of the requests for which diverts returns true
	metrics   *metrics
	bodies    *budget     // of authenticated callers, and of all answers
	large     *budget     // of the large ones among these bodies and answers
	unchecked *budget     // of callers who are not authenticated yet
	uploads   *budget     // of bodies that are read as they come
	turns     turns       // of writes, and of scrapes of /metrics
	asked     turns       // of assistants' calls
	pages     turns       // of pages of the console
	draining  atomic.Bool // /readyz answers 503

	certificate  *Certificate
	metricsApart http.Handler  // of /metrics alone, if that has a listener of its own
	stopping     chan struct{} // closed when no more requests are accepted
}

// New builds a Server with the routes of health and metrics.
func New(c Config) *Server {
	s := &Server{
		log: c.Log, newID: c.NewID, ready: c.Ready, drain: c.Drain, bounds: c.Bounds.orDefaults(),
		mux: http.NewServeMux(), unknown: map[string]http.Handler{}, metrics: newMetrics(c.Version), stopping: make(chan struct{}),
		bodies: newBudget(budgetBytes-largeBytes, (budgetBytes-largeBytes)/2), large: newBudget(largeBytes, largeBytes/2), unchecked: newBudget(uncheckedBytes, uncheckedBytes),
		uploads: newBudget(maxUploads, maxUploads/2), certificate: c.Certificate,
	}
	s.metrics.budget("authenticated", s.bodies, s.large)
	s.metrics.budget("unchecked", s.unchecked)
	s.health(c.MetricsApart)
	return s
}

// Register adds metrics to /metrics.
func (s *Server) Register(collectors ...prometheus.Collector) {
	s.metrics.registry.MustRegister(collectors...)
}

// Stopping is closed when the server accepts no more requests. A streaming handler must
// then end its answer.
func (s *Server) Stopping() <-chan struct{} { return s.stopping }

func (s *Server) isStopping() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}

// A Handler answers a request, or returns an error. After it has begun to answer, it
// returns an error only if the answer must be broken off.
type Handler func(w *Response, r *http.Request) error

// A Fail is a function that answers an error in the form of its room.
type Fail func(w *Response, e *desk.Error)

// Handle registers a handler. Patterns are those of http.ServeMux. A pattern without a
// method that ends in a slash, such as /v1/, gets every path below it that matches no
// other pattern.
func (s *Server) Handle(pattern string, do Handler, fail Fail) {
	h := s.wrap(pattern, do, fail)
	if isFallback(pattern) {
		s.unknown[pattern] = h
	}
	s.mux.Handle(pattern, h)
}

// Divert registers a handler for the requests for which the function when returns true,
// whatever their path.
func (s *Server) Divert(when func(*http.Request) bool, do Handler, fail Fail) {
	s.diverts, s.diverted = when, s.wrap("/", do, fail)
}

func isFallback(pattern string) bool {
	return strings.HasPrefix(pattern, "/") && strings.HasSuffix(pattern, "/")
}

// Handler returns the handler of all paths. It gives every answer its request id, and
// prevents redirects of the mux: a path that is not clean is an unknown route.
func (s *Server) Handler() http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w := s.respond(rw, r)
		if s.diverts != nil && s.diverts(r) {
			s.diverted.ServeHTTP(w, r)
			return
		}
		p := r.URL.Path
		if s.unknown[p+"/"] != nil || !strings.HasPrefix(p, "/") || !clean(p) || r.URL.RawPath != "" && !clean(r.URL.RawPath) {
			s.unknownFor(p).ServeHTTP(w, r)
			return
		}
		s.mux.ServeHTTP(w, r)
	})
}

// respond begins the Response to a request.
func (s *Server) respond(rw http.ResponseWriter, r *http.Request) *Response {
	w := &Response{ResponseWriter: rw, server: s, request: r}
	w.setHeader("X-Request-Id", 0, s.newID().String())
	return w
}

// unknownFor returns the handler of an unknown path: that of its longest prefix.
func (s *Server) unknownFor(p string) http.Handler {
	best, handler := "", http.NotFoundHandler()
	for prefix, h := range s.unknown {
		if strings.HasPrefix(p+"/", prefix) && len(prefix) > len(best) || best == "" && prefix == "/" {
			best, handler = prefix, h
		}
	}
	return handler
}

func clean(p string) bool {
	if !strings.Contains(p, "//") && !strings.Contains(p, "/.") {
		return true // true for nearly all
	}
	c := path.Clean(p)
	return p == c || c != "/" && p == c+"/"
}

// NoRoute tells whether the path is unknown, or only the method. For the method it sets
// Allow.
func (s *Server) NoRoute(w http.ResponseWriter, r *http.Request) *desk.Error {
	allow, _ := s.route(r, r.URL)
	if allow == "" || !clean(r.URL.Path) {
		p, slash := strings.CutSuffix(r.URL.Path, "/")
		if _, known := s.route(r, &url.URL{Path: p}); slash && clean(p) && known != "" {
			return desk.NotFoundf("no such route: send it to %s, without a slash at the end", known)
		}
		return desk.NotFoundf("no such route; /docs lists those there are")
	}
	w.Header()["Allow"] = []string{allow}
	return desk.Errorf(desk.MethodNotAllowed, "this path takes %s, not %s", allow, r.Method)
}

// route lists the methods of a path, and returns its pattern, such as /v1/contacts/{id};
// both are "" for an unknown path.
func (s *Server) route(r *http.Request, at *url.URL) (methods, known string) {
	var list []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		probe := &http.Request{Method: method, URL: at, Host: r.Host}
		if _, pattern := s.mux.Handler(probe); pattern != "" && !isFallback(pattern) {
			list = append(list, method)
			_, known, _ = strings.Cut(pattern, " ")
		}
	}
	return strings.Join(list, ", "), known
}

// wrap returns a handler that calls do. It recovers from panics, answers errors, logs and
// counts. Every request goes through it.
func (s *Server) wrap(pattern string, do Handler, fail Fail) http.Handler {
	observe := s.metrics.route(pattern)
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		start := time.Now()
		w := rw.(*Response) // that Handler made
		defer w.end()
		err := recovered(do, w, r)
		broken := err != nil && w.status != 0
		if err != nil {
			e := desk.AsError(err)
			s.explain(w, r, pattern, e)
			if !broken {
				fail(w, e)
			}
		}
		status := w.Status()
		observe(status, time.Since(start))
		if s.log.Enabled(r.Context(), slog.LevelDebug) {
			s.log.LogAttrs(r.Context(), slog.LevelDebug, "http", slog.String("route", pattern), slog.String("method", r.Method),
				slog.Int("status", status), w.requestID(), w.actor(), slog.Duration("took", time.Since(start)))
		}
		if broken {
			// The client must not take a part of the answer for the whole answer.
			panic(http.ErrAbortHandler)
		}
	})
}

// errPanic is the cause of an error that was a panic.
type errPanic struct {
	value any
	stack []byte
}

func (e *errPanic) Error() string { return fmt.Sprintf("panic: %v\n%s", e.value, e.stack) }

// recovered returns the error of a handler. A panic of the handler becomes an error.
func recovered(do Handler, w *Response, r *http.Request) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &errPanic{p, debug.Stack()}
		}
	}()
	return do(w, r)
}

// explain logs errors that only the operator can solve. The answer does not contain
// their cause.
func (s *Server) explain(w *Response, r *http.Request, pattern string, e *desk.Error) {
	level := slog.LevelError
	switch e.Type {
	case desk.Internal:
	case desk.Unavailable:
		level = slog.LevelWarn
	default:
		return
	}
	if !errors.As(e.Err, new(*errPanic)) && r.Context().Err() != nil {
		return // the client has left; the database did not fail
	}
	cause := e.Err
	if cause == nil {
		cause = e
	}
	s.log.LogAttrs(r.Context(), level, "request failed", slog.String("route", pattern), w.requestID(), w.actor(), slog.Any("err", cause))
}

// budget returns the budget for a body of up to n bytes.
func (s *Server) budget(n int) *budget {
	if n > middling {
		return s.large
	}
	return s.bodies
}
