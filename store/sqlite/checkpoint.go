package sqlite

import (
	"context"
	"errors"
	"time"
)

const (
	// checkpointFrames is the estimated length of the log, in pages, at which it is
	// moved into the database and begun anew. A log that stays short is written over
	// in place, and then a sync costs two thirds of one that makes the file longer
	// (docs/performance.md); one that is moved too often copies the same pages again
	// and again.
	checkpointFrames = 12_000
	// pageSize is SQLite's own, in bytes.
	pageSize = 4096
	// passes is how often the log is moved beside the writers before they wait.
	passes = 3
	// restartWait is how long writers wait for readers of an old log to end. One that
	// stays (a backup) is not waited for: the log then grows until it has ended.
	restartWait = 20 * time.Millisecond
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
	c.SetBusyTimeout(restartWait)
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
		_ = s.empty(c)
	}
}

// empty moves the log into the database: most of it beside the writers, in passes
// that get shorter, then what they added meanwhile while they wait, since a log that
// is never empty for a moment would grow for ever.
func (s *Store) empty(c conn) error {
	for range passes {
		if _, err := checkpoint(c, "PASSIVE"); err != nil {
			return err
		}
	}
	return s.alone(func() error {
		_, err := checkpoint(c, "RESTART")
		return err
	})
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

// grew notes a commit of some rows, and wakes Run when it is time. A lone row
// touches several pages, the rows of a large group share theirs.
func (s *Store) grew(rows int) {
	if s.frames += 8 + rows/6; s.frames < checkpointFrames {
		return
	}
	s.frames = 0
	select {
	case s.checkpoints <- struct{}{}:
	default:
	}
}
