package desk_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/desk"
)

const (
	needsBody  = `{"type":"BODY","text":"Hi {{1}}"}`
	needsImage = `{"type":"HEADER","format":"IMAGE","example":{"header_handle":["https://cdn.example/h"]}}`
)

// withButtons returns the components of a template with these buttons.
func withButtons(buttons string) string {
	return needsBody + `,{"type":"BUTTONS","buttons":[` + buttons + `]}`
}

// needsOf writes needs as address=kind:link, or - if no value helps.
func needsOf(t *desk.Template) string {
	if t.Needs == nil {
		return "-"
	}
	var list []string
	for _, n := range t.Needs {
		list = append(list, n.Address+"="+string(n.Kind)+":"+n.URL)
	}
	return strings.Join(list, " ")
}

func TestTemplate_Needs(t *testing.T) {
	t.Parallel()
	link := func(url string) string { return `{"type":"URL","text":"Go","url":"` + url + `"}` }
	for _, c := range []struct {
		name, components, changes, needs string
		fillable                         bool
	}{
		{"none", needsBody, "", "", true},
		{"a picture", needsImage + "," + needsBody, "", "header.media=image:", true},
		{"a video", `{"type":"HEADER","format":"video"},` + needsBody, "", "header.media=video:", true},
		{"a document", `{"type":"header","format":"DOCUMENT"},` + needsBody, "", "header.media=document:", true},
		{"a text", `{"type":"HEADER","format":"TEXT","text":"{{media}}"},{"type":"BODY","text":"x"}`, "", "", true},
		{"a place", `{"type":"HEADER","format":"LOCATION"},` + needsBody, "", "-", false},
		{"a product", `{"type":"HEADER","format":"PRODUCT"},` + needsBody, "", "-", false},
		{"a moving picture", `{"type":"HEADER","format":"GIF"},` + needsBody, "", "-", false},
		{"a sticker", `{"type":"HEADER","format":"STICKER"},` + needsBody, "", "-", false},
		{"no format", `{"type":"HEADER"},` + needsBody, "", "-", false},
		{"two titles", needsImage + "," + needsImage + "," + needsBody, "", "-", false},

		{"a link", withButtons(link("https://a.example/{{1}}")), "", "button.0=:https://a.example/{{1}}", true},
		{"a link with spaces", withButtons(link("https://a.example/{{ 1 }}")), "", "button.0=:https://a.example/{{ 1 }}", true},
		{"links among buttons", withButtons(`{"type":"QUICK_REPLY","text":"Yes"},` + link("https://a.example/{{1}}") + `,` + link("https://a.example") + `,` + link("https://b.example/?q={{1}}")), "",
			"button.1=:https://a.example/{{1}} button.3=:https://b.example/?q={{1}}", true},
		{"buttons before the title", withButtons(link("https://a.example/{{1}}")) + "," + needsImage, "", "header.media=image: button.0=:https://a.example/{{1}}", true},
		{"a link in a named template", `{"type":"BODY","text":"Hi {{name}}"},{"type":"BUTTONS","buttons":[` + link("https://a.example/{{1}}") + `]}`, `{"parameter_format":"NAMED"}`,
			"button.0=:https://a.example/{{1}}", true},
		{"not at the end", withButtons(link("https://a.example/{{1}}/b")), "", "-", false},
		{"a space after it", withButtons(link("https://a.example/{{1}} ")), "", "-", false},
		{"two in a link", withButtons(link("https://a.example/{{1}}{{2}}")), "", "-", false},
		{"braces before it", withButtons(link("https://a.example/{{}}{{1}}")), "", "-", false},
		{"misspelt", withButtons(link("https://a.example/{{1-2}}")), "", "-", false},
		{"one of two", withButtons(link("https://a.example/{{1}}") + "," + link("https://a.example/{{1}}/b")), "", "-", false},
		{"a code", withButtons(link("https://www.whatsapp.com/otp/code/?code=otp{{1}}")), "", "-", false},
		{"a coupon", withButtons(link("https://a.example/{{1}}") + `,{"type":"COPY_CODE"}`), "", "-", false},
		{"a picture, and a coupon", needsImage + "," + withButtons(`{"type":"COPY_CODE"}`), "", "-", false},
		{"an offer", needsImage + `,{"type":"LIMITED_TIME_OFFER"},` + needsBody, "", "-", false},
		{"a carousel", needsBody + `,{"type":"CAROUSEL"}`, "", "-", false},
		{"no message", needsImage, "", "-", false},
		{"a footer with braces", needsImage + "," + needsBody + `,{"type":"FOOTER","text":"{{1}}"}`, "", "-", false},
		{"a code's category", needsImage + "," + needsBody, `{"category":"AUTHENTICATION"}`, "-", false},
		{"in review", needsImage + "," + needsBody, `{"status":"PENDING"}`, "header.media=image:", false},
		{"paused, without needs", needsBody, `{"status":"PAUSED"}`, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := templateOf(t, c.components, c.changes)
			if needsOf(got) != c.needs || got.Fillable() != c.fillable {
				t.Errorf("got %s, %v, want %s, %v", needsOf(got), got.Fillable(), c.needs, c.fillable)
			}
		})
	}
}

// richTemplate has a title of a kind, the message {{1}} and a link as its second button.
func richTemplate(t tester, kind, begin string) *desk.Template {
	t.Helper()
	return templateOf(t, `{"type":"HEADER","format":"`+kind+`"},`+
		withButtons(`{"type":"QUICK_REPLY","text":"Yes"},{"type":"URL","text":"Track it","url":"`+begin+`{{1}}","example":["`+begin+`A1"]}`), "")
}

func TestTemplate_ReasonsAgainst(t *testing.T) {
	t.Parallel()
	both := richTemplate(t, "IMAGE", "https://a.example/")
	pending := templateOf(t, needsImage+","+needsBody, `{"status":"PENDING"}`)
	helpless := templateOf(t, `{"type":"HEADER","format":"LOCATION"},`+withButtons(`{"type":"URL","text":"Go","url":"https://a.example/{{1}}"}`), "")
	for _, c := range []struct {
		name     string
		template *desk.Template
		in       desk.TemplateValues
		want     string
	}{
		{"nothing", both, keyed(), "[header_media button_variable]"},
		{"a list", both, listed("a", "b", "c"), "[header_media button_variable]"},
		{"a file", both, keyed("header.media", "x"), "[button_variable]"},
		{"an empty file", both, keyed("header.media", ""), "[button_variable]"},
		{"a link", both, keyed("button.1", "x"), "[header_media]"},
		{"another button", both, keyed("button.0", "x"), "[header_media]"},
		{"no button", both, keyed("button.", "x", "button.x", "x", "button", "x", "buttons.1", "x", "header.Media", "x", "media", "x"), "[header_media button_variable]"},
		{"both", both, keyed("button.1", "x", "header.media", "x"), "[]"},
		{"not approved", pending, keyed("header.media", "x"), "[not_approved]"},
		{"where nothing helps", helpless, keyed("button.0", "x", "header.media", "x"), "[header_media button_variable]"},
	} {
		if got := fmt.Sprint(c.template.ReasonsAgainst(c.in)); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestValues_needs(t *testing.T) {
	t.Parallel()
	const file, space, long = "the file is missing", "a link has no white space", "characters more than the 2000"
	begin := "https://ş.example/"
	rich := richTemplate(t, "DOCUMENT", begin)
	most := strings.Repeat("ş", desk.MaxLink-len([]rune(begin)))
	for _, c := range []struct {
		name string
		in   desk.TemplateValues
		want []string // address and message in turn; nil: accepted
	}{
		{"all", keyed("button.1", "A-17?a=b&c#ş{{1}}", "1", "Ann", "header.media", "not an id"), nil},
		{"the longest link", keyed("button.1", most, "1", "Ann", "header.media", "x"), nil},
		{"nothing", keyed(), []string{"1", "missing", "header.media", file, "button.1", "the value is missing"}},
		{"a list", listed("Ann"), []string{"header.media", file, "button.1", "the value is missing"}},
		{"empty", keyed("1", "", "header.media", "", "button.1", ""), []string{"1", "is empty", "header.media", file, "button.1", "is empty"}},
		{"blank", keyed("1", "Ann", "header.media", " \u200b", "button.1", "\u200b"), []string{"header.media", file, "button.1", "is empty"}},
		{"a longer link", keyed("button.1", most+"a", "1", "Ann", "header.media", "x"), []string{"button.1", "1 " + long}},
		{"a far longer link", keyed("button.1", strings.Repeat("a", 1<<20), "1", "Ann", "header.media", "x"), []string{"button.1", long}},
		{"white space", keyed("button.1", "a b", "1", "Ann", "header.media", "x"), []string{"button.1", space}},
		{"a wide space", keyed("button.1", "a\u3000b", "1", "Ann", "header.media", "x"), []string{"button.1", space}},
		{"a line", keyed("button.1", "a\u2028b", "1", "Ann", "header.media", "x"), []string{"button.1", space}},
		{"a control", keyed("button.1", "a\x7fb", "1", "Ann", "header.media", "x"), []string{"button.1", space}},
		{"a control of a second page", keyed("button.1", "a\u0085b", "1", "Ann", "header.media", "x"), []string{"button.1", space}},
		{"U+0000", keyed("button.1", "a\x00", "1", "Ann", "header.media", "x"), []string{"button.1", space}},
		{"no UTF-8", keyed("button.1", "a\xff", "1", "Ann", "header.media", "x"), []string{"button.1", "not valid UTF-8"}},
		{"unknown ones come last", keyed("z", "x", "button.0", "x", "button.01", "x", "header.media", "", "button.1", "\t"),
			[]string{"1", "missing", "header.media", file, "button.1", "is empty", "z", "no variable", "button.0", "no variable", "button.01", "no variable"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := rich.Values(c.in)
			if c.want == nil {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			problems, _ := desk.AsError(err).Details.([]desk.VariableProblem)
			if !desk.IsType(err, desk.InvalidVariables) || len(problems) != len(c.want)/2 {
				t.Fatalf("got %v, %+v", err, problems)
			}
			for i, p := range problems {
				if p.Address != c.want[2*i] || !strings.Contains(p.Message, c.want[2*i+1]) {
					t.Errorf("got %+v, want %q", p, c.want[2*i:2*i+2])
				}
			}
		})
	}
	plain := templateOf(t, needsBody, "")
	if _, err := plain.Values(keyed("1", "Ann", "header.media", "x")); !desk.IsType(err, desk.InvalidVariables) {
		t.Errorf("a file for a template without one: %v", err)
	}
}

func TestTemplate_Supplied(t *testing.T) {
	t.Parallel()
	rich := richTemplate(t, "VIDEO", "https://a.example/")
	in := keyed("button.1", "A{{1}}", "1", "Ann", "header.media", "m")
	supplied := rich.Supplied(in)
	if !slices.Equal(supplied, []string{"m", "A{{1}}"}) {
		t.Fatal(supplied)
	}
	if got := fmt.Sprint(rich.Links(supplied)); got != "[{Track it https://a.example/A{{1}}}]" {
		t.Error(got)
	}
	if got := fmt.Sprintf("%+v", rich.Components([]string{"Ann"}, supplied)); got != "[{Part:body Button:0 Parameters:[{Name: Text:Ann}]} {Part:button Button:1 Parameters:[{Name: Text:A{{1}}}]}]" {
		t.Error(got)
	}
	if got := fmt.Sprintf("%+v %v", rich.Look.Buttons, rich.Look.Samples); got != "[{Text:Yes Target: Need:} {Text:Track it Target:https://a.example/{{1}} Need:button.1}] map[button.1:A1]" {
		t.Error(got)
	}
	plain := templateOf(t, needsBody, "")
	if got := plain.Supplied(in); len(got) != 0 || plain.Links(got) != nil {
		t.Error(got)
	}
}

func TestNeed_Unsendable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind, mime string
		size       int64
		reason     string
	}{
		{"IMAGE", "image/jpeg", 5e6, ""}, {"IMAGE", "image/png", 1, ""}, {"VIDEO", "video/mp4", 16e6, ""}, {"VIDEO", "video/3gpp", 1, ""}, {"DOCUMENT", "application/pdf", 100e6, ""},
		{"IMAGE", "image/jpeg", 5e6 + 1, "size"}, {"VIDEO", "video/mp4", 16e6 + 1, "size"}, {"DOCUMENT", "application/pdf", 100e6 + 1, "size"},
		{"IMAGE", "image/webp", 1, "type"}, {"IMAGE", "image/gif", 1, "type"}, {"IMAGE", "video/mp4", 1, "type"}, {"IMAGE", "application/pdf", 1, "type"}, {"IMAGE", "", 1, "type"},
		{"VIDEO", "image/png", 1, "type"}, {"VIDEO", "audio/mp4", 1, "type"}, {"DOCUMENT", "text/plain", 1, "type"}, {"DOCUMENT", "image/png", 1, "type"}, {"DOCUMENT", docx, 1, "type"},
		{"IMAGE", "video/mp4", 17e6, "type"},
	} {
		need := richTemplate(t, c.kind, "https://a.example/").Needs[0]
		why := need.Unsendable(&desk.Media{MIME: c.mime, Kind: desk.KindOfMedia(c.mime), Size: c.size})
		switch {
		case why == nil && c.reason == "":
		case why == nil || why.Reason != c.reason || why.MIME != c.mime || why.Size != c.size || (why.Max == 0) != (c.reason == "type"):
			t.Errorf("%s of %d as %s: got %+v, want %s", c.mime, c.size, c.kind, why, c.reason)
		}
	}
}
