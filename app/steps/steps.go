// Package steps has what the work of app's services in the background shares: groups of
// records, panics as errors, and waking.
//
//	jobs.go   jobs of workspaces, so many of each at a time
//	steps.go  all else
package steps

import (
	"context"
	"fmt"
	"runtime/debug"

	"parley/desk"
)

// ForgetAgain is how long the deletion of expired data is not repeated by any process,
// in milliseconds: a little less than the hour after which each process tries.
const ForgetAgain = desk.Time(54 * 60 * 1000)

// Group is how many records one step of the background work processes.
const Group = 500

// InGroups calls step until it processes less than a whole group or fails, or ctx ends.
func InGroups(ctx context.Context, group int, step func(limit int) (n int, err error)) error {
	for ctx.Err() == nil {
		if n, err := step(group); err != nil || n < group {
			return err
		}
	}
	return nil
}

// Caught turns a panic into an error. It is deferred.
func Caught(doing string, err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%s: panic: %v\n%s", doing, p, debug.Stack())
	}
}

// Wake wakes the one who waits for a channel that has room for one element.
func Wake(woken chan<- struct{}) {
	select {
	case woken <- struct{}{}:
	default: // it has been woken already
	}
}
