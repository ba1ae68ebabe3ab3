package stored

import (
	"bytes"
	"cmp"
	"slices"

	"parley/desk"
	"parley/store"
)

// countShares is how many shares the counts of a broadcast have.
const countShares = 16

// A Counted is a change of one of a broadcast's counts.
type Counted struct {
	Share int64
	desk.RowKey
	N int64
}

// CountsOf returns how rows change the counts of their broadcast, sorted by the key of the
// counts, so that two transactions wait for each other instead of deadlocking.
func CountsOf(rows []store.RowChange) (list []Counted) {
	type place struct {
		share  int64
		status desk.RowStatus
		reason desk.RowReason
		code   int64
	}
	at := map[place]int{}
	add := func(id desk.ID, k desk.RowKey, n int64) {
		share := int64(id[len(id)-1] % countShares)
		p := place{share, k.Status, k.Reason, k.Code}
		i, known := at[p]
		if !known {
			i = len(list)
			at[p] = i
			list = append(list, Counted{Share: share, RowKey: k})
		}
		list[i].N += n
	}
	for _, c := range rows {
		for _, k := range c.Was {
			add(c.Row.ID, k, -1)
		}
		for _, k := range c.Row.Keys() {
			add(c.Row.ID, k, 1)
		}
	}
	list = slices.DeleteFunc(list, func(c Counted) bool { return c.N == 0 })
	slices.SortFunc(list, func(a, b Counted) int {
		return cmp.Or(cmp.Compare(a.Share, b.Share), cmp.Compare(a.Status, b.Status), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Code, b.Code))
	})
	return list
}

// CountsWithout returns how the counts change if rows are deleted, in the same order. Each Was
// of the rows is nil.
func CountsWithout(rows []store.RowChange) []Counted {
	counts := CountsOf(rows)
	for i := range counts {
		counts[i].N = -counts[i].N
	}
	return counts
}

// SortRows sorts rows by their ids, for the same reason.
func SortRows(rows []store.RowChange) []store.RowChange {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b store.RowChange) int { return a.Row.ID.Compare(b.Row.ID) })
	return rows
}

// SortHashes sorts hashes and leaves out repeated ones.
func SortHashes(list []store.NumberHash) []store.NumberHash {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b store.NumberHash) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(list)
}

// BodyOf returns what is stored of a broadcast as JSON.
func BodyOf(b *desk.Broadcast) desk.Broadcast {
	body := *b
	body.Counts = nil
	return body
}

// RowKeyOf returns the key of attempts of a broadcast as a row's id; known is false for
// another key.
func RowKeyOf(key string) (row desk.ID, known bool) {
	row = (&desk.Attempt{Key: key}).Row()
	return row, !row.IsZero()
}

// RowsToRead is how many rows a page needs at most.
func RowsToRead(f desk.RowFilter, limit int) int {
	if f.Status != "" || f.Reason != "" || f.Replied != nil {
		return desk.MaxLooked + 1
	}
	return limit + 1
}

// A RowPage is a page of rows that is being read.
type RowPage struct {
	Filter desk.RowFilter
	Size   desk.PageSize
	List   []*desk.BroadcastRow
	Next   *desk.ID

	looked int
	last   desk.ID
}

// Add looks at a row. It returns false at the end of the page.
func (p *RowPage) Add(r *desk.BroadcastRow) bool {
	if p.Next != nil {
		return false
	}
	if p.looked == desk.MaxLooked || p.Filter.Passes(r) && !p.Size.Add(r.ListBytes()) {
		next := p.last
		p.Next = &next
		return false
	}
	p.looked++
	p.last = r.ID
	if p.Filter.Passes(r) {
		p.List = append(p.List, r)
	}
	return true
}
