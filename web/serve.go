package web

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Bounds are the time limits of clients. A connection costs a few KiB and no lock, so a
// thousand slow ones do not stop the others.
type Bounds struct {
	Header time.Duration // to send a request's header
	Read   time.Duration // to send a request, header and body
	Write  time.Duration // to read any further byte of an answer
	Idle   time.Duration // between two requests
	Drain  time.Duration // for requests in flight to end
}

func (b Bounds) orDefaults() Bounds {
	return Bounds{
		Header: cmp.Or(b.Header, 10*time.Second),
		Read:   cmp.Or(b.Read, 60*time.Second),
		Write:  cmp.Or(b.Write, 30*time.Second),
		Idle:   cmp.Or(b.Idle, 2*time.Minute),
		Drain:  cmp.Or(b.Drain, 30*time.Second),
	}
}

// maxHeader is the longest header, in bytes.
const maxHeader = 32 << 10

// Serve answers requests on l until ctx ends. Then /readyz answers 503 for drainWait
// while requests are still served, so that a balancer can stop sending them. After that
// it accepts no more connections and finishes the requests in flight, within
// Bounds.Drain.
func (s *Server) Serve(ctx context.Context, l net.Listener, drainWait time.Duration) error {
	server, bounded := s.bounded(s.Handler(), l)
	failed := make(chan error, 1)
	accepts := net.Listener(bounded)
	if s.certificate != nil {
		accepts = tls.NewListener(bounded, s.certificate.config())
	}
	go func() { failed <- server.Serve(accepts) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	s.draining.Store(true)
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-time.After(drainWait):
	}
	s.drain()
	close(s.stopping)
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.bounds.Drain)
	defer cancel()
	go bounded.hurry(bound.Done())
	go bounded.endStreams(bound.Done())
	// With TLS, closing a connection says goodbye to the client. One client after the other
	// could delay this.
	go bounded.cutOff(bound.Done())
	err := server.Shutdown(bound)
	if errors.Is(err, context.DeadlineExceeded) { // their clients get no answer, and repeat the request
		s.log.WarnContext(ctx, "requests were cut off, because they did not end in the time that a stop allows", "bound", s.bounds.Drain)
		err = server.Close()
	}
	if served := <-failed; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	if err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	return nil
}

// ServeMetrics answers /metrics on l, and nothing else, until ctx ends. It is for a Server
// with MetricsApart.
func (s *Server) ServeMetrics(ctx context.Context, l net.Listener) error {
	server, bounded := s.bounded(s.metricsApart, l)
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(bounded); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve /metrics: %w", err)
	}
	return nil
}

// bounded returns a server and its listener, which limit the time of clients.
func (s *Server) bounded(h http.Handler, l net.Listener) (*http.Server, listener) {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Server{
		Handler:           h,
		Protocols:         protocols,
		ReadHeaderTimeout: s.bounds.Header,
		ReadTimeout:       s.bounds.Read,
		IdleTimeout:       s.bounds.Idle,
		MaxHeaderBytes:    maxHeader,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if encrypted, ok := c.(*tls.Conn); ok {
				c = encrypted.NetConn()
			}
			return context.WithValue(ctx, connKey{}, c)
		},
		// net/http logs broken connections, with their addresses.
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}, listener{l, s.bounds.Write, new(sync.Map), s.log}
}
