package desk

import "time"

// KeepCallback is how long the body of a provider's callback is kept.
const KeepCallback = 7 * 24 * time.Hour

// An InboundItem is one report of a provider on a channel, kept until it is processed.
type InboundItem struct {
	Channel    ID
	ID         ID
	Due        Time   // when to process it, by the database's clock
	Body       []byte // in a form that the provider's Read understands
	ReceivedAt Time   // of the callback, whose body is stored separately and kept longer; 0: Body is complete
	Skip       int    // how many updates of the item are processed already
}

// A HeldCallback is a callback whose body is still stored.
type HeldCallback struct {
	ReceivedAt  Time
	ID, Channel ID
	Bytes       int // of the body
}
