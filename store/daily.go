package store

import (
	"context"

	"parley/desk"
)

// Daily keeps counts of messages by day.
type Daily interface {
	// DailyPlace returns the position up to which a workspace's events are counted, or the
	// zero place if no events are counted yet.
	DailyPlace(ctx context.Context, ws desk.ID) (desk.EventPlace, error)

	// Daily returns the counts of a day and of all later days, sorted by day, kind and key.
	Daily(ctx context.Context, ws desk.ID, from int64) ([]desk.DailyCount, error)
}

// A DailyTx writes the counts of messages by day.
type DailyTx interface {
	// CountDays adds to the counts, and moves the position up to which events are counted:
	// it was from, and it becomes to. If the stored position is not equal to from, another
	// process has counted the events. Then CountDays does nothing.
	CountDays(from, to desk.EventPlace, counts []desk.DailyCount) error

	// DropDays deletes the counts of the days before the given one.
	DropDays(before int64) error
}
