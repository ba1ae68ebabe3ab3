//go:build !unix

package storetest

import "time"

// cpu is not known here.
func cpu() time.Duration { return 0 }
