package desk

import "time"

// A Bucket limits the rate of messages: one place every Interval, and up to Burst
// places at once.
type Bucket struct {
	Name     string
	Interval time.Duration
	Burst    int
}

// LongestBucket is how far ahead the places of a bucket may be.
const LongestBucket = time.Minute
