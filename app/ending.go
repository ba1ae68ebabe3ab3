package app

import "sync"

// An ending is how a process ends: first it drains, then it closes.
type ending struct {
	drain   sync.Once
	drained chan struct{}  // closed by Drain
	stopped chan struct{}  // closed by Close
	retries sync.WaitGroup // retries in the background until something is stored
}

// Close stops the retries in the background and waits for them. The next process finds
// what is not stored by then. It is called once, after everything else that uses the
// App has ended.
func (e *ending) Close() {
	close(e.stopped)
	e.retries.Wait()
}

// Draining tells whether Drain was called.
func (e *ending) Draining() bool {
	select {
	case <-e.drained:
		return true
	default:
		return false
	}
}

// Drain tells calls that wait for another call's send to give up now.
func (e *ending) Drain() { e.drain.Do(func() { close(e.drained) }) }
