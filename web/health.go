package web

import (
	"bytes"
	"cmp"
	"net/http"

	"parley/desk"
)

// JSON is the content type of records and errors.
const JSON = "application/json; charset=utf-8"

// scrapes is how many answers of /metrics are made at a time.
const scrapes = 4

// health adds the routes for monitoring. None of them needs a key. With apart, /metrics is
// left out.
func (s *Server) health(apart bool) {
	s.Handle("GET /healthz", func(w *Response, r *http.Request) error {
		return w.health(s.ready(r.Context()) == nil)
	}, noBody)
	s.Handle("GET /readyz", func(w *Response, r *http.Request) error {
		return w.health(!s.draining.Load() && s.ready(r.Context()) == nil)
	}, noBody)
	const pattern = "GET /metrics"
	if !apart {
		s.Handle(pattern, s.scrape(), noBody)
		return
	}
	scrape, mux := s.wrap(pattern, s.scrape(), noBody), http.NewServeMux()
	mux.HandleFunc(pattern, func(rw http.ResponseWriter, r *http.Request) { scrape.ServeHTTP(s.respond(rw, r), r) })
	s.metricsApart = mux
}

// scrape returns the handler of /metrics.
func (s *Server) scrape() Handler {
	metrics := s.metrics.handler()
	return func(w *Response, r *http.Request) error {
		// The answer is made as a whole. Otherwise a client that does not read would keep the
		// data of which it is made. Only a few are made at a time: anybody may ask for one, and
		// its size is only known once it is made.
		if err := w.Turn(desk.ID{}, maxTurns/scrapes); err != nil {
			return err
		}
		made := &page{header: w.Header()}
		metrics.ServeHTTP(made, r)
		if err := w.ReserveUnchecked(made.body.Len()); err != nil {
			return err
		}
		w.Reply(cmp.Or(made.status, http.StatusOK), w.Header().Get("Content-Type"), made.body.Bytes())
		return nil
	}
}

// A page is an http.ResponseWriter that keeps the answer in memory.
type page struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (p *page) Header() http.Header { return p.header }

// WriteHeader implements http.ResponseWriter.
func (p *page) WriteHeader(status int) { p.status = status }

// Write implements http.ResponseWriter.
func (p *page) Write(b []byte) (int, error) { return p.body.Write(b) }

func (w *Response) health(ok bool) error {
	if ok {
		w.Reply(http.StatusOK, JSON, []byte(`{"status":"ok"}`))
	} else {
		w.Reply(http.StatusServiceUnavailable, JSON, []byte(`{"status":"unavailable"}`))
	}
	return nil
}

// noBody answers an error without a body.
func noBody(w *Response, e *desk.Error) {
	if e.Type == desk.Unavailable {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusInternalServerError)
}
