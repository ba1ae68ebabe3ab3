package store

import (
	"context"
	"time"

	"parley/desk"
)

// Pace keeps the places within a provider's limits, which all nodes share.
type Pace interface {
	// Pace takes one place in each of the buckets, if none of them makes the caller
	// wait longer than most, and returns how long to wait before going on. Otherwise it
	// takes none, and returns false and how long it may take until there is a place. It
	// uses the database's clock. most is the same for all callers of a bucket, so
	// places further ahead than that are void.
	Pace(ctx context.Context, ws desk.ID, buckets []desk.Bucket, most time.Duration) (wait time.Duration, ok bool, err error)

	// ForgetPace deletes the buckets of a workspace whose places have all passed, or
	// are further ahead than they can be.
	ForgetPace(ctx context.Context, ws desk.ID, longest time.Duration) error
}
