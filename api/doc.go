// Package api is parley's HTTP side: /v1 in JSON, and the few pages beside it.
//
//	server.go         Server: one request from first byte to answer
//	routes.go         the list of routes, with the permission on the line
//	status.go         the map from error type to status, and error bodies
//	decode.go         the strict JSON reader: what a body may be
//	query.go          query parameters and paths
//	render.go         records to JSON
//	contacts.go       contacts: reading requests, answering
//	batch.go          POST /contacts/batch
//	attributes.go     attributes
//	members.go        members
//	channels.go       channels
//	conversations.go  conversations and their messages
//	send.go           POST /conversations/outbound
//	canonical.go      the one form of a JSON value, by which bodies are compared
//	templates.go      GET /templates: what is asked, and answered
//	form.go           templates as they are answered, ready but for the hints' values
//	pages.go          /openapi.json, /docs, /metrics, health, and /
//	serve.go          listening and draining
//
// The API description, openapi.json, stands beside the routes; a test holds one to
// the other. Handlers decode, call app, and render; they decide nothing.
package api
