package sqlite

import (
	"context"
	"errors"
	"time"
)

const (
	// checkpointRows is after how many written rows the log is moved into the
	// database: often enough to keep it short, seldom enough that a page written
	// again and again is copied once.
	checkpointRows = 20_000
	// restartFrames is the length of the log, in pages, from which on writers wait
	// until it is empty; a reader that never pauses can't let it grow for ever.
	restartFrames = 64_000
	// idleCheckpoint is after how long a quiet server empties the log.
	idleCheckpoint = 30 * time.Second
)

// Run checkpoints in the background until ctx ends. It marks this process as one
// that writes steadily and lets others in between.
func (s *Store) Run(ctx context.Context) (err error) {
	s.serving.Store(true)
	c, err := open(s.path, readerCache)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	tick := time.NewTicker(idleCheckpoint)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.checkpoints:
		case <-tick.C:
		}
		// A checkpoint that fails (the disk is full, say) loses nothing: the log keeps
		// what it holds, and the next one tries again.
		if frames, err := checkpoint(c, "PASSIVE"); err == nil && frames > restartFrames {
			_, _ = checkpoint(c, "RESTART")
		}
	}
}

// checkpoint returns the length of the log in frames.
func checkpoint(c conn, mode string) (frames int64, err error) {
	s := c.stmt("PRAGMA wal_checkpoint(" + mode + ")")
	if s.next() {
		s.readInt() // whether it was kept from finishing
		frames = s.readInt()
	}
	return frames, failed("checkpoint", s.done())
}

// grew notes that rows were written, and wakes Run when it is time.
func (s *Store) grew(rows int) {
	if s.written += rows; s.written < checkpointRows {
		return
	}
	s.written = 0
	select {
	case s.checkpoints <- struct{}{}:
	default:
	}
}
