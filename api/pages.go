package api

import (
	_ "embed"
	"net/http"
	"strings"

	"parley/web"

	"github.com/swaggest/swgui/v5emb"
)

//go:embed openapi.json
var openapi []byte

// Description is the API description, as OpenAPI.
func Description() []byte { return openapi }

//go:embed docs.html
var docs []byte

//go:embed docs.js
var docsScript []byte

// What a page may load. No other page may frame it. Swagger UI sets styles on its
// elements, and has images in its stylesheet.
const (
	noOthers  = "; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	docsMay   = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'" + noOthers
	assetsMay = "default-src 'none'" + noOthers
)

// guard sets the security headers of a page.
func guard(w *web.Response, may string) {
	h := w.Header()
	h.Set("Content-Security-Policy", may)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
}

// static answers a page or an asset that never changes.
func static(contentType, may string, body []byte) web.Handler {
	return func(w *web.Response, _ *http.Request) error {
		guard(w, may)
		w.Reply(http.StatusOK, contentType, body)
		return nil
	}
}

// pages adds the paths outside of /v1 that need no key.
func (s *Server) pages() {
	const html = "text/html; charset=utf-8"
	s.web.Handle("GET /openapi.json", static(web.JSON, assetsMay, openapi), fail(inQuery))
	s.web.Handle("GET /docs", static(html, docsMay, docs), fail(inQuery))
	s.web.Handle("GET /docs/{$}", static(html, docsMay, docs), fail(inQuery))
	s.web.Handle("GET /docs/parley.js", static("text/javascript; charset=utf-8", assetsMay, docsScript), fail(inQuery))
	swagger := v5emb.New("", "", "/docs")
	s.web.Handle("/", func(w *web.Response, r *http.Request) error {
		if s.browser != nil && strings.Contains(r.Header.Get("Accept"), "text/html") {
			return s.browser(w, r)
		}
		return s.web.NoRoute(w, r)
	}, fail(inQuery))
	s.web.Handle("GET /docs/", func(w *web.Response, r *http.Request) error {
		guard(w, assetsMay)
		swagger.ServeHTTP(w, r)
		return nil
	}, fail(inQuery))
}
