package desk

import "time"

// A Bucket limits the rate of messages: one place every Interval, and up to Burst
// places at once.
type Bucket struct {
	Name     string
	Interval time.Duration
	Burst    int
}

// LongestBucket is how far in the future a bucket's places may be taken.
const LongestBucket = time.Minute
