package desk_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/desk"
)

func FuzzParseTemplate(f *testing.F) {
	for _, source := range pages(f) {
		f.Add([]byte(source))
	}
	for _, components := range []string{
		`[]`, `[null,{"type":1},[]]`, `[{"type":"body","text":"{{ a }}{{B}}{{a}}"}]`, `[{"type":"BODY","text":"{{{1}}}{{01}}{{"}]`,
		`[{"type":"HEADER","format":"text","text":"{{1}}"},{"type":"BODY","text":"{{2}}{{1}}"},{"type":"BODY"}]`,
		`[{"type":"BUTTONS","buttons":[null,{"type":"URL","url":"a{{1}}","example":["ab"]},{"type":"URL","url":"{{1}}b"}]},{"type":"HEADER","format":"Image"},{"type":"BODY","text":"a"}]`,
		`[{"type":"BUTTONS","buttons":[{"type":"URL","url":"https://whatsapp.com/otp/"},null,{"type":"OTP"}]}]`,
	} {
		f.Add([]byte(`{"name":"a","language":"tr","status":"approved","components":` + components + `}`))
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		tmpl, err := desk.ParseTemplate(source)
		again, errAgain := desk.ParseTemplate(source)
		if !reflect.DeepEqual(tmpl, again) || !reflect.DeepEqual(err, errAgain) {
			t.Fatalf("first %+v, %v, then %+v, %v", tmpl, err, again, errAgain)
		}
		if err != nil {
			if tmpl != nil || !desk.IsType(err, desk.InvalidRequest) {
				t.Fatalf("got %+v, %v", tmpl, err)
			}
			return
		}
		checkTemplate(t, tmpl)
	})
}

// checkTemplate checks the invariants of a template that could be read.
func checkTemplate(t tester, tmpl *desk.Template) {
	t.Helper()
	last := -1
	for _, reason := range tmpl.Reasons {
		at := slices.Index(desk.TemplateReasons, reason)
		if at <= last {
			t.Fatalf("reasons %q are out of order", tmpl.Reasons)
		}
		last = at
	}
	if tmpl.Sendable() && (tmpl.Status != "approved" || strings.TrimSpace(tmpl.Body) == "") {
		t.Fatalf("%+v is sendable", tmpl)
	}
	values := make([]string, len(tmpl.Variables))
	seen, inBody := map[string]bool{}, false
	for i, v := range tmpl.Variables {
		if seen[v.Address()] || v.Key == "" || inBody && v.Part == desk.PartHeader {
			t.Fatalf("variables %+v: %s", tmpl.Variables, v.Address())
		}
		seen[v.Address()], inBody = true, v.Part == desk.PartBody
		values[i] = "x"
	}
	text, sent := tmpl.Text(values), 0
	if tmpl.Sendable() && strings.Contains(text, "{{") {
		t.Fatalf("%+v keeps a placeholder: %q", tmpl, text)
	}
	supplied := make([]string, len(tmpl.Needs))
	links := tmpl.Links(supplied)
	for _, c := range tmpl.Components(values, supplied) {
		sent += len(c.Parameters)
	}
	if tmpl.Sendable() && (len(tmpl.Needs) > 0 || !tmpl.Fillable()) || tmpl.Fillable() && len(tmpl.Needs) == 0 && !tmpl.Sendable() {
		t.Fatalf("%+v has needs %+v", tmpl, tmpl.Needs)
	}
	for i, n := range tmpl.Needs {
		if n.IsFile() && i > 0 || !n.IsFile() && strings.Contains(n.Begin(), "{{") {
			t.Fatalf("needs %+v", tmpl.Needs)
		}
	}
	if sent != len(values)+len(links) {
		t.Fatalf("%d parameters for %+v", sent, tmpl.Variables)
	}
}
