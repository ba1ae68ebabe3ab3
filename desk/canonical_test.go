package desk_test

import (
	"os"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/cases"

	"parley/desk"
)

func TestCanonicalEmail(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]string{
		"":                          "",
		"ada@example.com":           "ada@example.com",
		"ADA@Example.COM":           "ada@example.com",
		"ÄDÄ@Example.com":           "ädä@example.com",
		"A\u0308da@example.com":     "äda@example.com",
		"ada@BÜCHER.example":        "ada@xn--bcher-kva.example",
		"ada@bu\u0308cher.example":  "ada@xn--bcher-kva.example",
		"ada@XN--Bcher-Kva.example": "ada@xn--bcher-kva.example",
		"ada@bücher。example":        "ada@xn--bcher-kva.example",
		"ada@faß.example":           "ada@xn--fa-hia.example", // non-transitional: not fass
		"ada@fass.example":          "ada@fass.example",
		"İ@x":                       "İ@x",
		"I\u0307@x":                 "İ@x",
		"i@x":                       "i@x",
		"I@x":                       "i@x",
		"ı@x":                       "ı@x",
		"ß@x":                       "ß@x",
		"ẞ@x":                       "ß@x",
		"ss@x":                      "ss@x",
		"ΣΑΣ@x":                     "σασ@x",
		"σας@x":                     "σασ@x",
		"\u212Aelvin@x":             "kelvin@x",
		"a@Ⴀ":                       "a@xn--rkj",     // only its lower-case letter is allowed
		"a@b_c.exämple":             "a@b_c.exämple", // no IDNA form
		"a@B_C.exÄmple":             "a@b_c.exämple",
		"Дарья@пример.рф":           "дарья@xn--e1afmkfd.xn--p1ai",
	} {
		if got := desk.CanonicalEmail(sent); got != want || desk.CanonicalEmail(got) != want {
			t.Errorf("%q: got %q, then %q, want %q", sent, got, desk.CanonicalEmail(got), want)
		}
	}
}

// Where CaseFolding.txt folds a character to one character, simple folding gives the same.
// Any other result is a character that itself folds to several.
func TestCanonicalEmail_folds_simply(t *testing.T) {
	t.Parallel()
	full := cases.Fold()
	for r := rune(0x80); r <= unicode.MaxRune; r++ {
		if !unicode.IsLetter(r) {
			continue
		}
		// A letter before the character keeps combining marks from composing with others.
		got := desk.CanonicalEmail("\u00e9" + string(r) + "@x")
		want := desk.CanonicalEmail("\u00e9" + full.String(string(r)) + "@x")
		if n := len([]rune(full.String(string(r)))); n == 1 && got != want {
			t.Errorf("%U: %q, but its folding %q", r, got, want)
		}
	}
}

func TestParse_refuses_format_characters(t *testing.T) {
	t.Parallel()
	for _, sent := range []string{"a\u200bda@example.com", "ada@ex\u00adample.com", "ada@example.com\u2060", "\ufeffada@example.com"} {
		_, err := desk.ParseEmail(sent)
		checkParsed(t, sent, "Cf", "", err)
	}
	for _, sent := range []string{"ada@example.com.", "ada@bücher.example.", "ada@bücher.example。", "ada@example．"} {
		_, err := desk.ParseEmail(sent)
		checkParsed(t, sent, "does not end with a dot", "", err)
	}
	_, err := desk.ParseExternalID("A\u200d1")
	checkParsed(t, "A1", "Cf", "", err)
	if _, err := desk.ParseIdentity("instagram", "a\u200db", ""); err != nil {
		t.Errorf("a kind with exact values: %v", err)
	}
}

func TestCanonicalNumber(t *testing.T) {
	t.Parallel()
	for digits, want := range map[string]string{
		"5511987654321":  "5511987654321", // Brazil
		"551187654321":   "5511987654321",
		"55011987654321": "5511987654321",
		"5501187654321":  "5511987654321",
		"551134567890":   "551134567890",
		"5215512345678":  "525512345678", // Mexico
		"525512345678":   "525512345678",
		"5491112345678":  "541112345678", // Argentina
		"541112345678":   "541112345678",
		"54111512345678": "541112345678",
		"5401112345678":  "541112345678",
		"4407700900123":  "447700900123",
		"447700900123":   "447700900123",
		"610412345678":   "61412345678",
		"61412345678":    "61412345678",
		"49015112345678": "4915112345678",
		"9005321234567":  "905321234567",
		"905321234567":   "905321234567",
		"390669812345":   "390669812345", // Italy keeps its zero
		"39669812345":    "39669812345",
		"112025550123":   "12025550123",
		"12025550123":    "12025550123",
		"789123456789":   "79123456789", // Russia's trunk prefix is 8
		"78123456789":    "78123456789", // Saint Petersburg's area code too begins with 8
		"999123456":      "999123456",   // no country
		"TR.90":          "TR.90",
		"":               "",
	} {
		if got := desk.CanonicalNumber(digits); got != want {
			t.Errorf("%s: got %s, want %s", digits, got, want)
		}
	}
}

func TestParsePhone_drops_trunk_prefixes(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]string{
		"+44 (0)7700 900123":    "447700900123",
		"0044 07700 900123":     "447700900123",
		"+61 0412 345 678":      "61412345678",
		"4407700900123":         "447700900123",
		"+39 06 6981 2345":      "390669812345",
		"+54 11 15 1234 5678":   "5491112345678",
		"+54 0 11 1234 5678":    "541112345678",
		"+521 55 1234 5678":     "5215512345678", // sent to in these digits
		"+55 11 8765 4321":      "551187654321",
		"+55 (0) 11 98765 4321": "5511987654321",
		"+7 8 (912) 345-67-89":  "79123456789",
	} {
		got, err := desk.ParsePhone(sent, "")
		checkParsed(t, sent, want, got, err)
	}
}

// Opt-outs of the first release are stored by the hash of DialledNumber.
func FuzzCanonicalNumber(f *testing.F) {
	for _, s := range []string{"5511987654321", "5215512345678", "520123456789", "5201123456789", "54111512345678", "5401", "4407700900123", "4400", "3758029", "7", "780", "x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, digits string) {
		if len(digits) > 20 || strings.Trim(digits, "0123456789") != "" {
			return
		}
		got := desk.CanonicalNumber(digits)
		if again := desk.CanonicalNumber(got); again != got {
			t.Fatalf("%s is %s, which is %s", digits, got, again)
		}
		for _, country := range []string{"52", "54", "55"} {
			dialled := desk.DialledNumber(digits)
			if strings.HasPrefix(digits, country) && dialled != digits && digits[2] != '0' && dialled[2] != '0' && got != dialled {
				t.Fatalf("%s is %s, and is dialled as %s", digits, got, dialled)
			}
		}
		if phone, err := desk.ParsePhone("+"+digits, ""); err == nil && desk.CanonicalNumber(phone) != got {
			t.Fatalf("%s is %s, and as %s it is %s", digits, got, phone, desk.CanonicalNumber(phone))
		}
	})
}

func FuzzCanonicalEmail(f *testing.F) {
	for _, s := range []string{"Ada@Example.com", "İ@ẞ", "a@bücher.example", "a@XN--", "a@\u0345\u0301", "e\u0301@é。x", "x\u0345\u0345\u0301@ǰ", "a@xn--bücher"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		i, err := desk.ParseIdentity("email", s, "")
		if err != nil {
			return
		}
		if again := desk.CanonicalEmail(i.Value); again != i.Value || strings.Count(i.Value, "@") != 1 {
			t.Fatalf("%q is %q, which is %q", s, i.Value, again)
		}
		if claim := i.Claim(); claim.Value != i.Value {
			t.Fatalf("%q claims %q", i, claim)
		}
	})
}

// The claims of a database are made with the data of this version.
func TestIdentityRules_names_the_phone_library(t *testing.T) {
	t.Parallel()
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(mod), "github.com/nyaruka/phonenumbers ")
	version, _, _ := strings.Cut(rest, "\n")
	if version == "" || !strings.Contains(desk.IdentityRules(), "phones "+version) {
		t.Errorf("%s: go.mod has version %s of the phone library: set phoneData", desk.IdentityRules(), version)
	}
}

func BenchmarkCanonicalForms(b *testing.B) {
	b.Run("email", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			desk.CanonicalEmail("ada.lovelace@example.com")
		}
	})
	for _, digits := range []string{"905321234567", "12025550123", "5511987654321", "4407700900123", "78123456789"} {
		b.Run(digits, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				desk.CanonicalNumber(digits)
			}
		})
	}
}

func TestOlderRules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b  string
		older bool
	}{
		{"", desk.IdentityRules(), true},
		{desk.IdentityRules(), "", false},
		{desk.IdentityRules(), desk.IdentityRules(), false},
		{"rules 1, unicode 15.0.0, phones v1.8.1", "rules 2, unicode 15.0.0, phones v1.8.1", true},
		{"rules 1, unicode 15.0.0, phones v1.9.1", "rules 1, unicode 15.0.0, phones v1.10.0", true},
		{"rules 1, unicode 16.0.0, phones v1.8.1", "rules 1, unicode 15.0.0, phones v1.10.0", false},
		{"rules 1, phones v1.8.1", "not finished: rules 1, phones v1.8.1", false},
	} {
		if got := desk.OlderRules(c.a, c.b); got != c.older {
			t.Errorf("%q is older than %q: %v", c.a, c.b, got)
		}
	}
}
