package postgres

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"sync"
	"time"

	"parley/desk"

	"github.com/jackc/pgx/v5/pgxpool"
)

// connectTimeout bounds the wait for a server that does not answer, unless the URL
// sets another.
const connectTimeout = 5 * time.Second

// parameters are set on every connection, whatever the server's own are.
var parameters = map[string]string{
	"application_name":   "parley",
	"synchronous_commit": "on", // the log is on the disk when COMMIT returns
	// A node that has hung must not hold up the others for longer.
	"statement_timeout":                   "15s",
	"lock_timeout":                        "10s",
	"idle_in_transaction_session_timeout": "30s",
	// Every query has its index, and is to use it from the first import on, of which the
	// server's figures know nothing yet.
	"enable_seqscan":    "off",
	"enable_bitmapscan": "off",
	"plan_cache_mode":   "force_generic_plan",
	"jit":               "off", // which would compile a query of a millisecond for a hundred
}

// Config says where the database is.
type Config struct {
	URL      string // postgres://user:password@host/database, as libpq reads it
	MaxConns int32  // connections of this node at most; 0: as the URL says, or by the number of processors
}

// A Store keeps parley's data in a PostgreSQL database; see app.Store for its
// promises.
type Store struct {
	pool *pgxpool.Pool

	mu       sync.RWMutex
	settings map[desk.ID]*desk.Settings // the newest version seen of each workspace
}

// Open opens the database, migrating it as needed. It fails when a newer parley has
// migrated it.
func Open(ctx context.Context, c Config) (*Store, error) {
	config, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, err // which leaves the password out
	}
	maps.Copy(config.ConnConfig.RuntimeParams, parameters)
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	switch {
	case c.MaxConns > 0:
		config.MaxConns = c.MaxConns
	case !strings.Contains(c.URL, "pool_max_conns"):
		config.MaxConns = int32(max(16, 4*runtime.GOMAXPROCS(0)))
	}
	if err := migrate(ctx, config.ConnConfig); err != nil {
		return nil, fmt.Errorf("PostgreSQL at %s: %w", config.ConnConfig.Host, err)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL at %s: %w", config.ConnConfig.Host, err)
	}
	return &Store{pool: pool, settings: map[desk.ID]*desk.Settings{}}, nil
}

// Close closes all connections. No method may be running or be called any more.
func (s *Store) Close() error {
	s.pool.Close()
	return nil
}

// Run waits for ctx to end: the server looks after itself.
func (s *Store) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Ready tells whether the database answers.
func (s *Store) Ready(ctx context.Context) error {
	return s.read(ctx, func(p *pipe) error {
		p.put(`SELECT 1 FROM installation`)
		return p.send("ready")
	})
}
