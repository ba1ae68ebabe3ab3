package desk

// A Lease says until when one process may work on something, by the database's clock,
// which all nodes share. The zero Lease belongs to no process.
//
// The database's clock can be set. If a stored lease ends later than a new one would, the
// clock was set back after the stored lease was given. Such a lease is void. Otherwise it
// would last longer, by the time that the clock had been ahead.
type Lease Time

// LeaseFor is a lease of this length that begins now.
func LeaseFor(now, length Time) Lease { return Lease(now + length) }

// Void tells whether the lease ends later than a lease of this length that begins now.
func (l Lease) Void(now, length Time) bool { return Time(l) > now+length }

// Seconds returns the number of seconds after which the lease has ended, at least 1.
func (l Lease) Seconds(now Time) int { return max(1, int((Time(l)-now)/1000)+1) }

// Holds tells whether the lease's owner may still work now.
func (l Lease) Holds(now, length Time) bool { return Time(l) >= now && !l.Void(now, length) }
