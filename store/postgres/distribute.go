package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"parley/desk"
)

// A Distribution is what Distribute did.
type Distribution struct {
	Servers []string // of the cluster, HOST:PORT
	Tables  []string // that were distributed now
}

// Distribute moves an installation's tables to the servers of its Citus cluster, and sets
// up the servers. It calls step after each table. If it is interrupted, the next call
// continues. It returns InvalidRequest if the database has no Citus, and if the server is
// a worker. While there are tables to move, it returns InvalidRequest if other processes
// of parley are connected: they would go on writing to the old places.
func Distribute(ctx context.Context, config Config, step func(table string, n, of int)) (d Distribution, err error) {
	c, err := connectAlone(ctx, config.URL)
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, closeSoon(ctx, c)) }()
	toMove, err := mayDistribute(ctx, c)
	if err != nil {
		return d, err
	}
	if toMove {
		s, err := open(ctx, config, leaveLocal) // which also upgrades the schema
		if err != nil {
			return d, err
		}
		if err := s.Close(); err != nil {
			return d, err
		}
		if _, err := c.Exec(ctx, `SELECT pg_advisory_lock($1)`, int64(migrationLock)); err != nil { // a server that starts now waits
			return d, fmt.Errorf("wait to distribute: %w", err)
		}
		if err := others(ctx, c); err != nil {
			return d, err
		}
		err = distribute(ctx, c, config.log(), func(table string, n, of int) {
			d.Tables = append(d.Tables, table)
			step(table, n, of)
		})
		if err == nil {
			err = dropLeft(ctx, c)
		}
		if err == nil {
			err = analyze(ctx, c)
		}
		if err != nil {
			return d, err
		}
	}
	if err := setUpServers(ctx, c); err != nil {
		return d, err
	}
	rows, _ := c.Query(ctx, `SELECT nodename || ':' || nodeport FROM pg_dist_node WHERE noderole = 'primary' ORDER BY groupid`) // an error also appears in the rows
	d.Servers, err = pgx.CollectRows(rows, pgx.RowTo[string])
	return d, err
}

// mayDistribute tells whether there are tables to move, or rows that were left behind. It
// refuses what Distribute refuses, before anything changes.
func mayDistribute(ctx context.Context, c *pgx.Conn) (toMove bool, err error) {
	on, err := lookAround(ctx, c)
	switch {
	case err != nil:
		return false, err
	case !on.citus:
		return false, desk.Invalidf("the database does not have the extension citus: install it on all servers, run CREATE EXTENSION citus in the database of each, and join them with citus_set_coordinator_host and citus_add_node")
	case !on.coordinator:
		return false, desk.Invalidf("this server is a worker of the cluster: give the address of the coordinator")
	}
	local, err := localTables(ctx, c)
	if err != nil {
		return false, err
	}
	left, err := tablesOf(ctx, c, leftQuery)
	if err != nil || len(local) == 0 && len(left) == 0 {
		return false, err
	}
	return true, others(ctx, c)
}

// othersQuery counts the connections of other processes of parley, on all servers of the
// cluster. Connections of other roles may hide their names: they count, too.
const othersQuery = `SELECT count(*), coalesce(min(application_name), '') FROM citus_stat_activity
	WHERE datname = current_database() AND (application_name LIKE 'parley%' OR application_name IS NULL)
	AND backend_type = 'client backend' AND NOT is_worker_query AND pid <> pg_backend_pid()`

func others(ctx context.Context, c *pgx.Conn) error {
	var n int
	var name string
	err := c.QueryRow(ctx, othersQuery).Scan(&n, &name)
	if err == nil && n > 0 {
		err = desk.Invalidf("other servers or commands of parley are connected to the database (%d connections, the first is of %q): stop them, and run the command again", n, name)
	}
	return err
}

// connectAlone makes a connection for work that takes long.
func connectAlone(ctx context.Context, url string) (*pgx.Conn, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err // pgx leaves the password out of the error
	}
	maps.Copy(config.ConnConfig.RuntimeParams, map[string]string{"application_name": "parley", "plan_cache_mode": "auto"})
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	c, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL at %s: %w", config.ConnConfig.Host, err)
	}
	return c, nil
}

func closeSoon(ctx context.Context, c *pgx.Conn) error {
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	return c.Close(closing)
}
