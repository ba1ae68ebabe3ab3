package store

import (
	"context"

	"parley/desk"
)

// Clock returns the database's time, and counts its hours.
type Clock interface {
	// Clock returns the time of the database's clock, and the database's counter of hours.
	// The ages of keys, attempts and early statuses are measured by the counter, because
	// the counter does not change when the clock is set.
	Clock(ctx context.Context) (now desk.Time, hour int64, err error)

	// RaiseHour adds one to the counter of hours, if the counter is still equal to seen.
	RaiseHour(ctx context.Context, seen int64) error
}
