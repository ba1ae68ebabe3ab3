package console

import (
	"strings"
	"testing"
)

func TestRuns(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"hello":                                "hello",
		"see https://a.example/x?y=1. Thanks!": "see [https://a.example/x?y=1]. Thanks!",
		"(http://a.example)":                   "([http://a.example])",
		"javascript:alert(1)":                  "javascript:alert(1)",
		"":                                     "",
		"https://":                             "https://",
		"*Order A-1*\nThanks":                  "<*Order A-1>\nThanks",
		"2*3*4 and snake_case_name":            "2*3*4 and snake_case_name",
		"_soon_, ~never~ ```x = 1```":          "<_soon>, <~never> <```x = 1>",
		"* a * b":                              "* a * b",
		"*see https://a.example/_b_*":          "*see [https://a.example/_b]_*",
	} {
		var b strings.Builder
		for _, r := range runs(text) {
			switch {
			case r.Link != "":
				b.WriteString("[" + r.Link + "]")
			case r.Mark != "":
				b.WriteString("<" + r.Mark + r.Text + ">")
			default:
				b.WriteString(r.Text)
			}
		}
		if b.String() != want {
			t.Errorf("%q: %q, want %q", text, b.String(), want)
		}
	}
	for _, mark := range []string{"\u202e", "\u2066", "\u200f"} {
		link := "https://a.example/" + mark + "moc.b"
		if r := runs(link); len(r) != 1 || r[0].Link != link || strings.Contains(r[0].Text, mark) || !strings.HasPrefix(r[0].Text, "https://a.example/%E2%8") {
			t.Errorf("a link with %+q: %+q", mark, r)
		}
	}
	if got := plain("*Order A-1* _soon_"); got != "Order A-1 soon" {
		t.Errorf("plain: %q", got)
	}
}

func TestGlimpse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "[": "[", "[]": "[]", "Hello *Ann*": "Hello Ann", "[image]": "Photo", "[image] Our shop": "Photo: Our shop", "[reaction] ❤️": "Reacted ❤️", "[document: a.pdf]": "Document: a.pdf", "[document: a.pdf] My bill": "Document: My bill", "[document]": "Document", "[document: a]b.pdf]": "[document: a]b.pdf]", "[image: a]": "[image: a]",
		"image] x": "image] x", "[reaction removed]": "[reaction removed]",
	} {
		if got := glimpse(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestIDsTwice(t *testing.T) {
	t.Parallel()
	if twice := idsTwice(`<p id="a"></p><div class="x" id="a"><template id="b"></template><li data-id="b" id="c">`); len(twice) != 1 || twice[0] != "a" {
		t.Errorf("%q", twice)
	}
}
