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

// TestRowClaim: a row that was claimed for somebody keeps their other rows from being sent, unless
// it reached nobody: it was skipped since, or it waits like the other one, which was added before.
func TestRowClaim(t *testing.T) {
	t.Parallel()
	fresh, refused := &desk.BroadcastRow{ID: desk.ID{5}}, &desk.BroadcastRow{ID: desk.ID{5}, Attempt: desk.ID{9}}
	for _, c := range []struct {
		by     byte
		status desk.RowStatus
		of     *desk.BroadcastRow
		want   bool
	}{
		{5, desk.RowPending, refused, false},
		{4, desk.RowPending, refused, true},
		{6, desk.RowPending, refused, false},
		{6, desk.RowPending, fresh, true},
		{6, desk.RowSkipped, fresh, false},
		{4, desk.RowSkipped, refused, false},
		{6, desk.RowSending, refused, true},
		{6, desk.RowInDoubt, refused, true},
		{6, desk.RowRefused, refused, true},
		{6, desk.RowSent, fresh, true},
	} {
		if got := (desk.RowClaim{Row: desk.ID{c.by}, Status: c.status}).Bars(c.of); got != c.want {
			t.Errorf("row %d, %s: %v", c.by, c.status, got)
		}
	}
}

// TestJudge_utility: a stop word is about advertising only, and people with an open conversation
// are passed over by default only then.
func TestJudge_utility(t *testing.T) {
	t.Parallel()
	row := &desk.BroadcastRow{Data: desk.RowData{Values: []desk.NamedValue{{Address: "1", Value: "Lucia"}}}}
	is := desk.TheirTurn{Contact: &desk.Contact{ID: desk.ID{1}, Phone: "905321112233"}}
	for category, want := range map[string][2]desk.RowReason{"MARKETING": {desk.SkipOptedOut, desk.SkipInConversation}, "UTILITY": {"", ""}} {
		template := castTemplate(t)
		template.Category = category
		b := &desk.Broadcast{Consent: &desk.Consent{Confirmed: true}, Category: category}
		for i, is := range []desk.TheirTurn{{Contact: is.Contact, OptedOut: true}, {Contact: is.Contact, InConversation: true}} {
			if v := b.Judge(template, &desk.Settings{}, row, is); v.Reason != want[i] {
				t.Errorf("%s: the reason is %q, want %q", category, v.Reason, want[i])
			}
		}
	}
}

// TestJudge_consent: the attribute that says the consent counts only while it is a boolean one that is
// not archived. Values that contacts had before do not count any more.
func TestJudge_consent(t *testing.T) {
	t.Parallel()
	settings := &desk.Settings{Attributes: map[string]*desk.Attribute{
		"ok": {Key: "ok", Type: desk.BooleanAttribute}, "old": {Key: "old", Type: desk.BooleanAttribute, Archived: true}, "note": {Key: "note", Type: desk.TextAttribute},
	}}
	values := desk.StoredAttributes(`{"gone":true,"note":true,"ok":true,"old":true}`)
	row := &desk.BroadcastRow{Data: desk.RowData{Values: []desk.NamedValue{{Address: "1", Value: "Lucia"}}}}
	is := desk.TheirTurn{Contact: &desk.Contact{ID: desk.ID{1}, Phone: "905321112233", Attributes: values}}
	for key, want := range map[string]desk.RowReason{"ok": "", "old": desk.SkipNoConsent, "note": desk.SkipNoConsent, "gone": desk.SkipNoConsent} {
		b := &desk.Broadcast{Consent: &desk.Consent{Attribute: key}}
		if v := b.Judge(castTemplate(t), settings, row, is); v.Reason != want {
			t.Errorf("%s: the reason is %q, want %q", key, v.Reason, want)
		}
	}
}

// TestBroadcastShape: whatever a person would see of a template, or a send has to supply, is in its
// shape.
func TestBroadcastShape(t *testing.T) {
	t.Parallel()
	was := castTemplate(t).BroadcastShape()
	for what, change := range map[string]func(*desk.Template){
		"header":   func(c *desk.Template) { c.Header = "News" },
		"body":     func(c *desk.Template) { c.Body = "Bye {{1}}!" },
		"category": func(c *desk.Template) { c.Category = "UTILITY" },
		"needs":    func(c *desk.Template) { c.Needs = []desk.Need{{Address: desk.MediaAddress}} },
	} {
		c := castTemplate(t)
		if change(c); c.BroadcastShape() == was {
			t.Errorf("another %s does not change the shape", what)
		}
	}
	if castTemplate(t).BroadcastShape() != was {
		t.Error("the same template has two shapes")
	}
	shapes := map[string]desk.Need{}
	for _, need := range []desk.Need{
		{Address: desk.MediaAddress, Kind: desk.KindImage}, {Address: desk.MediaAddress, Kind: desk.KindVideo},
		{Address: "button.0", URL: "https://shop.example/{{1}}"}, {Address: "button.0", URL: "https://other.example/{{1}}"}, {Address: "button.1", URL: "https://shop.example/{{1}}", Button: 1},
	} {
		c := castTemplate(t)
		c.Needs = []desk.Need{need}
		if other, same := shapes[c.BroadcastShape()]; same {
			t.Errorf("%+v has the shape of %+v", need, other)
		}
		shapes[c.BroadcastShape()] = need
	}
}

// TestFollow: what the outcome of an attempt makes of its row.
func TestFollow(t *testing.T) {
	t.Parallel()
	sends, other := desk.ID{1}, desk.ID{2}
	later := &desk.Refusal{Type: desk.ProviderUnavailable, RetryAfter: 1}
	for name, c := range map[string]struct {
		at     desk.Attempt
		row    desk.BroadcastRow
		effect desk.Effect
		state  desk.BroadcastState
		want   string // status, reason, whether it waits
	}{
		"of an earlier try":      {desk.Attempt{ID: other, Phase: desk.Refused, Refusal: later}, desk.BroadcastRow{}, desk.NoEffect, desk.BroadcastRunning, "sending  false"},
		"in doubt":               {desk.Attempt{ID: sends, Phase: desk.InDoubt}, desk.BroadcastRow{}, desk.NoEffect, desk.BroadcastRunning, "in_doubt  false"},
		"released":               {desk.Attempt{ID: sends, Phase: desk.Released}, desk.BroadcastRow{}, desk.NoEffect, desk.BroadcastRunning, "refused released false"},
		"refused for good":       {desk.Attempt{ID: sends, Phase: desk.Refused, Refusal: &desk.Refusal{Type: desk.ProviderRejected}}, desk.BroadcastRow{}, desk.NoEffect, desk.BroadcastRunning, "refused  false"},
		"refused for now":        {desk.Attempt{ID: sends, Phase: desk.Refused, Refusal: later}, desk.BroadcastRow{}, desk.NoEffect, desk.BroadcastRunning, "pending  false"},
		"once cancelled":         {desk.Attempt{ID: sends, Phase: desk.Refused, Refusal: later}, desk.BroadcastRow{}, desk.PersonEffect, desk.BroadcastCancelled, "cancelled  false"},
		"once done":              {desk.Attempt{ID: sends, Phase: desk.Refused, Refusal: later}, desk.BroadcastRow{}, desk.NoEffect, desk.BroadcastDone, "refused  false"},
		"this person, once done": {desk.Attempt{ID: sends, Phase: desk.Refused, Refusal: later}, desk.BroadcastRow{}, desk.PersonEffect, desk.BroadcastDone, "refused  false"},
		"this person":            {desk.Attempt{ID: sends, Phase: desk.Refused, Refusal: later}, desk.BroadcastRow{}, desk.PersonEffect, desk.BroadcastRunning, "pending  true"},
		"this person, the last":  {desk.Attempt{ID: sends, Phase: desk.Refused, Refusal: later}, desk.BroadcastRow{Data: desk.RowData{Held: desk.MaxPersonRefusals - 1}}, desk.PersonEffect, desk.BroadcastRunning, "refused  false"},
		"somebody erased":        {desk.Attempt{ID: sends, Phase: desk.Refused, Refusal: later}, desk.BroadcastRow{}, desk.NoEffect, desk.BroadcastRunning, "skipped deleted false"},
	} {
		r := c.row
		if r.Attempt, r.Status = sends, desk.RowSending; name != "somebody erased" {
			r.Data.Phone = "905321112233"
		}
		r.Follow(&c.at, c.effect, c.state, 1000)
		if got := fmt.Sprint(r.Status, " ", r.Reason, " ", r.DueAt > 0); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
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

// TestWakes: only a dormant conversation that is still archived is opened, within a month.
func TestWakes(t *testing.T) {
	t.Parallel()
	month := desk.Time(desk.DormantLife.Milliseconds())
	for _, c := range []struct {
		is   desk.Conversation
		at   desk.Time
		want bool
	}{
		{desk.Conversation{Dormant: true, Status: desk.StatusArchived, LastMessageAt: 5}, 5 + month, true},
		{desk.Conversation{Dormant: true, Status: desk.StatusArchived, LastMessageAt: 5}, 6 + month, false},
		{desk.Conversation{Dormant: true, Status: desk.StatusClosed, LastMessageAt: 5}, 6, false},
		{desk.Conversation{Status: desk.StatusArchived, LastMessageAt: 5}, 6, false},
	} {
		if got := c.is.Wakes(c.at); got != c.want {
			t.Errorf("%+v at %d: %t", c.is, c.at, got)
		}
	}
}
