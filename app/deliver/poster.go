package deliver

import (
	"context"
	"time"
)

// A Poster posts events to the endpoints of webhooks.
type Poster interface {
	// Post makes one try, and returns within 15 seconds whatever happens.
	Post(ctx context.Context, p Post) Posted
}

// A Post is a request to an endpoint.
type Post struct {
	URL     string
	ID      string // of the event
	Body    []byte
	Secrets [][]byte // sign it, the newest first
	At      time.Time
}

// Posted is what came of a Post.
type Posted struct {
	StatusCode int           // 0: there was no answer
	Error      string        // "" for a success, otherwise an error code of contract-events §3
	Response   string        // the endpoint's answer; "" after a success
	RetryAfter time.Duration // 0: the answer had no such time
	Took       time.Duration
	Err        error // no request was made, for want of something of this machine
}
