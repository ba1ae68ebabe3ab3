package api

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"parley/desk"
	"parley/web"

	"github.com/swaggest/swgui/v5emb"
)

//go:embed openapi.json
var openapi []byte

// Description is the API description, as OpenAPI. Its only server is /v1 on the host from
// which the description comes.
func Description() []byte { return openapi }

// relativeServer is the server in the description.
var relativeServer = []byte(`{"url": "/v1"}`)

// describe returns the description with the public URL in its server, because many
// generators take the server as the address to call. If publicURL is "", the server stays
// relative.
func describe(publicURL string) []byte {
	if publicURL == "" {
		return openapi
	}
	url, err := json.Marshal(publicURL + "/v1")
	if err != nil {
		return openapi
	}
	return bytes.Replace(openapi, relativeServer, slices.Concat([]byte(`{"url": `), url, []byte(`}`)), 1)
}

//go:embed docs.html
var docs []byte

//go:embed docs.js
var docsScript []byte

// These policies say what a page may load. No other page may show it in a frame. Swagger UI
// sets styles on its elements, and has images in its stylesheet.
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
func (s *Server) pages(publicURL string) {
	const html = "text/html; charset=utf-8"
	s.web.Handle("GET /openapi.json", static(web.JSON, assetsMay, describe(publicURL)), fail(inQuery))
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
	s.web.Divert(astray, func(*web.Response, *http.Request) error { return errAstray }, fail(inQuery))
	s.web.Handle("GET /docs/", func(w *web.Response, r *http.Request) error {
		guard(w, assetsMay)
		swagger.ServeHTTP(w, r)
		return nil
	}, fail(inQuery))
}

// besides has the paths outside of /v1 that clients other than browsers ask for. A path
// that ends in a slash stands for all paths below it.
var besides = []string{"/mcp", "/healthz", "/readyz", "/metrics", "/openapi.json", "/docs", "/docs/", "/hooks/"}

// errAstray is the answer to a client of the API that leaves /v1 out of its base URL.
var errAstray = desk.NotFoundf("no such route: the API is under /v1, as in /v1/contacts; /docs lists its routes")

// astray tells whether a client of the API asks for a path that is not the API's. Otherwise
// the console would send this client to the sign-in page. A browser may also have a Bearer
// header: it is for a proxy in front of parley, not for parley.
func astray(r *http.Request) bool {
	p := r.URL.Path
	if strings.HasPrefix(p, "/v1/") || p == "/v1" || r.Header["Authorization"] == nil {
		return false
	}
	for _, known := range besides {
		if p == known || strings.HasSuffix(known, "/") && strings.HasPrefix(p, known) {
			return false
		}
	}
	key := bearer(r)
	_, own := desk.ParseKey(key)
	browser := r.Header.Get("Cookie") != "" || strings.Contains(r.Header.Get("Accept"), "text/html")
	return key != "" && (own || !browser)
}
