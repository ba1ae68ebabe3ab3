// Package desk holds parley's rules, and nothing else: functions from values to
// verdicts. It does no I/O, reads no clock and draws no random numbers. So every rule
// can be tested in a table, and every caller (a request, a batch row, a command) uses
// the same rule.
//
//	blank.go         whether a text has visible characters
//	normal.go        the normal forms of e-mails, ids, names and handles
//	phone.go         how a phone number is read
//	digits.go        digits, and the number of digits of a phone number
//	canonical.go     the canonical form of each kind of handle, used for matching
//	variants.go      numbers that have two spellings in three countries
//	decimal.go       exact numbers
//	identity.go      identities, and which of them mean the same
//	attribute.go     workspace attributes: definitions and the values they take
//	values.go        the attribute values a contact holds
//	contact.go       the contact record, and what a write may change
//	daily.go         messages counted by day
//	access.go        how long links and sessions last
//	feed.go          the limits of the feed of events; why a cursor has expired
//	list.go          pages, filters and positions of lists
//	op.go            operations, the form of every change of a contact; look-ups
//	conflict.go      conflicts between contacts, and decisions about them
//	merge.go         what becomes of two contacts that are merged
//	merge_record.go  the record of a merge
//	unmerge.go       undoing a merge
//	book.go          Book.Apply: matching, conflicts, owners; all contact writes use it
//	brief.go         which contacts a Book may hold without their further identities
//	batch.go         limits and counts of a batch
//	channel.go       channels, and which one a caller means
//	template.go      message templates: reading the provider's form, what can't be sent
//	variables.go     a template's variables: checking values and filling them in
//	need.go          what a template needs besides values of variables: a file, links
//	template_look.go what else a template shows: footer, buttons, samples
//	segment.go       filters with names
//	snippet.go       saved replies, and filling them in
//	hint.go          hints: which value is offered for a variable
//	guess.go         guesses the binding of a variable from its name
//	note.go          notes of the team on a conversation
//	author.go        who wrote an outbound message or a note
//	conversation.go  conversations: statuses, lists, what is unread, who waits
//	message.go       messages: authors, delivery statuses
//	kind.go          the kinds of messages
//	window.go        until when a person can be answered freely
//	media.go         files: kinds, names, which can be sent
//	sniff.go         the type of a file, by its content
//	reply.go         a free message: its rules, its part of a plan
//	history.go       the history of a contact
//	broadcast.go     broadcasts: what they say, their states, limits
//	broadcast_row.go their rows: a row's turn, what became of it
//	row_status.go    what can become of a row
//	broadcast_reply.go what their people did after the message
//	broadcast_counts.go how rows are counted
//	audience.go      who their people are, if not rows that callers add
//	import.go        imports of files: limits, how far they are
//	upload.go        files that are imported in the console: states, limits
//	export.go        exports: a limit, deleted contacts
//	search.go        which contacts a text finds: terms, the text's parts
//	filter.go        which contacts fit conditions: a segment, an audience
//	send.go          a send: request, plan, attempt and outcome
//	policy.go        the reply policy, as it is configured
//	hours.go         when a team answers, by the wall clock of a time zone
//	zones.go         the time zones
//	answer.go        what the reply policy does with a message
//	inbound.go       reports of a provider, until they are processed
//	pace.go          buckets, which limit the rate of messages
//	lease.go         leases: until when one process may work on something
//	consent.go       stop and start words
//	settings.go      the whole configuration of a workspace
//	workspace.go     workspaces, members, permissions
//	reference.go     how callers name a member
//	principal.go     who is calling, and what they may do
//	password.go      which passwords members may have
//	change.go        what an edit of the configuration changes, and its events
//	event.go         events: types, authors, positions
//	webhook.go       webhooks: endpoints of a workspace that get its events
//	delivery.go      deliveries to webhooks: schedules, failing endpoints, when to give up
//	key.go           API keys: the record, the text
//	error.go         the one error type
//	id.go            ids of records
//	time.go          moments
//	value.go         absent, null or a value; attribute values as they were sent
//	json.go          texts as JSON
//	nearest.go       the known name nearest to a misspelt one
//	advice.go        advice on errors; each interface has its own words for it
//
// Values are safe to share between goroutines once built; a Book is not.
package desk
