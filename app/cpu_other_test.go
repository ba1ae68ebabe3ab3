//go:build !unix

package app_test

import "time"

// cpu returns 0, because the time is not known on this system.
func cpu() time.Duration { return 0 }
