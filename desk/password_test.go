package desk_test

import (
	"strings"
	"testing"

	"parley/desk"
)

func TestParsePassword(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, want string }{
		{"fourteen chars", ""},
		{"fifteen charact", "fifteen charact"},
		{strings.Repeat("ü", 15), strings.Repeat("ü", 15)},
		{strings.Repeat("ü", 14), ""},
		{strings.Repeat("u\u0308", 15), strings.Repeat("ü", 15)},
		{strings.Repeat("x", 256), strings.Repeat("x", 256)},
		{strings.Repeat("x", 257), ""},
		{" spaces are kept ", " spaces are kept "},
		{"Ada.Lovelace@Example.COM", ""},
		{" ada.lovelace@example.com ", ""},
		{"invalid \xff\xff\xff\xff\xff\xff\xff\xff", ""},
	} {
		got, err := desk.ParsePassword(tc.in, "ada.lovelace@example.com")
		if got != tc.want || (err == nil) != (tc.want != "") {
			t.Errorf("ParsePassword(%q) = %q, %v", tc.in, got, err)
		}
	}
}
