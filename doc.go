// Package parley is the map of the house; it holds no code. The rooms, from the
// bottom up:
//
//	desk             the rules, pure: values in, a verdict out
//	app              one method per user action; declares the Store it needs
//	store/sqlite     app's Store on one SQLite file
//	store/storetest  the suite that every store passes
//	api              /v1 in JSON, and its OpenAPI document
//	api/apitest      holds requests and answers to that document, in tests
//	config           the settings, read once
//	cmd/parley       the command line: builds every part and runs it
//	e2e              drives the built binary from outside
//
// Imports point down and never sideways: an edge (a store, a channel, api) knows
// app and desk, and no other edge. arch_test.go holds that, and
// docs/architecture.md says why.
package parley
