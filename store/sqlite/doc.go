// Package sqlite keeps parley's data in one SQLite file. It is the store for one
// machine.
//
//	open.go           opening, connections and their pragmas
//	migrate.go        the schema, in migrations/
//	write.go          the one way to write: concurrent changes share a commit
//	queue.go          which changes share one, and how background work gives way to others
//	turn.go           letting another process write between two commits
//	watcher.go        whether others have changed the file
//	checkpoint.go     moving the write-ahead log into the database
//	scrub.go          clearing deleted people's data from the unused part of pages
//	contacts.go       contacts and identities
//	large.go          large values of contacts, in a table of their own
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
//	events.go         events, and the pages of their feed
//	expiry.go         dropping events from the feed
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
//	media.go          files: their records, their content, and which files to fetch
//	pace.go           the limits of providers, as shared buckets
//	tx.go             transactions that the caller composes
//	export.go         reading everything, for parley migrate
//	examine.go        opening a database without changing it, for parley doctor
//	backup.go         copying a database for a backup, and preparing a restored one
//	stmt.go           statements: binding and reading
//	errors.go         which errors of SQLite are faults of the machine
//
// A Store has one writing connection, used by one goroutine at a time, and a few reading
// connections. A commit is durable when it returns: WAL with synchronous=FULL. Any
// number of processes may open the file, so commands work while a server runs.
package sqlite
