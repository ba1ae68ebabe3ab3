package desk

import (
	"encoding/json"
	"slices"
)

// An Audience says who the people of a broadcast are, if they are not rows that callers add:
// some of the people of an ended broadcast (contract-broadcast §2).
type Audience struct {
	Broadcast ID          `json:",omitzero"`
	Status    []RowStatus `json:",omitempty"` // what became of them there
	Code      int         `json:",omitempty"` // of the failure; 0: any
}

// A Collect is how far the people of an audience are written down as rows.
type Collect struct {
	After ID   // who comes up to here, by id, was looked at
	Upto  ID   // the last one to look at; zero: all
	Done  bool // all are written down
}

// AudienceStatuses are the statuses that an audience can name. Who is in doubt may have got the
// message.
var AudienceStatuses = []RowStatus{RowSent, RowDelivered, RowRead, RowFailed, RowRefused, RowSkipped, RowCancelled}

// check refuses an audience that has another form.
func (a *Audience) check() error {
	switch {
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

// listBytes is the audience's size in a page.
func (a *Audience) listBytes() int {
	text, _ := json.Marshal(a)
	return len(text)
}
