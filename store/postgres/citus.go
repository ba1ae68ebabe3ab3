package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
)

// A placement says on which servers of a Citus cluster the rows of a table are.
type placement int

const (
	byWorkspace placement = iota + 1 // with the other rows of the workspace, on one server
	everywhere                       // all rows on all servers
)

// placements has every table. A table that is missing here fails TestPlacements. workspaces
// is distributed by its id, the other tables byWorkspace by workspace_id.
var placements = map[string]placement{
	"claim_rules":      everywhere,
	"directory":        everywhere,
	"goose_db_version": everywhere,
	"installation":     everywhere,
	"uptime":           everywhere,

	"api_keys":           byWorkspace,
	"attempts":           byWorkspace,
	"attributes":         byWorkspace,
	"auto_replies":       byWorkspace,
	"broadcast_counts":   byWorkspace,
	"broadcast_numbers":  byWorkspace,
	"broadcast_places":   byWorkspace,
	"broadcast_rows":     byWorkspace,
	"broadcasts":         byWorkspace,
	"callback_people":    byWorkspace,
	"callbacks":          byWorkspace,
	"channel_signs":      byWorkspace,
	"channels":           byWorkspace,
	"claims":             byWorkspace,
	"conflict_contacts":  byWorkspace,
	"conflicts":          byWorkspace,
	"contacts":           byWorkspace,
	"conversations":      byWorkspace,
	"daily":              byWorkspace,
	"daily_places":       byWorkspace,
	"deliveries":         byWorkspace,
	"delivery_responses": byWorkspace,
	"early_statuses":     byWorkspace,
	"erased_messages":    byWorkspace,
	"erasures":           byWorkspace,
	"event_counters":     byWorkspace,
	"event_floors":       byWorkspace,
	"events":             byWorkspace,
	"history":            byWorkspace,
	"history_places":     byWorkspace,
	"import_rejects":     byWorkspace,
	"import_uploads":     byWorkspace,
	"imports":            byWorkspace,
	"inbound_items":      byWorkspace,
	"key_uses":           byWorkspace,
	"leases":             byWorkspace,
	"login_links":        byWorkspace,
	"media":              byWorkspace,
	"media_chunks":       byWorkspace,
	"media_contents":     byWorkspace,
	"media_drafts":       byWorkspace,
	"media_jobs":         byWorkspace,
	"media_refs":         byWorkspace,
	"media_used":         byWorkspace,
	"member_access":      byWorkspace,
	"members":            byWorkspace,
	"merges":             byWorkspace,
	"messages":           byWorkspace,
	"notes":              byWorkspace,
	"opt_outs":           byWorkspace,
	"pace":               byWorkspace,
	"policies":           byWorkspace,
	"sandbox_templates":  byWorkspace,
	"send_keys":          byWorkspace,
	"search_places":      byWorkspace,
	"search_terms":       byWorkspace,
	"segments":           byWorkspace,
	"sessions":           byWorkspace,
	"snippets":           byWorkspace,
	"templates":          byWorkspace,
	"turns":              byWorkspace,
	"webhook_states":     byWorkspace,
	"webhooks":           byWorkspace,
	"windows":            byWorkspace,
	"workspaces":         byWorkspace,
}

// placing tells what opening a database on a Citus cluster does with local tables.
type placing int

const (
	placeNew   placing = iota // distributes the tables of a new installation, and new tables
	leaveLocal                // distributes nothing: Distribute does
)

// A cluster is what the server that a client is connected to says about Citus.
type cluster struct {
	citus       bool // the database has the extension
	distributed bool // the table workspaces is distributed
	coordinator bool // this server may change the schema
}

const (
	extensionQuery = `SELECT 1 FROM pg_extension WHERE extname = 'citus'`
	clusterQuery   = `SELECT to_regclass('workspaces') IN (SELECT logicalrelid FROM pg_dist_partition), (SELECT groupid FROM pg_dist_local_group) = 0`
	// localTablesQuery lists the tables of this program that are neither distributed nor
	// on all servers, and whether they have rows.
	localTablesQuery = `SELECT c.relname FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
	AND c.relname = ANY ($1::text[]) AND c.oid NOT IN (SELECT logicalrelid FROM pg_dist_partition) ORDER BY c.relname`
	// placedQuery counts the tables that are distributed, or on all servers.
	placedQuery = `SELECT count(*) FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
	AND c.relname = ANY ($1::text[]) AND c.oid IN (SELECT logicalrelid FROM pg_dist_partition)`
	// leftQuery lists the tables whose rows were copied to their servers, and are still on
	// the coordinator as well.
	leftQuery = `SELECT c.relname FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
	AND c.relname = ANY ($1::text[]) AND c.oid IN (SELECT logicalrelid FROM pg_dist_partition) AND pg_relation_size(c.oid) > 0 ORDER BY c.relname`
)

// lookAround tells what the connection's server knows about Citus.
func lookAround(ctx context.Context, c *pgx.Conn) (v cluster, err error) {
	var n int
	switch err := c.QueryRow(ctx, extensionQuery).Scan(&n); {
	case errors.Is(err, pgx.ErrNoRows):
		return v, nil
	case err != nil:
		return v, err
	}
	v.citus = true
	var distributed *bool
	if err := c.QueryRow(ctx, clusterQuery).Scan(&distributed, &v.coordinator); err != nil {
		return v, err
	}
	v.distributed = distributed != nil && *distributed
	return v, nil
}

// errWorker means that a schema has to change, and that the server is a worker.
var errWorker = errors.New("this server is a worker of a Citus cluster, and only the coordinator can change the schema: start parley once with the address of the coordinator")

// distributeNew distributes the tables of a new installation, and those that a migration
// has added to a distributed one. It tells whether the tables are distributed.
func distributeNew(ctx context.Context, c *pgx.Conn, on cluster, how placing, log *slog.Logger) (bool, error) {
	if !on.citus || how == leaveLocal {
		return false, nil
	}
	if !on.distributed {
		used := false
		err := c.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM installation) OR EXISTS (SELECT 1 FROM workspaces)`).Scan(&used)
		if err != nil {
			return false, err
		}
		if used || !on.coordinator {
			log.Warn("the database has the extension citus, but the tables are not distributed: all rows are on this server until you run parley citus distribute")
			return false, nil
		}
	}
	if !on.coordinator { // it does not have the tables that are local to the coordinator
		var there int
		err := c.QueryRow(ctx, placedQuery, slices.Sorted(maps.Keys(placements))).Scan(&there)
		if err == nil && there < len(placements) {
			err = errWorker
		}
		return err == nil, err
	}
	local, err := localTables(ctx, c)
	if err != nil {
		return false, err
	}
	for _, table := range local {
		used := false
		if table != "goose_db_version" && placements[table] == byWorkspace {
			if err := c.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM `+table+`)`).Scan(&used); err != nil {
				return false, err
			}
		}
		if used {
			return false, fmt.Errorf("the table %s is not distributed yet: finish with parley citus distribute", table)
		}
	}
	if len(local) > 0 {
		err := distribute(ctx, c, log, nil)
		if err == nil {
			err = dropLeft(ctx, c)
		}
		if err == nil {
			err = setUpServers(ctx, c)
		}
		if err != nil {
			return false, err
		}
	}
	log.Info("the tables are distributed over the servers of a Citus cluster", "coordinator", on.coordinator)
	return true, nil
}

// distribute puts the tables that are still local where placements says. It is done in
// steps, each of which is a transaction of its own, and can be repeated.
func distribute(ctx context.Context, c *pgx.Conn, log *slog.Logger, done func(table string, n, of int)) error {
	local, err := localTables(ctx, c)
	if err != nil || len(local) == 0 {
		return err
	}
	// A function that is older than the extension is only on the coordinator.
	if _, err := c.Exec(ctx, `SELECT create_distributed_function('shard_micros(uuid)')`); err != nil {
		return err
	}
	for i, table := range local {
		if err := distributeTable(ctx, c, table); err != nil {
			return fmt.Errorf("distribute the table %s: %w", table, err)
		}
		if done != nil {
			done(table, i+1, len(local))
		}
	}
	log.Info("distributed tables over the servers of the Citus cluster", "tables", len(local))
	return nil
}

// localTables lists the tables that are still local. workspaces comes first, because the
// others are placed with it. goose_db_version comes last, because a server at a worker
// looks there whether the schema is complete.
func localTables(ctx context.Context, c *pgx.Conn) ([]string, error) {
	local, err := tablesOf(ctx, c, localTablesQuery)
	place := map[string]int{"workspaces": -1, "goose_db_version": 1}
	slices.SortStableFunc(local, func(a, b string) int { return place[a] - place[b] })
	return local, err
}

func tablesOf(ctx context.Context, c *pgx.Conn, query string) ([]string, error) {
	rows, _ := c.Query(ctx, query, slices.Sorted(maps.Keys(placements))) // an error also appears in the rows
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// distributeTable places one table. Citus copies its rows; dropLeft deletes those that
// stay behind.
func distributeTable(ctx context.Context, c *pgx.Conn, table string) error {
	statements := []string{`SELECT create_distributed_table('` + table + `', 'workspace_id', colocate_with => 'workspaces')`}
	switch {
	case table == "workspaces":
		statements = []string{`SELECT create_distributed_table('workspaces', 'id', colocate_with => 'none')`}
	case table == "goose_db_version":
		// Citus can't number the rows of an integer column on several servers.
		statements = []string{`ALTER TABLE goose_db_version ALTER COLUMN id TYPE bigint`, `SELECT create_reference_table('goose_db_version')`}
	case placements[table] == everywhere:
		statements = []string{`SELECT create_reference_table('` + table + `')`}
	}
	for _, statement := range statements {
		if _, err := c.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// dropLeft deletes the rows that stayed behind on the coordinator: nothing else would ever
// delete them.
func dropLeft(ctx context.Context, c *pgx.Conn) error {
	left, err := tablesOf(ctx, c, leftQuery)
	for _, table := range left {
		if err == nil {
			_, err = c.Exec(ctx, `SELECT truncate_local_data_after_distributing_table('`+table+`')`)
		}
	}
	if err != nil {
		return fmt.Errorf("delete the rows that were moved from the coordinator: %w", err)
	}
	return nil
}

// serverSettings are set for the database on every server of the cluster, because the
// settings of a client's connection do not reach the servers that hold the rows.
// With keepalives, a server soon ends the sessions of one that has vanished, and so frees
// the rows that they had locked.
var serverSettings = []string{
	"enable_seqscan = off", "enable_bitmapscan = off", "jit = off", "synchronous_commit = on",
	"tcp_keepalives_idle = 5", "tcp_keepalives_interval = 2", "tcp_keepalives_count = 3",
}

func setUpServers(ctx context.Context, c *pgx.Conn) error {
	var database string
	if err := c.QueryRow(ctx, `SELECT current_database()`).Scan(&database); err != nil {
		return err
	}
	for _, setting := range serverSettings {
		statement := `ALTER DATABASE ` + pgx.Identifier{database}.Sanitize() + ` SET ` + setting
		var failed int
		var said string
		err := c.QueryRow(ctx, `SELECT count(*), coalesce(min(result), '') FROM run_command_on_all_nodes($1) WHERE NOT success`, statement).Scan(&failed, &said)
		if err == nil && failed > 0 {
			err = fmt.Errorf("%s failed on %d servers, on the first with: %s", statement, failed, said)
		}
		if err != nil {
			return fmt.Errorf("set up the servers of the cluster: %w", err)
		}
	}
	return nil
}
