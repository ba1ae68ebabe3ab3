package desk

// A Lease says until when one process may work on something, by the database's clock,
// which all nodes share. The zero Lease belongs to no process.
//
// The database's clock can be set. If a lease ends later than one that is given now,
// the clock was set back after the lease was given. Such a lease is void; otherwise it
// would hold for as long as the clock had been ahead.
type Lease Time

// LeaseFor is a lease of this length that begins now.
func LeaseFor(now, length Time) Lease { return Lease(now + length) }

// Void tells whether the lease ends later than a lease of this length that begins now.
func (l Lease) Void(now, length Time) bool { return Time(l) > now+length }

// Seconds is in how many seconds the lease will have ended, at least 1.
func (l Lease) Seconds(now Time) int { return max(1, int((Time(l)-now)/1000)+1) }

// Holds tells whether the lease's owner may still work now.
func (l Lease) Holds(now, length Time) bool { return Time(l) >= now && !l.Void(now, length) }
