package desk

import (
	"encoding/json"
	"slices"
)

// An Audience says who the people of a broadcast are, if they are not rows that callers add: the
// contacts that fit a filter, or some of the people of an ended broadcast (contract-broadcast §2).
type Audience struct {
	Segment   string      `json:",omitempty"` // the key of a segment, which has a filter
	Filter    *Filter     `json:",omitempty"`
	Broadcast ID          `json:",omitzero"`
	Status    []RowStatus `json:",omitempty"` // what became of them there
	Code      int         `json:",omitempty"` // of the failure; 0: any
	Replied   *bool       `json:",omitempty"` // nil: any
}

// A Collect is how far the people of an audience are written down as rows.
type Collect struct {
	Filter *Filter `json:",omitempty"` // as the segment had it at the start; nil: the audience has it
	After  ID      // who comes up to here, by id, was looked at
	Upto   ID      // the last contact to look at; zero: all
	Done   bool    // all are written down
}

// MaxAudienceFilter is the size limit of the JSON of an audience's filter.
const MaxAudienceFilter = 64 << 10

// AudienceStatuses are the statuses that an audience can name. Who is in doubt may have got the
// message.
var AudienceStatuses = []RowStatus{RowSent, RowDelivered, RowRead, RowFailed, RowRefused, RowSkipped, RowCancelled}

// check refuses an audience that has another form.
func (a *Audience) check() error {
	ofBroadcast := !a.Broadcast.IsZero() || a.Status != nil || a.Code != 0 || a.Replied != nil
	switch {
	case a.Segment != "" && a.Filter == nil && !ofBroadcast:
		if !IsSegmentKey(a.Segment) {
			return InvalidAt("/audience/segment", "this is not the key of a segment")
		}
		return nil
	case a.Filter != nil && a.Segment == "" && !ofBroadcast:
		if len(a.Filter.AppendJSON(nil)) > MaxAudienceFilter {
			return InvalidAt("/audience/filter", "the filter of an audience has at most %d bytes", MaxAudienceFilter)
		}
		return nil
	case a.Segment != "" || a.Filter != nil || !ofBroadcast:
		return InvalidAt("/audience", "send exactly one of segment, filter, and broadcast with status")
	case a.Broadcast.IsZero():
		return InvalidAt("/audience/broadcast", "missing; name an ended broadcast")
	case len(a.Status) == 0:
		return InvalidAt("/audience/status", "missing; name at least one of %s", Alternatives(AudienceStatuses))
	case a.Code < 0:
		return InvalidAt("/audience/code", "send the code of a failure, a whole number from 1")
	}
	for i, status := range a.Status {
		if !slices.Contains(AudienceStatuses, status) {
			return InvalidAt("/audience/status", "send %s", Alternatives(AudienceStatuses))
		}
		if slices.Contains(a.Status[:i], status) {
			return InvalidAt("/audience/status", "name each status once")
		}
	}
	return nil
}

func (a *Audience) same(b *Audience) bool {
	mine, _ := json.Marshal(a)
	other, _ := json.Marshal(b)
	return string(mine) == string(other)
}

// Check refuses a filter that compares what the workspace's contacts do not have, and makes it
// canonical.
func (a *Audience) Check(s *Settings) error {
	if a.Filter == nil {
		return nil
	}
	m, err := a.Filter.Matcher(s)
	if err != nil {
		return Within("/audience/filter", err)
	}
	a.Filter = &m.Filter
	return nil
}

// listBytes is the audience's size in a page.
func (a *Audience) listBytes() int {
	text, _ := json.Marshal(a)
	return len(text)
}
