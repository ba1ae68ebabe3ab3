package store

import (
	"context"
	"time"

	"parley/desk"
)

// Pace keeps the places within a provider's limits, which all nodes share.
type Pace interface {
	// Pace takes one place in each of the buckets, if no bucket makes the caller wait
	// longer than most, and returns how long to wait before going on. Otherwise it takes
	// no place, returns false, and returns how long it may take until there is one. It
	// uses the database's clock. All callers of a bucket use the same most, so places
	// further ahead than most are invalid and are ignored.
	Pace(ctx context.Context, ws desk.ID, buckets []desk.Bucket, most time.Duration) (wait time.Duration, ok bool, err error)

	// ForgetPace deletes the buckets of a workspace whose places have all passed, or are
	// further ahead than longest, which is impossible.
	ForgetPace(ctx context.Context, ws desk.ID, longest time.Duration) error
}
