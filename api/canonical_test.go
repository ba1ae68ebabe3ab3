package api_test

import (
	"fmt"
	"strings"
	"testing"

	"parley/api"

	"pgregory.net/rapid"
)

func TestCanonical(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: `{}`, ` [ ] `: `[]`, `null`: `null`, `true`: `true`, ` "x" `: `"x"`,
		`{"b":1,"a":{"d":[],"c":{}}}`:         `{"a":{"c":{},"d":[]},"b":1}`,
		`{"a b":1,"a":2,"a\"":3}`:             `{"a":2,"a b":1,"a\"":3}`, // by the names' own bytes
		`{"é":1,"z":2,"\u0000":3}`:            `{"\u0000":3,"z":2,"é":1}`,
		`"\u0041\u00e9\ud83d\ude00\/\u000A"`:  `"Aé😀/\n"`,
		`[1.0,-0,1e2,0.10,100E-2]`:            `[1,0,100,0.1,1]`,
		`[9007199254740993,9007199254740992]`: `[9007199254740993,9007199254740992]`,
		`[1e400,1E400]`:                       `[1e400,1E400]`, // not decimals: each spelling is kept
	} {
		got, err := api.Canonical([]byte(text))
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v, want %s", text, got, err, want)
		}
	}
	if got, err := api.Canonical([]byte(`{"a":1,"a":1}`)); err == nil {
		t.Errorf("a duplicate member: %s", got)
	}
}

// A value is a JSON value in its canonical form, and in one of its other forms.
type value struct{ canonical, other string }

// values returns a generator of values that are nested at most as deep as levels says.
func values(levels int) *rapid.Generator[value] {
	return rapid.Custom(func(t *rapid.T) value {
		space := func() string { return rapid.SampledFrom([]string{"", "", " ", "\n\t", "\r "}).Draw(t, "space") }
		kind := rapid.IntRange(0, 5).Draw(t, "kind")
		if levels == 0 {
			kind %= 4
		}
		var v value
		switch kind {
		case 0:
			v.canonical = rapid.SampledFrom([]string{"null", "true", "false"}).Draw(t, "literal")
			v.other = v.canonical
		case 1:
			n := rapid.Int32().Draw(t, "number")
			v.canonical = fmt.Sprint(n)
			v.other = fmt.Sprintf(rapid.SampledFrom([]string{"%d", "%d.0", "%de0", "%d.000E+0"}).Draw(t, "spelling"), n)
		case 2, 3:
			v = text(t, rapid.StringOf(rapid.SampledFrom([]rune("ab\"\\/é😀\n"))).Draw(t, "text"))
		case 4:
			list := rapid.SliceOfN(values(levels-1), 0, 4).Draw(t, "elements")
			var canonical, other []string
			for _, e := range list {
				canonical, other = append(canonical, e.canonical), append(other, e.other)
			}
			v = value{"[" + strings.Join(canonical, ",") + "]", "[" + space() + strings.Join(other, ","+space()) + space() + "]"}
		case 5:
			// Ascending names, and the same members in another order.
			names := []string{"", "A", "a", "a\"", "aa", "b", "é"}
			var canonical, other []string
			for _, name := range names {
				if !rapid.Bool().Draw(t, "there") {
					continue
				}
				n, e := text(t, name), values(levels-1).Draw(t, "member")
				canonical = append(canonical, n.canonical+":"+e.canonical)
				other = append(other, n.other+space()+":"+e.other)
			}
			other = rapid.Permutation(other).Draw(t, "order")
			v = value{"{" + strings.Join(canonical, ",") + "}", "{" + strings.Join(other, space()+",") + space() + "}"}
		}
		v.other = space() + v.other + space()
		return v
	})
}

// text returns a string in two spellings: with the fewest escapes, and with some more.
func text(t *rapid.T, s string) value {
	fewest := strings.NewReplacer(`"`, `\"`, `\`, `\\`, "\n", `\n`).Replace(s)
	more := strings.NewReplacer(`"`, `\u0022`, `\`, `\u005C`, "\n", `\u000a`, "/", `\/`, "a", `\u0061`, "😀", `\uD83D\ude00`).Replace(s)
	if rapid.Bool().Draw(t, "escaped") {
		return value{`"` + fewest + `"`, `"` + more + `"`}
	}
	return value{`"` + fewest + `"`, `"` + fewest + `"`}
}

// TestCanonicalLaw: two texts have the same canonical form if they have the same value, and
// only then.
func TestCanonicalLaw(t *testing.T) {
	form := func(t *rapid.T, text string) string {
		b, err := api.Canonical([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return string(b)
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := values(3).Draw(t, "a"), values(3).Draw(t, "b")
		if got := form(t, a.other); got != a.canonical {
			t.Fatalf("%s\nhas the form %s\nwant %s", a.other, got, a.canonical)
		}
		if got := form(t, a.canonical); got != a.canonical {
			t.Fatalf("the form of a form: %s, want %s", got, a.canonical)
		}
		if same := form(t, b.other) == a.canonical; same != (a.canonical == b.canonical) {
			t.Fatalf("%s and %s: same form is %t", a.other, b.other, same)
		}
	})
}
