//go:build !unix

package app_test

import "time"

// cpu is not known here.
func cpu() time.Duration { return 0 }
