// Package store declares the database that app needs: an interface for each topic,
// beside the records that only app and the stores know. It holds neither rules nor SQL.
//
//	store.go          Store and Tx, which have all topics; errors of any method
//	settings.go       workspaces and their configuration
//	metrics.go        the values of /metrics
//	contacts.go       contacts, loaded into a desk.Book
//	conversations.go  conversations, messages, notes, windows
//	templates.go      copies of template libraries
//	snippets.go       saved replies
//	segments.go       filters with names
//	attempts.go       attempts and the keys that they hold
//	optouts.go        marketing choices, by hashes of numbers
//	inbound.go        inbound items, callbacks, early statuses
//	policy.go         work that the reply policy has left for later
//	events.go         the feed of events
//	webhooks.go       states of webhooks
//	deliveries.go     deliveries to webhooks, and the leases of the processes that make them
//	access.go         sessions, links, passwords
//	media.go          files
//	daily.go          messages counted by day
//	merges.go         contacts that were merged into others
//	conflicts.go      refused writes between contacts
//	imports.go        how far imports of files are
//	exports.go        all records, page by page
//	search.go         the terms by which contacts are found, and their history
//	examine.go        what parley doctor asks
//	uploads.go        files that are imported in the console, and their rejected rows
//	background.go     marks for work for which nobody waits
//	broadcasts.go     broadcasts and their rows
//	pace.go           places within a provider's limits
//	leases.go         which node runs a task
//	clock.go          the database's clock, and its counter of hours
//
// Packages sqlite and postgres implement it, storetest has the tests that both must
// pass, and internal/stored has the Go code that both share.
package store
