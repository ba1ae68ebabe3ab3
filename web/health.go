package web

import (
	"net/http"

	"parley/desk"
)

// JSON is the content type of records and errors.
const JSON = "application/json; charset=utf-8"

// health adds the routes for monitoring. None of them needs a key.
func (s *Server) health() {
	s.Handle("GET /healthz", func(w *Response, r *http.Request) error {
		return w.health(s.ready(r.Context()) == nil)
	}, noBody)
	s.Handle("GET /readyz", func(w *Response, r *http.Request) error {
		return w.health(!s.draining.Load() && s.ready(r.Context()) == nil)
	}, noBody)
	metrics := s.metrics.handler()
	s.Handle("GET /metrics", func(w *Response, r *http.Request) error {
		metrics.ServeHTTP(w, r)
		return nil
	}, noBody)
}

func (w *Response) health(ok bool) error {
	if ok {
		w.Reply(http.StatusOK, JSON, []byte(`{"status":"ok"}`))
	} else {
		w.Reply(http.StatusServiceUnavailable, JSON, []byte(`{"status":"unavailable"}`))
	}
	return nil
}

// noBody answers a panic in a handler that returns no errors.
func noBody(w *Response, _ *desk.Error) { w.WriteHeader(http.StatusInternalServerError) }
