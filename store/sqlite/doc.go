// Package sqlite keeps parley's data in one SQLite file: the store for one
// machine.
//
//	open.go           opening, connections and their pragmas
//	migrate.go        the schema, in migrations/
//	write.go          the one way to write: concurrent changes share a commit
//	turn.go           letting another process in between two commits
//	checkpoint.go     moving the write-ahead log into the database
//	contacts.go       contacts and identities
//	settings.go       workspaces, attributes, members, keys
//	channels.go       channels and their templates
//	conversations.go  conversations and messages
//	attempts.go       sends and their keys
//	notices.go        what was heard: notices, early statuses, opt-outs
//	webhooks.go       bodies of webhooks, and of whom they tell
//	pace.go           what holds sends back
//	tx.go             transactions that the caller composes
//	export.go         reading everything, for parley migrate
//	stmt.go           statements: binding and reading
//	errors.go         which errors of SQLite are the machine's
//
// A Store holds one writing connection, used by one goroutine at a time, and a
// few reading ones. A commit is durable when it returns: WAL with
// synchronous=FULL. Any number of processes may open the file; commands work
// beside a server.
package sqlite
