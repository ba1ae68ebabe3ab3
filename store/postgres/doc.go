// Package postgres keeps parley's data in one PostgreSQL database, which any number of
// servers may share.
//
//	open.go           opening: the pool and what is set on its connections
//	migrate.go        the schema, in migrations/
//	citus.go          many servers: where the rows of each table are
//	distribute.go     parley citus distribute
//	keys.go           the workspaces of keys, remembered on a cluster
//	write.go          the one way to write: transactions, and when they run again
//	contacts.go       contacts and identities
//	newcomers.go      whether a write is likely to find no contact
//	claims.go         rebuilding claims after an upgrade, and claims that contacts share
//	settings.go       workspaces, attributes, members, keys
//	workspaces.go     deleting a workspace
//	channels.go       channels and their templates
//	conversations.go  conversations and messages
//	notes.go          notes on conversations
//	old.go            old messages, notes and conversations
//	attempts.go       sends and their keys
//	inbound.go        inbound items, early statuses, opt-outs
//	erased.go         deleted contacts, and hashes of their messages
//	callbacks.go      bodies of callbacks, and the people they name
//	events.go         events: storing them, their log
//	expiry.go         dropping events from the feed
//	feed.go           pages of the feed, with the records of their events
//	uses.go           when keys were last used
//	snippets.go       saved replies
//	segments.go       filters with names
//	policies.go       reply policies
//	answers.go        assignment by policy: turns, waiting conversations, automatic replies
//	daily.go          counts of messages by day
//	merges.go         contacts that were merged into others
//	conflicts.go      refused writes between contacts
//	imports.go        how far imports of files are
//	exports.go        all records, page by page
//	uploads.go        files that are imported in the console, and their rejected rows
//	broadcasts.go     broadcasts and their rows
//	search.go         the terms by which contacts are found
//	history.go        the history of contacts
//	access.go         sessions, sign-in links, passwords
//	webhooks.go       webhooks and their states
//	deliveries.go     deliveries of events to webhooks, leases that are extended
//	clock.go          the database's clock, and its counter of hours
//	metrics.go        values for /metrics
//	examine.go        opening a database without changing it, for parley doctor
//	media.go          files: their records
//	content.go        the content of files
//	media_jobs.go     files to fetch
//	pace.go           the limits of providers, as shared buckets
//	shares.go         how many connections the transactions on one workspace have
//	tx.go             transactions that the caller composes
//	import.go         writing everything, for parley migrate
//	step.go           steps of an upgrade, which do not wait long for a table
//	pipe.go           statements: sharing a round trip, binding and reading
//	errors.go         which errors of PostgreSQL are faults of the machine
//
// A write is a transaction at READ COMMITTED that loads, decides and stores, each in
// one round trip. Unique keys, row locks and the contacts' versions detect when two
// transactions conflict; then one of them runs again. Every key begins with the
// workspace, so Citus can distribute the tables over servers by workspace (see citus.go).
package postgres
