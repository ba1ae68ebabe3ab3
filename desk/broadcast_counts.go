package desk

import (
	"cmp"
	"slices"
	"strings"
)

// BroadcastCounts are the numbers of a broadcast's rows.
type BroadcastCounts struct {
	ByStatus map[RowStatus]int64
	Skips    map[RowReason]int64
	Failures []FailureCount // the most frequent first
	Choices  []ChoiceCount  // the most frequent first
	Replied  int64
	OptedOut int64
}

// A FailureCount is how many rows failed with a code of the provider.
type FailureCount struct {
	Code  int
	Title string
	N     int64
}

// A ChoiceCount is how many people tapped a button.
type ChoiceCount struct {
	Title string
	N     int64
}

// MaxFailureCounts is how many failures are listed, and how many choices.
const MaxFailureCounts = 10

// Total is the number of rows.
func (c *BroadcastCounts) Total() (n int64) {
	for _, count := range c.ByStatus {
		n += count
	}
	return n
}

// A RowKey names one of the counts of a broadcast.
type RowKey struct {
	Status RowStatus
	Reason RowReason
	Code   int64
	Title  string
}

// The counts of what people did have keys with these words in the place of a status. No
// status has one of them.
const (
	countReplied  RowStatus = "replied"
	countOptedOut RowStatus = "opted_out"
	countChoice   RowStatus = "choice" // the reason is the title of the button
)

// Keys are the keys of all counts that the row is part of.
func (r *BroadcastRow) Keys() []RowKey {
	keys := []RowKey{r.outcome()}
	reply := &r.Data.Reply
	if reply.At > 0 {
		keys = append(keys, RowKey{Status: countReplied})
	}
	if reply.OptedOut {
		keys = append(keys, RowKey{Status: countOptedOut})
	}
	if reply.ChosenAt > 0 {
		keys = append(keys, RowKey{Status: countChoice, Reason: RowReason(reply.Choice)})
	}
	return keys
}

// outcome is the key of the count by status.
func (r *BroadcastRow) outcome() RowKey {
	k := RowKey{Status: r.Status, Reason: r.Reason}
	if r.Failure != nil && (r.Status == RowFailed || r.Status == RowRefused) {
		k.Code = int64(r.Failure.Code)
		k.Title, _, _ = strings.Cut(r.Failure.Title, ": ") // the rest may be about this person alone
	}
	return k
}

// Add counts n rows.
func (c *BroadcastCounts) Add(k RowKey, n int64) {
	if c.ByStatus == nil {
		c.ByStatus, c.Skips = map[RowStatus]int64{}, map[RowReason]int64{}
	}
	switch k.Status {
	case countReplied:
		c.Replied += n
		return
	case countOptedOut:
		c.OptedOut += n
		return
	case countChoice:
		c.Choices = append(c.Choices, ChoiceCount{string(k.Reason), n})
		return
	}
	c.ByStatus[k.Status] += n
	if k.Status == RowSkipped {
		c.Skips[k.Reason] += n
	}
	if k.Code == 0 {
		return
	}
	i := slices.IndexFunc(c.Failures, func(f FailureCount) bool { return int64(f.Code) == k.Code })
	if i < 0 {
		c.Failures = append(c.Failures, FailureCount{Code: int(k.Code), Title: k.Title})
		i = len(c.Failures) - 1
	}
	c.Failures[i].N += n
}

// As returns the counts as callers see them.
func (c *BroadcastCounts) As(state BroadcastState) *BroadcastCounts {
	seen := &BroadcastCounts{ByStatus: map[RowStatus]int64{}, Skips: map[RowReason]int64{}, Replied: c.Replied, OptedOut: c.OptedOut}
	for status, n := range c.ByStatus {
		if status == RowPending && state == BroadcastCancelled {
			status = RowCancelled
		}
		seen.ByStatus[status] += n
	}
	for reason, n := range c.Skips {
		if n != 0 {
			seen.Skips[reason] = n
		}
	}
	for _, f := range c.Failures {
		if f.N != 0 {
			seen.Failures = append(seen.Failures, f)
		}
	}
	slices.SortFunc(seen.Failures, func(a, b FailureCount) int { return cmp.Or(cmp.Compare(b.N, a.N), a.Code-b.Code) })
	seen.Failures = seen.Failures[:min(len(seen.Failures), MaxFailureCounts)]
	for _, choice := range c.Choices {
		if choice.N != 0 {
			seen.Choices = append(seen.Choices, choice)
		}
	}
	slices.SortFunc(seen.Choices, func(a, b ChoiceCount) int { return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Title, b.Title)) })
	seen.Choices = seen.Choices[:min(len(seen.Choices), MaxFailureCounts)]
	return seen
}
