package api_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/api"
	"parley/desk"
	"parley/web"
)

// TestRoomFirst: an answer that may be large is not made before there is memory for it. All
// others are answered although all memory of the workspace is taken.
func TestRoomFirst(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	taken, free := make(chan struct{}), make(chan struct{})
	hog := func(size int) web.Handler {
		return func(w *web.Response, _ *http.Request) error {
			err := w.Reserve(size, s.ws)
			taken <- struct{}{}
			<-free
			return err
		}
	}
	s.web.Handle("GET /large", hog(20<<20), func(*web.Response, *desk.Error) { t.Error("no room") })
	s.web.Handle("GET /middling", hog(1<<20), func(*web.Response, *desk.Error) { t.Error("no room") })
	var hogs sync.WaitGroup
	defer hogs.Wait()
	defer close(free)
	for _, path := range append(slices.Repeat([]string{"/middling"}, 12), "/large") {
		hogs.Go(func() { s.handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil)) })
		<-taken
	}
	large := map[string]bool{}
	for _, path := range strings.Fields("contacts contacts/{id}/identities attributes contacts/{id}/conversations conversations conversations/{id}/messages " +
		"conversations/{id}/notes inbox attempts templates snippets channels members events webhooks webhooks/{id}/deliveries") {
		large["GET /v1/"+path] = true
	}
	var calls sync.WaitGroup
	for pattern := range api.Routes() {
		if !strings.HasPrefix(pattern, "GET ") {
			continue
		}
		calls.Go(func() {
			r := s.do(fillIn(pattern, "01900000-0000-7000-8000-000000000000", "plan"), "")
			if (r.status == 503) != large[pattern] {
				t.Errorf("%s answers %d %s", pattern, r.status, r.body)
			}
		})
	}
	calls.Wait()
}
