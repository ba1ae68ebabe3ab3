package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"

	"parley/app"
	"parley/desk"
	"parley/web"
)

// The largest bodies, in bytes (contract §2).
const (
	maxBody      = 1 << 20
	maxBatchBody = 16 << 20
)

// Config has the parts of a Server.
type Config struct {
	App       *app.App
	Web       *web.Server
	RateLimit int // requests a second for each key; 0: no limit

	MCP       http.Handler // of POST /mcp, after the key was checked; nil: none
	PublicURL string       // of the pages that may call it, and of the description's server; "": none

	Browser web.Handler // answers unknown paths that a browser asks for; nil: as for others
}

// A Server answers /v1, the pages, and providers' callbacks.
type Server struct {
	app   *app.App
	web   *web.Server
	rate  *web.Rate
	limit int
	forms forms

	browser web.Handler
}

// New builds a Server and registers its handlers.
func New(c Config) *Server {
	s := &Server{app: c.App, web: c.Web, rate: web.NewRate(c.RateLimit), limit: c.RateLimit, browser: c.Browser}
	s.web.Register(metrics{c.App})
	for _, rt := range append(s.routes(), route{pattern: "/v1/", do: s.unknown}) {
		s.web.Handle(rt.pattern, s.serve(rt), fail(inputOf(rt.pattern)))
	}
	s.pages(c.PublicURL)
	s.callbackRoutes()
	if c.MCP != nil {
		s.assistants(c.MCP, c.PublicURL)
	}
	return s
}

// A route is a method and a path of the API, with what it needs.
type route struct {
	pattern  string
	needs    desk.Permission
	do       handler
	rechecks bool // do checks the key in its own transaction: see access.Service.Presume
	most     int  // the memory to take before do makes the answer
}

// A handler reads a call and returns its answer.
type handler func(*call) (answer, error)

// A call is one authenticated request under /v1.
type call struct {
	r         *http.Request
	w         *web.Response
	principal desk.Principal
	out       []byte       // empty, with capacity for an answer
	large     *[]byte      // the buffer that lend took
	outer     *outer       // the assistant's call that it is a part of; nil: none
	beside    bool         // it is a write of something else than broadcasts, which go slowly beside it
	turns     bool         // it is a write, and takes a turn: see web.Response.Turn
	body      []byte       // after it was read
	unread    error        // why it could not be read; then the request can't be tried twice
	counted   bool         // whether the key's rate limit has counted it
	reserved  bool         // the memory for its answer is reserved
	from      string       // where its page of events began, if it waited for them
	stream    func() error // sends the answer, if that is a stream
}

// An answer is a status and a JSON body. An answer with the status 204 has no body.
type answer struct {
	status int
	body   []byte
}

// serve authenticates, checks the permission, runs the handler and answers.
func (s *Server) serve(rt route) web.Handler {
	read := strings.HasPrefix(rt.pattern, http.MethodGet)
	beside := !read && !strings.Contains(rt.pattern, " /v1/broadcasts")
	return func(w *web.Response, r *http.Request) error {
		out := buffers.Get().(*[]byte)
		c := &call{r: r, w: w, out: (*out)[:0], outer: outerOf(r), beside: beside}
		c.turns = !read && !ownTurns[rt.pattern] && c.outer == nil
		a, err := s.run(rt, c)
		w.Release()
		if err == nil && c.stream != nil {
			buffers.Put(out) // a stream may be idle for hours
			w.Unreserve()
			return c.stream()
		}
		if err == nil {
			a, err = s.makeRoom(rt, c, a, read)
		}
		if err == nil {
			a.body = c.fitted(a.body, *out)
			reply(w, a)
		} else {
			w.Unreserve()
		}
		switch {
		case c.large != nil:
			c.giveBack(a.body)
		case err == nil && cap(a.body) <= maxKept:
			*out = a.body[:0]
		}
		buffers.Put(out)
		return err
	}
}

// reserve takes memory for an answer of up to most bytes before it is made.
func (c *call) reserve(most int) error {
	if c.outer != nil {
		return c.outer.reserve(most)
	}
	return c.w.Reserve(most, c.principal.Workspace())
}

// makeRoom keeps as much of the reserved memory as the answer needs. If that is more than
// was reserved, it drops the answer to a read, waits for memory, and reads it again;
// otherwise many waiting callers would hold the memory that they wait for. It never
// drops the answer to a write.
func (s *Server) makeRoom(rt route, c *call, a answer, read bool) (answer, error) {
	n, ws := len(a.body), c.principal.Workspace()
	if n <= web.Free {
		c.w.Unreserve()
		return a, nil
	}
	if c.outer != nil {
		return a, c.outer.fit(n, read)
	}
	if !read {
		c.w.Room(n, ws)
		return a, nil
	}
	if c.w.Fit(n) || c.w.TryRoom(n, ws) {
		return a, nil
	}
	c.giveBack(a.body)
	if err := c.w.Reserve(n, ws); err != nil {
		return answer{}, err
	}
	c.reserved, c.out = true, c.room(n)
	a, err := s.run(rt, c)
	c.w.Release()
	if err == nil {
		c.w.Room(len(a.body), ws) // its size may have changed
	}
	return a, err
}

// run authenticates, admits and handles a request. A route that rechecks the key first
// tries a presumed principal. If that is refused, run reads the key and tries again, so
// a refusal is never based on a presumed principal.
func (s *Server) run(rt route, c *call) (a answer, err error) {
	key := bearer(c.r)
	presumed, known := desk.Principal{}, false
	// A caller must be authenticated before memory is reserved for its large body.
	if rt.rechecks && c.r.ContentLength >= 0 && c.r.ContentLength <= maxBody {
		presumed, known = s.app.Access.Presume(key)
	}
	if known {
		c.principal = presumed
		if a, err = s.admit(rt, c); err == nil || desk.IsType(err, desk.Unavailable) {
			return a, err // 503 depends on no right, and a database that hangs would also let the reading of the key wait
		}
	}
	// A client that has closed its side ends the request's context, but may still read the
	// answer. So the key is read without this context: the read is cheap, and the client must
	// not get the answer that the database is away.
	p, unauthorized := s.app.Access.Authenticate(context.WithoutCancel(c.r.Context()), key)
	if unauthorized != nil {
		return answer{}, unauthorized
	}
	c.principal = p
	if known && p.SameSettings(presumed) && !errors.Is(err, app.ErrStale) {
		return a, err
	}
	if a, err = s.admit(rt, c); desk.IsType(err, desk.NotFound) {
		// Perhaps the key's workspace was deleted meanwhile. Then the answer is the same as for
		// any key that no longer exists.
		if _, gone := s.app.Access.Authenticate(context.WithoutCancel(c.r.Context()), key); desk.IsType(gone, desk.Unauthorized) {
			return answer{}, gone
		}
	}
	return a, err
}

// admit runs the handler if the principal has the permission now.
func (s *Server) admit(rt route, c *call) (a answer, err error) {
	c.w.Actor("key_id", c.principal.Key.ID)
	if !c.counted && c.outer == nil {
		if err := s.count(c.principal); err != nil {
			return a, err
		}
	}
	c.counted = true
	if rt.needs != "" {
		if err = c.principal.Allow(rt.needs); err != nil {
			return a, err
		}
	}
	if c.beside {
		s.app.Broadcasts.GiveWay()
	}
	if rt.most > 0 && !c.reserved {
		if err = c.reserve(rt.most); err != nil {
			return a, err
		}
		c.reserved = true
		if rt.most > maxKept {
			c.out = c.lend()
		}
	}
	if c.turns && c.r.Method == http.MethodDelete { // other methods take their turn after the body was read
		if err = c.w.Turn(c.principal.Workspace(), 1); err != nil {
			return a, err
		}
	}
	return rt.do(c)
}

// ownTurns has the writes that do not take one turn. A batch counts as several writes. The
// others have short answers and wait for somebody else.
var ownTurns = map[string]bool{
	batchRoute: true, "POST /v1/conversations/outbound": true, "POST /v1/conversations/{id}/messages": true,
	"POST /v1/media": true, "POST /v1/webhooks/{id}/ping": true,
}

// count counts a request for the rate limit of its key.
func (s *Server) count(p desk.Principal) error {
	if !s.rate.Allow(p.Key.ID) {
		return desk.Errorf(desk.RateLimited, "this key sends more requests than the %d a second it may; wait and send again", s.limit)
	}
	return nil
}

// bearer returns the key of the request, or "" if it is absent or in another form.
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

// maxKept is the largest buffer that is kept for the next answer.
const maxKept = 64 << 10

var buffers = sync.Pool{New: func() any {
	b := make([]byte, 0, 2<<10)
	return &b
}}

// room returns an empty buffer with capacity for an answer of n bytes. It belongs to
// the call until the answer is sent.
func (c *call) room(n int) []byte {
	if n <= maxKept || n > maxLarge {
		return slices.Grow(c.out, n)
	}
	if cap(c.lend()) < n {
		*c.large = make([]byte, 0, n+n/8) // the next answer is usually about as large
	}
	return *c.large
}

// lend returns an empty buffer of an earlier long answer.
func (c *call) lend() []byte {
	if c.large == nil {
		c.large = largeBuffers.Get().(*[]byte)
	}
	return *c.large
}

// giveBack keeps the lent buffer, if there is one, for the next long answer. This answer
// may have made the buffer larger.
func (c *call) giveBack(body []byte) {
	if c.large == nil {
		return
	}
	if cap(body) > cap(*c.large) && cap(body) <= maxLarge {
		*c.large = body[:0]
	}
	largeBuffers.Put(c.large)
	c.out, c.large = nil, nil
}

// fitted copies a body to a short buffer if it is much shorter than the lent buffer, and
// gives the lent one back. Memory is reserved only for the body's size, and a client that
// does not read would keep the lent buffer for a long time.
func (c *call) fitted(body, short []byte) []byte {
	if c.large == nil || c.outer != nil || max(cap(body), cap(*c.large)) <= max(maxKept, 2*len(body)) {
		return body
	}
	short = append(short[:0], body...)
	c.giveBack(body)
	return short
}

// maxLarge is the largest buffer that is kept for the next large answer.
const maxLarge = 6 << 20

var largeBuffers = sync.Pool{New: func() any { return new([]byte) }}

func reply(w *web.Response, a answer) { w.Reply(a.status, web.JSON, a.body) }

// fail returns a web.Fail that answers an error as JSON. in says where the request was read
// from.
func fail(in input) web.Fail {
	return func(w *web.Response, e *desk.Error) {
		errorHeaders(w.Header(), e)
		reply(w, answer{web.Status(e.Type), errorBody(e, in)})
	}
}

// unknown answers a path or method under /v1 without a route.
func (s *Server) unknown(c *call) (answer, error) { return answer{}, s.web.NoRoute(c.w, c.r) }

// id returns the {id} in the path. A text that is not a UUID becomes the zero id, which no
// record has.
func (c *call) id() desk.ID {
	id, _ := desk.ParseID(c.r.PathValue("id"))
	return id
}

// largeBodies limits how many large bodies are decoded at a time. Decoding takes tenths
// of a second, and half of the processors are kept for other requests.
var largeBodies = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))

// decode reads the body, for any Content-Type, and passes it to read.
func (c *call) decode(limit int, read func(*decoder) error) error {
	switch {
	case c.body != nil || c.unread != nil:
	case c.outer != nil: // a part of the assistant's body, which is counted already
		c.body, c.unread = io.ReadAll(c.r.Body)
	default:
		c.body, c.unread = c.w.Body(limit, c.principal.Workspace())
	}
	if c.unread != nil {
		return c.unread
	}
	if c.turns {
		if err := c.w.Turn(c.principal.Workspace(), 1); err != nil {
			return err
		}
	}
	if len(c.body) > maxBody {
		largeBodies <- struct{}{}
		defer func() { <-largeBodies }()
	}
	return decode(c.body, func(d *decoder) error {
		d.defined = c.principal.Settings.Attributes
		return read(d)
	})
}
