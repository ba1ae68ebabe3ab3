package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"parley/desk"
	"parley/store/internal/stored"

	"github.com/gofrs/flock"
	"zombiezen.com/go/sqlite"
)

const (
	// busyTimeout is how long a statement waits for another process's lock.
	busyTimeout = 5 * time.Second

	// The sizes of page caches, in KiB. The large cache of the writer keeps the pages of
	// identities, so that a look-up need not read them again. A reader needs little,
	// because it mostly reads a row only once.
	writerCache = 80 << 10
	readerCache = 4 << 10
)

// Config configures a Store.
type Config struct {
	Path string       // of the database file, which is made if it does not exist
	Log  *slog.Logger // for the steps of an upgrade; nil: nothing is logged

	// Now is the database's clock. By default it is the clock of the machine, on which all
	// processes run.
	Now func() time.Time

	// Serves says that this process writes steadily, from the start. Run says it, too. Such a
	// process lets others write in between; any other process pauses after each transaction.
	Serves bool

	// Key is the key of the hashes of deleted people's messages.
	Key []byte

	rules string // the rules by which claims are made; "": desk.IdentityRules()
}

// A Store keeps parley's data in a SQLite file (see store.Store).
type Store struct {
	path    string
	files   stored.Files // the content of files
	clock   func() time.Time
	writer  conn // used by the goroutine that leads the queue
	queue   queue
	readers chan conn
	watcher watcher
	enabled atomic.Pointer[enabledWebhooks]
	touched atomic.Int64 // approximate number of pages that readers touched, and for which none were dropped yet

	frozen  *frozen // nil: SQLite shares the file with other processes
	turn    *flock.Flock
	gave    time.Time    // when this process last ended its turn
	serving atomic.Bool  // this process writes steadily: it lets others write in between
	looked  time.Time    // when this process last checked whether another one waits
	waited  atomic.Int64 // when a writer of this process last had to wait; Unix time, in nanoseconds

	patience time.Duration // how long a transaction waits for another process's lock

	settings stored.Settings
	rules    *stored.Rules
	current  map[desk.ID]*desk.Settings // as the open transaction has read them; only for the queue's leader
	edited   bool                       // the open transaction has changed settings; only for the queue's leader

	checkpoints chan struct{} // has an element when the log has grown
	frames      int           // approximate number of pages that the log has grown since; only for the queue's leader
}

// A frozen database is read as a file that does not change: SQLite takes no locks and makes no
// files beside it.
type frozen struct {
	path string
	was  fs.FileInfo
}

// Open opens the database, and makes or migrates it if needed. It fails if a newer
// parley has migrated the file.
func Open(ctx context.Context, c Config) (_ *Store, err error) {
	log, rules := cmp.Or(c.Log, slog.New(slog.DiscardHandler)), cmp.Or(c.rules, desk.IdentityRules())
	if err := migrate(ctx, c.Path, rules, log); err != nil {
		return nil, err
	}
	n := max(4, 2*runtime.GOMAXPROCS(0))
	s := &Store{
		path:        c.Path,
		current:     map[desk.ID]*desk.Settings{},
		files:       filesBeside(c.Path),
		clock:       c.Now,
		readers:     make(chan conn, n),
		checkpoints: make(chan struct{}, 1),
		turn:        flock.New(turnPath(c.Path)),
		patience:    busyTimeout,
		rules:       stored.NewRules(rules, log),
	}
	s.serving.Store(c.Serves)
	if s.clock == nil {
		s.clock = time.Now
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.writer, err = open(c.Path, writerCache); err != nil {
		return nil, err
	}
	s.writer.forgets = &forgets{c.Key, s.now}
	if s.watcher.c, err = open(c.Path, 0); err != nil {
		return nil, err
	}
	for range n {
		c, err := open(c.Path, readerCache)
		if err != nil {
			return nil, err
		}
		s.readers <- c
	}
	return s, nil
}

// open makes a connection. busy_timeout comes first, because even a pragma may have to
// wait for a lock.
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
		"secure_delete = ON", // deleted bytes are overwritten with zeros (docs/adr/0016)
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
	return conn{Conn: c, prepared: map[string]*sqlite.Stmt{}, newest: map[desk.ID]int64{}, erased: new(bool)}, nil
}

// Close closes all connections. When the last process closes its last connection, SQLite
// empties the log. No method may be running or be called afterwards.
func (s *Store) Close() error {
	var errs []error
	if s.writer.Conn != nil && *s.writer.erased {
		ctx, cancel := context.WithTimeout(context.Background(), scrubAtStop)
		_ = s.scrub(ctx, 0)
		cancel()
	}
	for len(s.readers) > 0 {
		errs = append(errs, (<-s.readers).Close())
	}
	if s.watcher.c.Conn != nil {
		errs = append(errs, s.watcher.c.Close())
	}
	if s.writer.Conn != nil {
		errs = append(errs, s.writer.Close())
	}
	return errors.Join(append(errs, s.turn.Close())...)
}

// read runs f on a reading connection. pages is the approximate number of pages that f
// touches. Each statement of f sees the newest commit.
func (s *Store) read(ctx context.Context, pages int64, f func(conn) error) error {
	var c conn
	select {
	case c = <-s.readers:
	case <-ctx.Done():
		return stored.Unavailable(ctx.Err())
	}
	defer func() { s.readers <- c }()
	s.touched.Add(pages)
	return f(c)
}

// This build of SQLite keeps the caches of all connections in one pool. A reader that has used
// up its share takes the oldest pages of other caches and never gives them back. In the end the
// pool is full, the writer has less than its own share, and it drops each page right after use:
// after a list of all contacts, batches took twice as long from then on. So the writer drops the
// oldest pages of a full pool, about as many as readers have touched: trimPages at a time, which
// takes 1 or 2 ms, and no more than poolPages in all. To empty the pool at once took up to 70 ms.
const (
	poolPages = 16_000
	trimPages = 500
)

// trimmed makes the writer's share smaller by trimPages, so that the pool drops what it has too
// much, and then as large as before.
var trimmed = [...]string{
	fmt.Sprintf("PRAGMA cache_size = -%d", writerCache-trimPages*pageSize>>10),
	fmt.Sprintf("PRAGMA cache_size = -%d", writerCache),
}

// balance drops pages for those that readers have touched. The writer calls it between
// transactions.
func (s *Store) balance() {
	touched := s.touched.Load()
	if touched < trimPages {
		return
	}
	s.touched.Add(min(touched, poolPages) - trimPages - touched)
	for _, pragma := range trimmed {
		_ = s.writer.stmt(pragma).run() // a failure only means that no memory is freed
	}
}

// pointRead is the approximate number of pages that a look-up of one record touches.
const pointRead = 4

// Ready tells whether the database answers and this process may write to it.
func (s *Store) Ready(ctx context.Context) error {
	return s.read(ctx, pointRead, func(c conn) error {
		if err := s.seeRules(c); err != nil {
			return err
		}
		return s.rules.Check()
	})
}

// seeRules reads the database's rules.
func (s *Store) seeRules(c conn) error {
	rules, err := one("rules of claims", c.stmt(rulesQuery), (*stmt).readText)
	if err == nil {
		s.rules.See(rules)
	}
	return err
}
