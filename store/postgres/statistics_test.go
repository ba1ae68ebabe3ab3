package postgres

import (
	"context"
	"testing"
	"time"

	"parley/desk"
	"parley/store"
	"parley/store/postgres/pgtest"
)

// TestStatistics: PostgreSQL knows the tables soon after their first rows, long before it would look
// at them by itself.
func TestStatistics(t *testing.T) {
	t.Parallel()
	onOneServer(t, "the rows are on other servers")
	s := openAt(t, pgtest.Database(t))
	ws := newWorkspace(t, s)
	_, err := s.pool.Exec(t.Context(), `ALTER TABLE broadcasts SET (autovacuum_enabled = false)`)
	check(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	knows := func(table string) (rows float64) {
		check(t, s.pool.QueryRow(t.Context(), `SELECT reltuples FROM pg_class WHERE relname = $1`, table).Scan(&rows))
		return rows
	}
	for n := range 200 {
		check(t, s.InTx(t.Context(), ws, func(tx store.Tx) error {
			if n == 0 {
				return tx.PutBroadcast(&desk.Broadcast{ID: desk.ID{8}, Name: "Spring", State: desk.BroadcastDraft, CreatedAt: 1})
			}
			return nil
		}))
	}
	for start := time.Now(); knows("broadcasts") <= 0; {
		if time.Since(start) > 30*time.Second {
			t.Fatal("it does not know the table")
		}
	}
	if rows := knows("merges"); rows > 0 {
		t.Errorf("it knows %v rows of an empty table", rows)
	}
	stop()
	check(t, <-ended)
}
