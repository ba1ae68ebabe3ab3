package api

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"

	"parley/desk"
	"parley/web"
)

// assistants adds POST /mcp, for assistants that speak the Model Context Protocol. It
// checks key, method and origin, and limits the body; do answers.
func (s *Server) assistants(do http.Handler, publicURL string) {
	own := originOf(publicURL)
	s.web.Handle("/mcp", func(w *web.Response, r *http.Request) error {
		p, err := s.app.Authenticate(context.WithoutCancel(r.Context()), bearer(r))
		if err != nil {
			return err
		}
		w.Actor("key_id", p.Key.ID)
		if r.Method != http.MethodPost {
			w.Header()["Allow"] = []string{http.MethodPost}
			return desk.Errorf(desk.MethodNotAllowed, "this path takes POST, not %s", r.Method)
		}
		// Browsers send it. A page of somebody else must not use a key that it came by.
		if origin := r.Header.Values("Origin"); len(origin) > 0 && (own == "" || originOf(origin[0]) != own || len(origin) > 1) {
			return desk.Errorf(desk.Forbidden, "pages of this origin may not call parley")
		}
		body, err := w.Body(maxBody, p.Workspace())
		if err != nil {
			return err
		}
		// A batch could ask for ten thousand pages at once, whose answers are kept until the
		// last is there.
		if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) {
			return desk.Invalidf("send one message at a time: batches are not taken")
		}
		request := r.Clone(r.Context())
		request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		if request.Header.Get("Content-Type") == "" { // as elsewhere, JSON need not be named
			request.Header.Set("Content-Type", "application/json")
		}
		to := &kept{header: w.Header()}
		do.ServeHTTP(to, request)
		w.Release()
		if to.body.Len() == 0 {
			w.WriteHeader(cmp.Or(to.status, http.StatusOK))
			return nil
		}
		w.Room(to.body.Len(), p.Workspace())
		w.Reply(cmp.Or(to.status, http.StatusOK), w.Header().Get("Content-Type"), to.body.Bytes())
		return nil
	}, fail(inBody))
}

// originOf is the origin of a URL as browsers send it, "" for anything else.
func originOf(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return ""
	}
	host := strings.ToLower(u.Host)
	switch u.Scheme {
	case "http":
		host = strings.TrimSuffix(host, ":80")
	case "https":
		host = strings.TrimSuffix(host, ":443")
	}
	return u.Scheme + "://" + host
}

// kept is an http.ResponseWriter that keeps the answer, whose size is not known before.
type kept struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (k *kept) Header() http.Header { return k.header }

func (k *kept) WriteHeader(status int) { k.status = cmp.Or(k.status, status) }

func (k *kept) Write(b []byte) (int, error) { return k.body.Write(b) }
