package store

import (
	"context"

	"parley/desk"
)

// Daily keeps counts of messages by day.
type Daily interface {
	// DailyPlace returns the position up to which a workspace's events are counted, or the
	// zero place if none are.
	DailyPlace(ctx context.Context, ws desk.ID) (desk.EventPlace, error)

	// Daily returns the counts from a day on, sorted by day, kind and key.
	Daily(ctx context.Context, ws desk.ID, from int64) ([]desk.DailyCount, error)
}

// A DailyTx writes the counts of messages by day.
type DailyTx interface {
	// CountDays adds to the counts, and moves the position up to which events are counted.
	// It does nothing if that position is no longer from: another process has counted the
	// events.
	CountDays(from, to desk.EventPlace, counts []desk.DailyCount) error

	// DropDays deletes the counts of the days before the given one.
	DropDays(before int64) error
}
