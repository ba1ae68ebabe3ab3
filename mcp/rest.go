package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// A rest is a client that makes requests to the API within this process.
type rest struct {
	api           http.Handler
	authorization string // the header of the caller
}

// A refusal is an error that the API returned.
type refusal struct {
	status int
	object json.RawMessage // with type, message, and perhaps details
}

func (r *refusal) Error() string { return string(r.object) }

// invalid returns a refusal of an input for which no request is made.
func invalid(format string, args ...any) error {
	text, err := json.Marshal(fmt.Sprintf(format, args...))
	if err != nil {
		return err
	}
	return &refusal{http.StatusBadRequest, append(append([]byte(`{"type":"invalid_request","message":`), text...), '}')}
}

// do makes one request and returns the body of its response, or a refusal. path is
// relative to /v1, and may have a query.
func (a rest) do(ctx context.Context, method, path string, header http.Header, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, "/v1"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		r.Header[name] = values
	}
	r.Header.Set("Authorization", a.authorization)
	to := &answer{status: http.StatusOK, header: http.Header{}}
	a.api.ServeHTTP(to, r)
	if to.status < http.StatusBadRequest {
		return to.body.Bytes(), nil
	}
	var refused struct{ Error json.RawMessage }
	if err := json.Unmarshal(to.body.Bytes(), &refused); err != nil {
		return nil, fmt.Errorf("%s %s answers %d: %w", method, path, to.status, err)
	}
	return nil, &refusal{to.status, refused.Error}
}

// An answer is an http.ResponseWriter that keeps the response of the API.
type answer struct {
	status int
	header http.Header
	body   bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) { a.status = status }

func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }
