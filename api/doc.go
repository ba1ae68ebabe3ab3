// Package api is parley's HTTP side: /v1 in JSON, and the few pages beside it.
//
//	server.go         Server: one request from its key to its answer
//	routes.go         the list of routes, with the permission on the line
//	status.go         the map from error type to status, and error bodies
//	words.go          how errors name places of a request and calls
//	decode.go         the strict JSON reader: what a body may be
//	names.go          duplicate names in an object
//	query.go          query parameters and paths
//	render.go         records to JSON
//	export.go         records as lines of an export
//	contacts.go       contacts: reading requests, answering
//	history.go        the history of a contact
//	person.go         all that is stored about a contact
//	batch.go          POST /contacts/batch
//	attributes.go     attributes
//	members.go        members
//	channels.go       channels
//	conversations.go  conversations and their messages
//	talk.go           the state of conversations, marking them as read, the inbox
//	notes.go          notes on conversations
//	events.go         GET /events, as pages and as a stream; GET /me
//	media.go          files: uploads, records, content
//	send.go           POST /conversations/outbound
//	conflicts.go      refused writes between contacts, and deciding about them
//	merges.go         merging contacts, and undoing that
//	broadcasts.go     broadcasts, their rows
//	audience.go       who the people of a broadcast are
//	attempts.go       attempts to send, and releasing those in doubt
//	canonical.go      the canonical form of a JSON value, to compare bodies
//	templates.go      GET /templates: request and answer
//	form.go           templates as JSON, without the values of hints
//	policy.go         the reply policy
//	snippets.go       saved replies
//	segments.go       segments, reading filters
//	webhooks.go       webhooks: reading requests, answering
//	deliveries.go     what webhooks have delivered; ping, replay, redeliver
//	callbacks.go      what providers call: the handshake, and callbacks
//	metrics.go        the metrics that are not about HTTP
//	mcp.go            POST /mcp: key, origin and body of assistants' calls
//	pages.go          /openapi.json and /docs
//
// The API description is openapi.json; a test compares it with the routes. Handlers
// decode, call app, and render; they decide nothing.
package api
