package postgres

import (
	"context"

	"parley/desk"
	"parley/store"

	"github.com/jackc/pgx/v5"
)

// Each of these counts ends at 100,000; usedMediaBytes is a sum.
const (
	countInDoubtQuery = `SELECT count(*) FROM (SELECT 1 FROM attempts a WHERE ` + unsettled + ` AND a.phase = 'in_doubt' LIMIT 100000) d`
	countMediaQuery   = `SELECT count(*) FROM (SELECT 1 FROM media_jobs WHERE ended = 0 LIMIT 100000) j`
	countInboundQuery = `SELECT count(*) FROM (SELECT 1 FROM inbound_items LIMIT 100000) i`
	countCastsQuery   = `SELECT state, count(*) FROM (SELECT state FROM broadcasts WHERE state <> 'deleted' LIMIT 100000) b GROUP BY state`
)

const (
	channelMetricsQuery = `SELECT c.id, c.enabled, c.status, ` + newestCallback + ` FROM channels c ORDER BY c.id`
	databaseBytesQuery  = `SELECT pg_database_size(current_database())`
)

// These count the webhooks in each state.
const (
	countHooks = `SELECT count(*) FROM webhooks h JOIN workspaces w ON w.id = h.workspace_id
		LEFT JOIN webhook_states s ON s.workspace_id = h.workspace_id AND s.webhook_id = h.id WHERE NOT w.deleted AND `
	countActiveQuery   = countHooks + `h.enabled AND s.failures < 10`
	countFailingQuery  = countHooks + `h.enabled AND s.failures >= 10`
	countDisabledQuery = countHooks + `NOT h.enabled`
)

// Metrics returns the values of /metrics that concern the whole database.
func (s *Store) Metrics(ctx context.Context, now desk.Time) (g store.Metrics, err error) {
	err = s.read(ctx, func(p *pipe) error {
		g = store.Metrics{Broadcasts: map[desk.BroadcastState]int64{}}
		count := func(into *int64, query string) {
			p.each(func(row pgx.Row) error { return row.Scan(into) }, query)
		}
		count(&g.InDoubt, countInDoubtQuery)
		count(&g.Waiting, countInboundQuery)
		count(&g.Media, countMediaQuery)
		count(&g.Stored, `SELECT coalesce(sum(bytes), 0)::bigint FROM media_used`)
		count(&g.Bytes, databaseBytesQuery)
		count(&g.WebhooksActive, countActiveQuery)
		count(&g.WebhooksFailing, countFailingQuery)
		count(&g.WebhooksDisabled, countDisabledQuery)
		p.each(func(row pgx.Row) error {
			var state desk.BroadcastState
			var n int64
			err := row.Scan((*string)(&state), &n)
			g.Broadcasts[state] = n
			return err
		}, countCastsQuery)
		count((*int64)(&g.Now), `SELECT `+databaseNow)
		g.Channels, err = all(p, "metrics", func(row pgx.Row) (store.ChannelMetrics, error) {
			var c desk.Channel
			var called desk.Time
			err := row.Scan(into(&c.ID), &c.Enabled, document{&c.Status}, (*int64)(&called))
			return store.ChannelMetrics{ID: c.ID, Up: c.Up(now), Callback: called}, err
		}, channelMetricsQuery)
		return err
	})
	return g, err
}
