package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"strings"
	"time"

	"parley/desk"
	"parley/store/internal/stored"
	"parley/store/postgres/statistics"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// connectTimeout limits the wait for a server that does not respond, unless the URL sets
// another limit.
const connectTimeout = 5 * time.Second

// idleOnCitus is how long a session of a cluster is kept unused. Each session opens
// connections of its own to the workers, and after a worker's failure each opens them anew:
// that costs 50 to 100 ms of processor time, and those that nobody needs would keep the
// needed ones waiting.
const idleOnCitus = 10 * time.Second

// idleBound is how long a session may be idle in a transaction. After this time, the
// server ends the session. A healthy process needs far less time between two statements.
const idleBound = "5s"

// longIdle replaces idleBound for upgrades and imports, because no request waits for
// them.
const longIdle = "30s"

const idleParameter = "idle_in_transaction_session_timeout"

// parameters are set on every connection, and override those of the server.
var parameters = map[string]string{
	"application_name":   "parley",
	"synchronous_commit": "on", // the log is on the disk when COMMIT returns
	// A node that hangs must not block the others for long. Its locks are released after
	// idleBound, and no transaction waits for a lock longer than lock_timeout.
	"statement_timeout": "15s",
	"lock_timeout":      "7s",
	idleParameter:       idleBound,
	// Every query has an index, and must use it from the first import on, when the server
	// has no statistics yet.
	"enable_seqscan":    "off",
	"enable_bitmapscan": "off",
	"plan_cache_mode":   "force_generic_plan",
	"jit":               "off", // compiling takes a hundred milliseconds and saves about one
}

// Config configures a Store.
type Config struct {
	URL      string       // postgres://user:password@host/database, as libpq reads it
	Media    string       // the directory of content, which all nodes share; "": content is in the database
	MaxConns int32        // the most connections of this node; 0: as in the URL, or by the number of processors
	Log      *slog.Logger // for the steps of an upgrade; nil: nothing is logged
	Key      []byte       // the key of the hashes of deleted people's messages
	Release  string       // of this program, for the list of connections; "" for none

	rules     string          // the rules by which claims are made; "": desk.IdentityRules()
	asOnCitus bool            // for tests: the statements are those for a cluster
	tracer    pgx.QueryTracer // for tests: it sees every statement
}

func (c Config) log() *slog.Logger { return cmp.Or(c.Log, slog.New(slog.DiscardHandler)) }

// A Store keeps parley's data in a PostgreSQL database (see store.Store).
type Store struct {
	pool *pgxpool.Pool
	key  []byte // the key of the hashes of erased messages

	files  *stored.Files // the files of content; nil: content is in the database
	chunks chan struct{} // has an element for each chunk of content that is being stored

	shares shares

	citus bool // the tables are distributed over the servers of a Citus cluster
	keys  keyPlaces

	newcomers newcomers

	settings   stored.Settings
	rules      *stored.Rules
	statistics *statistics.Watch
}

// Open opens the database, and migrates it if needed. It fails if a newer parley has
// migrated the database.
func Open(ctx context.Context, c Config) (*Store, error) { return open(ctx, c, placeNew) }

func open(ctx context.Context, c Config, how placing) (*Store, error) {
	config, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, err // pgx leaves the password out of the error
	}
	maps.Copy(config.ConnConfig.RuntimeParams, parameters)
	if c.Release != "" {
		config.ConnConfig.RuntimeParams["application_name"] += " " + c.Release
	}
	config.ConnConfig.Tracer = c.tracer
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	switch {
	case c.MaxConns > 0:
		config.MaxConns = c.MaxConns
	case !strings.Contains(c.URL, "pool_max_conns"):
		config.MaxConns = int32(max(16, 4*runtime.GOMAXPROCS(0)))
	}
	log, rules := c.log(), cmp.Or(c.rules, desk.IdentityRules())
	citus, err := migrate(ctx, config.ConnConfig, rules, how, log)
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL at %s: %w", config.ConnConfig.Host, err)
	}
	if citus {
		config.ConnConfig.RuntimeParams["plan_cache_mode"] = "auto" // Citus can plan few statements without their parameters
		if !strings.Contains(c.URL, "pool_max_conn_idle_time") {
			config.MaxConnIdleTime, config.HealthCheckPeriod = idleOnCitus, idleOnCitus/2
			config.MinConns = min(2, config.MaxConns)
		}
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL at %s: %w", config.ConnConfig.Host, err)
	}
	s := &Store{citus: citus || c.asOnCitus, chunks: make(chan struct{}, chunksAtOnce), pool: pool, key: c.Key, shares: shares{most: shareOf(config.MaxConns)}, rules: stored.NewRules(rules, log), statistics: statistics.New(pool, maps.Keys(placements), log)}
	if c.Media != "" {
		s.files = &stored.Files{Dir: c.Media}
	}
	return s, nil
}

// Exists tells whether the database at a URL contains an installation. It does not
// change the database.
func Exists(ctx context.Context, url string) (there bool, err error) {
	config, err := pgxpool.ParseConfig(url) // it also knows the parameters of the pool
	if err != nil {
		return false, err
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	c, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return false, fmt.Errorf("PostgreSQL at %s: %w", config.ConnConfig.Host, err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		err = errors.Join(err, c.Close(closing))
	}()
	err = c.QueryRow(ctx, `SELECT to_regclass('installation') IS NOT NULL`).Scan(&there)
	return there, err
}

// Close closes all connections. No method may be running or be called afterwards.
func (s *Store) Close() error {
	s.pool.Close()
	return nil
}

// Run has PostgreSQL look at new tables, until ctx ends.
func (s *Store) Run(ctx context.Context) error {
	s.statistics.Run(ctx)
	return nil
}

const rulesQuery = `SELECT rules FROM claim_rules`

// Ready tells whether the database answers and this process may write to it.
func (s *Store) Ready(ctx context.Context) error {
	return s.read(ctx, func(p *pipe) error {
		s.seeRules(p)
		if err := p.send("ready"); err != nil {
			return err
		}
		return s.rules.Check()
	})
}

// seeRules queues a read of the database's rules.
func (s *Store) seeRules(p *pipe) {
	p.each(func(row pgx.Row) error {
		var rules string
		err := row.Scan(&rules)
		if err == nil {
			s.rules.See(rules)
		}
		return err
	}, rulesQuery)
}

// chunksAtOnce is how many chunks a node stores at a time. A commit of another
// transaction waits until the database has written the chunks before it.
const chunksAtOnce = 2
