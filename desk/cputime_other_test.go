//go:build !linux

package desk_test

import "time"

var begun = time.Now()

// threadTime is the time that has passed, where the processor time of a thread is not known.
func threadTime() time.Duration { return time.Since(begun) }
