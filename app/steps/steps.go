// Package steps has helpers for the background work of app's services: groups of records,
// panics as errors, and waking.
//
//	jobs.go   jobs of workspaces, with a limit for each workspace
//	turns.go  what each workspace does once at a time
//	steps.go  everything else
package steps

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"parley/desk"
	"parley/store"
)

// ForgetAgain is the least time between two deletions of expired data by any process, in
// milliseconds: a little less than the hour after which each process tries.
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

// abreast is how many steps Abreast runs at the same time. The round trips of 10,000
// workspaces to a far database would take hours one after the other.
const abreast = 4

// Abreast calls step for each element of a list of workspaces, for a few at the same time. It
// goes on after an error, but not after the end of ctx, and returns all errors except that a
// workspace was deleted meanwhile.
func Abreast[T any](ctx context.Context, list []T, step func(T) error) error {
	var mu sync.Mutex
	var failed []error
	var all sync.WaitGroup
	places := make(chan struct{}, abreast)
	for _, element := range list {
		places <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		all.Go(func() {
			defer func() { <-places }()
			if err := step(element); err != nil && !errors.Is(err, store.ErrNoWorkspace) {
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, err)
			}
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

// Caught turns a panic into an error. It must be deferred.
func Caught(doing string, err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%s: panic: %v\n%s", doing, p, debug.Stack())
	}
}

// Wake wakes the reader of a channel that has room for one element.
func Wake(woken chan<- struct{}) {
	select {
	case woken <- struct{}{}:
	default: // the reader has been woken already
	}
}
