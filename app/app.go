package app

import (
	"context"

	"parley/app/access"
	"parley/app/broadcast"
	"parley/app/clock"
	"parley/app/conflicts"
	"parley/app/daily"
	"parley/app/deliver"
	"parley/app/exports"
	"parley/app/feed"
	"parley/app/holds"
	"parley/app/imports"
	"parley/app/media"
	"parley/app/merges"
	"parley/app/readings"
	"parley/app/search"
	"parley/app/segments"
	"parley/desk"
)

// An App carries out user actions against a store.
type App struct {
	Access     *access.Service    // keys, and how members sign in
	Clock      *clock.Service     // the counter of hours
	Conflicts  *conflicts.Service // refused writes between contacts
	Daily      *daily.Service     // messages counted by day
	Deliver    *deliver.Service   // webhooks
	Feed       *feed.Service      // the feed of events
	Metrics    *Metrics           // what /metrics shows of sends, and of the database
	Imports    *imports.Service   // imports of files
	Exports    *exports.Service   // all records of a kind
	Media      *media.Service     // files
	Merges     *merges.Service    // merging contacts
	Search     *search.Service    // finding contacts by a text
	Segments   *segments.Service  // filters of contacts
	Broadcasts *broadcast.Service // one template to many people

	base
	ending
	writer      *writer
	libraries   libraries
	holds       holds.Keys
	flights     flights
	inboundDue  inboundDue
	readings    readings.Cache
	receipts    receipts
	pools       pools
	autoReplies *feed.Due
}

// NewID returns a new id.
func (a *App) NewID() desk.ID { return a.newID() }

// Ready tells whether the database can answer now.
func (a *App) Ready(ctx context.Context) error { return a.store.Ready(ctx) }
