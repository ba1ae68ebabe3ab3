package sqlite

import (
	"context"
	"os"
	"testing"
	"time"
)

// serverAndCommand opens one database for a process that writes steadily, and for one that does not.
func serverAndCommand(t *testing.T) (server, command *Store) {
	t.Helper()
	path := NewFile(t)
	for _, s := range []**Store{&server, &command} {
		opened, err := Open(t.Context(), Config{Path: path, Serves: s == &server})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = opened.Close() })
		*s = opened
	}
	return server, command
}

// TestContended: a command sees that a server had to wait for it. A server sees that one of its
// own changes had to wait for another.
func TestContended(t *testing.T) {
	t.Parallel()
	server, command := serverAndCommand(t)
	for _, s := range []*Store{server, command} {
		if err := s.write(t.Context(), writesNothing); err != nil {
			t.Error(err)
		}
	}
	before := time.Now().Add(-time.Minute) // the file was just made
	if err := os.Chtimes(turnPath(server.path), before, before); err != nil {
		t.Fatal(err)
	}
	if server.Contended() || command.Contended() {
		t.Fatal("nobody has had to wait")
	}
	done := make(chan error, 1)
	if err := command.write(t.Context(), func(conn) error {
		go func() { done <- server.write(t.Context(), writesNothing) }()
		until(t, "the server to wait", command.Contended)
		return nil
	}); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}

	server, _ = serverAndCommand(t)
	for _, err := range together(t, server, 2, func(int) error { return server.write(t.Context(), writesNothing) }) {
		if err != nil {
			t.Error(err)
		}
	}
	if server.waited.Load() == 0 {
		t.Error("one change had to wait for another")
	}
}

// TestTurn_steps: a server can write between the steps of a command's long work, and so can another
// command.
func TestTurn_steps(t *testing.T) {
	t.Parallel()
	server, command := serverAndCommand(t)
	other, err := Open(t.Context(), Config{Path: server.path})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended, begun := make(chan error, 1), make(chan struct{}, 1)
	go func() {
		for ctx.Err() == nil {
			err := command.write(t.Context(), func(conn) error {
				select {
				case begun <- struct{}{}:
				default:
				}
				time.Sleep(20 * time.Millisecond) // the time in which a step computes and stores
				return nil
			})
			if err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	<-begun
	for name, s := range map[string]*Store{"the server": server, "another command": other} {
		slowest := time.Duration(0)
		for range 40 {
			began := time.Now()
			if err := s.write(t.Context(), func(conn) error { return nil }); err != nil {
				t.Error(err)
			}
			slowest = max(slowest, time.Since(began))
		}
		if slowest > yieldBound/2 {
			t.Errorf("a write of %s waited %v for a command that works in steps of 20 ms", name, slowest)
		}
		t.Logf("the slowest write of %s took %v", name, slowest)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
