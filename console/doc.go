// Package console has the pages in which a team works: settings, contacts and the inbox.
// They are rendered on the server. Everything works without the script; app.js keeps
// pages up to date and adds keyboard shortcuts.
//
//	routes.go        the list of pages and actions, with the permission on the line
//	server.go        Server, and a call: one request for a page
//	serve.go         building the Server; a request from its session to its handler
//	page.go          rendering a page, the same for all pages
//	view.go          the data of templates
//	problem.go       the error page, the same for all errors
//	session.go       sessions: the cookie, and when a session is stored again
//	signin.go        signing in and out
//	address.go       the caller's address, for limiting attempts to sign in
//	me.go            the member's own settings: name, look, password
//	settings.go      settings: the workspace, the members, pages that ask before something is destroyed
//	keys.go          settings: the keys
//	attributes.go    settings: the attributes
//	form.go          fields of forms, and the errors beside them
//	words.go         advice, codes and confirmations in the console's own words
//	format.go        times, numbers, phone numbers and initials as people read them
//	text.go          the texts of messages: links, and marks such as those for bold
//	assets.go        the stylesheet and the script, whose parts are in assets/script
//	channels.go      channels: adding them, their health, their settings
//	policy.go        the reply policy: its page, saving a part, removing it
//	policy_form.go   the forms of the reply policy: fields, and reading them
//	policy_words.go  the reply policy in words
//	snippets.go      the saved replies
//	segments.go      the segments
//	conditions.go    the fields of a filter, and a filter in words
//	webhooks.go      webhooks: adding them, their state, changing them
//	deliveries.go    deliveries to webhooks
//	stream.go        the stream that tells the script what has changed
//	live.go          the hub that all streams of a workspace share: it follows the feed
//	home.go          /: the inbox, or the commands to run first
//	inbox.go         the inbox: its views and the list of conversations
//	thread.go        a conversation as its page shows it
//	thread_page.go   reading a conversation for its page
//	conversation.go  the assignee and the status of a conversation
//	beside.go        the person beside a conversation: links, changing one field, the end of the conversation before
//	message.go       the messages of a conversation, as bubbles, and the notes between them
//	media.go         files: how messages show them, and their bytes
//	note.go          the notes of a conversation: adding, deleting
//	composer.go      the form below a conversation: the window, saved replies
//	reply.go         sending a reply, and showing a refusal; marking as read
//	customer.go      writing as the customer of a sandbox
//	upload.go        a form that has a file
//	templates.go     the templates of a channel: state, preview, the sources of their variables
//	send.go          the form that sends a template
//	contacts.go      the list of contacts, and finding some of them
//	export.go        contacts as a file
//	search.go        the search for people, their conversations and pages
//	contact.go       a contact, a new one, deleting one
//	merge.go         merging two contacts, and undoing that
//	conflicts.go     refused writes between contacts, and deciding about them
//	timeline.go      the changes of a contact; all its data as JSON
//	contact_form.go  the fields of a contact in a form
//	imports.go       imports of files: choosing the columns, checking, progress, rejected rows
//	events.go        the log of events, and its part about settings
//	overview.go      the pictures of the last days, and the first steps
//	chart.go         pictures as SVG, with their tables
//	broadcasts.go    broadcasts: the list, the page of one, its people
//	broadcast_audience.go choosing an audience
//	broadcast_form.go   making and changing a broadcast
//	broadcast_people.go adding people, the check, and the start
//	broadcast_acts.go   pausing, resuming, ending, copying and deleting a broadcast, and settling its messages in doubt
//	broadcast_words.go  broadcasts in words
//	sends.go         attempts to send, and settling an attempt that is in doubt
//
// A new page is a line in routes.go, a file, and a template in templates/. Handlers call
// app and render. They contain no rules.
package console
