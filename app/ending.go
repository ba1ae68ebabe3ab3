package app

import "sync"

// An ending is how a process ends: first it drains, then it closes.
type ending struct {
	drain   sync.Once
	drained chan struct{}  // closed by Drain
	stopped chan struct{}  // closed by Close
	retries sync.WaitGroup // background retries of writes that must be stored
}

// Close stops the retries in the background and waits for them. If a write is still not
// stored, the next process finds its attempt unsettled. Close is called once, after
// everything else that uses the App has ended.
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
