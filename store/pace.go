package store

import (
	"context"
	"time"

	"parley/desk"
)

// Pace counts the places that a provider's limits allow. All nodes share these places.
type Pace interface {
	// Pace takes one place in each of the buckets, and returns how long the caller must
	// wait before it goes on. If this wait would be longer than most, Pace takes no place.
	// It then returns false, and how long it may take until there is a place. It uses the
	// database's clock. All callers of a bucket use the same most, so places further ahead
	// than most are invalid and are ignored.
	Pace(ctx context.Context, ws desk.ID, buckets []desk.Bucket, most time.Duration) (wait time.Duration, ok bool, err error)

	// ForgetPace deletes the buckets of a workspace whose places are all in the past. It
	// also deletes buckets with places further ahead than longest, because such places are
	// impossible.
	ForgetPace(ctx context.Context, ws desk.ID, longest time.Duration) error
}
