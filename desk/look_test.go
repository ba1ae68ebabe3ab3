package desk_test

import (
	"fmt"
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
			"Bye", "[Yes Go]", "map[1:Bo 2:https://a.example header.1:Ann]", "Hi <header.1>", "<1>, see <2> and <1>.",
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
