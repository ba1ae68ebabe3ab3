package desk_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/desk"
)

const (
	noDigits  = "has 7 to 15 digits"
	noForm    = "separators"
	noCountry = "no default country"
	notThere  = "no number of the workspace's default country"
	noArea    = "without its area code"
	startsBy0 = "never begins with 0"
)

func TestParsePhone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sent, country string
		want          string // the digits, or a part of the error
	}{
		// Digits with +: format and count only, whatever the country.
		{"+905321234567", "", "905321234567"},
		{"+905321234567", "US", "905321234567"},
		{" \t+905321234567\n", "", "905321234567"},
		{"+90 (532) 123-45.67/", "", "905321234567"},
		{"(+90) 532 123 45 67", "", "905321234567"},
		{"+1234567", "", "1234567"},
		{"+123456", "", noDigits},
		{"+999999999999999", "", "999999999999999"},
		{"+9999999999999999", "", noDigits},
		{"+15555550100", "TR", "15555550100"}, // not a valid number, but it need not be one
		{"+44 (0)20 7946 0000", "", "442079460000"},
		{"+05321234567", "TR", startsBy0},
		{"+0090 532 123 45 67", "", startsBy0},
		{"+", "", noDigits},
		{"+390669812345", "", "390669812345"},

		// 00 without a country.
		{"00905321234567", "", "905321234567"},
		{"00 90 532 123 45 67", "", "905321234567"},
		{"(00) 90-532-1234567", "", "905321234567"},
		{"00123456", "", noDigits},
		{"00999999999999999", "", "999999999999999"},
		{"009999999999999999", "", noDigits},
		{"0000905321234567", "", startsBy0},

		// Neither, without a country: international digits.
		{"905321234567", "", "905321234567"},
		{"202 555 0123", "", "2025550123"},
		{"05321234567", "", noCountry},
		{"123456", "", noDigits},
		{"1234567890123456", "", noDigits},

		// Texts that are not numbers.
		{"", "", noDigits},
		{"   ", "TR", noDigits},
		{"-", "TR", noDigits},
		{"call me", "TR", noForm},
		{"+90 532 123 45 67 ext 8", "", noForm},
		{"+90+5321234567", "", noForm},
		{"++905321234567", "", noForm},
		{"90+5321234567", "", noForm},
		{"+90\t5321234567", "", noForm},
		{"+90\u00a05321234567", "", noForm},
		{"+٩٠٥٣٢١٢٣٤٥٦٧", "", noForm},
		{"+90532\x001234567", "", noForm},
		{"+90532\xff1234567", "", noForm},
		{"tel:+905321234567", "", noForm},
		{strings.Repeat("1", 10_000), "US", noDigits},
		{strings.Repeat("0", 10_000), "US", noDigits},

		// United States: 011 abroad, 1 as trunk prefix.
		{"2025550123", "US", "12025550123"},
		{"(202) 555-0123", "US", "12025550123"},
		{"1 202 555 0123", "US", "12025550123"},
		{"+1 202 555 0123", "US", "12025550123"},
		{"416 555 0123", "US", "14165550123"}, // Canada has the same plan
		{"202 555 0123", "CA", "12025550123"},
		{"011 90 532 123 45 67", "US", "905321234567"},
		{"011 1 202 555 0123", "US", "12025550123"},
		{"00 90 532 123 45 67", "US", "905321234567"},
		{"011 999 1234567", "US", "9991234567"}, // the prefix counts even if the number after it is not valid
		{"011 532 12", "US", noDigits},
		{"905321234567", "US", "905321234567"}, // too long for the US
		{"6591234567", "US", "6591234567"},     // possible in the US, valid in Singapore
		{"555-555-0100", "US", "15555550100"},  // possible in the US, valid nowhere
		{"555-0123", "US", noArea},
		{"2902345", "US", noArea}, // though it is valid on Saint Helena
		{"0202 555 0123", "US", notThere},
		{"123456", "US", noDigits},

		// Turkey: 0 as trunk prefix.
		{"0532 123 45 67", "TR", "905321234567"},
		{"532 123 45 67", "TR", "905321234567"},
		{"90 532 123 45 67", "TR", "905321234567"},
		{"0090 532 123 45 67", "TR", "905321234567"},
		{"0212 345 67 89", "TR", "902123456789"},
		{"444 1 234", "TR", "904441234"}, // a whole number, although short
		{"234 56 78", "TR", noArea},
		{"0123 456 78 90", "TR", "901234567890"}, // possible only
		{"442079460000", "TR", "442079460000"},
		{"12025550123", "TR", "12025550123"},
		{"298123456", "TR", "298123456"},       // the Faroes; no number of nine digits in Turkey
		{"011 1 202 555 0123", "TR", notThere}, // service numbers of that length don't count

		// United Kingdom.
		{"020 7946 0000", "GB", "442079460000"},
		{"07911 123456", "GB", "447911123456"}, // Guernsey, in the same plan
		{"44 20 7946 0000", "GB", "442079460000"},
		{"0044 20 7946 0000", "GB", "442079460000"},
		{"0800 1111", "GB", "448001111"},
		{"7946 0000", "GB", noArea},
		{"946 0000", "GB", noArea},

		// Australia: 0011 abroad, which counts before 00.
		{"0412 345 678", "AU", "61412345678"},
		{"(02) 9876 5432", "AU", "61298765432"},
		{"61 412 345 678", "AU", "61412345678"},
		{"0011 44 20 7946 0000", "AU", "442079460000"},
		{"00 44 20 7946 0000", "AU", "442079460000"},
		{"0011 999 1234567", "AU", "9991234567"},
		{"0011 0412 345 678", "AU", startsBy0},
		{"9876 5432", "AU", noArea},

		// Brazil: 00 and a carrier abroad, 0 and a carrier inland.
		{"(11) 91234-5678", "BR", "5511912345678"},
		{"0 11 91234-5678", "BR", "5511912345678"},
		{"0 15 11 91234-5678", "BR", "5511912345678"},
		{"55 11 91234-5678", "BR", "5511912345678"},
		{"0014 1 202 555 0123", "BR", "12025550123"},
		{"00 1 202 555 0123", "BR", "12025550123"},
		{"0055 11 91234-5678", "BR", "5511912345678"}, // not the prefix 0055 and country 1
		{"91234-5678", "BR", noArea},
		{"3123-4567", "BR", noArea},

		// Germany: numbers of many lengths.
		{"030 123456", "DE", "4930123456"},
		{"0151 12345678", "DE", "4915112345678"},
		{"4915112345678", "DE", "4915112345678"},     // not 04915 112345678
		{"04915 112345678", "DE", "494915112345678"}, // this is the number 04915 112345678
		{"1234567", "DE", "491234567"},
		{"905321234567", "DE", "905321234567"},

		// Italy: the leading zero is part of the number.
		{"06 698 12345", "IT", "390669812345"},
		{"39 06 698 12345", "IT", "390669812345"},
		{"0039 06 698 12345", "IT", "390669812345"},
		{"333 123 4567", "IT", "393331234567"},
		{"39 333 123 4567", "IT", "393331234567"},

		// Argentina: 15 marks a mobile inland, 9 abroad.
		{"011 15-2345-6789", "AR", "5491123456789"},
		{"9 11 2345 6789", "AR", "5491123456789"},
		{"54 9 11 2345 6789", "AR", "5491123456789"},
		{"11 2345 6789", "AR", "541123456789"},
		{"2345 6789", "AR", noArea},

		// Mexico: 00 or 09 abroad.
		{"55 1234 5678", "MX", "525512345678"},
		{"52 55 1234 5678", "MX", "525512345678"},
		{"00 1 202 555 0123", "MX", "12025550123"},
		{"09 1 202 555 0123", "MX", "12025550123"},
		{"1234 5678", "MX", noArea},

		// Other plans with prefixes of their own.
		{"8 912 345-67-89", "RU", "79123456789"},
		{"8 10 44 20 7946 0000", "RU", "442079460000"},
		{"010 1 202 555 0123", "JP", "12025550123"},
		{"03-1234-5678", "JP", "81312345678"},
		{"000 44 20 7946 0000", "KE", "442079460000"},
		{"0 44 20 7946 0000", "WS", "442079460000"},
		{"00 44 20 7946 0000", "WS", "442079460000"},
		{"001 1 202 555 0123", "SG", "12025550123"},
		{"0065 9123 4567", "SG", "6591234567"}, // not the prefix 006 and country 59
		{"212345", "FO", noDigits},             // a whole number there, but too short for us

		// An unknown country counts as no country.
		{"05321234567", "XX", noCountry},
		{"905321234567", "001", "905321234567"},
	} {
		got, err := desk.ParsePhone(c.sent, c.country)
		checkParsed(t, c.sent+" in "+c.country, c.want, got, err)
	}
}

// checkParsed compares a result with want, which is the value or a part of the error. A want
// with a space is an error.
func checkParsed(t *testing.T, sent, want, got string, err error) {
	t.Helper()
	switch {
	case err == nil && got != want:
		t.Errorf("%.60q: got %q, want %q", sent, got, want)
	case err != nil && got != "":
		t.Errorf("%.60q: got %q beside the error %v", sent, got, err)
	case err != nil && (want == "" || !strings.Contains(err.Error(), want)):
		t.Errorf("%.60q: got error %q, want %q", sent, err, want)
	}
}

func TestParsePhone_digits_parse_to_themselves(t *testing.T) {
	t.Parallel()
	countries := rapid.SampledFrom([]string{"", "US", "TR", "GB", "AU", "BR", "DE", "IT", "AR", "MX", "SG", "CL", "WS", "HK", "FI", "CN"})
	rapid.Check(t, func(t *rapid.T) {
		country := countries.Draw(t, "country")
		sent := rapid.StringMatching(`(\+|00|011|0011|0)?[0-9 ()./-]{5,18}`).Draw(t, "sent")
		digits, err := desk.ParsePhone(sent, country)
		if err != nil {
			return
		}
		again, err := desk.ParsePhone("+"+digits, country)
		if err != nil || again != digits {
			t.Fatalf("%q in %q is %q, which is %q, %v", sent, country, digits, again, err)
		}
	})
}

// TestParsePhone_many_trunks: a trunk prefix may follow another one.
func TestParsePhone_many_trunks(t *testing.T) {
	t.Parallel()
	for _, sent := range []string{"+430000000000", "+4300000000", "+490015112345678", "+44000207946000", "+6100412345678"} {
		digits, err := desk.ParsePhone(sent, "")
		if err != nil {
			t.Errorf("%s: %v", sent, err)
			continue
		}
		if again, err := desk.ParsePhone("+"+digits, ""); again != digits || err != nil {
			t.Errorf("%s is %s, which is %s, %v", sent, digits, again, err)
		}
		i, err := desk.ParseIdentity(desk.KindPhone, sent, "")
		if err != nil || i.Value != digits {
			t.Errorf("%s is the identity %+v, %v, and the phone %s", sent, i, err, digits)
		}
	}
}

func TestParsePhone_spellings_agree(t *testing.T) {
	t.Parallel()
	subscribers := map[string]struct{ code, trunk, abroad, number string }{
		"US": {"1", "1", "011", "202555[0-9]{4}"},
		"TR": {"90", "0", "00", "53[0-9]{8}"},
		"GB": {"44", "0", "00", "207946[0-9]{4}"},
		"AU": {"61", "0", "0011", "412[0-9]{6}"},
		"BR": {"55", "0", "0014", "119[6-9][0-9]{7}"},
		"DE": {"49", "0", "00", "1511[0-9]{7}"},
		"IT": {"39", "", "00", "06698[0-9]{5}"},
	}
	rapid.Check(t, func(t *rapid.T) {
		country := rapid.SampledFrom([]string{"US", "TR", "GB", "AU", "BR", "DE", "IT"}).Draw(t, "country")
		c := subscribers[country]
		n := rapid.StringMatching(c.number).Draw(t, "number")
		for _, sent := range []string{
			n, c.trunk + n, "(" + n[:3] + ") " + n[3:], n[:2] + "-" + n[2:6] + "." + n[6:],
			c.code + n, "+" + c.code + n, "+" + c.code + " " + n[:3] + "/" + n[3:],
			"00" + c.code + n, c.abroad + c.code + n, c.abroad + " " + c.code + " " + n,
		} {
			if got, err := desk.ParsePhone(sent, country); got != c.code+n || err != nil {
				t.Fatalf("%q in %s is %q, %v; want %q", sent, country, got, err, c.code+n)
			}
		}
	})
}

func TestParsePhone_names_no_number(t *testing.T) {
	t.Parallel()
	for _, country := range []string{"", "US"} {
		for _, sent := range []string{"01234", "0555-0123", "+0123456789", "0202 555 0123", "x55555"} {
			_, err := desk.ParsePhone(sent, country)
			if err == nil || strings.Contains(err.Error(), sent) || strings.Contains(err.Error(), "555") {
				t.Errorf("%q: %v", sent, err)
			}
		}
	}
}

func TestParseEmail(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 252) + "@b"
	for sent, want := range map[string]string{
		"Ada@Example.com":       "Ada@Example.com",
		"  a@b\n":               "a@b",
		"a@b":                   "a@b",
		"ünï@çödé.example":      "ünï@çödé.example",
		"a+tag@localhost":       "a+tag@localhost",
		long:                    long,
		long + "c":              "at most 254 bytes",
		"":                      "one @",
		"a":                     "one @",
		"@b":                    "one @",
		"a@":                    "one @",
		"a@b@c":                 "one @",
		"@@":                    "one @",
		"a b@c":                 "no spaces",
		"a@b\tc":                "no spaces",
		"a@b\u00a0c":            "no spaces",
		"a\u2028@b":             "no spaces",
		"a\u0007@b":             "control characters",
		"a\u0085@b":             "no spaces",
		"a\x00@b":               "U+0000",
		"a\xff@b":               "UTF-8",
		"Ada <ada@example.com>": "no spaces",
	} {
		got, err := desk.ParseEmail(sent)
		checkParsed(t, sent, want, got, err)
	}
}

func TestParseTexts(t *testing.T) {
	t.Parallel()
	wide := strings.Repeat("ş", 255) // two bytes each
	for _, c := range []struct {
		name, sent, want string
		parse            func(string) (string, error)
	}{
		{"external id", " crm-1 ", "crm-1", desk.ParseExternalID},
		{"external id", "A b", "A b", desk.ParseExternalID},
		{"external id", wide, wide, desk.ParseExternalID},
		{"external id", wide + "ş", "1 to 255 characters, this one has 256", desk.ParseExternalID},
		{"external id", " ", "1 to 255 characters, this one has 0", desk.ParseExternalID},
		{"external id", "a\x00", "U+0000", desk.ParseExternalID},
		{"external id", "a\xc3", "UTF-8", desk.ParseExternalID},
		{"name", " Ada\tLovelace ", "Ada\tLovelace", desk.ParseName},
		{"name", "  ", "", desk.ParseName},
		{"name", wide, wide, desk.ParseName},
		{"name", wide + "ş", "at most 255 characters, this one has 256", desk.ParseName},
		{"name", "\x00", "U+0000", desk.ParseName},
		{"note", "", "", desk.ParseNote},
		{"note", "two\nlines\n", "two\nlines", desk.ParseNote},
		{"note", strings.Repeat("ş", 10_000), strings.Repeat("ş", 10_000), desk.ParseNote},
		{"note", strings.Repeat("ş", 10_001), "at most 10000 characters", desk.ParseNote},
	} {
		got, err := c.parse(c.sent)
		checkParsed(t, c.name+" "+c.sent, c.want, got, err)
	}
}

func TestParseCountry(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]string{
		"": "", " ": "", "TR": "TR", " tr ": "TR", "us": "US",
		"XX": "ISO 3166", "TUR": "ISO 3166", "001": "ISO 3166", "UK": "ISO 3166", "T": "ISO 3166", "\x00\x00": "ISO 3166",
	} {
		got, err := desk.ParseCountry(sent)
		checkParsed(t, sent, want, got, err)
	}
}

func TestParseKind(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"a", "phone", "whatsapp_user", "crm2", "x_", strings.Repeat("a", 32)} {
		if err := desk.ParseKind(kind); err != nil {
			t.Errorf("%q: %v", kind, err)
		}
	}
	for _, kind := range []string{"", "A", "1a", "_a", "a-b", "a b", " a", "é", "a\x00", strings.Repeat("a", 33)} {
		if desk.ParseKind(kind) == nil {
			t.Errorf("%q is accepted", kind)
		}
	}
}

func TestParseIdentity(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, sent, want string }{
		{"external_id", " A1 ", "A1"},
		{"external_id", "", "1 to 255"},
		{"email", " Ada@Example.com ", "ada@example.com"},
		{"email", "ada", "one @"},
		{"phone", "0532 123 45 67", "905321234567"},
		{"phone", "532", noDigits},
		{"whatsapp", "905321234567", "905321234567"},
		{"whatsapp", " +905321234567 ", "905321234567"},
		{"whatsapp", "+90 532 123 45 67", "digits, nothing else"},
		{"whatsapp", "05321234567", startsBy0},
		{"whatsapp", "0905321234567", startsBy0},
		{"whatsapp", "123456", noDigits},
		{"whatsapp", "1234567890123456", noDigits},
		{"whatsapp", "", noDigits},
		{"whatsapp_user", " TR.Ab1 ", "TR.Ab1"},
		{"whatsapp_user", " ", "1 to 255"},
		{"instagram", " @Ada ", "@Ada"},
		{"instagram", strings.Repeat("ş", 256), "1 to 255"},
		{"instagram", "a\x00", "U+0000"},
	} {
		got, err := desk.ParseIdentity(c.kind, c.sent, "TR")
		checkParsed(t, c.kind+" "+c.sent, c.want, got.Value, err)
	}
}

func TestParseIdentity_is_idempotent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]string{"external_id", "email", "whatsapp", "whatsapp_user", "crm"}).Draw(t, "kind")
		sent := rapid.OneOf(rapid.String(), rapid.StringMatching(` ?\+?[1-9][0-9]{5,16} ?`), rapid.StringMatching(` ?\pL{1,9}@\pL+ ?`)).Draw(t, "sent")
		i, err := desk.ParseIdentity(kind, sent, "")
		if err != nil {
			return
		}
		if again, err := desk.ParseIdentity(kind, i.Value, ""); err != nil || again.Value != i.Value {
			t.Fatalf("%s %q is %q, which is %q, %v", kind, sent, i, again, err)
		}
	})
}

func BenchmarkParsePhone(b *testing.B) {
	for _, c := range []struct{ name, sent, country string }{
		{"plus", "+905321234567", "TR"},
		{"separators", "+90 532 123 45 67", "TR"},
		{"local", "0532 123 45 67", "TR"},
		{"abroad", "905321234567", "US"},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := desk.ParsePhone(c.sent, c.country); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParseEmail(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		email, err := desk.ParseEmail("ada.lovelace@example.com")
		if err != nil || desk.CanonicalEmail(email) != email {
			b.Fatal(email, err)
		}
	}
}
