// Package readings remembers the parsed content of callbacks from when they come until they are
// processed, so that each is read once, and not while others wait for a transaction.
package readings

import (
	"sync"

	"parley/desk"
	"parley/provider"
)

// A Reading is the parsed content of a callback.
type Reading struct {
	Told   []provider.Update
	People []desk.Identity
	Err    error // why the callback can't be read

	bytes int // what it counts
}

// StatusesOnly tells whether a callback only reports about messages of the business.
func (r *Reading) StatusesOnly() bool {
	for _, h := range r.Told {
		if h.Status == nil {
			return false
		}
	}
	return len(r.Told) > 0
}

// mostFirst is how many updates a callback has at most that goes before others.
const mostFirst = 10

// messages finds stored messages: a store.Tx.
type messages interface {
	MessageBy(channel desk.ID, externalID string) (*desk.Message, error)
}

// InOrder returns the item of a callback that must not go before reports that came earlier (see
// desk.InboundItem.Came), due when it came. It returns nil if it may, or does not: if it is news of
// the account, or what somebody with a number writes, and names no message, or a stored one. For a
// report can teach the id of a person whose number is hidden, or prove that a message was sent.
func (r *Reading) InOrder(tx messages, n desk.InboundItem) (*desk.InboundItem, error) {
	if n.Due >= n.ReceivedAt {
		return nil, nil
	}
	n.Due, n.Body = n.ReceivedAt, nil
	if len(r.Told) > mostFirst {
		return &n, nil
	}
	for _, h := range r.Told {
		m := h.Message
		switch {
		case h.Template != nil || h.Account != nil:
		case m == nil || m.Number == "" || m.Echo:
			return &n, nil
		case m.ReplyTo != "":
			if named, err := tx.MessageBy(n.Channel, m.ReplyTo); named == nil || err != nil {
				return &n, err
			}
		}
	}
	return nil, nil
}

// most limits the bodies whose readings are kept, in bytes; a longer one is kept alone. least is
// what a short body counts.
const (
	most  = 4 << 20
	least = 1 << 10
)

// A Cache has readings of callbacks that are not processed yet. It may forget any of them: a
// callback can always be read again. Its methods are safe for concurrent use.
type Cache struct {
	mu    sync.Mutex
	byID  map[desk.ID]*Reading
	bytes int
}

// Get returns the reading of a callback, or nil.
func (c *Cache) Get(id desk.ID) *Reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byID[id]
}

// Put remembers the reading of a callback with a body of so many bytes. If there is no room, all
// others are forgotten.
func (c *Cache) Put(id desk.ID, r *Reading, body int) {
	c.Drop(id)
	r.bytes = max(body, least)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byID == nil || c.bytes+r.bytes > most {
		c.byID, c.bytes = map[desk.ID]*Reading{}, 0
	}
	c.byID[id] = r
	c.bytes += r.bytes
}

// Drop forgets the reading of a callback.
func (c *Cache) Drop(id desk.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.byID[id]; r != nil {
		c.bytes -= r.bytes
		delete(c.byID, id)
	}
}
