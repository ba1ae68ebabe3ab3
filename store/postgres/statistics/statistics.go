// Package statistics has PostgreSQL look at tables that are new to it, or have grown.
//
// PostgreSQL plans by statistics, and gathers those of a table about a minute after its first
// rows came. Until then it takes the table for empty, where one index is as good as another: a
// message is then looked for among all messages of its workspace, and each takes longer than the
// one before. Statistics of the first few rows are no better: if they are of different workspaces,
// each workspace is taken to have one row. In an installation's first minutes, that is half of its
// time.
package statistics

import (
	"context"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// After so many transactions of a process, and after each doubling up to the last number,
// PostgreSQL looks at the tables that it does not know, and at those that have grown.
const (
	firstLook = 1 << 7
	lastLook  = 1 << 16
)

// rough has a look read 3,000 rows of a table, a tenth of what PostgreSQL reads by itself: others
// write meanwhile, and a plan needs no more.
const rough = `SET LOCAL default_statistics_target = 10`

// A Watch has PostgreSQL look at tables. Its methods are safe for concurrent use.
type Watch struct {
	pool   *pgxpool.Pool
	tables []string
	log    *slog.Logger
	wrote  atomic.Int64
	woken  chan struct{} // has an element when it is time to look
}

// New returns a Watch over tables of the pool's database.
func New(pool *pgxpool.Pool, tables iter.Seq[string], log *slog.Logger) *Watch {
	return &Watch{pool: pool, tables: slices.Collect(tables), log: log, woken: make(chan struct{}, 1)}
}

// Wrote counts a transaction.
func (w *Watch) Wrote() {
	if n := w.wrote.Add(1); n < firstLook || n > lastLook || n&(n-1) != 0 {
		return
	}
	select {
	case w.woken <- struct{}{}:
	default: // it is about to look
	}
}

// Run looks when it is time, until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.woken:
		}
		if err := w.look(ctx); err != nil && ctx.Err() == nil { // PostgreSQL looks by itself later
			w.log.WarnContext(ctx, "new tables can't be analyzed", "err", err)
		}
	}
}

// look analyzes those of the tables that have content, and of which PostgreSQL knows no row or at
// most half of their pages. It leaves out those that somebody else analyzes. On a cluster it finds
// none: the rows are elsewhere.
func (w *Watch) look(ctx context.Context) error {
	rows, err := w.pool.Query(ctx, `SELECT oid::regclass::text FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
		AND relname = ANY ($1) AND pg_relation_size(oid) > 0 AND (reltuples <= 0 OR pg_relation_size(oid) >= 2 * relpages * current_setting('block_size')::bigint)`, w.tables)
	if err != nil {
		return err
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(found) == 0 {
		return err
	}
	return pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, rough); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `ANALYZE (SKIP_LOCKED) `+strings.Join(found, ", "))
		return err
	})
}
