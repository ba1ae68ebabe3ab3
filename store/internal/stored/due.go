package stored

import (
	"time"

	"parley/desk"
)

// A Due collects the due inbound items of a workspace.
type Due struct {
	List  []desk.InboundItem
	Limit int

	more bool
	next desk.Time // how long to wait for the next item, if more is true
}

// Add adds the next item. now is the time of the database's clock, or 0 if the item's due
// time is impossibly late; then the item is due.
func (d *Due) Add(n desk.InboundItem, now desk.Time) {
	switch {
	case (now == 0 || n.Due <= now) && len(d.List) < d.Limit:
		d.List = append(d.List, n)
	case now == 0 || n.Due <= now:
		d.more, d.next = true, 0
	case !d.more:
		d.more, d.next = true, n.Due-now
	}
}

// Next returns how long to wait for the first item that is not in the list. It returns
// less than 0 if there is no such item.
func (d *Due) Next() time.Duration {
	if !d.more {
		return -1
	}
	return time.Duration(d.next) * time.Millisecond
}
