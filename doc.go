// Package parley holds no code; it lists the rooms (packages), from the bottom up:
//
//	desk                   the rules, pure: values in, a verdict out
//	store                  what app needs of a database
//	provider               what app needs of a channel's provider
//	app                    one method per user action; below it, services with state of their own
//	store/sqlite           the Store on one SQLite file
//	store/postgres         the Store on one PostgreSQL database
//	store/internal/stored  what both stores do in Go, not in SQL
//	store/storetest        the tests that every store must pass
//	sandbox                a simulated provider
//	whatsapp               the WhatsApp Cloud API
//	web                    what every room that speaks HTTP shares
//	api                    /v1 in JSON, and its OpenAPI document
//	api/apitest            checks requests and answers against that document, in tests
//	console                the pages in which a team works
//	mcp                    tools of assistants
//	poster                 requests to webhook endpoints
//	work                   the schedules of the background work
//	logs                   keeps the log short
//	config                 the settings, read once
//	cmd/parley             the command line: builds every part and runs it
//	e2e                    tests the built binary from outside
//
// Imports point down and never sideways: an edge (sqlite, whatsapp, api) knows what is
// below it, and no other edge. arch_test.go checks that. docs/architecture.md lists the
// files of each room, and says where to change what.
package parley
