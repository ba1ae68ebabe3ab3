package store

import "parley/desk"

// Metrics are the values in /metrics that concern the whole database.
type Metrics struct {
	Now      desk.Time // the database's clock, to which the times of callbacks belong
	InDoubt  int64     // attempts with an unknown outcome
	Waiting  int64     // inbound items that are not processed yet
	Bytes    int64     // the size of the database, with its log
	Media    int64     // files that are still to be fetched
	Stored   int64     // bytes of the content of files
	Channels []ChannelMetrics

	Broadcasts map[desk.BroadcastState]int64 // by state, without deleted ones

	// Webhooks by state. A failing webhook is enabled, and has failed ten times or more in
	// a row.
	WebhooksActive, WebhooksFailing, WebhooksDisabled int64
}

// ChannelMetrics are the values of one channel for /metrics.
type ChannelMetrics struct {
	ID       desk.ID
	Up       bool
	Callback desk.Time // when the provider last called; 0: never
}
