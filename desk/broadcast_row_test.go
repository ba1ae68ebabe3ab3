package desk_test

import (
	"fmt"
	"strings"
	"testing"

	"parley/desk"
)

// castTemplate is an approved marketing template with one variable.
func castTemplate(t *testing.T) *desk.Template {
	t.Helper()
	c, err := desk.ParseTemplate([]byte(`{"name":"sale","language":"en","status":"APPROVED","category":"MARKETING","components":[{"type":"BODY","text":"Hello {{1}}!"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestJudge: of the reasons that hold, the first one makes a row skipped. The cases go from the
// last reason to the first: each adds the next one to those before it.
func TestJudge(t *testing.T) {
	t.Parallel()
	template := castTemplate(t)
	yes := true
	b := &desk.Broadcast{Consent: &desk.Consent{Confirmed: true}, SkipOpen: &yes}
	row := &desk.BroadcastRow{Data: desk.RowData{Values: []desk.NamedValue{{Address: "1", Value: "Lucia"}}}}
	is := desk.TheirTurn{Now: 1000, Contact: &desk.Contact{ID: desk.ID{1}, Phone: "905321112233"}}
	if v := b.Judge(template, &desk.Settings{}, row, is); v.Reason != "" || v.Number != "905321112233" || v.Values[0] != "Lucia" {
		t.Fatalf("%+v", v)
	}
	for _, next := range []struct {
		reason desk.RowReason
		holds  func()
	}{
		{desk.SkipVariables, func() { row.Data.Values = nil }},
		{desk.SkipInConversation, func() { is.InConversation = true }},
		{desk.SkipOptedOut, func() { is.OptedOut = true }},
		{desk.SkipNoConsent, func() { b.Consent = &desk.Consent{Attribute: "ok"} }},
		{desk.SkipUnreachable, func() { is.Contact.Phone = "" }},
		{desk.SkipDuplicate, func() { is.Taken = true }},
		{desk.SkipDeleted, func() { is.Contact = nil }},
		{desk.SkipLate, func() { b.StopAt = 1000 }},
	} {
		next.holds()
		if v := b.Judge(template, &desk.Settings{}, row, is); v.Reason != next.reason {
			t.Errorf("the reason is %q, want %s", v.Reason, next.reason)
		} else if named := v.Failure != nil && strings.HasPrefix(v.Failure.Title, "1: "); named != (v.Reason == desk.SkipVariables) {
			t.Errorf("%s: the failure is %+v", v.Reason, v.Failure)
		}
	}
}

// TestNextKey: no Idempotency-Key that a caller can send is that of a row, and no two tries of
// rows have the same.
func TestNextKey(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for id := range byte(3) {
		for claims := range 12 {
			r := &desk.BroadcastRow{ID: desk.ID{id}, Data: desk.RowData{Claims: claims}}
			key := r.NextKey()
			if desk.CheckIdempotencyKey(key) == nil || seen[key] {
				t.Errorf("the key %q can be sent, or is another row's: %t", key, seen[key])
			}
			seen[key] = true
			if row := (&desk.Attempt{Key: key}).Row(); row != r.ID {
				t.Errorf("the key %q is of the row %s", key, row)
			}
		}
	}
	for _, key := range []string{"", "k", "broadcast", "broadcast → ", "broadcast → x 1"} {
		if row := (&desk.Attempt{Key: key}).Row(); !row.IsZero() {
			t.Errorf("the key %q is of the row %s", key, row)
		}
	}
}

// TestOutcome: which outcomes of rows can pause a broadcast.
func TestOutcome(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		row    desk.BroadcastRow
		effect desk.Effect
		want   string // bad, counts
	}{
		{desk.BroadcastRow{Status: desk.RowSent}, desk.NoEffect, "false true"},
		{desk.BroadcastRow{Status: desk.RowRead}, desk.NoEffect, "false true"},
		{desk.BroadcastRow{Status: desk.RowFailed}, desk.NoEffect, "true true"},
		{desk.BroadcastRow{Status: desk.RowFailed}, desk.NotCounted, "true false"},
		{desk.BroadcastRow{Status: desk.RowRefused}, desk.NoEffect, "true true"},
		{desk.BroadcastRow{Status: desk.RowRefused, Reason: desk.RowReleased}, desk.NoEffect, "true false"},
		{desk.BroadcastRow{Status: desk.RowInDoubt}, desk.NoEffect, "true true"},
		{desk.BroadcastRow{Status: desk.RowInDoubt, Data: desk.RowData{Died: true}}, desk.NoEffect, "true false"},
		{desk.BroadcastRow{Status: desk.RowPending}, desk.NoEffect, "false false"},
		{desk.BroadcastRow{Status: desk.RowSkipped}, desk.NoEffect, "false false"},
	} {
		if got := fmt.Sprint(c.row.Outcome(c.effect)); got != c.want {
			t.Errorf("%+v: %s, want %s", c.row, got, c.want)
		}
	}
	b := &desk.Broadcast{MaxFailed: 20}
	for _, c := range []struct {
		bad, outcomes int
		want          bool
	}{{49, 49, false}, {10, 50, false}, {11, 50, true}, {40, 200, false}, {41, 200, true}} {
		if got := b.TooManyFailed(c.bad, c.outcomes); got != c.want {
			t.Errorf("%d of %d: %t", c.bad, c.outcomes, got)
		}
	}
}
