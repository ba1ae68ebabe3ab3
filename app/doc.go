// Package app is what a person or a program can do with parley: one method per
// action. What it needs of a database is package store, of a channel's provider package
// provider.
//
//	app.go            App
//	base.go           what all of app works with
//	ending.go         how a process ends
//	new.go            what App is built from
//	principal.go      principals of the command line; what a principal may change
//	contacts.go       reads and writes of contacts
//	writer.go         the contact writer: concurrent writes share one flush
//	people.go         the people in providers' reports, and their contacts
//	attributes.go     attribute definitions
//	members.go        the list of members
//	channels.go       channels, for the command line
//	simulate.go       messages of customers of simulated channels
//	secrets.go        secrets, encrypted: how, and those of channels
//	accounts.go       whether providers let channels send
//	metrics.go        what /metrics shows of sends and of the database
//	pace.go           the limits of a provider, which all nodes share
//	templates.go      template libraries and hints
//	libraries.go      template libraries by version, and which are stale
//	sync.go           which template libraries are fetched again
//	policy.go         the reply policy: reading and changing it, and hours
//	answer.go         the reply policy at work: who gets a conversation, which automatic replies are due
//	auto_replies.go   sends automatic replies
//	pools.go          what waits for somebody to be eligible, and is assigned then
//	looks.go          which workspaces were looked at in vain
//	snippets.go       saved replies
//	conversations.go  conversations and messages: reading and changing them
//	receive.go        messages of customers: whose they are, what they become
//	notes.go          notes of the team on conversations
//	talk.go           how conversations stand: what is unread, who waits, the inbox
//	window.go         what messages change in how a conversation stands, and in its window
//	marking.go        marking messages as read
//	receipts.go       telling the provider that a message was read
//	receipt_places.go how many receipts are on their way
//	send.go           a send: hold, dispatch, answer, and calls that repeat it
//	bounds.go         the time limits of a send
//	plan.go           the template send: its checks, what it becomes
//	flights.go        calls of one key that come at once
//	reply.go          free messages
//	reply_plan.go     the free message: its checks, what it becomes
//	settle.go         all the ways in which an attempt ends
//	tx.go             transactions, and what runs after them
//	send_events.go    the events of sends, messages and conversations
//	attempts.go       reading attempts
//	release.go        attempts that a person settles, one or many
//	inbound.go        processes inbound items, update by update
//	inbound_due.go    which workspaces have inbound items, and when the first is due
//	readings.go       the content of callbacks, as it was read
//	sweep.go          finds attempts whose process died; deletes what has expired
//	callbacks.go      callbacks of providers, from the request to their effects
//	admin.go          workspaces, members and keys, for the command line
//
// Below it are services of their own, each with its state, which App has as fields: access
// (keys, and how members sign in), feed (the feed of events), deliver (webhooks and their
// deliveries), daily (messages counted by day), media (files), and clock (the counter of
// hours). Cursors (signed places in lists), vault
// (encrypts secrets), and steps (what work in the background shares) are what several
// services need.
//
// An App's methods are safe for concurrent use, and any number of processes may
// share a store. An App keeps in memory only the queue of its own writes, principals
// (they are checked again before they are used), template libraries by version, and the
// sends that are under way.
package app
