package store

import (
	"context"

	"parley/desk"
)

// Clock returns the database's time, and counts its hours.
type Clock interface {
	// Clock returns the database's clock, and its counter of hours. Keys, attempts and
	// early statuses age by the counter, because setting a clock does not change it.
	Clock(ctx context.Context) (now desk.Time, hour int64, err error)

	// RaiseHour raises the counter of hours by one, if it still has the value seen.
	RaiseHour(ctx context.Context, seen int64) error
}
