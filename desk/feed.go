package desk

import "time"

// KeepEvents is how long events stay in the feed, unless the operator sets another time.
const KeepEvents = 30 * 24 * time.Hour

// MaxEventsLooked is how many events are looked at for one page (contract-events §2).
const MaxEventsLooked = 10_000

// The greatest numbers of followers of a server (streams of events, and reads that wait for
// one), of one workspace there, and of one key (contract-events §2).
const (
	MaxFollowers          = 1024
	MaxWorkspaceFollowers = MaxFollowers / 2
	MaxKeyFollowers       = 16
)

// Why a page of the feed has expired (contract-events §2).
const (
	ExpiredByRetention = "retention"
	ExpiredByHistory   = "history"
)
