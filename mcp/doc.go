// Package mcp lets assistants use parley, by the Model Context Protocol.
//
//	server.go   Server: lists the tools of a key, and calls them
//	tools.go    the tools, and how a call of each becomes requests of the API
//	schema.go   the inputs of the tools, from the API description
//	pipe.go     the two streams of stdio
//	rest.go     requests of the API inside this process
//
// A tool has no rules of its own. Its call becomes a request of the API with the
// caller's key, so permissions, checks, errors and results are those of the API. The
// package knows only the API's handler and its description.
package mcp
