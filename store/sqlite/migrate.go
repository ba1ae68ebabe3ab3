package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
	"github.com/pressly/goose/v3"
	driver "modernc.org/sqlite" // goose speaks database/sql
	"zombiezen.com/go/sqlite"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the schema up to date. Other processes wait meanwhile: ten may
// start at once.
func migrate(ctx context.Context, path, rules string, log *slog.Logger) (err error) {
	defer func() { err = explain(path, err) }()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	lock := flock.New(turnPath(path))
	if _, err := lock.TryLockContext(ctx, time.Millisecond); err != nil {
		return fmt.Errorf("lock %s: %w", filepath.Dir(path), err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := create(path); err != nil {
		return err
	}
	// goose's driver takes a URL, in which a path's ?, # and % must be escaped.
	db, err := sql.Open("sqlite", fmt.Sprintf("file:%s?_pragma=busy_timeout(%d)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=secure_delete(ON)",
		(&url.URL{Path: filepath.ToSlash(path)}).EscapedPath(), busyTimeout.Milliseconds()))
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, files)
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	sources := provider.ListSources()
	newest := sources[len(sources)-1].Version
	version, err := provider.GetDBVersion(ctx)
	if err != nil {
		return fmt.Errorf("schema version of %s: %w", path, err)
	}
	if version > newest {
		return fmt.Errorf("%s was written by a newer parley (schema %d, this one knows %d): install that version or a later one", path, version, newest)
	}
	pending, err := provider.HasPending(ctx) // also one that is missing among those that ran
	if err != nil {
		return fmt.Errorf("schema version: %w", err)
	}
	if pending {
		if _, err := provider.Up(ctx); err != nil {
			return fmt.Errorf("migrate %s: %w", path, err)
		}
	}
	return makeClaims(ctx, path, rules, log)
}

// create makes the file when there is none, for this user only: SQLite gives the
// files beside it the same mode.
func create(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("make the database: %w", err)
	}
	return f.Close()
}

// explain says what to do about an error of the driver that goose uses when the
// machine is to blame.
func explain(path string, err error) error {
	var e *driver.Error
	if errors.As(err, &e) && machine[sqlite.ResultCode(e.Code()).ToPrimary()] {
		return fmt.Errorf("%s can't be opened or written: see that its disk has space, is writable, and that nothing holds the file locked (%w)", path, e)
	}
	return err
}
