package desk_test

import (
	"reflect"
	"testing"

	"parley/desk"
)

func audience(a desk.Audience) desk.Field[desk.Audience] {
	return desk.Field[desk.Audience]{Set: true, Value: a}
}

func number(n int64) desk.Field[int64] { return desk.Field[int64]{Set: true, Value: n} }

// TestBroadcast_Edit_audience: an audience has a form and a greatest number of people, and only a
// broadcast without rows can have one.
func TestBroadcast_Edit_audience(t *testing.T) {
	t.Parallel()
	fits := desk.Audience{Broadcast: desk.ID{1}, Status: []desk.RowStatus{desk.RowFailed}}
	with := func(do func(*desk.Audience)) desk.Audience {
		a := fits
		do(&a)
		return a
	}
	for name, c := range map[string]struct {
		rows int64
		in   desk.BroadcastInput
		at   string // "": it is taken
	}{
		"fits":            {0, desk.BroadcastInput{Audience: audience(fits), AtMost: number(5)}, ""},
		"rows":            {5, desk.BroadcastInput{Audience: desk.Field[desk.Audience]{Set: true, Null: true}}, ""},
		"no number":       {0, desk.BroadcastInput{Audience: audience(fits)}, "/at_most"},
		"none":            {0, desk.BroadcastInput{Audience: audience(fits), AtMost: number(0)}, "/at_most"},
		"too many":        {0, desk.BroadcastInput{AtMost: number(1_000_001)}, "/at_most"},
		"has rows":        {1, desk.BroadcastInput{Audience: audience(fits), AtMost: number(5)}, "/audience"},
		"no broadcast":    {0, desk.BroadcastInput{Audience: audience(with(func(a *desk.Audience) { a.Broadcast = desk.ID{} })), AtMost: number(5)}, "/audience/broadcast"},
		"no status":       {0, desk.BroadcastInput{Audience: audience(with(func(a *desk.Audience) { a.Status = nil })), AtMost: number(5)}, "/audience/status"},
		"in doubt":        {0, desk.BroadcastInput{Audience: audience(with(func(a *desk.Audience) { a.Status = []desk.RowStatus{desk.RowInDoubt} })), AtMost: number(5)}, "/audience/status"},
		"pending":         {0, desk.BroadcastInput{Audience: audience(with(func(a *desk.Audience) { a.Status = []desk.RowStatus{desk.RowPending} })), AtMost: number(5)}, "/audience/status"},
		"twice":           {0, desk.BroadcastInput{Audience: audience(with(func(a *desk.Audience) { a.Status = []desk.RowStatus{desk.RowRead, desk.RowRead} })), AtMost: number(5)}, "/audience/status"},
		"a segment":       {0, desk.BroadcastInput{Audience: audience(desk.Audience{Segment: "lapsed"}), AtMost: number(5)}, ""},
		"no key":          {0, desk.BroadcastInput{Audience: audience(desk.Audience{Segment: "Lapsed"}), AtMost: number(5)}, "/audience/segment"},
		"a filter":        {0, desk.BroadcastInput{Audience: audience(desk.Audience{Filter: &desk.Filter{}}), AtMost: number(5)}, ""},
		"a large filter":  {0, desk.BroadcastInput{Audience: audience(desk.Audience{Filter: &desk.Filter{All: make([]desk.Clause, desk.MaxAudienceFilter)}}), AtMost: number(5)}, "/audience/filter"},
		"two":             {0, desk.BroadcastInput{Audience: audience(desk.Audience{Segment: "lapsed", Filter: &desk.Filter{}}), AtMost: number(5)}, "/audience"},
		"three":           {0, desk.BroadcastInput{Audience: audience(with(func(a *desk.Audience) { a.Segment = "lapsed" })), AtMost: number(5)}, "/audience"},
		"nothing":         {0, desk.BroadcastInput{Audience: audience(desk.Audience{}), AtMost: number(5)}, "/audience"},
		"a negative code": {0, desk.BroadcastInput{Audience: audience(with(func(a *desk.Audience) { a.Code = -1 })), AtMost: number(5)}, "/audience/code"},
	} {
		b := &desk.Broadcast{State: desk.BroadcastDraft, Rows: c.rows}
		err := b.Edit(&c.in, 1)
		if got := placeOf(err); got != c.at || (err == nil) != (c.at == "") {
			t.Errorf("%s: %v", name, err)
		}
	}
	b := &desk.Broadcast{State: desk.BroadcastDraft}
	if err := b.Edit(&desk.BroadcastInput{Audience: audience(fits), AtMost: number(5)}, 1); err != nil || !b.Collects() || b.TakesRows() == nil {
		t.Errorf("%v; it collects: %t; rows: %v", err, b.Collects(), b.TakesRows())
	}
	if err := b.Edit(&desk.BroadcastInput{AtMost: desk.Field[int64]{Set: true, Null: true}}, 1); placeOf(err) != "/at_most" {
		t.Errorf("an audience without a number: %v", err)
	}
	b.AtMost = 5
	b.Begin(desk.Actor{}, 5)
	if b.State != desk.BroadcastRunning || b.Reason != desk.WaitsForPeople {
		t.Errorf("after the start it is %s, %s", b.State, b.Reason)
	}
	if b.Rows = 5; b.TooMany() {
		t.Error("5 of 5 are too many")
	}
	if b.Rows = 6; !b.TooMany() {
		t.Error("6 of 5 are not too many")
	}
}

func placeOf(err error) string {
	if err == nil {
		return ""
	}
	return desk.AsError(err).At
}

// TestAudience_TakesRow: whose row an audience takes, and what the person's next row has.
func TestAudience_TakesRow(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	row := desk.BroadcastRow{
		ID: desk.ID{9}, Broadcast: desk.ID{8}, Contact: desk.ID{7}, Number: "905320000001", To: "905320000001", Status: desk.RowFailed, Failure: &desk.Failure{Code: 131049}, At: 5,
		Attempt: desk.ID{6}, Message: desk.ID{5}, Conversation: desk.ID{4},
		Data: desk.RowData{Phone: "90 532", Values: []desk.NamedValue{{Address: "1", Value: "A"}}, Person: &desk.ContactWrite{}, Claims: 3, Held: 2, Died: true},
	}
	for name, c := range map[string]struct {
		a    desk.Audience
		do   func(*desk.BroadcastRow)
		want bool
	}{
		"status":       {desk.Audience{Status: []desk.RowStatus{desk.RowRead, desk.RowFailed}}, nil, true},
		"other status": {desk.Audience{Status: []desk.RowStatus{desk.RowRead}}, nil, false},
		"code":         {desk.Audience{Status: []desk.RowStatus{desk.RowFailed}, Code: 131049}, nil, true},
		"other code":   {desk.Audience{Status: []desk.RowStatus{desk.RowFailed}, Code: 1}, nil, false},
		"no failure":   {desk.Audience{Status: []desk.RowStatus{desk.RowFailed}, Code: 1}, func(r *desk.BroadcastRow) { r.Failure = nil }, false},
		"replied":      {desk.Audience{Status: []desk.RowStatus{desk.RowFailed}, Replied: &yes}, func(r *desk.BroadcastRow) { r.Data.Reply.At = 7 }, true},
		"not replied":  {desk.Audience{Status: []desk.RowStatus{desk.RowFailed}, Replied: &yes}, nil, false},
		"silent":       {desk.Audience{Status: []desk.RowStatus{desk.RowFailed}, Replied: &no}, nil, true},
		"not silent":   {desk.Audience{Status: []desk.RowStatus{desk.RowFailed}, Replied: &no}, func(r *desk.BroadcastRow) { r.Data.Reply.At = 7 }, false},
		"erased":       {desk.Audience{Status: []desk.RowStatus{desk.RowFailed}}, func(r *desk.BroadcastRow) { r.Erase(9) }, false},
	} {
		r := row
		if c.do != nil {
			c.do(&r)
		}
		if got := c.a.TakesRow(&r); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	row.Data.Phone = "905320000001"
	want := &desk.BroadcastRow{
		Contact: desk.ID{7}, Number: "905320000001", To: "905320000001", Status: desk.RowPending, At: 99,
		Data: desk.RowData{Phone: "905320000001", Values: row.Data.Values, Person: row.Data.Person},
	}
	if got := row.Again(99); !reflect.DeepEqual(got, want) {
		t.Errorf("again: %+v", got)
	}
}
