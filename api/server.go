package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/app"
	"parley/desk"
)

// The largest bodies, in bytes (contract §2).
const (
	maxBody      = 1 << 20
	maxBatchBody = 16 << 20
)

// Config is what a Server is built from.
type Config struct {
	App       *app.App
	Log       *slog.Logger
	RateLimit int    // requests a second for each key; 0: no limit
	Version   string // of the binary, for /metrics
}

// A Server answers HTTP. It is safe for concurrent use.
type Server struct {
	app      *app.App
	log      *slog.Logger
	mux      *http.ServeMux
	metrics  *metrics
	limits   *limits
	forms    forms
	draining atomic.Bool
}

// New builds a Server.
func New(c Config) *Server {
	s := &Server{app: c.App, log: c.Log, mux: http.NewServeMux(), metrics: newMetrics(c.Version), limits: newLimits(c.RateLimit)}
	for _, rt := range s.routes() {
		s.mux.Handle(rt.pattern, s.serve(rt))
	}
	s.mux.Handle("/v1/", s.serve(route{pattern: "/v1/", do: s.unknown}))
	s.pages()
	s.hooks()
	return s
}

// Handler returns what serves all paths.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.dispatch) }

// A route is one endpoint.
type route struct {
	pattern  string
	needs    desk.Permission
	do       handler
	rechecks bool // do looks at the key in its own transaction: see app.Presume
}

// A handler reads a call and returns its answer.
type handler func(*call) (answer, error)

// A call is one authenticated request under /v1.
type call struct {
	r         *http.Request
	w         http.ResponseWriter
	principal app.Principal
	out       []byte        // empty, with room for an answer
	large     *[]byte       // what room lent
	body      *bytes.Buffer // once it was read
	unread    error         // why it could not be read: it can't be tried twice
	counted   bool          // against the key's rate
}

// An answer is a status and a JSON body; 204 has none.
type answer struct {
	status int
	body   []byte
}

// dispatch gives every answer its request id, and keeps the mux from redirecting:
// a path that is not clean is an unknown route.
func (s *Server) dispatch(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h["X-Request-Id"] = []string{s.app.NewID().String()}
	if p := r.URL.Path; p == "/v1" || p == "" || p[0] != '/' || !clean(p) || r.URL.RawPath != "" && !clean(r.URL.RawPath) {
		if p != "/v1" && !strings.HasPrefix(p, "/v1/") {
			s.fail(w, errNoRoute)
			return
		}
		s.serve(route{pattern: "/v1/", do: s.unknown}).ServeHTTP(w, r)
		return
	}
	s.mux.ServeHTTP(w, r)
}

func clean(p string) bool {
	if !strings.Contains(p, "//") && !strings.Contains(p, "/.") {
		return true // as nearly all are
	}
	c := path.Clean(p)
	return p == c || c != "/" && p == c+"/"
}

// serve authenticates, checks the permission, runs the handler, and turns what it
// returns into an answer: the only place where a request ends.
func (s *Server) serve(rt route) http.Handler {
	observe := s.metrics.route(rt.pattern)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		out := buffers.Get().(*[]byte)
		c := &call{r: r, w: w, out: (*out)[:0]}
		a, err := s.run(rt, c)
		if err != nil {
			e := desk.AsError(err)
			a = answer{status[e.Type], errorBody(e)}
			errorHeaders(w.Header(), e)
			s.explain(r, rt.pattern, c, e)
		}
		reply(w, a)
		switch {
		case c.large != nil:
			largeBuffers.Put(c.large)
		case err == nil && cap(a.body) <= maxKept:
			*out = a.body[:0]
		}
		buffers.Put(out)
		if c.body != nil && c.body.Cap() <= maxBody {
			bodies.Put(c.body)
		}
		observe(a.status, time.Since(start))
		if s.log.Enabled(r.Context(), slog.LevelDebug) {
			s.log.LogAttrs(r.Context(), slog.LevelDebug, "http", slog.String("route", rt.pattern), slog.String("method", r.Method),
				slog.Int("status", a.status), requestID(w), keyID(c), slog.Duration("took", time.Since(start)))
		}
	})
}

// run authenticates, admits and handles a request. A route that rechecks the key
// is first tried on a presumption; what is then refused is refused for good only
// after the key was read and the presumption held.
func (s *Server) run(rt route, c *call) (a answer, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	key := bearer(c.r)
	presumed, known := app.Principal{}, false
	if rt.rechecks {
		presumed, known = s.app.Presume(key)
	}
	if known {
		c.principal = presumed
		if a, err = s.admit(rt, c); err == nil {
			return a, nil
		}
	}
	p, unauthorized := s.app.Authenticate(c.r.Context(), key)
	if unauthorized != nil {
		return answer{}, unauthorized
	}
	c.principal = p
	if known && p.SameSettings(presumed) && !errors.Is(err, app.ErrStale) {
		return a, err
	}
	return s.admit(rt, c)
}

// admit runs the handler if the principal may, now.
func (s *Server) admit(rt route, c *call) (a answer, err error) {
	if !c.counted && !s.limits.allow(c.principal.Key.ID) {
		return a, desk.Errorf(desk.RateLimited, "this key sends more requests than the %d a second it may; wait and send again", s.limits.perSecond)
	}
	c.counted = true
	if rt.needs != "" {
		if err = c.principal.Allow(rt.needs); err != nil {
			return a, err
		}
	}
	return rt.do(c)
}

// bearer returns the key that the request carries, or "" when it carries none in
// the one form there is.
func bearer(r *http.Request) string {
	values := r.Header["Authorization"]
	if len(values) != 1 {
		return ""
	}
	scheme, key, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimLeft(key, " ")
}

// explain logs what only the operator can mend: the answer says no more than that
// it happened.
func (s *Server) explain(r *http.Request, pattern string, c *call, e *desk.Error) {
	level := slog.LevelError
	switch e.Type {
	case desk.Internal:
	case desk.Unavailable:
		level = slog.LevelWarn
	default:
		return
	}
	if r.Context().Err() != nil {
		return // the client has left, which is not the database's fault
	}
	s.log.LogAttrs(r.Context(), level, "request failed", slog.String("route", pattern), requestID(c.w), keyID(c), slog.Any("err", e.Err))
}

func requestID(w http.ResponseWriter) slog.Attr {
	return slog.String("request_id", w.Header().Get("X-Request-Id"))
}

func keyID(c *call) slog.Attr {
	if c.principal.Key == nil {
		return slog.String("key_id", "")
	}
	return slog.String("key_id", c.principal.Key.ID.String())
}

// maxKept is the largest buffer that is kept for the next answer.
const maxKept = 64 << 10

var buffers = sync.Pool{New: func() any {
	b := make([]byte, 0, 2<<10)
	return &b
}}

// room returns an empty buffer with room for an answer of n bytes. It belongs to the
// call until that is answered.
func (c *call) room(n int) []byte {
	if n <= maxKept || n > maxLarge {
		return slices.Grow(c.out, n)
	}
	c.large = largeBuffers.Get().(*[]byte)
	if cap(*c.large) < n {
		*c.large = make([]byte, 0, n+n/8) // the next answer is as large, or nearly
	}
	return *c.large
}

// maxLarge is the largest buffer that is kept for the next large answer.
const maxLarge = 4 << 20

var largeBuffers = sync.Pool{New: func() any { return new([]byte) }}

var jsonType = []string{"application/json; charset=utf-8"}

func reply(w http.ResponseWriter, a answer) {
	h := w.Header()
	if a.status != http.StatusNoContent {
		h["Content-Type"] = jsonType
		h["Content-Length"] = []string{strconv.Itoa(len(a.body))}
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // a client that has left is nobody's error
}

// fail answers outside /v1.
func (s *Server) fail(w http.ResponseWriter, e *desk.Error) {
	errorHeaders(w.Header(), e)
	reply(w, answer{status[e.Type], errorBody(e)})
}

var errNoRoute = desk.NotFoundf("no such route; /docs lists those there are")

// unknown answers a path or method under /v1 that no route has.
func (s *Server) unknown(c *call) (answer, error) { return answer{}, s.noRoute(c.w, c.r) }

// noRoute says whether it is the path or only the method that no route has.
func (s *Server) noRoute(w http.ResponseWriter, r *http.Request) *desk.Error {
	allow := s.allowed(r)
	if allow == "" || !clean(r.URL.Path) {
		return errNoRoute
	}
	w.Header()["Allow"] = []string{allow}
	return desk.Errorf(desk.MethodNotAllowed, "this path takes %s, not %s", allow, r.Method)
}

// allowed lists the methods that the request's path takes.
func (s *Server) allowed(r *http.Request) string {
	var list []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		probe := &http.Request{Method: method, URL: r.URL, Host: r.Host}
		if _, pattern := s.mux.Handler(probe); pattern != "/v1/" && pattern != "/" {
			list = append(list, method)
		}
	}
	return strings.Join(list, ", ")
}

// id is the path's {id}; one that is no UUID is the zero id, which no record has.
func (c *call) id() desk.ID {
	id, _ := desk.ParseID(c.r.PathValue("id"))
	return id
}

// decode reads the body, whatever its Content-Type, and hands it to read.
func (c *call) decode(limit int64, read func(*decoder) error) error {
	if c.body == nil && c.unread == nil {
		c.unread = c.readBody(limit)
	}
	if c.unread != nil {
		return c.unread
	}
	return decode(c.body.Bytes(), read)
}

func (c *call) readBody(limit int64) error {
	tooLarge := desk.Errorf(desk.PayloadTooLarge, "the body is larger than the %d MiB that this endpoint takes", limit>>20)
	if c.r.ContentLength > limit {
		return tooLarge
	}
	body := bodies.Get().(*bytes.Buffer)
	body.Reset()
	if c.r.ContentLength > 0 {
		body.Grow(int(c.r.ContentLength) + bytes.MinRead)
	}
	var large *http.MaxBytesError
	_, err := body.ReadFrom(http.MaxBytesReader(c.w, c.r.Body, limit))
	switch {
	case errors.As(err, &large):
		return tooLarge
	case errors.Is(err, io.ErrUnexpectedEOF):
		return desk.Invalidf("the body ended before its announced length")
	case err != nil:
		return desk.Invalidf("the body could not be read to its end: send it whole, within a minute")
	}
	c.body = body
	return nil
}

var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// Ready tells whether requests can be answered now.
func (s *Server) ready(ctx context.Context) error {
	if s.draining.Load() {
		return errors.New("draining")
	}
	return s.app.Ready(ctx)
}
