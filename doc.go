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
//	work                   the schedules of the background work
//	config                 the settings, read once
//	cmd/parley             the command line: builds every part and runs it
//	e2e                    tests the built binary from outside
//
// Imports point down and never sideways: an edge (sqlite, whatsapp, api) knows what is
// below it, and no other edge. arch_test.go checks that, and
// docs/architecture.md says why.
package parley
