package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/api"
	"parley/desk"
	"parley/web"
)

// TestRoomFirst: an answer that may be large is not made before there is memory for it. All
// other requests are answered even if all memory of the workspace is taken.
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
		"conversations/{id}/notes contacts/{id}/history merges merges/{id} conflicts inbox broadcasts broadcasts/{id}/rows attempts templates snippets segments channels members events webhooks webhooks/{id}/deliveries") {
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

// TestUnreadAnswers: a short answer that its client does not read does not keep the buffer
// of a long one. The test looks at the heap, so no other test runs beside it.
func TestUnreadAnswers(t *testing.T) {
	s := newServer(t)
	var values []string
	for k := range 50 {
		if r := s.do("POST /v1/attributes", fmt.Sprintf(`{"key":"a%d","type":"text"}`, k)); r.status != 201 {
			t.Fatalf("%d %s", r.status, r.body)
		}
		values = append(values, fmt.Sprintf(`"a%d":%q`, k, strings.Repeat("x", 3990)))
	}
	for n := range 20 {
		if r := s.do("POST /v1/contacts", fmt.Sprintf(`{"external_id":"c%d","attributes":{%s}}`, n, strings.Join(values, ","))); r.status != 201 {
			t.Fatalf("%d %s", r.status, r.body)
		}
	}
	get := func(w http.ResponseWriter, query string) {
		r := httptest.NewRequest("GET", "/v1/contacts?"+query, nil)
		r.Header.Set("Authorization", "Bearer "+s.key)
		s.handler.ServeHTTP(w, r)
	}
	heap := func() int {
		runtime.GC()
		runtime.GC() // what a sync.Pool has is free after the second one
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	for name, query := range map[string]string{"a contact of 200 KB": "limit=1", "nobody": "external_id=nobody"} {
		const calls, most = 10, 20 << 20
		before := heap()
		free := make(chan struct{})
		var unread sync.WaitGroup
		for range calls {
			w := &stuck{httptest.NewRecorder(), make(chan struct{}), free}
			unread.Go(func() {
				long := httptest.NewRecorder()
				if get(long, "limit=20"); long.Body.Len() < 3<<20 {
					t.Errorf("the long answer has %d bytes", long.Body.Len())
				}
				get(w, query)
			})
			<-w.begun
		}
		if more := heap() - before; more > most {
			t.Errorf("%s: %d answers that nobody reads keep %d MB", name, calls, more>>20)
		}
		close(free)
		unread.Wait()
	}
}

// A stuck is an http.ResponseWriter whose client does not read until free is closed.
type stuck struct {
	http.ResponseWriter
	begun, free chan struct{}
}

func (s *stuck) Write(b []byte) (int, error) {
	close(s.begun)
	<-s.free
	return s.ResponseWriter.Write(b)
}

// TestWritesTakeTurns: the size of the answer to a write is only known once the answer is
// made, and a short body may have a long answer. So all writes of a workspace take turns,
// except those that wait for somebody else.
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
