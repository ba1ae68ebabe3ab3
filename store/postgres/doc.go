// Package postgres keeps parley's data in one PostgreSQL database: the store for any
// number of machines.
//
//	open.go           opening: the pool and what is set on its connections
//	migrate.go        the schema, in migrations/
//	write.go          the one way to write: transactions, and when they run again
//	contacts.go       contacts and identities
//	settings.go       workspaces, attributes, members, keys
//	channels.go       channels and their templates
//	conversations.go  conversations and messages
//	attempts.go       sends and their keys
//	notices.go        what was heard: notices, early statuses, opt-outs
//	webhooks.go       bodies of webhooks, and of whom they tell
//	pace.go           what holds sends back
//	tx.go             transactions that the caller composes
//	import.go         taking in everything, for parley migrate
//	pipe.go           statements: what shares a round trip, binding and reading
//	errors.go         which errors of PostgreSQL are the machine's
//
// A write is a transaction at READ COMMITTED that loads, decides and stores, each in
// one round trip. Unique keys, row locks and the contacts' versions find out when two
// of them meet: then one of them runs again. Every key leads with the workspace, so that
// the tables can be spread over machines by it.
package postgres
