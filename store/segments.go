package store

import (
	"context"

	"parley/desk"
)

// Segments keeps segments.
type Segments interface {
	// Segments lists the segments of a workspace by key. Segment returns one, or nil.
	Segments(ctx context.Context, ws desk.ID) ([]desk.Segment, error)
	Segment(ctx context.Context, ws desk.ID, key string) (*desk.Segment, error)
}

// A SegmentTx reads and writes segments.
type SegmentTx interface {
	// Segments lists the segments of the workspace by key. Until this transaction ends, other
	// transactions that call Segments for the workspace wait.
	Segments() ([]desk.Segment, error)
	PutSegment(desk.Segment) error
	DropSegment(key string) error
}
