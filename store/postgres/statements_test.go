package postgres

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"parley/store"
	"parley/store/postgres/pgtest"
	"parley/store/storetest"

	"github.com/jackc/pgx/v5"
)

// A recorder notes each statement once, with a test that sends it.
type recorder struct {
	mu   sync.Mutex
	test map[string]string
}

// A recording is a tracer of pgx for one test.
type recording struct {
	*recorder
	name string
	on   atomic.Bool

	sending  sync.Mutex         // guards the fields below
	open     map[*pgx.Conn]bool // the transactions, and whether they write on all servers
	everyone int                // transactions that write on all servers
}

// sent follows the transactions of a connection. Only a write of a table that all servers
// have may commit in two phases.
func (r *recording) sent(c *pgx.Conn, sql string) {
	r.sending.Lock()
	defer r.sending.Unlock()
	writes := changesAll.MatchString(sql)
	wrote, within := r.open[c]
	switch {
	case strings.HasPrefix(sql, "BEGIN"):
		r.open[c] = false
	case sql == "COMMIT":
		if wrote {
			r.everyone++
		}
		delete(r.open, c)
	case sql == "ROLLBACK":
		delete(r.open, c)
	case within:
		r.open[c] = wrote || writes
	case writes:
		r.everyone++
	}
}

// changesAll matches statements that change a table which all servers have.
var changesAll = regexp.MustCompile(`(?i)\b(?:INSERT INTO|DELETE FROM|UPDATE)\s+(?:installation|claim_rules|uptime|directory)\b`)

func (r *recording) add(sql string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.on.Load() && r.test[sql] == "" {
		r.test[sql] = r.name
	}
}

func (r *recording) TraceQueryStart(ctx context.Context, c *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	r.add(q.SQL)
	r.sent(c, q.SQL)
	return ctx
}

func (*recording) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (*recording) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (r *recording) TraceBatchQuery(_ context.Context, c *pgx.Conn, q pgx.TraceBatchQueryData) {
	r.add(q.SQL)
	r.sent(c, q.SQL)
}

func (*recording) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// twoPhases counts the commits in two phases that the coordinator has noted.
func twoPhases(t *testing.T, s *Store) (n int) {
	t.Helper()
	if pgtest.Citus() {
		check(t, s.pool.QueryRow(context.WithoutCancel(t.Context()), `SELECT count(*) FROM pg_dist_transaction`).Scan(&n))
	}
	return n
}

// TestStatements runs the conformance tests with the statements for a Citus cluster, on
// whatever server the tests have, and judges every statement that the store sends. On a
// Citus cluster, only transactions that write on all servers commit in two phases.
func TestStatements(t *testing.T) {
	t.Parallel()
	r := &recorder{test: map[string]string{}}
	pool := pgtest.NewPool(t)
	if pgtest.Citus() { // otherwise it forgets its commits in two phases
		pgtest.Set(t, "citus.recover_2pc_interval", "-1")
	}
	t.Run("conformance", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) store.Store {
			now := &recording{recorder: r, name: t.Name(), open: map[*pgx.Conn]bool{}}
			s, err := Open(t.Context(), Config{URL: pool.Database(t), MaxConns: 4, asOnCitus: true, tracer: now})
			check(t, err)
			if !pgtest.Citus() { // all workspaces are in one shard
				_, err := s.pool.Exec(t.Context(), `CREATE OR REPLACE FUNCTION get_shard_id_for_distribution_column(regclass, uuid) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'`)
				check(t, err)
			}
			before := twoPhases(t, s)
			t.Cleanup(func() {
				if n := twoPhases(t, s) - before; n > 2*now.everyone { // the coordinator notes each of the two workers
					t.Errorf("%d commits in two phases, and only %d transactions wrote on all servers", n/2, now.everyone)
				}
				check(t, s.Close())
			})
			now.on.Store(true) // migrations are no statements of the store's work
			now.everyone = 0
			return s
		})
	})
	if len(r.test) < 200 {
		t.Errorf("only %d statements were sent", len(r.test))
	}
	used := map[string]bool{}
	for _, sql := range slices.Sorted(maps.Keys(r.test)) {
		for _, why := range refusedByCitus(sql, used) {
			t.Errorf("%s: %s:\n%s", r.test[sql], why, sql)
		}
	}
	for begin := range acrossWorkspaces {
		if !used[begin] {
			t.Errorf("no statement begins with %q", begin)
		}
	}
	if !pgtest.Citus() {
		judgePlans(t, r)
	}
}

// comparedLists are the statements that may compare rows with a list, by their beginning, each
// with the reason. A deletion, a merge and a sweep do so until the tables have statistics; then its
// plans are made anew.
var comparedLists = map[string]string{
	"DELETE FROM broadcast_numbers":       "a step of dropping all numbers of a broadcast",
	"DELETE FROM broadcast_rows":          "a step of dropping all rows of a broadcast",
	"DELETE FROM conflict":                "a workspace has few conflicts",
	"DELETE FROM conversations":           "the deletion of a contact",
	"DELETE FROM delivery_responses":      "the deletion of a contact that others became part of",
	"DELETE FROM history":                 "the deletion of a contact that others became part of",
	"DELETE FROM merges":                  "the deletion of a contact",
	"DELETE FROM messages":                "the deletion of a contact",
	"DELETE FROM notes":                   "the deletion of a contact",
	"INSERT INTO erasures":                "the deletion of a contact",
	"SELECT 1 FROM media":                 "the deletion of a contact",
	"SELECT 1 FROM merges":                "the deletion of a contact",
	"SELECT id FROM attempts WHERE":       "a merge",
	"SELECT id FROM conversations":        "the deletion of a contact",
	"SELECT sha256, chunks, size FROM":    "a step of a sweep",
	"UPDATE attempts SET contact_id":      "a merge",
	"UPDATE auto_replies SET contact_id":  "a merge",
	"UPDATE broadcast_rows SET message_":  "a step of a sweep",
	"UPDATE conversations SET contact_id": "a merge",
	"UPDATE media SET contact_id":         "a merge",
	"UPDATE media m SET used":             "a step of a sweep",
	"UPDATE media_jobs":                   "a workspace has few files to fetch",
	"UPDATE merges SET survivor_id":       "the merges of one contact",
	"WITH gone AS (DELETE FROM media":     "the deletion of a contact",
}

// fewRows are filters of rows of which there are few.
var fewRows = map[string]string{
	"kind = ANY":            "the events of a page",
	"(d.contact_id = ANY (": "the sends under way",
}

// judgePlans fails for a statement that compares more rows with a list than those that the list
// names.
func judgePlans(t *testing.T, r *recorder) {
	t.Helper()
	s := openAt(t, pgtest.Database(t))
	_, err := s.pool.Exec(t.Context(), `CREATE FUNCTION get_shard_id_for_distribution_column(regclass, uuid) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'`)
	check(t, err)
	for _, sql := range slices.Sorted(maps.Keys(r.test)) {
		for _, filter := range listFilters(t, s, sql) {
			if !mayCompare(sql, filter) {
				t.Errorf("%s: while the tables are empty, the plan compares rows with a list: look the list up key by key, by LATERAL\n%s\n%s", r.test[sql], filter, sql)
			}
		}
	}
}

// mayCompare tells whether a statement may compare rows with a list by this filter.
func mayCompare(sql, filter string) bool {
	for begin := range comparedLists {
		if strings.HasPrefix(sql, begin) {
			return true
		}
	}
	for part := range fewRows {
		if strings.Contains(filter, part) {
			return true
		}
	}
	return false
}

var (
	withPlan    = regexp.MustCompile(`^\s*(?:SELECT|INSERT|UPDATE|DELETE|WITH)\b`)
	parameterOf = regexp.MustCompile(`\$(\d+)`)
	listFilter  = regexp.MustCompile(`Filter: .*= ANY \(.?\$\d+`)
)

// listFilters returns the filters by a list in the plan that a connection makes for a statement
// while the tables are empty, and keeps.
func listFilters(t *testing.T, s *Store, sql string) (filters []string) {
	t.Helper()
	if !withPlan.MatchString(sql) {
		return nil
	}
	most := 0
	for _, m := range parameterOf.FindAllStringSubmatch(sql, -1) {
		n, err := strconv.Atoi(m[1])
		check(t, err)
		most = max(most, n)
	}
	c, err := s.pool.Acquire(t.Context())
	check(t, err)
	defer c.Release()
	conn := c.Conn().PgConn()
	_, err = conn.Exec(t.Context(), "PREPARE looked AS "+sql).ReadAll()
	check(t, err)
	explain := "EXPLAIN EXECUTE looked"
	if most > 0 {
		explain += "(NULL" + strings.Repeat(", NULL", most-1) + ")"
	}
	plan, err := conn.Exec(t.Context(), explain).ReadAll()
	check(t, err)
	for _, row := range plan[0].Rows {
		if line := string(row[0]); listFilter.MatchString(line) {
			filters = append(filters, strings.TrimSpace(line))
		}
	}
	_, err = conn.Exec(t.Context(), "DEALLOCATE looked").ReadAll()
	check(t, err)
	return filters
}

// acrossWorkspaces are the statements that are not for one workspace, by their beginning,
// each with the reason. Citus sends such a statement to every shard.
var acrossWorkspaces = map[string]string{
	"SELECT workspace_id, min(CASE WHEN due_at":           "a look for due work: inbound items every 5 seconds; files and automatic replies after news",
	"SELECT u.workspace_id, max(CASE WHEN l.until":        "the same look for uploads to import",
	"SELECT p.workspace_id, w.settings_version":           "the same look for conversations that wait for a member",
	"SELECT a.workspace_id, a.id FROM attempts a":         "a look for sends whose process has died, every 5 seconds",
	"SELECT h.workspace_id, h.id, l.task IS NOT NULL":     "a look for webhooks to deliver to, every 6 to 30 seconds",
	"SELECT workspace_id, seq FROM event_counters WHERE":  "a look for workspaces with new events, every second",
	"SELECT w.id, w.settings_version, coalesce(e.seq, 0)": "one question for all workspaces in which somebody follows",
	"SELECT workspace_id, id FROM channels WHERE kind":    "the hourly look for templates",
	"SELECT id, name, country, external_ids_fixed FROM":   "the list of workspaces, for commands and sweeps",
	"SELECT workspace_id, sha256 FROM media_contents":     "a sweep",
	"SELECT workspace_id, chunks FROM media_drafts":       "a sweep",
	"SELECT coalesce(max(n), 0)":                          "once a start: how many recipes of passwords an e-mail may have",
	"SELECT a.workspace_id FROM attempts a WHERE":         "a command that has only the id of an attempt",
	"SELECT count(*) FROM (SELECT 1 FROM":                 "metrics",
	"SELECT workspace_id, rules, seq, tag, built FROM":    "one question for all workspaces with new events, for the search",
	"SELECT w.id FROM workspaces w LEFT JOIN search_pla":  "parley doctor: workspaces whose search is behind",
	"SELECT count(*) FROM webhooks h":                     "metrics",
	"SELECT coalesce(sum(bytes), 0)::bigint FROM media_u": "metrics",
	"SELECT c.id, c.enabled, c.status":                    "metrics",
	"SELECT workspace_id, seq, tag FROM history_places":   "the same, for the history",
	"SELECT state, count(*) FROM (SELECT":                 "metrics",
	"SELECT workspace_id, greatest(0, min(due_at)":        "a look for broadcasts to send, after news and while one runs",
	"SELECT workspace_id, seq, tag FROM broadcast_places": "one question for all workspaces with new events, for broadcasts",
	"INSERT INTO leases (workspace_id, task, until, hold": "the leases of the workspaces in one shard",
	"UPDATE leases l SET until":                           "the same",
}

var (
	changesRows = regexp.MustCompile(`(?i)\b(?:INSERT INTO|DELETE FROM|UPDATE\s+\w+\s+(?:(?:AS )?\w+\s+)?SET)\b`)
	selectInto  = regexp.MustCompile(`(?is)\bINSERT INTO\s+(\w+)[^(]*\([^)]*\)\s*SELECT\s+(\S+?),?\s`)
	tableNames  = regexp.MustCompile(`(?i)\b(FROM|JOIN|INTO|UPDATE|USING)\s+(\w+)\b(?:\s+(?:AS\s+)?(\w+))?`)
	emptyList   = regexp.MustCompile(`(?i)\bSELECT\s+FROM\b`)
	insertIn    = regexp.MustCompile(`(?i)\bAS (?:MATERIALIZED )?\(\s*INSERT\b`)
	inValues    = regexp.MustCompile(`(?is)\bVALUES\s*\(.*\(SELECT\b`)
	clocks      = regexp.MustCompile(`(?i)\b(clock_timestamp|statement_timestamp|now|random|gen_random_uuid)\(`)
	ofAnother   = regexp.MustCompile(`(?i)\bworkspace_id = (\w+)\.workspace_id\b`)
	ofParameter = regexp.MustCompile(`shard_micros\(\$`)
	locksRows   = regexp.MustCompile(`(?i)\bFOR (?:NO KEY )?(?:UPDATE|SHARE|KEY SHARE)\b`)
)

// A tableUse is where a statement names a table of workspaces.
type tableUse struct {
	verb, table, alias string
	rest               string // the statement from there on, to the end of the subquery
	nested             bool   // it is in a subquery
}

// usesOf lists where a statement names tables with this placement.
func usesOf(sql string, at placement) (uses []tableUse) {
	for _, m := range tableNames.FindAllStringSubmatchIndex(sql, -1) {
		u := tableUse{verb: strings.ToUpper(sql[m[2]:m[3]]), table: strings.ToLower(sql[m[4]:m[5]])}
		if m[6] >= 0 {
			u.alias = sql[m[6]:m[7]]
		}
		if placements[u.table] != at {
			continue
		}
		u.nested = strings.Count(sql[:m[0]], "(") > strings.Count(sql[:m[0]], ")")
		depth, end := 0, len(sql)
		for i, c := range sql[m[0]:] {
			if c == '(' {
				depth++
			} else if c == ')' {
				if depth--; depth < 0 {
					end = m[0] + i
					break
				}
			}
		}
		u.rest = sql[m[0]:end]
		uses = append(uses, u)
	}
	return uses
}

// filtered tells whether the rows of the table are those of one workspace: its column with
// the workspace is compared with a parameter. If exactly is not set, it may be compared
// with the workspace of another table.
func (u tableUse) filtered(exactly bool) bool {
	column := "workspace_id"
	if u.table == "workspaces" {
		column = "id"
	}
	with := `\$\d+`
	if !exactly {
		with = `(?:\$\d+|\w+\.(?:workspace_id|id))`
	}
	name := `(?:^|[^.\w])(?:` + regexp.QuoteMeta(u.table) + `\.|` + regexp.QuoteMeta(u.alias) + `\.)?`
	if u.alias == "" {
		name = `(?:^|[^.\w])(?:` + regexp.QuoteMeta(u.table) + `\.)?`
	}
	if u.verb == "INTO" {
		return regexp.MustCompile(`(?is)VALUES\s*\(\$1\b|\)\s*SELECT\s+(?:\w+\.)?(?:workspace_id|id)\b`).MatchString(u.rest)
	}
	return regexp.MustCompile(name + column + ` = ` + with + `(?:\W|$)`).MatchString(u.rest)
}

// subquery returns the subquery with an alias, or "" if no subquery has it.
func subquery(sql, alias string) string {
	place := regexp.MustCompile(`\)\s+` + alias + `\b`).FindStringIndex(sql)
	if place == nil {
		return ""
	}
	depth := 1
	for begin := place[0]; begin > 0; begin-- {
		switch sql[begin-1] {
		case ')':
			depth++
		case '(':
			depth--
		}
		if depth == 0 {
			return sql[begin:place[0]]
		}
	}
	return ""
}

// refusedByCitus returns what Citus refuses in a statement, or does on several servers. It
// knows the forms that the store has had, not all of SQL.
func refusedByCitus(sql string, used map[string]bool) (why []string) {
	add := func(format string, args ...any) { why = append(why, fmt.Sprintf(format, args...)) }
	ofWorkspaces, ofAll := usesOf(sql, byWorkspace), usesOf(sql, everywhere)
	if strings.Contains(sql, "ctid") {
		add("a row is found by its ctid")
	}
	if emptyList.MatchString(sql) {
		add("a SELECT without columns")
	}
	if insertIn.MatchString(sql) {
		add("an INSERT within WITH")
	}
	if inValues.MatchString(sql) {
		add("a subquery in VALUES")
	}
	// When events were counted may differ by seconds: see markMargin.
	if changesRows.MatchString(sql) && clocks.MatchString(sql) && !strings.HasPrefix(sql, "INSERT INTO event_counters") {
		add("a statement that changes rows asks the clock, or chance, of the server that the client is connected to: see shardNow")
	}
	if ofParameter.MatchString(sql) {
		add("shard_micros of a parameter: the plan may keep its value")
	}
	if m := selectInto.FindStringSubmatch(sql); m != nil && placements[m[1]] == byWorkspace {
		if strings.HasPrefix(m[2], "$") {
			add("INSERT … SELECT takes the workspace from a parameter, so the rows go through the client's server and the commit is in two phases: see inWorkspace")
		}
		if len(ofAll) > 0 {
			add("INSERT … SELECT reads a table that is on all servers, so it goes to all shards")
		}
	}
	for begin := range acrossWorkspaces {
		if strings.HasPrefix(sql, begin) {
			used[begin] = true
			return why
		}
	}
	if len(ofWorkspaces) > 0 && slices.ContainsFunc(ofAll, func(u tableUse) bool { return u.table == "directory" }) {
		add("a join with directory names no workspace, so all servers are asked: see located")
	}
	for _, u := range ofWorkspaces {
		if m := ofAnother.FindStringSubmatch(u.rest); u.nested && m != nil && len(usesOf(subquery(sql, m[1]), byWorkspace)) > 0 {
			add("a subquery takes the workspace of %s from another subquery", u.table)
		}
		if !u.filtered(u.nested && locksRows.MatchString(sql)) {
			add("the rows of %s are not filtered by the workspace", u.table)
		}
	}
	return why
}

// TestRefusedByCitus shows that each rule of refusedByCitus finds something.
func TestRefusedByCitus(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]string{
		`SELECT id FROM contacts WHERE workspace_id = $1`:                                                                                      "",
		`UPDATE contacts SET name = $3 WHERE workspace_id = $1 AND ctid = $2`:                                                                  "ctid",
		`DELETE FROM notes WHERE workspace_id = $1 AND EXISTS (SELECT FROM media WHERE workspace_id = $1)`:                                     "without columns",
		`WITH a AS (INSERT INTO notes (workspace_id) VALUES ($1) RETURNING 1) SELECT 1 FROM a`:                                                 "within WITH",
		`INSERT INTO attempts (workspace_id, settled_hour) VALUES ($1, (SELECT hour FROM uptime))`:                                             "in VALUES",
		`UPDATE leases SET until = extract(epoch FROM clock_timestamp()) WHERE workspace_id = $1`:                                              "clock",
		`INSERT INTO contacts (workspace_id, id) SELECT $1, u.id FROM unnest($2::uuid[]) u (id)`:                                               "two phases",
		`INSERT INTO notes (workspace_id, id) SELECT w.id, h.hour FROM workspaces w CROSS JOIN uptime h WHERE w.id = $1`:                       "on all servers",
		`SELECT s.data FROM directory d JOIN sessions s ON s.workspace_id = d.workspace_id WHERE d.ref = $1`:                                   "directory",
		`SELECT id FROM media WHERE status = 'failed'`:                                                                                         "filtered",
		`SELECT m.id FROM messages m JOIN media f ON f.id = m.media_id WHERE m.workspace_id = $1`:                                              "filtered",
		`SELECT m.id FROM messages m JOIN media f ON f.id = m.media_id WHERE m.workspace_id = $1 AND f.id = $2`:                                "rows of media",
		`SELECT (SELECT c.id FROM conversations c WHERE c.workspace_id = m.workspace_id) FROM messages m WHERE m.workspace_id = $1 FOR UPDATE`: "rows of conversations",
		`SELECT (SELECT 1 FROM media f WHERE f.workspace_id = n.workspace_id) FROM (SELECT * FROM notes WHERE workspace_id = $1 LIMIT 2) n`:    "another subquery",
		`SELECT a.workspace_id, a.phase FROM attempts a WHERE a.id = $1`:                                                                       "filtered",
		`UPDATE leases SET until = shard_micros($1) WHERE workspace_id = $1`:                                                                   "parameter",
		`INSERT INTO contacts (workspace_id, id) SELECT w.id, u.id FROM unnest($2::uuid[]) u (id) CROSS JOIN workspaces w WHERE w.id = $1`:     "",
	} {
		why := strings.Join(refusedByCitus(sql, map[string]bool{}), "; ")
		if want == "" && why != "" || !strings.Contains(why, want) {
			t.Errorf("%s\nis refused because of %q, want %q", sql, why, want)
		}
	}
}

// TestPlacements: somebody has decided where the rows of each table are, and no table is
// listed that does not exist.
func TestPlacements(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	s, err := Open(t.Context(), Config{URL: url, MaxConns: 2})
	check(t, err)
	defer func() { check(t, s.Close()) }()
	rows, err := s.pool.Query(t.Context(), `SELECT relname, EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'workspace_id')
		FROM pg_class c WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'`)
	check(t, err)
	there := map[string]bool{}
	for rows.Next() {
		var name string
		var ofWorkspace bool
		check(t, rows.Scan(&name, &ofWorkspace))
		there[name] = true
		switch at := placements[name]; {
		case at == 0:
			t.Errorf("nobody has decided where the rows of the table %s are with Citus: see placements", name)
		case at == byWorkspace && !ofWorkspace && name != "workspaces":
			t.Errorf("the table %s has no workspace_id", name)
		}
	}
	check(t, rows.Err())
	for name := range placements {
		if !there[name] {
			t.Errorf("there is no table %s", name)
		}
	}
}
