package desk_test

import (
	"testing"

	"parley/desk"
)

// TestCheckConsent: a broadcast starts only if its caller asserts how the people agreed, or names a
// boolean attribute that is in use.
func TestCheckConsent(t *testing.T) {
	t.Parallel()
	s := desk.NewSettings(desk.Workspace{}, 1, []desk.Attribute{
		{Key: "ok", Type: desk.BooleanAttribute}, {Key: "old", Type: desk.BooleanAttribute, Archived: true}, {Key: "plan", Type: desk.TextAttribute},
	}, nil, nil, nil)
	for _, c := range []struct {
		consent *desk.Consent
		at      string // "": it can start
	}{
		{nil, "/consent"},
		{&desk.Consent{Confirmed: true}, ""},
		{&desk.Consent{Attribute: "ok"}, ""},
		{&desk.Consent{Attribute: "old"}, "/consent/attribute"},
		{&desk.Consent{Attribute: "plan"}, "/consent/attribute"},
		{&desk.Consent{Attribute: "nothing"}, "/consent/attribute"},
	} {
		err := (&desk.Broadcast{Consent: c.consent}).CheckConsent(s)
		if refused := desk.IsType(err, desk.OptInRequired) && desk.AsError(err).At == c.at; refused != (c.at != "") || !refused && err != nil {
			t.Errorf("%+v: %v, want a refusal of %q", c.consent, err, c.at)
		}
	}
}
