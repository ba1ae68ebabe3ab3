package desk_test

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"parley/desk"
)

//go:embed testdata/hours/cases.txt
var hoursCases string

// TestHours_cases compares 5,000 instants, with all shifts of eight zones in 22 years,
// with the results of another implementation, testdata/hours/make.py.
func TestHours_cases(t *testing.T) {
	t.Parallel()
	h, n, zones := (*desk.Hours)(nil), 0, map[string]bool{}
	for line := range strings.Lines(hoursCases) {
		words := strings.Fields(line)
		if len(words) == 2 {
			in := hoursOf(t, words[0], words[1])
			zones[words[0]] = true
			p, err := (&desk.PolicyInput{Hours: &in}).Policy(noSettings, desk.ID{})
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			h = p.Hours
			continue
		}
		n++
		at, ok := desk.ParseTime(words[0])
		if !ok {
			t.Fatal(line)
		}
		open := h.Open(at)
		until, changes := h.Until(at)
		got := fmt.Sprintf("%v %v", map[bool]string{true: "open", false: "closed"}[open], "-")
		if changes {
			got = strings.TrimSuffix(got, "-") + until.String()
		}
		if want := words[1] + " " + words[2]; got != want {
			t.Errorf("%s at %s: %s, want %s", h.TimeZone, words[0], got, want)
		}
	}
	if n < 5000 || len(zones) != 8 {
		t.Errorf("%d instants in %d zones", n, len(zones))
	}
}

var noSettings = desk.NewSettings(desk.Workspace{ID: desk.ID{1}}, 1, nil, nil, nil, nil)

// hoursOf reads hours as JSON.
func hoursOf(t *testing.T, zone, text string) desk.HoursInput {
	t.Helper()
	var read struct {
		Week       map[string][][]string
		Exceptions []struct {
			Date string
			Open [][]string
		}
	}
	if err := json.Unmarshal([]byte(text), &read); err != nil {
		t.Fatal(err)
	}
	in := desk.HoursInput{TimeZone: &zone, Week: read.Week}
	for _, e := range read.Exceptions {
		in.Exceptions = append(in.Exceptions, desk.ExceptionInput{Date: &e.Date, Open: e.Open})
	}
	return in
}

func TestHours(t *testing.T) {
	t.Parallel()
	const office = `{"week":{"mon":[["09:00","12:30"],["13:30","18:00"]],"fri":[["22:00","24:00"]],"sat":[["00:00","02:00"]],"sun":[["02:15","02:45"]]},"exceptions":[{"date":"2026-11-23","open":[]},{"date":"2026-11-24","open":[["10:00","11:00"]]}]}`
	for _, c := range []struct{ zone, at, open, until string }{
		{"Europe/Istanbul", "2026-11-16T05:59:59.999Z", "false", "2026-11-16T06:00:00.000Z"},
		{"Europe/Istanbul", "2026-11-16T06:00:00Z", "true", "2026-11-16T09:30:00.000Z"},
		{"Europe/Istanbul", "2026-11-16T09:30:00Z", "false", "2026-11-16T10:30:00.000Z"},
		{"Europe/Istanbul", "2026-11-16T15:00:00Z", "false", "2026-11-20T19:00:00.000Z"},
		{"Europe/Istanbul", "2026-11-20T19:00:00Z", "true", "2026-11-20T23:00:00.000Z"}, // past midnight
		{"Europe/Istanbul", "2026-11-23T07:00:00Z", "false", "2026-11-24T07:00:00.000Z"},
		{"Europe/Berlin", "2026-03-27T23:00:00Z", "true", "2026-03-28T01:00:00.000Z"},
		{"Europe/Berlin", "2026-03-29T00:30:00Z", "false", "2026-03-30T07:00:00.000Z"}, // 02:15 to 02:45 is skipped
		{"Europe/Berlin", "2026-10-25T00:10:00Z", "false", "2026-10-25T00:15:00.000Z"}, // and comes twice
		{"Europe/Berlin", "2026-10-25T00:20:00Z", "true", "2026-10-25T00:45:00.000Z"},
		{"Europe/Berlin", "2026-10-25T00:45:00Z", "false", "2026-10-25T01:15:00.000Z"},
		{"Europe/Berlin", "2026-10-25T01:15:00Z", "true", "2026-10-25T01:45:00.000Z"},
		{"UTC", "9999-12-31T23:59:59.999Z", "true", ""},
		{"UTC", "9999-12-31T00:30:00.000Z", "false", "9999-12-31T22:00:00.000Z"},
		{"America/New_York", "9999-12-31T23:30:00.000Z", "false", ""}, // 22:00 there is in the year 10000
	} {
		in := hoursOf(t, c.zone, strings.Replace(office, "2026-03-28", c.at[:10], 1))
		p, err := (&desk.PolicyInput{Hours: &in}).Policy(noSettings, desk.ID{})
		if err != nil {
			t.Fatal(err)
		}
		at, _ := desk.ParseTime(c.at)
		until, changes := p.Hours.Until(at)
		if got := fmt.Sprint(p.Hours.Open(at)); got != c.open || changes != (c.until != "") || changes && until.String() != c.until {
			t.Errorf("%s at %s: open %s until %s (%v), want %s until %s", c.zone, c.at, got, until, changes, c.open, c.until)
		}
	}
	var always *desk.Hours
	if until, changes := always.Until(5); !always.Open(5) || changes || until != 0 {
		t.Errorf("without hours it is closed, or closes at %s", until)
	}
	for _, spans := range []string{`{}`, `{"mon":[["00:00","24:00"]],"tue":[["00:00","24:00"]],"wed":[["00:00","24:00"]],"thu":[["00:00","24:00"]],"fri":[["00:00","24:00"]],"sat":[["00:00","24:00"]],"sun":[["00:00","07:00"],["07:00","24:00"]]}`} {
		in := hoursOf(t, "Pacific/Apia", `{"week":`+spans+`}`)
		p, err := (&desk.PolicyInput{Hours: &in}).Policy(noSettings, desk.ID{})
		if err != nil {
			t.Fatal(err)
		}
		if until, changes := p.Hours.Until(1_700_000_000_000); changes || p.Hours.Open(1_700_000_000_000) != (spans != `{}`) {
			t.Errorf("%s changes at %s", spans, until)
		}
	}
}

// TestHours_walk: the next change is the first minute that differs, whatever the zone.
func TestHours_walk(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		zone := rapid.SampledFrom([]string{"America/St_Johns", "Asia/Tehran", "Antarctica/Troll", "America/Havana", "Asia/Gaza", "UTC"}).Draw(r, "zone")
		in := desk.HoursInput{TimeZone: &zone, Week: map[string][][]string{}}
		for _, day := range desk.Weekdays {
			if n := rapid.IntRange(0, 6).Draw(r, day); n < 5 {
				from := rapid.IntRange(0, 300).Draw(r, "from")
				in.Week[day] = [][]string{{desk.Minute(from).String(), desk.Minute(from + 1 + rapid.IntRange(0, 1139).Draw(r, "length")).String()}}
			}
		}
		p, err := (&desk.PolicyInput{Hours: &in}).Policy(noSettings, desk.ID{})
		if err != nil {
			r.Fatal(err)
		}
		at := desk.Time(rapid.Int64Range(1_500_000_000, 1_900_000_000).Draw(r, "at")) * 1000
		until, changes := p.Hours.Until(at)
		const minute, most = desk.Time(60_000), 15 * 24 * 60
		for i := desk.Time(1); i <= most; i++ {
			t := at - at%minute + i*minute
			if p.Hours.Open(t) == p.Hours.Open(at) || t > at+most*minute {
				continue
			}
			if !changes || until != t {
				r.Fatalf("at %s in %s it changes at %s (%v), and first differs at %s", at, zone, until, changes, t)
			}
			return
		}
		if changes {
			r.Fatalf("at %s in %s nothing changes, not at %s either", at, zone, until)
		}
	})
}

// TestZones: every zone of the program can be read, and no other.
func TestZones(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "Local", "europe/berlin", "Europe", "Europe/", "../Europe/Berlin", "/etc/localtime", "posix/UTC", "UTC+3", "Berlin", "Europe/Berlin\x00"} {
		if _, err := (&desk.PolicyInput{Hours: &desk.HoursInput{TimeZone: &name}}).Policy(noSettings, desk.ID{}); !desk.IsType(err, desk.InvalidRequest) {
			t.Errorf("%q is a zone: %v", name, err)
		}
	}
	for _, name := range []string{"UTC", "Europe/Istanbul", "Europe/Kyiv", "Europe/Kiev", "America/Argentina/Buenos_Aires", "Asia/Calcutta", "EST5EDT"} {
		p, err := (&desk.PolicyInput{Hours: &desk.HoursInput{TimeZone: &name}}).Policy(noSettings, desk.ID{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		p.Hours.Until(desk.TimeOf(time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)))
	}
}
