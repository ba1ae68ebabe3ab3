package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrationLock is the advisory lock that lets one node migrate at a time.
const migrationLock = 0x7061726c6579 // "parley"

// migrate brings the schema up to date. Other nodes wait meanwhile: ten may start at
// once. Since they may still serve the version before, migrations only ever add.
func migrate(ctx context.Context, config *pgx.ConnConfig, rules string, log *slog.Logger) (err error) {
	config = config.Copy()
	for _, bound := range []string{"statement_timeout", "lock_timeout"} { // an index may take hours
		config.RuntimeParams[bound] = "0"
	}
	config.RuntimeParams[idleParameter] = longIdle // claims are computed between two statements
	lock, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() { // which lets go of the lock
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		err = errors.Join(err, lock.Close(closing))
	}()
	if err := suits(ctx, lock); err != nil {
		return err
	}
	if _, err := lock.Exec(ctx, `SELECT pg_advisory_lock($1)`, int64(migrationLock)); err != nil {
		return fmt.Errorf("wait to migrate: %w", err)
	}
	db := stdlib.OpenDB(*config)
	defer func() { err = errors.Join(err, db.Close()) }()
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files)
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	sources := provider.ListSources()
	newest := sources[len(sources)-1].Version
	version, err := provider.GetDBVersion(ctx)
	if err != nil {
		return fmt.Errorf("schema version: %w", err)
	}
	if version > newest {
		return fmt.Errorf("the database was written by a newer parley (schema %d, this one knows %d): install that version or a later one", version, newest)
	}
	pending, err := provider.HasPending(ctx) // also one that is missing among those that ran
	if err != nil {
		return fmt.Errorf("schema version: %w", err)
	}
	if pending {
		if err := up(ctx, provider); err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
	}
	if err := makeClaims(ctx, lock, rules, log); err != nil {
		return fmt.Errorf("make claims: %w", err)
	}
	return nil
}

// migrationTries is how often a migration begins. Servers of the release before write
// meanwhile, and their transactions lock the same tables in another order, so it may be the
// one that PostgreSQL ends.
const migrationTries = 50

// up runs the migrations. Each is one transaction, so one that was ended can begin again.
func up(ctx context.Context, provider *goose.Provider) error {
	for try := 1; ; try++ {
		_, err := provider.Up(ctx)
		if err == nil || !conflicts(err) || try == migrationTries {
			return err
		}
		select {
		case <-time.After(10*time.Millisecond + rand.N(100*time.Millisecond)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// suits refuses a database that could not hold every name.
func suits(ctx context.Context, c *pgx.Conn) error {
	var encoding string
	if err := c.QueryRow(ctx, `SHOW server_encoding`).Scan(&encoding); err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	if encoding != "UTF8" {
		return fmt.Errorf("the database's encoding is %s: make it with ENCODING 'UTF8' TEMPLATE template0", encoding)
	}
	return nil
}
