package sqlite

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// checkpointFrames is the estimated length of the log, in pages, at which the log is
	// copied into the database and starts again from its beginning. A short log is
	// overwritten in place, and a sync then costs two thirds of a sync that makes the file
	// longer (docs/optimizations.md). If the log were copied more often, the same pages
	// would be copied again and again.
	checkpointFrames = 12_000
	// commandFrames is how much longer a command lets the log grow, since it waits for the copy.
	commandFrames = 4
	// pageSize is the size of SQLite's pages, in bytes.
	pageSize = 4096
	// passes is how often the log is copied while others write. After that, writers have
	// to wait.
	passes = 3
	// restartWait is how long writers wait for readers of an old log to end. They do not
	// wait longer for a long read (a backup). Instead, the log grows until that read has
	// ended.
	restartWait = 20 * time.Millisecond
	// idleCheckpoint is how often a quiet server empties the log.
	idleCheckpoint = 30 * time.Second
)

// Run makes checkpoints in the background until ctx ends. It also clears the copies of
// deleted people's data that are left in pages. It marks this process as one that writes
// steadily and lets others write in between.
func (s *Store) Run(ctx context.Context) (err error) {
	s.serving.Store(true)
	c, err := open(s.path, readerCache)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	var scrubs sync.WaitGroup
	scrubs.Go(func() { s.scrubs(ctx) })
	defer scrubs.Wait()
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
		// A checkpoint that fails (for example, on a full disk) loses nothing: the log
		// keeps its content, and the next checkpoint tries again.
		_ = s.empty(c)
	}
}

// empty empties the log: it copies the log into the database. Most of the log is copied
// while others write, in passes that get shorter; writers wait only for the rest. A log
// that is never emptied would grow forever.
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

// shorten makes a checkpoint if the log has grown, unless Run makes them: only a server does, and it
// does not know how much others write.
func (s *Store) shorten() {
	if s.serving.Load() || len(s.checkpoints) == 0 {
		return
	}
	<-s.checkpoints
	_, _ = checkpoint(s.writer, "PASSIVE") // if it fails, the log is longer
}

// checkpoint makes a checkpoint, and returns the length of the log in frames.
func checkpoint(c conn, mode string) (frames int64, err error) {
	s := c.stmt("PRAGMA wal_checkpoint(" + mode + ")")
	if s.next() {
		s.readInt() // whether something prevented it from finishing
		frames = s.readInt()
	}
	return frames, failed("checkpoint", s.done())
}

// grew is called after a commit. It estimates from the number of rows how much longer the
// log is, and starts a checkpoint once the log is long enough. A single row changes
// several pages; the rows of a large group share their pages.
func (s *Store) grew(rows int) {
	most := checkpointFrames
	if !s.serving.Load() {
		most *= commandFrames
	}
	if s.frames += 8 + rows/6; s.frames < most {
		return
	}
	s.frames = 0
	select {
	case s.checkpoints <- struct{}{}:
	default:
	}
}
