// Package app is what a person or a program can do with parley: one method per
// action, and what it asks of the world.
//
//	app.go            App and what it is built from
//	ports.go          Store, Tx and Provider: the world as the app sees it
//	principal.go      who is calling: keys to principals
//	contacts.go       reads and writes of contacts
//	writer.go         the contact writer: concurrent writes become one flush
//	attributes.go     attribute definitions
//	channels.go       channels, for the command line
//	templates.go      template libraries and hints
//	conversations.go  conversations, messages, and what people write to us
//	send.go           the template send: checks, claim, dispatch, answer
//	settle.go         how an attempt ends, whoever learns of it
//	notices.go        what providers say later, and other background work
//	admin.go          workspaces, members and keys, for the command line
//	cursor.go         signed places in a list
//
// An App's methods are safe for concurrent use, and any number of processes may
// share a store: what an App keeps in memory is the queue of its own writes,
// principals that are checked before anything is done for them, template libraries by
// version, and the sends that are under way.
package app
