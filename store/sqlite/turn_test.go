package sqlite

import (
	"context"
	"testing"
	"time"
)

// TestTurn_steps: a server can write between the steps of a command's long work.
func TestTurn_steps(t *testing.T) {
	t.Parallel()
	path := NewFile(t)
	open := func() *Store {
		s, err := Open(t.Context(), Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	server, command := open(), open()
	server.serving.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	ended, begun := make(chan error, 1), make(chan struct{}, 1)
	go func() {
		for ctx.Err() == nil {
			err := command.write(func(conn) error {
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
	slowest := time.Duration(0)
	for range 40 {
		began := time.Now()
		if err := server.write(func(conn) error { return nil }); err != nil {
			t.Error(err)
		}
		slowest = max(slowest, time.Since(began))
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if slowest > yieldBound/2 {
		t.Errorf("a write of the server waited %v for a command that works in steps of 20 ms", slowest)
	}
	t.Logf("the slowest write took %v", slowest)
}
