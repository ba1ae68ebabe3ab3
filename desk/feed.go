package desk

import "time"

// KeepEvents is how long events stay in the feed, unless the operator sets another time.
const KeepEvents = 30 * 24 * time.Hour

// MaxEventsLooked is how many events are examined at most for one page (contract-events
// §2).
const MaxEventsLooked = 10_000

// How many followers a server, one workspace on it, and one key may have (contract-events
// §2). A follower is a stream of events, or a read that waits for an event.
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
