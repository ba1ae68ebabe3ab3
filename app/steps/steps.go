// Package steps has what the work of app's services in the background shares: groups of
// records, panics as errors, and waking.
package steps

import (
	"context"
	"fmt"
	"runtime/debug"
)

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
