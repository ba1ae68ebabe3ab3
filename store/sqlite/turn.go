package sqlite

import (
	"context"
	"time"
)

// A server under load begins its next transaction right after the last, and
// SQLite's own waiting has no queue: another process could starve. So whoever
// writes now and then (a command) locks a file beside the database first, and
// whoever writes all the time lets go while that lock is held.

const (
	// yieldEvery is how often a busy writer looks whether another process waits.
	yieldEvery = 10 * time.Millisecond
	// yieldBound is how long it waits at most for a process that may have hung.
	yieldBound = 2 * time.Second
	// yieldPause is how long it does not look again after one that has.
	yieldPause = time.Minute
)

func turnPath(database string) string { return database + "-turn" }

// takeTurn prepares for a transaction of this process and returns what ends it.
func (s *Store) takeTurn() (end func()) {
	now, serving := time.Now(), s.serving.Load()
	if serving && now.Sub(s.looked) <= yieldEvery {
		return func() {}
	}
	ctx, cancel := context.WithTimeout(context.Background(), yieldBound)
	defer cancel()
	if !serving {
		if locked, err := s.turn.TryLockContext(ctx, time.Millisecond); locked && err == nil {
			return func() { _ = s.turn.Unlock() }
		}
		return func() {} // SQLite's own lock is what keeps writers apart; this is courtesy
	}
	s.looked = now
	if free, err := s.turn.TryRLockContext(ctx, time.Millisecond); free && err == nil {
		_ = s.turn.Unlock()
	} else {
		s.looked = now.Add(yieldPause)
	}
	return func() {}
}
