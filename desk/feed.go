package desk

import "time"

// KeepEvents is how long events stay in the feed, unless the operator sets another time.
const KeepEvents = 30 * 24 * time.Hour

// MaxEventsLooked is how many events are looked at for one page (contract-events §2).
const MaxEventsLooked = 10_000

// Why a page of the feed has expired (contract-events §2).
const (
	ExpiredByRetention = "retention"
	ExpiredByHistory   = "history"
)
