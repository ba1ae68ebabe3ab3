package desk_test

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"parley/desk"
)

func TestAppendJSONString(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"":                    `""`,
		"plain":               `"plain"`,
		`"\/`:                 `"\"\\/"`,
		"\b\t\n\f\r":          `"\b\t\n\f\r"`,
		"\x00\x01\x1b\x1f":    `"\u0000\u0001\u001b\u001f"`,
		"<b>&</b>":            `"<b>&</b>"`,
		"\x7f\u2028\u2029ş👋🏽": "\"\x7f\u2028\u2029ş👋🏽\"",
		"a\nb":                `"a\nb"`,
		"\n":                  `"\n"`,
		"end\"":               `"end\""`,
	} {
		if got := string(desk.AppendJSONString([]byte("x:"), s)); got != "x:"+want {
			t.Errorf("%q: got %s, want %s", s, got, want)
		}
	}
}

// checkJSONString checks that a text is read back as itself.
func checkJSONString(t tester, s string) {
	t.Helper()
	quoted := desk.AppendJSONString(nil, s)
	var back string
	if err := json.Unmarshal(quoted, &back); err != nil || back != s {
		t.Fatalf("%q is %s, which is %q, %v", s, quoted, back, err)
	}
}

func TestAppendJSONString_reads_back(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { checkJSONString(t, rapid.String().Draw(t, "s")) })
}

func BenchmarkAppendJSONString(b *testing.B) {
	for _, s := range []string{"Ada Lovelace", "two lines\nand a \"quote\""} {
		b.Run(s[:3], func(b *testing.B) {
			buf := make([]byte, 0, 64)
			b.ReportAllocs()
			for b.Loop() {
				buf = desk.AppendJSONString(buf[:0], s)
			}
		})
	}
}
