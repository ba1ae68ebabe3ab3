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
	count := 0
	put := func(broadcasts, transactions int) {
		t.Helper()
		for n := range transactions {
			check(t, s.InTx(t.Context(), ws, func(tx store.Tx) error {
				for ; n == 0 && broadcasts > 0; broadcasts-- {
					count++
					if err := tx.PutBroadcast(&desk.Broadcast{ID: desk.ID{8, byte(count >> 8), byte(count)}, Name: "Spring", State: desk.BroadcastDraft, CreatedAt: 1}); err != nil {
						return err
					}
				}
				return nil
			}))
		}
		for start := time.Now(); knows("broadcasts") < float64(count); {
			if time.Since(start) > 30*time.Second {
				t.Fatalf("it knows %v of %d rows", knows("broadcasts"), count)
			}
		}
	}
	put(1, 140)
	put(400, 140) // the 256th transaction
	if rows := knows("merges"); rows > 0 {
		t.Errorf("it knows %v rows of an empty table", rows)
	}
	stop()
	check(t, <-ended)
}
