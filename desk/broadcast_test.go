package desk_test

import (
	"fmt"
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

// TestBroadcast_Edit: what is wrong with a variable is named by a JSON pointer, whatever is in its
// address.
func TestBroadcast_Edit(t *testing.T) {
	t.Parallel()
	for address, at := range map[string]string{"1": "/variables/1", "a/b": "/variables/a~1b", "~1": "/variables/~01", "": "/variables"} {
		for _, v := range []desk.BroadcastValue{{}, {Value: "x", From: desk.FromRow}} {
			v.Address = address
			err := new(desk.Broadcast).Edit(&desk.BroadcastInput{Values: desk.Field[[]desk.BroadcastValue]{Set: true, Value: []desk.BroadcastValue{v}}}, 1)
			if !desk.IsType(err, desk.InvalidRequest) || desk.AsError(err).At != at {
				t.Errorf("%q: %v, want a refusal of %s", address, err, at)
			}
		}
	}
}

// TestBroadcast_CheckTemplate: each variable that can't be filled is named once.
func TestBroadcast_CheckTemplate(t *testing.T) {
	t.Parallel()
	template := richTemplate(t, "IMAGE", "https://a.example/")
	for _, c := range []struct {
		values []desk.BroadcastValue
		want   string
	}{
		{nil, "[{header.media the file is missing; name an uploaded image by value}]"},
		{[]desk.BroadcastValue{{Address: "header.media", Value: "x"}}, "[]"},
		{[]desk.BroadcastValue{{Address: "header.media", From: desk.FromRow}}, "[{header.media name one file for everybody, by value}]"},
	} {
		var problems []desk.VariableProblem
		err := (&desk.Broadcast{Values: c.values}).CheckTemplate(template, &desk.Settings{})
		if err != nil {
			problems, _ = desk.AsError(err).Details.([]desk.VariableProblem)
		}
		if got := fmt.Sprint(problems); got != c.want {
			t.Errorf("%+v: %s, want %s", c.values, got, c.want)
		}
	}
}
