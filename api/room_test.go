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

// TestWritesTakeTurns: how large the answer to a write is, is only known once it is made,
// and a short body may bring a long one: all writes of a workspace take turns, but those
// that wait for somebody else.
func TestWritesTakeTurns(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	taken, free := make(chan error), make(chan struct{})
	s.web.Handle("GET /hog", func(w *web.Response, _ *http.Request) error {
		taken <- w.Turn(s.ws, 1000)
		<-free
		return nil
	}, func(*web.Response, *desk.Error) { t.Error("no turn") })
	var hog sync.WaitGroup
	defer hog.Wait()
	defer close(free)
	hog.Go(func() { s.handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/hog", nil)) })
	if err := <-taken; err != nil {
		t.Fatal(err)
	}
	others := map[string]bool{
		"POST /v1/conversations/outbound": true, "POST /v1/conversations/{id}/messages": true, "POST /v1/media": true, "POST /v1/webhooks/{id}/ping": true,
	}
	// These look for the record before they read the body, and answer few bytes.
	others["PATCH /v1/webhooks/{id}"], others["POST /v1/webhooks/{id}/rotate"] = true, true
	var calls sync.WaitGroup
	for pattern := range api.Routes() {
		body := bodies(s)[pattern]
		if strings.HasPrefix(pattern, "GET ") || body == "" && !strings.HasPrefix(pattern, "DELETE ") && !others[pattern] {
			continue // the others read no body, and answer few bytes
		}
		calls.Go(func() {
			r := s.do(fillIn(pattern, "01900000-0000-7000-8000-000000000000", "plan"), body)
			if (r.status == 503) == others[pattern] {
				t.Errorf("%s answers %d %s", pattern, r.status, r.body)
			}
		})
	}
	calls.Wait()
}
