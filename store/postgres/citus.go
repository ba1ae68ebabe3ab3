package postgres

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/desk"
	"parley/store"
	"parley/store/internal/stored"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
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
	"callback_people":    byWorkspace,
	"callbacks":          byWorkspace,
	"channel_signs":      byWorkspace,
	"channels":           byWorkspace,
	"claims":             byWorkspace,
	"contacts":           byWorkspace,
	"conversations":      byWorkspace,
	"daily":              byWorkspace,
	"daily_places":       byWorkspace,
	"deliveries":         byWorkspace,
	"delivery_responses": byWorkspace,
	"early_statuses":     byWorkspace,
	"erased_messages":    byWorkspace,
	"event_counters":     byWorkspace,
	"event_floors":       byWorkspace,
	"events":             byWorkspace,
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
	"messages":           byWorkspace,
	"notes":              byWorkspace,
	"opt_outs":           byWorkspace,
	"pace":               byWorkspace,
	"policies":           byWorkspace,
	"sandbox_templates":  byWorkspace,
	"send_keys":          byWorkspace,
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
	if err := distribute(ctx, c, log, nil); err != nil {
		return false, err
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
	if err := dropLeft(ctx, c); err != nil {
		return err
	}
	return setUpServers(ctx, c)
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

// Citus refuses some statements that are the best ones for a single server. On a cluster,
// onCitus replaces them. The single-server forms look rows up by ctid, because a plan that
// was made for an empty table is kept (see parameters). With Citus, each execution is
// planned anew.
var citusForms = map[string]string{
	updateContacts: `WITH done AS (UPDATE contacts c SET external_id = u.external_id, name = u.name, email = u.email, phone = u.phone, note = u.note,
	attributes = u.attributes, further = u.further, owner_id = u.owner_id, created_at = u.created_at, updated_at = u.updated_at,
	version = c.version + 1` + contactRows + ` WHERE c.workspace_id = $1 AND c.id = u.id AND c.version = u.version` + allDone,
	deleteContacts: `WITH done AS (DELETE FROM contacts c USING unnest($2::uuid[], $3::bigint[]) u (id, version)
	WHERE c.workspace_id = $1 AND c.id = u.id AND c.version = u.version` + allDone,
	releaseClaims: `DELETE FROM claims i USING unnest($2::text[], $3::text[], $4::uuid[]) u (kind, value, contact_id)
	WHERE i.workspace_id = $1 AND i.kind = u.kind AND i.value = u.value AND i.contact_id = u.contact_id`,
	takeInboundQuery: `WITH wanted AS (
		SELECT u.n, i.due_at, i.id FROM unnest($2::bigint[], $3::uuid[]) WITH ORDINALITY u (due_at, id, n)
			JOIN inbound_items i ON i.workspace_id = $1 AND i.due_at = u.due_at AND i.id = u.id FOR UPDATE OF i SKIP LOCKED),
	taken AS (DELETE FROM inbound_items i USING wanted WHERE i.workspace_id = $1 AND i.due_at = wanted.due_at AND i.id = wanted.id
		RETURNING wanted.n, i.due_at, i.id, i.channel_id, i.received_at, i.skip, i.body)
	SELECT ` + inboundColumns + ` FROM taken ORDER BY n`,
	forgetCallbackPeople: `DELETE FROM callback_people p USING unnest($2::bigint[], $3::uuid[]) u (received_at, id)
	WHERE p.workspace_id = $1 AND p.received_at = u.received_at AND p.id = u.id`,
	forgetCallbacks: `DELETE FROM callbacks w USING unnest($2::bigint[], $3::uuid[]) u (received_at, id)
	WHERE w.workspace_id = $1 AND w.received_at = u.received_at AND w.id = u.id`,
	paceQuery: `WITH taking AS MATERIALIZED (
		SELECT p.bucket, p.until_us, u.every, u.burst, ` + shardMicros("p.workspace_id") + ` AS now FROM unnest($2::text[], $3::bigint[], $4::bigint[]) u (bucket, every, burst)
			JOIN pace p ON p.workspace_id = $1 AND p.bucket = u.bucket),
	next AS MATERIALIZED (
		SELECT bucket, now, every, burst, CASE WHEN until_us > now + $5::bigint + burst * every THEN now ELSE greatest(until_us, now) END AS taken FROM taking),
	longest AS MATERIALIZED (SELECT greatest(max(taken - now + every - burst * every), 0) AS wait FROM next),
	taken AS (UPDATE pace p SET until_us = next.taken + next.every FROM next, longest
		WHERE p.workspace_id = $1 AND p.bucket = next.bucket AND longest.wait <= $5::bigint RETURNING 1)
	SELECT wait FROM longest`,
	attemptsToQuery:                      ofOneWorkspace(attemptsToQuery),
	attemptsToQuery + ` FOR UPDATE OF a`: ofOneWorkspace(attemptsToQuery + ` FOR UPDATE OF a`),
	forgetPaceQuery: `DELETE FROM pace WHERE workspace_id = $1 AND bucket IN
	(SELECT bucket FROM pace WHERE workspace_id = $1 AND (until_us <= ` + shardMicros("workspace_id") + ` OR until_us > ` + shardMicros("workspace_id") + ` + $2::bigint) FOR UPDATE SKIP LOCKED)`,
}

// ofOneWorkspace leaves the choice of an index to the planner: on a single server, the
// query makes it choose the index of all unsettled attempts.
func ofOneWorkspace(attemptsTo string) string {
	return strings.Replace(attemptsTo, `SELECT * FROM attempts a WHERE `, `SELECT * FROM attempts a WHERE a.workspace_id = $1 AND `, 1)
}

// pinShards keeps the shards of the workspace $1 on their server until the transaction
// ends, without changing a row. Citus waits with a move for transactions that write. For a
// row that is only locked, it does not wait; so after the move, the row would not be
// locked any more.
const pinShards = `UPDATE workspaces SET country = country WHERE id = $1 AND settings_version < 0`

// onCitus returns the form of a statement for a cluster.
func onCitus(query string) string {
	if form, ok := citusForms[query]; ok {
		return form
	}
	return query
}

const (
	// newLeasesQuery creates leases that have ended. They name the holder, so that the first
	// hold is no change of holders.
	newLeasesQuery = `INSERT INTO leases (workspace_id, task, until, holder) SELECT w.id, u.task, 0, $3
	FROM unnest($1::uuid[], $2::text[]) u (workspace_id, task) JOIN workspaces w ON w.id = u.workspace_id WHERE w.id = ANY ($1::uuid[]) ON CONFLICT DO NOTHING`
	shardsQuery = `SELECT get_shard_id_for_distribution_column('leases', u.id) FROM unnest($1::uuid[]) WITH ORDINALITY u (id, n) ORDER BY n`
)

var holdLeasesOfQuery = `UPDATE leases l SET until = ` + shardNow("l.workspace_id") + ` + $4, holder = $3, calls = l.calls + (l.holder IS DISTINCT FROM $3)::integer
	FROM unnest($1::uuid[], $2::text[]) u (workspace_id, task) WHERE l.workspace_id = ANY ($1::uuid[]) AND l.workspace_id = u.workspace_id AND l.task = u.task
	AND (l.holder = $3 OR l.until < ` + shardNow("l.workspace_id") + ` OR l.until > ` + shardNow("l.workspace_id") + ` + $4) RETURNING l.workspace_id, l.task, l.calls`

// groupsAtOnce is how many groups of leases are held at the same time.
const groupsAtOnce = 4

// holdOnCluster is HoldLeases on a cluster. The leases of the workspaces in one shard are
// held together, in one transaction on one server. If that fails for some, held has the
// others.
func (s *Store) holdOnCluster(ctx context.Context, list []store.LeaseRef, holder desk.ID, length desk.Time) (held map[store.LeaseRef]int64, err error) {
	ids := make(pgtype.FlatArray[uuid], len(list))
	for i, ref := range list {
		ids[i] = uuid(ref.Workspace)
	}
	groups := map[int64][]store.LeaseRef{}
	err = s.read(ctx, func(p *pipe) error {
		clear(groups)
		shards, err := all(p, "shards of leases", func(row pgx.Row) (n int64, err error) { return n, row.Scan(&n) }, shardsQuery, ids)
		for i, shard := range shards {
			groups[shard] = append(groups[shard], list[i])
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	held = map[store.LeaseRef]int64{}
	var group errgroup.Group
	group.SetLimit(groupsAtOnce)
	for _, refs := range groups {
		group.Go(func() error {
			slices.SortFunc(refs, func(a, b store.LeaseRef) int {
				return cmp.Or(bytes.Compare(a.Workspace[:], b.Workspace[:]), strings.Compare(a.Task, b.Task))
			})
			workspaces, tasks := make(pgtype.FlatArray[uuid], len(refs)), make([]string, len(refs))
			for i, ref := range refs {
				workspaces[i], tasks[i] = uuid(ref.Workspace), ref.Task
			}
			ours := map[store.LeaseRef]int64{}
			err := s.atOnce(ctx, "hold leases", func(p *pipe) {
				p.put(newLeasesQuery, workspaces, tasks, uuid(holder))
				p.each(func(row pgx.Row) error {
					var ref store.LeaseRef
					var calls int64
					err := row.Scan(into(&ref.Workspace), &ref.Task, &calls)
					ours[ref] = calls
					return err
				}, holdLeasesOfQuery, workspaces, tasks, uuid(holder), int64(length))
			})
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				maps.Copy(held, ours)
			}
			return err
		})
	}
	return held, group.Wait()
}

// What is found by the directory is read in two steps on a cluster: the directory is on
// every server, but a join with it names no workspace, so Citus would ask all servers.

const placeQuery = `SELECT workspace_id FROM directory WHERE kind = $1 AND ref = $2`

func readID(row pgx.Row) (id desk.ID, err error) { return id, row.Scan(into(&id)) }

// located returns the row of a table that is found by the directory, or the zero T. The
// query joined finds it by its reference $1, and within finds it by its workspace $1 and
// its reference $2.
func located[T any](s *Store, p *pipe, doing, kind, ref string, read func(pgx.Row) (T, error), joined, within string) (row T, err error) {
	if !s.citus {
		return one(p, doing, read, joined, ref)
	}
	ws, err := one(p, doing, readID, placeQuery, kind, ref)
	if err != nil || ws.IsZero() {
		return row, err
	}
	return one(p, doing, read, within, uuid(ws), ref)
}

// membersOn lists the members with an e-mail, on a cluster.
func membersOn(p *pipe, read func(pgx.Row) (store.MemberAccess, error), from, to string, most int) (list []store.MemberAccess, err error) {
	type entry struct {
		ws     desk.ID
		member string
	}
	entries, err := all(p, "members by e-mail", func(row pgx.Row) (e entry, err error) {
		return e, row.Scan(into(&e.ws), &e.member)
	}, `SELECT workspace_id, right(ref, 36) FROM directory WHERE kind = 'email' AND ref >= $1 AND ref < $2 ORDER BY ref LIMIT $3`, from, to, most)
	for _, e := range entries {
		p.each(func(row pgx.Row) error {
			m, err := read(row)
			list = append(list, m)
			return err
		}, memberColumns+` FROM members m`+accessOfMember+` WHERE m.workspace_id = $1 AND m.id = $2::uuid`, uuid(e.ws), e.member)
	}
	if err != nil {
		return nil, err
	}
	return list, p.send("members by e-mail")
}

// maxKnownKeys is the greatest number of keys whose workspaces a node remembers. If there
// are more, it begins anew.
const maxKnownKeys = 50_000

// keyPlaces remembers the workspaces of keys. A key never moves to another workspace.
type keyPlaces struct {
	mu sync.Mutex
	of map[string]desk.ID
}

func (k *keyPlaces) get(publicID string) desk.ID {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.of[publicID]
}

func (k *keyPlaces) put(publicID string, ws desk.ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of == nil || len(k.of) >= maxKnownKeys {
		k.of = map[string]desk.ID{}
	}
	k.of[strings.Clone(publicID)] = ws
}

// authenticateOn is Authenticate on a cluster. A known key costs one round trip, as
// elsewhere.
func (s *Store) authenticateOn(p *pipe, publicID string) (*desk.Settings, error) {
	ws := s.keys.get(publicID)
	known := !ws.IsZero()
	if !known {
		var err error
		if ws, err = one(p, "authenticate", readID, placeQuery, stored.Key, publicID); err != nil {
			return nil, err
		}
		if ws.IsZero() {
			return nil, stored.NoKey()
		}
	}
	settings, err := s.currentSettings(p, ws)
	switch {
	case desk.IsType(err, desk.NotFound), err == nil && settings.KeyByPublicID(publicID) == nil:
		return nil, stored.NoKey()
	case err == nil && !known:
		s.keys.put(publicID, ws)
	}
	return settings, err
}

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
