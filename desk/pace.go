package desk

import "time"

// A Bucket limits the rate of messages: one place every Interval, and up to Burst
// places at once.
type Bucket struct {
	Name     string
	Person   bool // it limits messages to one person
	Interval time.Duration
	Burst    int
}

// LongestBucket limits how far in the future a place of a bucket can be taken.
const LongestBucket = time.Minute
