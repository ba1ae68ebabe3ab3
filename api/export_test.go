package api

import (
	"net/http"

	"parley/desk"
	"parley/web"
)

// Routes lists the routes and what they need, for the tests that walk them.
func Routes() map[string]desk.Permission {
	list := map[string]desk.Permission{}
	for _, rt := range new(Server).routes() {
		list[rt.pattern] = rt.needs
	}
	return list
}

// Status is the status of an error type, or 0.
func Status(t desk.ErrorType) int { return web.Status(t) }

// ErrorAnswer returns the header and the body with which an error is answered.
func ErrorAnswer(e *desk.Error) (header http.Header, body []byte) {
	header = http.Header{}
	errorHeaders(header, e)
	return header, errorBody(e, inBody)
}

// Worded is an error's message as a route answers it.
func Worded(pattern string, e *desk.Error) string {
	return e.Worded(place(e.At, inputOf(pattern)), advice)
}

// Canonical returns the canonical form of a JSON text.
func Canonical(text []byte) ([]byte, error) { return canonical(text) }

// Describe returns the description as a server with a public URL serves it.
func Describe(publicURL string) []byte { return describe(publicURL) }
