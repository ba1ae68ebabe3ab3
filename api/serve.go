package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// What bounds a slow or huge client. A connection costs a few KiB and no lock, so
// a thousand slow ones do not stop the others.
const (
	headerTimeout = 10 * time.Second
	readTimeout   = 60 * time.Second // header and body
	writeTimeout  = 90 * time.Second // from the end of the header to the answer's last byte
	idleTimeout   = 2 * time.Minute
	maxHeader     = 32 << 10
	drainTimeout  = 30 * time.Second
)

// Serve answers requests on l until ctx ends. Then /readyz answers 503 for
// drainWait while requests are still taken, so that a balancer can turn away;
// then it accepts no more and finishes those in flight, within 30 seconds.
func (s *Server) Serve(ctx context.Context, l net.Listener, drainWait time.Duration) error {
	server := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		// net/http writes of broken connections, with their addresses.
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
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
	s.app.Drain()
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	err := server.Shutdown(bound)
	if served := <-failed; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	if err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	return nil
}
