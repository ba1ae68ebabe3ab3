package app_test

import (
	"encoding/binary"
	"sync/atomic"
	"time"

	"parley/desk"
)

// A clock is the real clock, which tests can set ahead. Its ids contain its time.
type clock struct {
	ahead, server, up, made atomic.Int64
	database                func(ahead time.Duration) // sets a database's own clock; nil: the database has none
}

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// atServer returns the time of the servers' clock. It may differ from the database's clock.
func (c *clock) atServer() time.Time { return c.now().Add(time.Duration(c.server.Load())) }

// advance sets the clock ahead. The database's clock comes first: what a process notes once its own
// clock has leapt must not have the time from before.
func (c *clock) advance(d time.Duration) {
	if c.database != nil {
		c.database(time.Duration(c.ahead.Load()) + d)
	}
	c.ahead.Add(int64(d))
}

// uptime returns the time of the monotonic clock.
func (c *clock) uptime() time.Duration { return time.Since(began) + time.Duration(c.up.Load()) }

var began = time.Now()

// newID makes an id like a UUIDv7: it has the time in milliseconds, then a counter.
func (c *clock) newID() (id desk.ID) {
	binary.BigEndian.PutUint64(id[:], uint64(desk.TimeOf(c.now()))<<16)
	binary.BigEndian.PutUint64(id[8:], uint64(c.made.Add(1)))
	id[6], id[8] = 0x70, 0x80
	return id
}

// random fills b with different bytes at each call, so that all keys differ.
func (c *clock) random(b []byte) {
	for i := range b {
		n := uint64(c.made.Add(1)) * 0x9E3779B97F4A7C15
		n = (n ^ n>>30) * 0xBF58476D1CE4E5B9
		b[i] = byte(n >> 56)
	}
}
