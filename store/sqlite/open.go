package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"parley/desk"

	"github.com/gofrs/flock"
	"zombiezen.com/go/sqlite"
)

const (
	// busyTimeout is how long a statement waits for another process's lock.
	busyTimeout = 5 * time.Second

	// Page caches, in KiB: the writer's spares it reading identity pages again for
	// each look-up; a reader mostly reads rows once.
	writerCache = 64 << 10
	readerCache = 4 << 10
)

// Config says where the database is.
type Config struct {
	Path string // of the database file; made when absent
}

// A Store keeps parley's data in a SQLite file; see app.Store for its promises.
type Store struct {
	path    string
	writer  conn // used by who leads the queue
	queue   queue
	readers chan conn

	turn    *flock.Flock
	serving atomic.Bool // this process writes steadily: it yields instead of claiming
	looked  time.Time   // when it last looked whether another process waits

	mu       sync.RWMutex
	settings map[desk.ID]*desk.Settings // the newest version seen of each workspace

	checkpoints chan struct{} // has an element when the log has grown
	frames      int           // by which it has grown since, roughly; the queue's leader's
}

// Open opens the database, making or migrating it as needed. It fails when a newer
// parley has migrated the file.
func Open(ctx context.Context, c Config) (_ *Store, err error) {
	if err := migrate(ctx, c.Path); err != nil {
		return nil, err
	}
	n := max(4, 2*runtime.GOMAXPROCS(0))
	s := &Store{
		path:        c.Path,
		readers:     make(chan conn, n),
		settings:    map[desk.ID]*desk.Settings{},
		checkpoints: make(chan struct{}, 1),
		turn:        flock.New(turnPath(c.Path)),
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.writer, err = open(c.Path, writerCache); err != nil {
		return nil, err
	}
	for range n {
		reader, err := open(c.Path, readerCache)
		if err != nil {
			return nil, err
		}
		s.readers <- reader
	}
	return s, nil
}

// open makes a connection. busy_timeout comes first: even a pragma may meet a lock.
func open(path string, cacheKB int) (conn, error) {
	c, err := sqlite.OpenConn(path, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		return conn{}, failed("open "+filepath.Base(path), err)
	}
	c.SetBusyTimeout(busyTimeout)
	for _, pragma := range []string{
		"journal_mode = WAL",
		"synchronous = FULL", // the log is on the disk when COMMIT returns
		"wal_autocheckpoint = 0",
		"temp_store = MEMORY",
		fmt.Sprintf("cache_size = -%d", cacheKB),
	} {
		s, _, err := c.PrepareTransient("PRAGMA " + pragma)
		if err == nil {
			_, err = s.Step()
			err = errors.Join(err, s.Finalize())
		}
		if err != nil {
			return conn{}, errors.Join(failed("pragma "+pragma, err), c.Close())
		}
	}
	return conn{c}, nil
}

// Close closes all connections; the last one of all processes empties the log. No
// method may be running or be called any more.
func (s *Store) Close() error {
	var errs []error
	for len(s.readers) > 0 {
		errs = append(errs, (<-s.readers).Close())
	}
	if s.writer.Conn != nil {
		errs = append(errs, s.writer.Close())
	}
	return errors.Join(append(errs, s.turn.Close())...)
}

// read runs f on a reading connection. Each statement sees the newest commit.
func (s *Store) read(ctx context.Context, f func(conn) error) error {
	var c conn
	select {
	case c = <-s.readers:
	case <-ctx.Done():
		return unavailable(ctx.Err())
	}
	defer func() { s.readers <- c }()
	return f(c)
}

// Ready tells whether the database answers.
func (s *Store) Ready(ctx context.Context) error {
	return s.read(ctx, func(c conn) error {
		return failed("ready", c.stmt("SELECT 1 FROM installation").run())
	})
}
