package store

import (
	"context"

	"parley/desk"
)

// Leases makes sure that only one node at a time runs a task.
type Leases interface {
	// Lease gives a task to the caller for some milliseconds of the database's clock
	// (always the same number for a task). It returns false while another caller has the
	// task.
	Lease(ctx context.Context, ws desk.ID, task string, length desk.Time) (bool, error)
}

// A LeaseRef identifies a task of a workspace.
type LeaseRef struct {
	Workspace desk.ID
	Task      string
}
