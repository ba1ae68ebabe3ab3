// Package app is what a person or a program can do with parley: one method per
// action, and what it asks of the world.
//
//	app.go         App and what it is built from
//	ports.go       Store, the database as the app sees it
//	principal.go   who is calling: keys to principals
//	contacts.go    reads and writes of contacts
//	writer.go      the contact writer: concurrent writes become one flush
//	attributes.go  attribute definitions
//	admin.go       workspaces, members and keys, for the command line
//	cursor.go      signed places in a list
//
// An App's methods are safe for concurrent use, and any number of processes may
// share a store: what an App keeps in memory is the queue of its own writes, and
// principals that are checked before anything is done for them.
package app
