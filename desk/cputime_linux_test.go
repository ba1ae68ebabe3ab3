package desk_test

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is the processor time of the caller's thread. On a busy machine, a clock would
// also count the work of other threads.
func threadTime() time.Duration {
	var used unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Nano())
}
