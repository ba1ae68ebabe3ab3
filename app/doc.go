// Package app carries out the actions of people and programs: one method per action. It
// uses a database through the interfaces of package store, and a channel's provider through
// those of package provider.
//
//	app.go            App
//	base.go           the parts that all of app uses
//	ending.go         how a process ends
//	new.go            the dependencies of App, and how it is built
//	principal.go      principals of the command line; edits of the configuration
//	contacts.go       reads and writes of contacts
//	writer.go         the contact writer: concurrent writes share one flush
//	people.go         the people in providers' reports, and their contacts
//	erase.go          deleted contacts that a restore has brought back
//	attributes.go     attribute definitions
//	members.go        the list of members
//	channels.go       channels, for the command line
//	simulate.go       messages of customers of simulated channels
//	secrets.go        secrets, encrypted: how, and those of channels
//	accounts.go       whether providers let channels send
//	metrics.go        the metrics of sends and of the database
//	pace.go           the limits of a provider, which all nodes share
//	templates.go      template libraries and hints
//	libraries.go      template libraries by version, and which are stale
//	sync.go           which template libraries are fetched again
//	policy.go         the reply policy: reading and changing it, and hours
//	answer.go         the reply policy at work: who gets a conversation, which automatic replies are due
//	auto_replies.go   sends automatic replies
//	pools.go          assigns waiting conversations once a member is eligible
//	looks.go          which workspaces need no look, because no member was eligible
//	snippets.go       saved replies
//	conversations.go  conversations and messages: reading and changing them
//	receive.go        inbound messages: finding the contact and the conversation, storing
//	notes.go          notes of the team on conversations
//	talk.go           the state of conversations: unread messages, waiting people; the inbox
//	window.go         how messages change the state of a conversation, and its window
//	marking.go        marking messages as read
//	receipts.go       telling the provider that a message was read
//	receipt_places.go how many receipts are on their way
//	send.go           a send: hold, dispatch, answer, and calls that repeat it
//	bounds.go         the time limits of a send
//	plan.go           the template send: its checks, the planned attempt
//	flights.go        attempts that have no answer yet
//	reply.go          free messages
//	reply_plan.go     the free message: its checks, the planned attempt, the message
//	settle.go         all the ways in which an attempt ends
//	tx.go             transactions, and what runs after them
//	send_events.go    the events of sends, messages and conversations
//	broadcasts.go     the send machine as broadcasts use it
//	attempts.go       reading attempts
//	release.go        attempts that a person settles, one or many
//	inbound.go        processes inbound items, update by update
//	inbound_due.go    which workspaces have inbound items, and when the first is due
//	old_messages.go   deletes old messages and notes
//	sweep.go          finds attempts whose process died; deletes what has expired
//	callbacks.go      callbacks of providers, from the request to their effects
//	admin.go          workspaces, members and keys, for the command line
//
// The packages below app are services, each with its own state, which App has as fields:
// access (keys, and how members sign in), feed (the feed of events), deliver (webhooks and
// their deliveries), daily (messages counted by day), media (files), and clock (the counter
// of hours). Several services use cursors (signed positions in lists), vault (encrypts
// secrets), and steps (helpers of background work). holds lets one call at a time work with an
// Idempotency-Key, and readings remembers callbacks as they were
// read.
//
// An App's methods are safe for concurrent use, and any number of processes may share a
// store. An App keeps in memory only queues of its own work, sends under way, and caches
// whose entries are checked before use, such as principals and template libraries by
// version.
package app
