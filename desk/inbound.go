package desk

import "time"

// KeepCallback is how long the body of a provider's callback is kept.
const KeepCallback = 7 * 24 * time.Hour

// aheadOfReports is how much earlier than it came a callback is due that does not only report about
// messages of the business. So it is processed before those that do: while a broadcast sends as fast
// as it can, these wait by the thousand, and a person's answer must not wait behind them. One that
// may need such a report goes back to its place.
const aheadOfReports = 24 * time.Hour

// An InboundItem is one report of a provider on a channel, kept until it is processed.
type InboundItem struct {
	Channel    ID
	ID         ID
	Due        Time   // when to process it, by the database's clock; the oldest first
	Body       []byte // in a form that the provider's Read understands
	ReceivedAt Time   // of the callback, whose body is stored separately and kept longer; 0: Body is complete
	Skip       int    // how many updates of the item are processed already
}

// Came notes that an item is a callback that comes now, by the database's clock, and whether it
// only reports about messages of the business. It is due.
func (n *InboundItem) Came(now Time, reports bool) {
	n.ReceivedAt, n.Due = now, now
	if !reports {
		n.Due -= Time(aheadOfReports.Milliseconds())
	}
}

// A HeldCallback is a callback whose body is still stored.
type HeldCallback struct {
	ReceivedAt  Time
	ID, Channel ID
	Bytes       int // of the body
}
