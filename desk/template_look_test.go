package desk_test

import (
	"fmt"
	"strings"
	"testing"

	"parley/desk"
)

func TestTemplate_look(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ source, footer, buttons, samples, header, body string }{
		"positional": {
			`{"name":"a","language":"en","status":"APPROVED","components":[
			{"type":"HEADER","format":"TEXT","text":"Hi {{1}}","example":{"header_text":["Ann"]}},
			{"type":"BODY","text":"{{1}}, see {{2}} and {{1}}.","example":{"body_text":[["Bo","https://a.example"]]}},
			{"type":"FOOTER","text":"Bye"},{"type":"BUTTONS","buttons":[{"type":"QUICK_REPLY","text":"Yes"},{"type":"URL","text":"Go","url":"https://a.example"}]}]}`,
			"Bye", "[{Yes  } {Go https://a.example }]", "map[1:Bo 2:https://a.example header.1:Ann]", "Hi <header.1>", "<1>, see <2> and <1>.",
		},
		"named": {
			`{"name":"a","language":"en","status":"APPROVED","parameter_format":"NAMED","components":[
			{"type":"BODY","text":"Hi {{name}}!","example":{"body_text_named_params":[{"param_name":"name","example":"Ann"},{"param_name":"other","example":"x"}]}}]}`,
			"", "[]", "map[name:Ann]", "", "Hi <name>!",
		},
		"of no form": {
			`{"name":"a","language":"en","status":"APPROVED","components":[7,{"type":"BODY","text":"Hi {{1}}!","example":{"body_text":7}},
			{"type":"FOOTER"},{"type":"BUTTONS","buttons":[7,{"text":8}]}]}`,
			"", "[]", "map[]", "", "Hi <1>!",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := desk.ParseTemplate([]byte(c.source))
			if err != nil {
				t.Fatal(err)
			}
			if l := got.Look; l.Footer != c.footer || fmt.Sprint(l.Buttons) != c.buttons || fmt.Sprint(l.Samples) != c.samples {
				t.Errorf("%+v", l)
			}
			if h, b := pieces(got, desk.PartHeader), pieces(got, desk.PartBody); h != c.header || b != c.body {
				t.Errorf("%s, %s", h, b)
			}
		})
	}
}

// pieces writes variables as <address>.
func pieces(t *desk.Template, part desk.Part) (s string) {
	for _, p := range t.Pieces(part) {
		if p.Address != "" {
			s += "<" + p.Address + ">"
		} else {
			s += p.Text
		}
	}
	return s
}

func TestTemplate_Around(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 20)
	for _, c := range []struct {
		text, key, before, after string
	}{
		{"Hi {{1}}, your order is ready.", "1", "Hi ", ", your order is ready."},
		{"Hi {{1}},\n\n  order {{2}} is ready", "1", "Hi ", ", order …"},
		{"Hi {{1}},\n\n  order {{2}} is ready", "2", "…, order ", " is ready"},
		{"{{1}}", "1", "", ""},
		{"{{1}} and {{1}} again", "1", "", " and …"},
		{"{{1}}{{2}}{{3}}", "2", "…", "…"},
		{long + "{{1}} " + long, "1", "… word word word word word word ", " word word word word word word…"},
		{strings.Repeat("ü", 100) + "{{1}}" + strings.Repeat("ü", 100), "1", "…", "…"},
		{"no variable", "1", "", ""},
	} {
		tpl := &desk.Template{Body: c.text, Variables: []desk.Variable{{Part: desk.PartBody, Key: c.key}}}
		if before, after := tpl.Around(tpl.Variables[0]); before != c.before || after != c.after {
			t.Errorf("%q: %q, %q; want %q, %q", c.text, before, after, c.before, c.after)
		}
	}
	// The same key in the title is another variable.
	tpl := &desk.Template{Header: "Order {{1}}", Body: "Hi {{1}}!"}
	if before, after := tpl.Around(desk.Variable{Part: desk.PartHeader, Key: "1"}); before != "Order " || after != "" {
		t.Errorf("in the title: %q, %q", before, after)
	}
}

func TestLibrary_Search(t *testing.T) {
	t.Parallel()
	l := desk.NewLibrary(1, []*desk.Template{
		{Name: "pickup_ready", Language: "en", Body: "Hi {{1}}, your ORDER is ready"}, {Name: "order_late", Language: "de", Body: "Das dauert"},
		{Name: "thanks", Language: "en", Header: "Order {{1}}", Look: desk.Look{Footer: "Harbour Books"}}, {Name: "order_held", Language: "en", Reasons: []string{desk.ReasonNotApproved}},
	})
	for find, want := range map[string]string{
		"": "order_late pickup_ready thanks", "order": "order_late pickup_ready thanks", "  Order  READY ": "pickup_ready", "pickup_ready": "pickup_ready", "late order": "order_late",
		"harbour": "thanks", "late de": "order_late", "nothing": "", "\xff": "order_late pickup_ready thanks",
		strings.Repeat("order ", 1000): "order_late pickup_ready thanks", // only its beginning counts
	} {
		var names []string
		for _, found := range l.Search(find) {
			names = append(names, found.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%.20q: %q, want %q", find, got, want)
		}
	}
}
