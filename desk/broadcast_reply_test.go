package desk_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"parley/desk"
)

// TestHear: what counts as a reply to a broadcast's message.
func TestHear(t *testing.T) {
	t.Parallel()
	const sent, week = desk.Time(1_000_000), desk.Time(7 * 24 * time.Hour / time.Millisecond)
	mine, another := desk.ID{1}, desk.ID{2}
	for name, c := range map[string]struct {
		heard desk.Heard
		want  desk.RowReply
	}{
		"a message":                 {desk.Heard{At: sent + 1, Written: true}, desk.RowReply{At: sent + 1}},
		"at the same time":          {desk.Heard{At: sent, Written: true}, desk.RowReply{}},
		"before":                    {desk.Heard{At: sent - 1, Written: true}, desk.RowReply{}},
		"a quote by a slower clock": {desk.Heard{At: sent - 1, Written: true, Quotes: mine}, desk.RowReply{At: sent - 1}},
		"the last moment":           {desk.Heard{At: sent + week, Written: true}, desk.RowReply{At: sent + week}},
		"too late":                  {desk.Heard{At: sent + week + 1, Written: true}, desk.RowReply{}},
		"a quote, too late":         {desk.Heard{At: sent + week + 1, Written: true, Quotes: mine}, desk.RowReply{}},
		"its button":                {desk.Heard{At: sent + 1, Written: true, Quotes: mine, Choice: "Yes"}, desk.RowReply{At: sent + 1, Choice: "Yes", ChosenAt: sent + 1}},
		"a button of no message":    {desk.Heard{At: sent + 1, Written: true, Choice: "Yes"}, desk.RowReply{At: sent + 1, Choice: "Yes", ChosenAt: sent + 1}},
		"a button of another":       {desk.Heard{At: sent + 1, Written: true, Quotes: another, Choice: "Yes"}, desk.RowReply{At: sent + 1}},
		"a stop word":               {desk.Heard{At: sent + 1, Written: true, OptedOut: true}, desk.RowReply{At: sent + 1, OptedOut: true}},
		"a notice":                  {desk.Heard{At: sent + 1, OptedOut: true}, desk.RowReply{OptedOut: true}},
	} {
		r := &desk.BroadcastRow{Message: mine, SentAt: sent}
		if changed := r.Hear(c.heard); changed != (c.want != desk.RowReply{}) || r.Data.Reply != c.want {
			t.Errorf("%s: changed %t, %+v", name, changed, r.Data.Reply)
		}
		if r.Hear(c.heard) {
			t.Errorf("%s: the second time changes the row", name)
		}
	}
	if r := (&desk.BroadcastRow{}); r.Hear(desk.Heard{At: 1, Written: true}) {
		t.Error("a row without a message has a reply")
	}
}

// TestHear_order: the order in which messages are received does not matter.
func TestHear_order(t *testing.T) {
	t.Parallel()
	list := []desk.Heard{
		{At: 15, Written: true}, {At: 12, Written: true, Choice: "Yes"}, {At: 13, Written: true, Choice: "No"}, {At: 12, Written: true, Choice: "Maybe"}, {At: 11, Written: true}, {At: 14, Written: true, OptedOut: true},
	}
	want := desk.RowReply{At: 11, Choice: "Maybe", ChosenAt: 12, OptedOut: true}
	for range 100 {
		r := &desk.BroadcastRow{SentAt: 10}
		order := slices.Concat(list, list)
		rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, h := range order {
			r.Hear(h)
		}
		if r.Data.Reply != want {
			t.Fatalf("%+v, want %+v; the order: %v", r.Data.Reply, want, order)
		}
	}
}

// TestMessageHeard: which messages tell something about broadcasts.
func TestMessageHeard(t *testing.T) {
	t.Parallel()
	quoted := desk.ID{3}
	for name, c := range map[string]struct {
		m      desk.Message
		want   desk.Heard
		counts bool
	}{
		"text":     {desk.Message{Direction: desk.Inbound, TS: 5, Kind: desk.KindText, Text: "Hello"}, desk.Heard{At: 5, Written: true}, true},
		"stop":     {desk.Message{Direction: desk.Inbound, TS: 5, Kind: desk.KindText, Text: "Stop!", ReplyTo: quoted}, desk.Heard{At: 5, Written: true, Quotes: quoted, OptedOut: true}, true},
		"tap":      {desk.Message{Direction: desk.Inbound, TS: 5, Kind: desk.KindChoice, Extra: &desk.Extra{Choice: &desk.Button{ID: "y", Title: "Yes"}}}, desk.Heard{At: 5, Written: true, Choice: "Yes"}, true},
		"reaction": {desk.Message{Direction: desk.Inbound, TS: 5, Kind: desk.KindReaction}, desk.Heard{}, false},
		"ours":     {desk.Message{Direction: desk.Outbound, TS: 5, Kind: desk.KindText}, desk.Heard{}, false},
	} {
		got, counts := c.m.Heard()
		if counts != c.counts || counts && got != c.want {
			t.Errorf("%s: %+v, %t", name, got, counts)
		}
	}
}

// TestFollow_replies: what a person does while the message is in doubt counts, unless it turns
// out that the message was not sent.
func TestFollow_replies(t *testing.T) {
	t.Parallel()
	attempt, channel := desk.ID{4}, desk.ID{5}
	at := func(phase desk.Phase) *desk.Attempt {
		return &desk.Attempt{ID: attempt, Phase: phase, CreatedAt: 10, Plan: desk.Plan{Channel: channel, Message: desk.ID{6}, Contact: desk.ID{7}}}
	}
	for phase, want := range map[desk.Phase]bool{desk.Done: true, desk.Released: false, desk.Refused: false} {
		r := &desk.BroadcastRow{Attempt: attempt, Status: desk.RowSending, Data: desk.RowData{Phone: "34612345601"}}
		if r.Follow(at(desk.InDoubt), desk.NoEffect, desk.BroadcastRunning, 20); r.SentAt != 10 || r.Channel != channel || !r.Hear(desk.Heard{At: 11, Written: true}) {
			t.Fatalf("in doubt: %+v", r)
		}
		r.Follow(at(phase), desk.NoEffect, desk.BroadcastRunning, 30)
		if has := r.SentAt == 10 && r.Channel == channel && r.Data.Reply.At == 11; has != want || !want && (r.SentAt != 0 || r.Data.Reply != desk.RowReply{}) {
			t.Errorf("%s: %+v", phase, r)
		}
	}
	late := &desk.BroadcastRow{Attempt: attempt, Status: desk.RowSending} // its message takes the provider a while
	late.Follow(at(desk.Done), desk.NoEffect, desk.BroadcastRunning, 30)
	if !late.Hear(desk.Heard{At: 11, Written: true}) || late.Hear(desk.Heard{At: 10, Written: true}) {
		t.Errorf("a reply before the answer of the provider, read after it: %+v", late)
	}
	erased := at(desk.InDoubt)
	erased.Erased = true
	r := &desk.BroadcastRow{Attempt: attempt, Status: desk.RowSending}
	if r.Follow(erased, desk.NoEffect, desk.BroadcastRunning, 20); r.SentAt != 0 {
		t.Errorf("the row of a deleted person: %+v", r)
	}
}
