package desk_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"parley/desk"
)

func FuzzParsePhone(f *testing.F) {
	for _, country := range []string{"", "US", "TR", "AU", "BR", "WS", "CL", "XX"} {
		for _, s := range []string{"+905321234567", "0532 123 45 67", "0011 44 20 7946 0000", "011 1 (202) 555-0123", "0055 11 91234/5678", "+0", "00", "5550123"} {
			f.Add(s, country)
		}
	}
	f.Fuzz(func(t *testing.T, s, country string) {
		digits, err := desk.ParsePhone(s, country)
		if err != nil {
			if digits != "" || err.Error() == "" {
				t.Fatalf("%q: got %q, %q", s, digits, err)
			}
			return
		}
		if len(digits) < desk.MinPhoneDigits || len(digits) > desk.MaxPhoneDigits || strings.Trim(digits, "0123456789") != "" || digits[0] == '0' {
			t.Fatalf("%q in %q is %q, which is no number", s, country, digits)
		}
		if again, err := desk.ParsePhone("+"+digits, country); again != digits || err != nil {
			t.Fatalf("%q in %q is %q, which is %q, %v", s, country, digits, again, err)
		}
	})
}

func FuzzParseEmail(f *testing.F) {
	for _, s := range []string{"Ada@Example.com", " a@b ", "a@b@c", "@", "İ@ẞ", "a@\u0085b", "a\x00@b", "a\xff@b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		email, err := desk.ParseEmail(s)
		if err != nil {
			return
		}
		if email != strings.TrimSpace(s) || len(email) > desk.MaxEmail || strings.Count(email, "@") != 1 || !utf8.ValidString(email) {
			t.Fatalf("%q is %q", s, email)
		}
		if again, err := desk.ParseEmail(email); again != email || err != nil {
			t.Fatalf("%q is %q, which is %q, %v", s, email, again, err)
		}
	})
}

func FuzzParseDecimal(f *testing.F) {
	for _, s := range []string{"0", "-0.00", "42.50", "1.5e-3", "1e400", "0e999999", "+5", "01", "1.", "9e37", " 1 ", "100e-2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { checkDecimal(t, s) })
}

func FuzzDate(f *testing.F) {
	for _, s := range []string{"2024-02-29", "2026-02-29", "0000-01-01", "9999-12-31", "2026-1-01", "2026-08-20T12:30:45.5+03:00", "2026-08-20t12:30:45z"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		checkDate(t, s)
		checkDatetime(t, s)
	})
}

func FuzzAppendJSONString(f *testing.F) {
	for _, s := range []string{"", "plain", "\"\\\b\f\n\r\t", "\x00\x1f\x7f", "\u2028👋🏽", "<&>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			if got := string(desk.AppendJSONString(nil, s)); !strings.HasPrefix(got, `"`) || !strings.HasSuffix(got, `"`) {
				t.Fatalf("%q is %q", s, got)
			}
			return
		}
		checkJSONString(t, s)
	})
}
