package desk_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"parley/desk"
)

func TestTime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		at   desk.Time
		want string
	}{
		{0, "1970-01-01T00:00:00.000Z"},
		{1, "1970-01-01T00:00:00.001Z"},
		{-1, "1969-12-31T23:59:59.999Z"},
		{1_785_000_000_120, "2026-07-25T17:20:00.120Z"},
		{253_402_300_799_999, "9999-12-31T23:59:59.999Z"},
		{-62_135_596_800_000, "0001-01-01T00:00:00.000Z"},
	} {
		if got := c.at.String(); got != c.want {
			t.Errorf("%d is %s, want %s", c.at, got, c.want)
		}
		if got := string(c.at.Append([]byte("at "))); got != "at "+c.want {
			t.Errorf("appended: %s", got)
		}
		if got, ok := desk.ParseTime(c.want); got != c.at || !ok {
			t.Errorf("%s is read as %d, %v", c.want, got, ok)
		}
	}
	zone := time.FixedZone("", 3*60*60)
	if got := desk.TimeOf(time.Date(2026, 7, 25, 20, 20, 0, 120_999_999, zone)); got != 1_785_000_000_120 {
		t.Errorf("cut to %s", got)
	}
	if got := desk.TimeOf(time.Date(1969, 12, 31, 23, 59, 59, 998_999_999, time.UTC)); got != -2 {
		t.Errorf("before 1970 cut to %d", got)
	}
}

// TestParseTime checks the times that a filter such as updated_since accepts. Datetime
// attributes accept the same: see attribute_test.go.
func TestParseTime(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]string{
		"2026-07-25T17:20:00Z":                 "2026-07-25T17:20:00.000Z",
		"2026-07-25t17:20:00z":                 "2026-07-25T17:20:00.000Z",
		"2026-07-25T17:20:00.1Z":               "2026-07-25T17:20:00.100Z",
		"2026-07-25T17:20:00.1209999Z":         "2026-07-25T17:20:00.120Z",
		"2026-07-25T20:20:00+03:00":            "2026-07-25T17:20:00.000Z",
		"2026-07-25T20:20:00-00:00":            "2026-07-25T20:20:00.000Z",
		"2026-12-31T23:59:59.999-23:59":        "2027-01-01T23:58:59.999Z",
		"2024-02-29T00:00:00+00:01":            "2024-02-28T23:59:00.000Z",
		"2026-07-25T17:20:00.123456789123456Z": "2026-07-25T17:20:00.123Z",
		"":                                     "",
		"2026-07-25":                           "",
		"2026-07-25T17:20Z":                    "",
		"2026-07-25T17:20:00":                  "",
		"2026-07-25 17:20:00Z":                 "",
		"2026-07-25T17:20:00.Z":                "",
		"2026-07-25T17:20:00,5Z":               "",
		"2026-07-25T7:20:00Z":                  "",
		"2026-07-25T24:00:00Z":                 "",
		"2026-07-25T17:60:00Z":                 "",
		"2026-07-25T17:20:60Z":                 "",
		"2026-02-29T17:20:00Z":                 "",
		"2026-07-25T17:20:00+0300":             "",
		"2026-07-25T17:20:00+03":               "",
		"2026-07-25T17:20:00+24:00":            "",
		"2026-07-25T17:20:00+03:60":            "",
		"2026-07-25T17:20:00 03:00":            "", // a + that a query string made a space
		"2026-07-25T17:20:00Z ":                "",
		" 2026-07-25T17:20:00Z":                "",
		"2026-07-25T17:20:00ZZ":                "",
		"2026-07-25T17:20:00.5":                "",
		"+026-07-25T17:20:00Z":                 "",
		"0000-12-31T23:59:59Z":                 "",
		"0001-01-01T00:00:00+00:01":            "",
		"9999-12-31T23:59:59-00:01":            "",
		"20260725T172000Z":                     "",
		"1785000000":                           "",
		"2026-07-25T17:20:00\u00a0Z":           "",
		"２０２６-07-25T17:20:00Z":                 "",
	} {
		at, ok := desk.ParseTime(sent)
		if ok != (want != "") || ok && at.String() != want {
			t.Errorf("%q: %s, %v; want %q", sent, at, ok, want)
		}
	}
}

func TestTime_reads_back(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		at := desk.Time(rapid.Int64Range(-62_135_596_800_000, 253_402_300_799_999).Draw(t, "milliseconds"))
		if again, ok := desk.ParseTime(at.String()); again != at || !ok {
			t.Fatalf("%s is read as %s, %v", at, again, ok)
		}
	})
}
