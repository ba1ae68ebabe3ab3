package api

import (
	_ "embed"
	"net/http"

	"github.com/swaggest/swgui/v5emb"
)

//go:embed openapi.json
var openapi []byte

//go:embed index.html
var index []byte

// pages adds what stands beside /v1 and asks for no key.
func (s *Server) pages() {
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		s.health(w, s.app.Ready(r.Context()))
	})
	s.mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		s.health(w, s.ready(r.Context()))
	})
	s.mux.Handle("GET /metrics", s.metrics.handler())
	s.mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, answer{http.StatusOK, openapi})
	})
	docs := v5emb.New("parley API", "/openapi.json", "/docs")
	s.mux.Handle("GET /docs", docs)
	s.mux.Handle("GET /docs/", docs)
	s.mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(index)
	})
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, s.noRoute(w, r))
	})
}

func (s *Server) health(w http.ResponseWriter, err error) {
	if err != nil {
		reply(w, answer{http.StatusServiceUnavailable, []byte(`{"status":"unavailable"}`)})
		return
	}
	reply(w, answer{http.StatusOK, []byte(`{"status":"ok"}`)})
}
