package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"parley/desk"
	"parley/store"
	"parley/store/internal/stored"
)

// Each of these counts ends at 100,000; usedMediaBytes is a sum.
const (
	countInDoubtQuery = `SELECT count(*) FROM (SELECT 1 FROM attempts a WHERE ` + unsettled + ` AND a.phase = 'in_doubt' LIMIT 100000)`
	countMediaQuery   = `SELECT count(*) FROM (SELECT 1 FROM media_jobs INDEXED BY media_jobs_due WHERE ended = 0 LIMIT 100000)`
	usedMediaBytes    = `SELECT coalesce(sum(bytes), 0) FROM media_used`
	countInboundQuery = `SELECT count(*) FROM (SELECT 1 FROM inbound_items LIMIT 100000)`
	countCastsQuery   = `SELECT state, count(*) FROM (SELECT state FROM broadcasts WHERE state <> 'deleted' LIMIT 100000) GROUP BY state`
)

var channelMetricsQuery = `SELECT c.id, c.enabled, c.status, ` + newestCallback("c.workspace_id", "c.id") + ` FROM channels c ORDER BY c.id`

const databaseBytesQuery = `SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()`

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
	err = s.read(ctx, pointRead, func(c conn) error {
		g = store.Metrics{Now: s.now()}
		for _, count := range []struct {
			query string
			into  *int64
		}{{countInDoubtQuery, &g.InDoubt}, {countInboundQuery, &g.Waiting}, {countMediaQuery, &g.Media}, {usedMediaBytes, &g.Stored}, {databaseBytesQuery, &g.Bytes},
			{countActiveQuery, &g.WebhooksActive}, {countFailingQuery, &g.WebhooksFailing}, {countDisabledQuery, &g.WebhooksDisabled}} {
			n, err := one("metrics", c.stmt(count.query), (*stmt).readInt)
			if err != nil {
				return err
			}
			*count.into = n
		}
		g.Broadcasts = map[desk.BroadcastState]int64{}
		casts := c.stmt(countCastsQuery)
		for casts.next() {
			state := desk.BroadcastState(casts.readText())
			g.Broadcasts[state] = casts.readInt()
		}
		if err := casts.done(); err != nil {
			return failed("count broadcasts", err)
		}
		g.Channels, err = all("channels' metrics", c.stmt(channelMetricsQuery), func(s *stmt) store.ChannelMetrics {
			channel := desk.Channel{ID: s.readID(), Enabled: s.readInt() != 0}
			s.readJSON(&channel.Status)
			return store.ChannelMetrics{ID: channel.ID, Up: channel.Up(now), Callback: s.readTime()}
		})
		return err
	})
	if err != nil {
		return g, err
	}
	log, err := os.Stat(s.path + "-wal")
	switch {
	case errors.Is(err, fs.ErrNotExist): // no log yet
		return g, nil
	case err != nil:
		return g, stored.Unavailable(err)
	}
	g.Bytes += log.Size()
	return g, nil
}
