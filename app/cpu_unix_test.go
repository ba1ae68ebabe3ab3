//go:build unix

package app_test

import (
	"syscall"
	"time"
)

// cpu returns how long this process has used the processor.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
