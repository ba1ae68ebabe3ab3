package desk_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"parley/desk"
)

func TestParseConversationStatus(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"open", "closed", "archived"} {
		if s, err := desk.ParseConversationStatus(word); string(s) != word || err != nil {
			t.Errorf("%q is %q, %v", word, s, err)
		}
	}
	for _, word := range []string{"", "Open", " open", "all", "deleted"} {
		if s, err := desk.ParseConversationStatus(word); s != "" || !desk.IsType(err, desk.InvalidRequest) {
			t.Errorf("%q is %q, %v", word, s, err)
		}
	}
}

func TestNewConversation_goes_to_the_owner(t *testing.T) {
	t.Parallel()
	channel := desk.ID{0xCA}
	want := desk.Conversation{ID: desk.ID{1}, ChannelID: channel, ContactID: id(1), Status: desk.StatusOpen, CreatedAt: 7}
	if got := desk.NewConversation(desk.ID{1}, channel, &desk.Contact{ID: id(1)}, 7); got != want {
		t.Errorf("of nobody's contact: %+v", got)
	}
	want.AssignedMember, want.AssignedVia = ada.ID, desk.ViaOwner
	if got := desk.NewConversation(desk.ID{1}, channel, &desk.Contact{ID: id(1), Owner: &ada}, 7); got != want {
		t.Errorf("of Ada's contact: %+v", got)
	}
}

func TestConversation_Assign(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		held    desk.ID
		via     desk.AssignedVia
		changed bool
	}{
		{"from the pool", desk.ID{}, "", true},
		{"from another", grace.ID, desk.ViaMember, true},
		{"from the owner", grace.ID, desk.ViaOwner, true},
		{"to the owner, by a person", ada.ID, desk.ViaOwner, true},
		{"to the same once more", ada.ID, desk.ViaMember, false},
	} {
		v := desk.Conversation{AssignedMember: c.held, AssignedVia: c.via}
		if changed := v.Assign(ada.ID); changed != c.changed || v.AssignedMember != ada.ID || v.AssignedVia != desk.ViaMember {
			t.Errorf("%s: %v, %+v", c.name, changed, v)
		}
		if v.Unassign(); v != (desk.Conversation{}) {
			t.Errorf("%s: unassigned is %+v", c.name, v)
		}
	}
}

// TestConversation_Note: messages may come late, but the lists show the newest one.
func TestConversation_Note(t *testing.T) {
	t.Parallel()
	var c desk.Conversation
	for _, step := range []struct {
		ts   desk.Time
		text string
		at   desk.Time
		want string
	}{
		{10, "first", 10, "first"},
		{20, "second\nline", 20, "second line"},
		{15, "late", 20, "second line"},
		{20, "in the same moment", 20, "in the same moment"},
	} {
		c.Note(&desk.Message{TS: step.ts, Text: step.text})
		if c.LastMessageAt != step.at || c.Preview != step.want {
			t.Errorf("after %q: %d %q", step.text, c.LastMessageAt, c.Preview)
		}
	}
}

func TestInboundTime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ at, newest, want desk.Time }{
		{5000, 0, 5000},
		{5000, 5000, 5001},
		{5000, 5700, 5701},
		{5000, 5998, 5999},
		{5000, 5999, 5999}, // the same time: the newer id decides the order
		{5300, 0, 5300},
		{5300, 5100, 5300},
		{5300, 5300, 5301},
	} {
		if got := desk.InboundTime(c.at, c.newest); got != c.want {
			t.Errorf("of %d, after %d: %d, want %d", c.at, c.newest, got, c.want)
		}
	}
}

func TestPreview(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 139)
	for text, want := range map[string]string{
		"":                                 "",
		" \n\t ":                           "",
		"Hi":                               "Hi",
		"*Title*\nHi  Ann,\r\n\tbye\u00a0": "*Title* Hi Ann, bye",
		long + "b":                         long + "b",
		long + "bc":                        long + "b",
		long + " bc":                       long,
		long[1:] + " bc":                   long[1:] + " b",
		strings.Repeat("ş", 141):           strings.Repeat("ş", 140),
		strings.Repeat("👍", 200):           strings.Repeat("👍", 140),
	} {
		if got := desk.Preview(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestPreview_is_a_beginning: the preview is the beginning of the text with single spaces,
// as long as allowed.
func TestPreview_is_a_beginning(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`(\pL{0,40}\s{0,3}){0,12}`)).Draw(t, "text")
		line := strings.Join(strings.Fields(text), " ")
		got := desk.Preview(text)
		if !strings.HasPrefix(line, got) || got != strings.TrimSpace(got) {
			t.Fatalf("%q is no beginning of %q", got, line)
		}
		n, all := utf8.RuneCountInString(got), utf8.RuneCountInString(line)
		if n > desk.MaxPreview || n < min(all, desk.MaxPreview)-1 { // one character less if the last one would be a space
			t.Fatalf("%d of %d characters", n, all)
		}
		if desk.Preview(got) != got {
			t.Fatalf("the preview of %q is %q", got, desk.Preview(got))
		}
	})
}

var undeliverable = &desk.Failure{Code: 131026, Title: "Message undeliverable", Fix: "Check the number."}

func TestMessage_Reach(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		statuses []desk.DeliveryStatus
		want     desk.DeliveryStatus
		failed   bool // the message says why
		changes  int
	}{
		{nil, desk.Sent, false, 0},
		{[]desk.DeliveryStatus{desk.Queued}, desk.Sent, false, 0},
		{[]desk.DeliveryStatus{desk.Sent, desk.Delivered, desk.Read}, desk.Read, false, 2},
		{[]desk.DeliveryStatus{desk.Read, desk.Delivered, desk.Sent}, desk.Read, false, 1},
		{[]desk.DeliveryStatus{desk.Delivered, desk.Delivered}, desk.Delivered, false, 1},
		{[]desk.DeliveryStatus{desk.Failed}, desk.Failed, true, 1},
		{[]desk.DeliveryStatus{desk.Failed, desk.Failed}, desk.Failed, true, 1},
		{[]desk.DeliveryStatus{desk.Failed, desk.Sent}, desk.Failed, true, 1},
		{[]desk.DeliveryStatus{desk.Failed, desk.Delivered}, desk.Delivered, true, 2},
		{[]desk.DeliveryStatus{desk.Delivered, desk.Failed}, desk.Delivered, true, 2}, // the failure is stored, the status stays
		{[]desk.DeliveryStatus{"", "played", "DELIVERED"}, desk.Sent, false, 0},
	} {
		m, changes := desk.Message{Delivery: desk.Sent}, 0
		for _, d := range c.statuses {
			var why *desk.Failure
			if d == desk.Failed {
				why = undeliverable
			}
			if m.Reach(d, why) != nil {
				changes++
			}
		}
		if m.Delivery != c.want || (m.Failure != nil) != c.failed || changes != c.changes {
			t.Errorf("%v: %s, %v, %d changes", c.statuses, m.Delivery, m.Failure, changes)
		}
	}
	if m := (desk.Message{Delivery: desk.Sent}); m.Reach(desk.Failed, nil) == nil || m.Failure != nil {
		t.Error("a failure without a reason does not count")
	}
}

// The delivery statuses in their order.
var furthest = []desk.DeliveryStatus{desk.Queued, desk.Sent, desk.Failed, desk.Delivered, desk.Read}

// TestMessage_Reach_any_order: statuses may come late, twice and in any order. The message
// always ends at the furthest of them, and only moves forward.
func TestMessage_Reach_any_order(t *testing.T) {
	t.Parallel()
	place := func(d desk.DeliveryStatus) int { return slices.Index(furthest, d) }
	end := func(t *rapid.T, statuses []desk.DeliveryStatus) desk.Message {
		m := desk.Message{Delivery: desk.Queued}
		for _, d := range statuses {
			before, why := m, (*desk.Failure)(nil)
			if d == desk.Failed {
				why = undeliverable
			}
			changed := m.Reach(d, why) != nil
			if place(m.Delivery) < place(before.Delivery) {
				t.Fatalf("from %s back to %s", before.Delivery, m.Delivery)
			}
			if changed != (m != before) {
				t.Fatalf("%s: changed is %v, from %+v to %+v", d, changed, before, m)
			}
		}
		return m
	}
	rapid.Check(t, func(t *rapid.T) {
		statuses := rapid.SliceOf(rapid.SampledFrom(furthest)).Draw(t, "statuses")
		m := end(t, statuses)
		want := desk.Queued
		for _, d := range statuses {
			if place(d) > place(want) {
				want = d
			}
		}
		if m.Delivery != want || (m.Failure != nil) != slices.Contains(statuses, desk.Failed) {
			t.Fatalf("%v end with %s, %v", statuses, m.Delivery, m.Failure)
		}
		if other := end(t, rapid.Permutation(statuses).Draw(t, "permutation")); other != m {
			t.Fatalf("%+v, and in another order %+v", m, other)
		}
	})
}
