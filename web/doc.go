// Package web is what every room that speaks HTTP shares: it listens, wraps each
// handler, limits the time and memory of clients, and drains.
//
//	server.go   Server: routes, and what happens before and after each handler
//	response.go Response: the answer to one request, whole or as a stream
//	serve.go    listening and draining, and the limits of time
//	conn.go     a connection that ends when a client stops reading
//	certificate.go  the certificate of TLS, which may be replaced
//	unsent_unix.go   how much the system keeps of an answer that nobody reads
//	unsent_other.go  the same, where that can't be limited
//	status.go   the status of each type of error
//	body.go     reading a body
//	room.go     the memory of a large answer, which is taken before it is made
//	turn.go     how many calls of a workspace are under way
//	upload.go   bodies that are read as they come
//	file.go     answering with the bytes of a file
//	budget.go   the memory that all large bodies in flight share
//	metrics.go  counters of requests, and the registry for all others
//	rate.go     requests a second, by key
//	health.go   /healthz, /readyz and /metrics
//
// A room registers its handlers with Handle. A handler answers or returns an error,
// and the room's Fail turns the error into an answer. A room never sees the listener.
package web
