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
// checks key, method and origin, and limits the body. The handler do makes the answer.
func (s *Server) assistants(do http.Handler, publicURL string) {
	own := originOf(publicURL)
	s.web.Handle("/mcp", func(w *web.Response, r *http.Request) error {
		p, err := s.app.Access.Authenticate(context.WithoutCancel(r.Context()), bearer(r))
		if err != nil {
			return err
		}
		w.Actor("key_id", p.Key.ID)
		if err := s.count(p); err != nil {
			return err
		}
		if r.Method != http.MethodPost {
			w.Header()["Allow"] = []string{http.MethodPost}
			return desk.Errorf(desk.MethodNotAllowed, "this path takes POST, not %s", r.Method)
		}
		// Browsers send this header. A page of another site must not use a key, wherever the
		// page has it from.
		if origin := r.Header.Values("Origin"); len(origin) > 0 && (own == "" || originOf(origin[0]) != own || len(origin) > 1) {
			return desk.Errorf(desk.Forbidden, "pages of this origin may not call parley")
		}
		body, err := w.Body(maxBody, p.Workspace())
		if err != nil {
			return err
		}
		// A batch could ask for ten thousand pages at once. All answers would be kept until the
		// last one is complete.
		if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) {
			return desk.Invalidf("send one message at a time: batches are not taken")
		}
		o := &outer{w: w, ws: p.Workspace()}
		if err := w.AssistantTurn(o.ws); err != nil {
			return err
		}
		// A refusal may repeat the call's texts, with escapes.
		if err := o.reserve(int(repeated / wrapped * float64(len(body)))); err != nil {
			return err
		}
		request := r.Clone(context.WithValue(r.Context(), outerKey{}, o))
		request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		if request.Header.Get("Content-Type") == "" { // as elsewhere, the header may be missing
			request.Header.Set("Content-Type", "application/json")
		}
		to := &kept{header: w.Header()}
		do.ServeHTTP(to, request)
		w.Release()
		if to.body.Len() == 0 {
			w.WriteHeader(cmp.Or(to.status, http.StatusOK))
			return nil
		}
		w.Room(to.body.Len(), o.ws)
		w.Reply(cmp.Or(to.status, http.StatusOK), w.Header().Get("Content-Type"), to.body.Bytes())
		return nil
	}, fail(inBody))
}

// An outer is an assistant's call. Its tool makes requests to the API, and their answers
// become a part of the call's answer. So these requests take no memory of their own.
// Otherwise they could wait for one another.
type outer struct {
	w        *web.Response
	ws       desk.ID
	reserved int
}

type outerKey struct{}

// outerOf returns the assistant's call that makes the request; nil if there is none.
func outerOf(r *http.Request) *outer {
	o, _ := r.Context().Value(outerKey{}).(*outer)
	return o
}

// wrapped is a factor: the size of an answer to an assistant, as a multiple of the API's
// answer. The answer contains the API's answer twice, once with escapes.
const wrapped = 5 / 2.0

// repeated is a factor: the greatest size of a refusal, as a multiple of the call that it
// refuses.
const repeated = 4.0

// reserve takes memory for an answer to the assistant that contains an answer of the API of
// up to most bytes. If it contains several, the first is much larger than the others.
func (o *outer) reserve(most int) error {
	if most <= o.reserved {
		return nil
	}
	o.reserved = 0
	if err := o.w.Reserve(int(wrapped*float64(most)), o.ws); err != nil {
		return err
	}
	o.reserved = most
	return nil
}

// fit takes memory for an answer to the assistant that contains an answer of the API of n
// bytes, unless the memory is reserved already. For the answer to a write, it never returns
// an error.
func (o *outer) fit(n int, read bool) error {
	if n <= o.reserved {
		return nil
	}
	if read {
		return o.reserve(n)
	}
	o.w.Room(int(wrapped*float64(n)), o.ws)
	return nil
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

// A kept is an http.ResponseWriter that keeps the answer, because its size is not known
// before.
type kept struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (k *kept) Header() http.Header { return k.header }

func (k *kept) WriteHeader(status int) { k.status = cmp.Or(k.status, status) }

func (k *kept) Write(b []byte) (int, error) { return k.body.Write(b) }
