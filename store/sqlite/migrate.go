package sqlite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"parley/store/internal/stored"

	"github.com/gofrs/flock"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the schema up to date. Other processes wait meanwhile: ten processes
// may start at once.
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
	steps, err := stored.Migrations(makeVersions, migrations)
	if err != nil {
		return err
	}
	if err := runMigrations(ctx, path, steps); err != nil {
		return err
	}
	return makeClaims(ctx, path, rules, log)
}

// create makes the file if it does not exist. Only this user can read and write it.
// SQLite gives the files beside it the same mode.
func create(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("make the database: %w", err)
	}
	return f.Close()
}

// The list of the migrations that have run has goose's format, because the releases up
// to the second read it.
const (
	makeVersions = `CREATE TABLE goose_db_version (
		id INTEGER PRIMARY KEY AUTOINCREMENT, version_id INTEGER NOT NULL, is_applied INTEGER NOT NULL, tstamp TIMESTAMP DEFAULT (datetime('now')))`
	putVersion = `INSERT INTO goose_db_version (version_id, is_applied) VALUES (?, 1)`
)

// runMigrations runs the migrations that the file lacks.
func runMigrations(ctx context.Context, path string, steps []stored.Migration) (err error) {
	c, err := open(path, writerCache)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	c.SetInterrupt(ctx.Done())
	if err := c.stmt(`PRAGMA wal_autocheckpoint = 1000`).run(); err != nil { // otherwise a large step fills the disk twice
		return err
	}
	ran, err := migrationsRun(c)
	if err != nil {
		return fmt.Errorf("schema version of %s: %w", path, err)
	}
	pending, err := stored.Pending(path, steps, ran)
	if err != nil {
		return err
	}
	for _, m := range pending {
		if err := runMigration(c, m); err != nil {
			return fmt.Errorf("migrate %s to schema %d: %w", path, m.Version, err)
		}
	}
	return nil
}

// migrationsRun lists the migrations that have run. It does not change the database.
func migrationsRun(c conn) ([]int64, error) {
	there, err := one("tables", c.stmt(`SELECT count(*) FROM sqlite_schema WHERE name = 'goose_db_version'`), (*stmt).readInt)
	if err != nil || there == 0 {
		return nil, err
	}
	return all("schema version", c.stmt(`SELECT version_id FROM goose_db_version WHERE is_applied`), (*stmt).readInt)
}

// runMigration runs a migration in one transaction.
func runMigration(c conn, m stored.Migration) (err error) {
	end, err := sqlitex.ImmediateTransaction(c.Conn)
	if err != nil {
		return err
	}
	defer end(&err)
	if err := sqlitex.ExecScript(c.Conn, m.Statements); err != nil {
		return err
	}
	return c.stmt(putVersion).int(m.Version).run()
}

// explain adds advice to an error of SQLite that is a fault of the machine.
func explain(path string, err error) error {
	if err != nil && machine[sqlite.ErrCode(err).ToPrimary()] {
		return fmt.Errorf("%s can't be opened or written: see that its disk has space, is writable, and that nothing holds the file locked (%w)", path, err)
	}
	return err
}
