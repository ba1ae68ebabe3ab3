package web_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/desk"
	"parley/web"

	"github.com/prometheus/client_golang/prometheus"
)

// A server is a Server whose connections are pipes, so that it can run inside a
// synctest bubble: its time passes only when everybody waits.
type server struct {
	*web.Server
	t       *testing.T
	log     *lockedBuffer
	pipes   chan net.Conn
	drained bool
	stop    func()
	served  chan error
}

func newServer(t *testing.T) *server {
	t.Helper()
	return newServerWith(t, func(*web.Config) {})
}

func newServerWith(t *testing.T, change func(*web.Config)) *server {
	t.Helper()
	s := &server{t: t, log: new(lockedBuffer), pipes: make(chan net.Conn), served: make(chan error, 1)}
	var n atomic.Uint32
	config := web.Config{
		Log:   slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		NewID: func() desk.ID { return desk.ID{15: byte(n.Add(1))} },
		Ready: func(context.Context) error { return nil },
		Drain: func() { s.drained = true },
	}
	change(&config)
	s.Server = web.New(config)
	return s
}

// start begins to serve. The server stops when the test ends or calls end.
func (s *server) start() {
	ctx, stop := context.WithCancel(s.t.Context())
	s.stop = stop
	go func() { s.served <- s.Serve(ctx, pipes{s.pipes, make(chan struct{}), new(sync.Once)}, 0) }()
}

// end stops the server and returns the result of Serve.
func (s *server) end() error {
	s.stop()
	return <-s.served
}

// dial connects and sends a text.
func (s *server) dial(text string) net.Conn {
	client, ours := net.Pipe()
	s.pipes <- ours
	go func() { _, _ = io.WriteString(client, text) }()
	return client
}

func (s *server) get(path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w
}

// fail is a Fail that answers with the error's type, as a text.
func fail(w *web.Response, e *desk.Error) {
	w.Reply(http.StatusTeapot, "text/plain", []byte(e.Type))
}

// A pipes is a listener whose connections are pipes.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	close  *sync.Once
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error {
	p.close.Do(func() { close(p.closed) })
	return nil
}

func (pipes) Addr() net.Addr { return &net.TCPAddr{} }

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

const get = "GET /x HTTP/1.1\r\nHost: parley\r\n\r\n"

// TestPanic: a panic is answered as an error, logged with its stack, and counted.
func TestPanic(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.Handle("GET /x", func(w *web.Response, _ *http.Request) error {
		w.Actor("key_id", desk.ID{1})
		panic("oh")
	}, fail)
	w := s.get("/x")
	if w.Code != http.StatusTeapot || w.Body.String() != "internal" || w.Header().Get("X-Request-Id") == "" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	for _, want := range []string{`level=ERROR msg="request failed" route="GET /x" request_id=` + w.Header().Get("X-Request-Id"), "key_id=" + (desk.ID{1}).String(), "panic: oh", "web_test.go"} {
		if !strings.Contains(s.log.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, s.log.String())
		}
	}
	if metrics := s.get("/metrics").Body.String(); !strings.Contains(metrics, `parley_http_requests_total{route="GET /x",status="418"} 1`) {
		t.Error("it is not counted")
	}
}

// TestBrokenOff: if an answer breaks off, the client does not take the part that it got for
// the whole answer.
func TestBrokenOff(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]web.Handler{
		"error": func(w *web.Response, _ *http.Request) error {
			_, _ = io.WriteString(w, "half")
			return errors.New("oh")
		},
		"panic": func(w *web.Response, _ *http.Request) error {
			_, _ = io.WriteString(w, "half")
			panic("oh")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			s.Handle("GET /x", do, fail)
			real := httptest.NewServer(s.Handler())
			defer real.Close()
			answer, err := real.Client().Get(real.URL + "/x")
			if err == nil {
				defer answer.Body.Close()
				var body []byte
				body, err = io.ReadAll(answer.Body)
				if err == nil {
					t.Errorf("the client got %d %q, and no error", answer.StatusCode, body)
				}
			}
			if !strings.Contains(s.log.String(), `msg="request failed"`) {
				t.Errorf("logged:\n%s", s.log.String())
			}
		})
	}
}

// TestHangsUpAfterItsAnswer: a client whose header is too long receives the whole answer,
// although the server does not read the rest of the request.
func TestHangsUpAfterItsAnswer(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { _ = s.Serve(ctx, l, 0) }()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	go func() {
		_, _ = io.WriteString(client, "GET /x?"+strings.Repeat("a", 100<<10)+" HTTP/1.1\r\nHost: parley\r\n\r\n")
	}()
	answer, err := io.ReadAll(client)
	if err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 431")) {
		t.Errorf("%q, %v", answer, err)
	}
}

// TestUnavailable: the error Unavailable is logged as a warning, unless the client has
// left.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.Handle("GET /x", func(*web.Response, *http.Request) error {
		return desk.Errorf(desk.Unavailable, "the database is away")
	}, fail)
	s.get("/x")
	if !strings.Contains(s.log.String(), `level=WARN msg="request failed"`) || strings.Contains(s.log.String(), "<nil>") {
		t.Errorf("logged:\n%s", s.log.String())
	}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	s.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/x", nil).WithContext(ctx))
	if n := strings.Count(s.log.String(), "request failed"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, s.log.String())
	}
}

// TestUnknownPaths: nothing is redirected, and every answer has its request id.
func TestUnknownPaths(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	unknown := func(name string) web.Handler {
		return func(w *web.Response, r *http.Request) error {
			w.Header().Set("By", name)
			return s.NoRoute(w, r)
		}
	}
	s.Handle("/", unknown("/"), fail)
	s.Handle("/v1/", unknown("/v1/"), fail)
	s.Handle("PUT /v1/x", unknown("no"), fail)
	s.Handle("GET /v1/x/{id}", unknown("no"), fail)
	for path, by := range map[string]string{
		"/v1": "/v1/", "/v1/": "/v1/", "/v1/y": "/v1/", "/v1//x": "/v1/", "/v1/../x": "/v1/", "/v1/%2e%2e/x": "/v1/", "/y": "/", "//": "/", "//v1/x": "/", "/v1x": "/",
	} {
		if w := s.get(path); w.Body.String() != "not_found" || w.Header().Get("By") != by || w.Header().Get("X-Request-Id") == "" {
			t.Errorf("%s: %d %v %s", path, w.Code, w.Header(), w.Body)
		}
	}
	if w := s.get("/v1/x"); w.Body.String() != "method_not_allowed" || w.Header().Get("Allow") != "PUT" {
		t.Errorf("%v %s", w.Header(), w.Body)
	}
}

func TestRegister(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "parley_test"}, func() float64 { return 3 }))
	if metrics := s.get("/metrics").Body.String(); !strings.Contains(metrics, "parley_test 3\n") || !strings.Contains(metrics, `route="GET /healthz"`) {
		t.Errorf("%s", metrics)
	}
}

// TestStream: the parts of a stream reach the client as they are written, for longer
// than any bound, and the stream is told when the server stops.
func TestStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.Handle("GET /x", func(w *web.Response, r *http.Request) error {
			if err := w.Stream("text/event-stream"); err != nil {
				return err
			}
			for n := 0; ; n++ {
				select {
				case <-r.Context().Done():
					return r.Context().Err()
				case <-s.Stopping():
					_, err := io.WriteString(w, "data: bye\n\n")
					return err
				case <-time.After(time.Minute):
				}
				if err := w.Part(fmt.Appendf(nil, "data: %d\n\n", n), func() bool { return true }); err != nil {
					return err
				}
			}
		}, fail)
		s.start()
		client := s.dial(get)
		defer client.Close()
		begun := time.Now()
		answer, err := http.ReadResponse(bufio.NewReader(client), nil)
		if err != nil || answer.StatusCode != 200 || answer.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatal(err, answer)
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("the header came after %v", took)
		}
		lines := bufio.NewScanner(answer.Body)
		for n := range 10 {
			if !lines.Scan() || lines.Text() != fmt.Sprint("data: ", n) {
				t.Fatalf("part %d: %q %v", n, lines.Text(), lines.Err())
			}
			lines.Scan()
			if took := time.Since(begun); took != time.Duration(n+1)*time.Minute {
				t.Errorf("part %d came after %v", n, took)
			}
		}
		go s.stop()
		if !lines.Scan() || lines.Text() != "data: bye" {
			t.Errorf("%q %v", lines.Text(), lines.Err())
		}
		lines.Scan()
		if lines.Scan() || lines.Err() != nil {
			t.Errorf("it does not end: %q %v", lines.Text(), lines.Err())
		}
		if err := s.end(); err != nil || !s.drained {
			t.Error(err, s.drained)
		}
		if !strings.Contains(s.log.String(), `route="GET /x" method=GET status=200`) || !strings.Contains(s.log.String(), "took=10m") {
			t.Errorf("logged:\n%s", s.log.String())
		}
	})
}

// TestWriteTimeout: an answer may take any time while its client reads bytes. The
// connection of a client that stops reading is closed after the bound.
func TestWriteTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const size = 1 << 20
		s := newServer(t)
		ended := make(chan error, 1)
		s.Handle("GET /x", func(w *web.Response, _ *http.Request) error {
			w.Header().Set("Content-Length", fmt.Sprint(size))
			_, err := w.Write(make([]byte, size))
			ended <- err
			return nil
		}, fail)
		s.start()

		slow := s.dial(get)
		begun, buffer := time.Now(), make([]byte, size/64)
		for range 64 {
			time.Sleep(20 * time.Second)
			if _, err := io.ReadFull(slow, buffer); err != nil {
				t.Fatalf("after %v: %v", time.Since(begun), err)
			}
		}
		rest := make(chan struct{})
		go func() { defer close(rest); _, _ = io.Copy(io.Discard, slow) }()
		if err := <-ended; err != nil {
			t.Errorf("a slow client got no whole answer: %v", err)
		}
		slow.Close()
		<-rest

		still := s.dial(get)
		defer still.Close()
		if _, err := io.ReadFull(still, buffer); err != nil {
			t.Fatal(err)
		}
		begun = time.Now()
		if err := <-ended; err == nil {
			t.Error("an answer that nobody reads ended well")
		}
		if took := time.Since(begun); took < 25*time.Second || took > 35*time.Second {
			t.Errorf("a client that takes nothing is dropped after %v", took)
		}
		if err := s.end(); err != nil {
			t.Error(err)
		}
	})
}

// TestSlowStream: a client may read a stream as slowly as it likes. The stream then holds
// the memory of one part. If the client reads nothing, the stream ends after the bound, and
// its memory is free.
func TestSlowStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const size = 1 << 20
		s := newServer(t)
		ended := make(chan error, 1)
		s.Handle("GET /x", func(w *web.Response, _ *http.Request) error {
			err := w.Stream("text/event-stream")
			for err == nil {
				if err = w.Reserve(size, desk.ID{}); err == nil {
					err = w.Part(make([]byte, size), func() bool { return true })
				}
			}
			ended <- err
			return nil
		}, fail)
		s.start()
		held := func(bytes string) {
			t.Helper()
			if metrics := s.get("/metrics").Body.String(); !strings.Contains(metrics, `parley_http_body_bytes{caller="authenticated"} `+bytes+"\n") {
				t.Errorf("a stream does not hold %s bytes:\n%s", bytes, metrics)
			}
		}

		client := s.dial(get)
		defer client.Close()
		second := make([]byte, 100)
		for range 3 * 60 * 60 { // more than a part
			time.Sleep(time.Second)
			if _, err := io.ReadFull(client, second); err != nil {
				t.Fatal(err)
			}
		}
		held("1.048576e+06")
		begun := time.Now()
		if err := <-ended; err == nil {
			t.Error("a stream that nobody reads ended well")
		}
		if took := time.Since(begun); took < 29*time.Second || took > 31*time.Second {
			t.Errorf("a stream that nobody reads ended after %v", took)
		}
		synctest.Wait()
		held("0")
		if err := s.end(); err != nil {
			t.Error(err)
		}
	})
}

// TestReadTimeout: a header and a body must come within their bounds.
func TestReadTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		ended := make(chan error, 1)
		s.Handle("POST /x", func(_ *web.Response, r *http.Request) error {
			_, err := io.ReadAll(r.Body)
			ended <- err
			return err
		}, fail)
		s.start()
		begun := time.Now()
		header := s.dial("GET /x HTTP/1.1\r\nHost: parley\r\nX-Slow: ")
		if _, err := io.Copy(io.Discard, header); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took != 10*time.Second {
			t.Errorf("a header is waited for %v", took)
		}
		begun = time.Now()
		body := s.dial("POST /x HTTP/1.1\r\nHost: parley\r\nContent-Length: 100\r\n\r\nabc")
		go func() { _, _ = io.Copy(io.Discard, body) }()
		if err := <-ended; err == nil {
			t.Error("a body that never ends was read")
		}
		if took := time.Since(begun); took != 60*time.Second {
			t.Errorf("a body is waited for %v", took)
		}
		if err := s.end(); err != nil {
			t.Error(err)
		}
	})
}

// TestTooLarge: a client that sends its whole body before it reads gets the answer. A
// client that waits for 100 Continue gets the answer instead of 100.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	const limit = 1 << 18 // if a handler leaves a body unread, net/http itself reads this number of bytes
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.Handle("POST /x", func(w *web.Response, _ *http.Request) error {
			_, err := w.Body(limit, desk.ID{1})
			return err
		}, fail)
		s.start()
		for name, c := range map[string]struct{ header, body string }{
			"sends first": {"", strings.Repeat("x", 4*limit)},
			"waits":       {"Expect: 100-continue\r\n", ""},
		} {
			client, ours := net.Pipe()
			s.pipes <- ours
			if err := client.SetDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			if _, err := fmt.Fprintf(client, "POST /x HTTP/1.1\r\nHost: parley\r\n%sContent-Length: %d\r\n\r\n%s", c.header, 4*limit, c.body); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			answer, err := io.ReadAll(client)
			if !bytes.Contains(answer, []byte(desk.PayloadTooLarge)) {
				t.Errorf("%s: %v %s", name, err, answer)
			}
			_ = client.Close()
		}
		if err := s.end(); err != nil {
			t.Error(err)
		}
	})
}

// TestDrain: while the server stops, /readyz says so, and requests in flight are finished.
func TestDrain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.Handle("GET /x", func(w *web.Response, _ *http.Request) error {
			<-s.Stopping()
			time.Sleep(20 * time.Second)
			w.Reply(200, "text/plain", []byte("done"))
			return nil
		}, fail)
		s.start()
		client := s.dial(get)
		defer client.Close()
		synctest.Wait()
		if code := s.get("/readyz").Code; code != 200 {
			t.Errorf("/readyz: %d", code)
		}
		s.stop()
		answer, err := http.ReadResponse(bufio.NewReader(client), nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(answer.Body); err != nil || string(body) != "done" {
			t.Errorf("%q %v", body, err)
		}
		if code := s.get("/readyz").Code; code != 503 {
			t.Errorf("/readyz while draining: %d", code)
		}
		if err := <-s.served; err != nil || !s.drained {
			t.Error(err, s.drained)
		}
	})
}

// TestDrain_body_that_stands_still: a server that stops does not wait for a client that has
// stopped sending, but it waits for a client that goes on.
func TestDrain_body_that_stands_still(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.Handle("POST /x", func(w *web.Response, _ *http.Request) error {
			body, err := w.Body(1<<20, desk.ID{1})
			if err == nil {
				w.Reply(200, "text/plain", body)
			}
			return err
		}, fail)
		s.start()
		const head = "POST /x HTTP/1.1\r\nHost: parley\r\nContent-Length: 100\r\n\r\n12345"
		still, slow := s.dial(head), s.dial(head)
		defer still.Close()
		defer slow.Close()
		synctest.Wait()
		s.stop()
		began := time.Now()
		go func() {
			for range 95 {
				time.Sleep(100 * time.Millisecond)
				_, _ = io.WriteString(slow, "x")
			}
		}()
		for _, c := range []struct {
			client net.Conn
			want   int
		}{{still, http.StatusTeapot}, {slow, http.StatusOK}} {
			answer, err := http.ReadResponse(bufio.NewReader(c.client), nil)
			if err != nil {
				t.Fatal(err)
			}
			if body, _ := io.ReadAll(answer.Body); answer.StatusCode != c.want {
				t.Errorf("%d %q, want %d", answer.StatusCode, body, c.want)
			}
		}
		if err := <-s.served; err != nil || time.Since(began) > 15*time.Second {
			t.Errorf("stopped after %v: %v", time.Since(began), err)
		}
	})
}

// TestDrain_cut_off: a request that does not end in the time for stopping is cut off. Serve
// still returns no error.
func TestDrain_cut_off(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.Handle("GET /x", func(_ *web.Response, r *http.Request) error {
			<-r.Context().Done()
			return nil
		}, fail)
		s.start()
		client := s.dial(get)
		defer client.Close()
		synctest.Wait()
		if err := s.end(); err != nil || !strings.Contains(s.log.String(), "cut off") {
			t.Errorf("%v, log %s", err, s.log)
		}
	})
}

func TestRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, a, b := web.NewRate(2), desk.ID{1}, desk.ID{2}
		for i, want := range []bool{true, true, false} {
			if r.Allow(a) != want {
				t.Errorf("request %d: not %v", i, want)
			}
		}
		if !r.Allow(b) {
			t.Error("another key is limited too")
		}
		time.Sleep(time.Second)
		if !r.Allow(a) || !web.NewRate(0).Allow(a) {
			t.Error("a second later, or without a limit, it may not")
		}
	})
}
