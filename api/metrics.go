package api

import (
	"cmp"
	"context"

	"parley/app"
	"parley/desk"

	"github.com/prometheus/client_golang/prometheus"
)

// The metrics that the collector metrics collects.
var (
	channelUp       = prometheus.NewDesc("parley_channel_up", "1: the channel is enabled, and its account may send.", []string{"channel"}, nil)
	callbackAge     = prometheus.NewDesc("parley_callback_age_seconds", "Since the provider's last callback of a channel.", []string{"channel"}, nil)
	sendsTotal      = prometheus.NewDesc("parley_sends_total", "Sends of this process, by outcome.", []string{"outcome"}, nil)
	sendsInDoubt    = prometheus.NewDesc("parley_sends_in_doubt", "Sends whose outcome nobody knows.", nil, nil)
	inboundWaits    = prometheus.NewDesc("parley_inbound_waiting", "Inbound items that are not processed yet.", nil, nil)
	eventsTotal     = prometheus.NewDesc("parley_events_total", "Events that this process has stored, by type.", []string{"type"}, nil)
	eventStreams    = prometheus.NewDesc("parley_event_streams", "Streams of events and reads that wait for them, of this process.", nil, nil)
	webhookTries    = prometheus.NewDesc("parley_webhook_attempts_total", "Attempts of this process at endpoints of webhooks, by what came of them.", []string{"result"}, nil)
	webhookLag      = prometheus.NewDesc("parley_webhook_lag_seconds", "Age of the oldest event that is not delivered to an endpoint which this process serves.", nil, nil)
	webhooksByState = prometheus.NewDesc("parley_webhook_endpoints", "Webhooks, by state.", []string{"state"}, nil)
	clockAhead      = prometheus.NewDesc("parley_clock_ahead_seconds", "How far this server's clock is ahead of the database's.", nil, nil)
	mediaFetches    = prometheus.NewDesc("parley_media_fetches_total", "Tries of this process to fetch files of inbound messages, by result.", []string{"result"}, nil)
	mediaWaiting    = prometheus.NewDesc("parley_media_waiting", "Files that are still to be fetched.", nil, nil)
	searchBehind    = prometheus.NewDesc("parley_search_behind", "Changes of contacts that the search does not know yet, as far as this process knows.", nil, nil)
	mediaBytes      = prometheus.NewDesc("parley_media_bytes", "Bytes of the content of files, of all workspaces; equal content of a workspace counts once.", nil, nil)
	mediaFree       = prometheus.NewDesc("parley_media_free_bytes", "Free bytes of the file system that has the files; absent if the database has them.", nil, nil)
	broadcasts      = prometheus.NewDesc("parley_broadcasts", "Broadcasts, by state.", []string{"state"}, nil)
	broadcastRows   = prometheus.NewDesc("parley_broadcast_rows_total", "Rows of broadcasts whose turns this process did, by status; pending: the provider refused for now.", []string{"status"}, nil)
	broadcastBehind = prometheus.NewDesc("parley_broadcast_behind", "Events whose deliveries the counts of broadcasts do not know yet, as far as this process knows.", nil, nil)
	bytesOfDB       = prometheus.NewDesc("parley_database_bytes", "Size of the database, with its log.", nil, nil)
)

// metrics collects what the app knows: sends of this process, and metrics of the whole
// database, which are absent while it can't be read.
type metrics struct{ app *app.App }

// Describe implements prometheus.Collector.
func (metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{channelUp, callbackAge, sendsTotal, sendsInDoubt, inboundWaits, eventsTotal, eventStreams, webhookTries, webhookLag, webhooksByState, clockAhead, mediaFetches, mediaWaiting, mediaBytes, mediaFree, searchBehind, broadcasts, broadcastRows, broadcastBehind, bytesOfDB} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (f metrics) Collect(to chan<- prometheus.Metric) {
	put := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	sends := f.app.Metrics.Sends()
	put(sendsTotal, prometheus.CounterValue, float64(sends.Accepted), "accepted")
	put(sendsTotal, prometheus.CounterValue, float64(sends.Refused), "refused")
	put(sendsTotal, prometheus.CounterValue, float64(sends.Unavailable), "unavailable")
	put(sendsTotal, prometheus.CounterValue, float64(sends.InDoubt), "in_doubt")
	for t, n := range f.app.Feed.Stored() {
		put(eventsTotal, prometheus.CounterValue, float64(n), string(t))
	}
	put(eventStreams, prometheus.GaugeValue, float64(f.app.Feed.Followers()))
	for result, n := range f.app.Deliver.Tries() {
		put(webhookTries, prometheus.CounterValue, float64(n), cmp.Or(result, "delivered"))
	}
	put(webhookLag, prometheus.GaugeValue, f.app.Deliver.Lag().Seconds())
	fetches := f.app.Media.FetchCounts()
	put(mediaFetches, prometheus.CounterValue, float64(fetches.Ready), "ready")
	put(mediaFetches, prometheus.CounterValue, float64(fetches.Again), "again")
	put(mediaFetches, prometheus.CounterValue, float64(fetches.Failed), "failed")
	put(mediaFetches, prometheus.CounterValue, float64(fetches.Storage), "storage")
	if free, known := f.app.Media.Free(); known {
		put(mediaFree, prometheus.GaugeValue, float64(free))
	}
	put(broadcastBehind, prometheus.GaugeValue, float64(f.app.Broadcasts.Behind()))
	for status, n := range f.app.Broadcasts.Outcomes() {
		put(broadcastRows, prometheus.CounterValue, float64(n), string(status))
	}
	put(searchBehind, prometheus.GaugeValue, float64(f.app.Search.Behind()))
	put(clockAhead, prometheus.GaugeValue, f.app.Clock.Ahead().Seconds())
	g, err := f.app.Metrics.Database(context.Background())
	if err != nil {
		return
	}
	put(sendsInDoubt, prometheus.GaugeValue, float64(g.InDoubt))
	put(inboundWaits, prometheus.GaugeValue, float64(g.Waiting))
	put(mediaWaiting, prometheus.GaugeValue, float64(g.Media))
	put(mediaBytes, prometheus.GaugeValue, float64(g.Stored))
	put(webhooksByState, prometheus.GaugeValue, float64(g.WebhooksActive), "active")
	put(webhooksByState, prometheus.GaugeValue, float64(g.WebhooksFailing), "failing")
	put(webhooksByState, prometheus.GaugeValue, float64(g.WebhooksDisabled), "disabled")
	for _, state := range desk.BroadcastStates {
		put(broadcasts, prometheus.GaugeValue, float64(g.Broadcasts[state]), string(state))
	}
	put(bytesOfDB, prometheus.GaugeValue, float64(g.Bytes))
	for _, c := range g.Channels {
		up := 0.0
		if c.Up {
			up = 1
		}
		put(channelUp, prometheus.GaugeValue, up, c.ID.String())
		if c.Callback != 0 {
			put(callbackAge, prometheus.GaugeValue, float64(max(0, g.Now-c.Callback))/1000, c.ID.String())
		}
	}
}
