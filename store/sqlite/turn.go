package sqlite

import (
	"context"
	"os"
	"time"
)

// A busy server begins its next transaction right after the last one, and SQLite's lock
// has no queue, so another process could wait forever. Therefore a process that writes
// rarely (a command) first locks a file beside the database. A process that writes
// steadily (a server) waits while this file is locked.

const (
	// yieldEvery is how often a busy writer checks whether another process waits.
	yieldEvery = 4 * time.Millisecond
	// yieldBound is the longest time for which the busy writer waits, because the other
	// process may hang.
	yieldBound = 2 * time.Second
	// yieldPause is the time after which the busy writer checks again, once the other
	// process seemed to hang.
	yieldPause = time.Minute
	// gap is how long a process that writes rarely leaves the file unlocked after each of
	// its transactions, if another process has had to wait lately. That one checks every millisecond,
	// so it can write between the steps of long work.
	gap = 5 * time.Millisecond
	// contended is for how long long work goes on in small steps after somebody had to wait.
	contended = 250 * time.Millisecond
)

func turnPath(database string) string { return database + "-turn" }

// takeTurn waits for this process's turn to write, and returns a function that ends the
// turn.
func (s *Store) takeTurn() (end func()) {
	now, serving := time.Now(), s.serving.Load()
	if serving && now.Sub(s.looked) <= yieldEvery {
		return func() {}
	}
	ctx, cancel := context.WithTimeout(context.Background(), yieldBound)
	defer cancel()
	if !serving {
		if s.Contended() {
			time.Sleep(gap - now.Sub(s.gave))
		}
		free, end := context.WithTimeout(ctx, gap) // a server has the lock for less
		locked, _ := s.turn.TryLockContext(free, time.Millisecond)
		if end(); !locked {
			s.tell(time.Now())
			locked, _ = s.turn.TryLockContext(ctx, time.Millisecond)
		}
		if locked {
			return func() {
				_ = s.turn.Unlock()
				s.gave = time.Now()
			}
		}
		return func() {} // this lock is only for fairness: SQLite's own lock separates the writers
	}
	s.looked = now
	free, err := s.turn.TryRLock()
	if !free && err == nil {
		s.hadToWait()
		free, err = s.turn.TryRLockContext(ctx, time.Millisecond)
	}
	if free && err == nil {
		_ = s.turn.Unlock()
	} else {
		s.looked = now.Add(yieldPause)
	}
	return func() {}
}

// hadToWait notes that a writer of this process had to wait. Another process sees this by the
// time of the file.
func (s *Store) hadToWait() {
	now := time.Now()
	s.waited.Store(now.UnixNano())
	if s.serving.Load() {
		s.tell(now)
	}
}

// tell tells a process at long work that this one waits for it.
func (s *Store) tell(now time.Time) {
	_ = os.Chtimes(turnPath(s.path), now, now) // without it, the other is only slower to notice
}

// Contended tells whether another process had to wait for this one lately, or, in a server, one
// change for another.
func (s *Store) Contended() bool {
	at := time.Unix(0, s.waited.Load())
	if !s.serving.Load() {
		if file, err := os.Stat(turnPath(s.path)); err == nil {
			at = file.ModTime()
		}
	}
	ago := time.Since(at)
	return ago >= 0 && ago < contended
}
