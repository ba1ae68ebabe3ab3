package desk_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"parley/desk"
)

func sent[T any](v T) desk.Field[T] { return desk.Field[T]{Set: true, Value: v} }
func null[T any]() desk.Field[T]    { return desk.Field[T]{Set: true, Null: true} }

func TestAttributeInput_creates(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ş", 300)
	many := make([]string, 501)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	for _, c := range []struct {
		name string
		in   desk.AttributeInput
		want desk.Attribute // the zero Attribute: refused, and why is
		why  string
	}{
		{"only what is required", desk.AttributeInput{Key: "tier", Type: sent("text")},
			desk.Attribute{Key: "tier", Label: "tier", Type: "text", Position: 7}, ""},
		{"everything", desk.AttributeInput{Key: "tier_2", Label: sent(" Tier "), Description: sent(" Of service\n"), Type: sent("select"), Options: sent([]string{"B", " A "}), Position: sent[int64](0)},
			desk.Attribute{Key: "tier_2", Label: "Tier", Description: "Of service", Type: "select", Options: []string{"B", " A "}}, ""},
		{"nulls", desk.AttributeInput{Key: "tier", Label: null[string](), Description: null[string](), Type: sent("number"), Options: null[[]string](), Position: null[int64]()},
			desk.Attribute{Key: "tier", Label: "tier", Type: "number", Position: 7}, ""},
		{"no options where none belong", desk.AttributeInput{Key: "tier", Type: sent("date"), Options: sent([]string{})},
			desk.Attribute{Key: "tier", Label: "tier", Type: "date", Position: 7}, ""},
		{"limits", desk.AttributeInput{Key: strings.Repeat("k", 64), Label: sent(long[:280]), Description: sent(long), Type: sent("multiselect"), Options: sent(many[:500]), Position: sent[int64](desk.MaxPosition)},
			desk.Attribute{Key: strings.Repeat("k", 64), Label: long[:280], Description: long, Type: "multiselect", Options: many[:500], Position: desk.MaxPosition}, ""},
		{"key is empty", desk.AttributeInput{Type: sent("text")}, desk.Attribute{}, "/key: "},
		{"key is in upper case", desk.AttributeInput{Key: "Tier", Type: sent("text")}, desk.Attribute{}, "/key: "},
		{"key has spaces", desk.AttributeInput{Key: " tier", Type: sent("text")}, desk.Attribute{}, "/key: "},
		{"key begins with a digit", desk.AttributeInput{Key: "2tier", Type: sent("text")}, desk.Attribute{}, "/key: "},
		{"key is too long", desk.AttributeInput{Key: strings.Repeat("k", 65), Type: sent("text")}, desk.Attribute{}, "/key: "},
		{"type is missing", desk.AttributeInput{Key: "tier"}, desk.Attribute{}, "/type: "},
		{"type is null", desk.AttributeInput{Key: "tier", Type: null[string]()}, desk.Attribute{}, "/type: "},
		{"type is unknown", desk.AttributeInput{Key: "tier", Type: sent("Text")}, desk.Attribute{}, "boolean, url, multiselect or datetime"},
		{"type is empty", desk.AttributeInput{Key: "tier", Type: sent("")}, desk.Attribute{}, "/type: "},
		{"label is blank", desk.AttributeInput{Key: "tier", Type: sent("text"), Label: sent(" ")}, desk.Attribute{}, "/label: "},
		{"label is too long", desk.AttributeInput{Key: "tier", Type: sent("text"), Label: sent(long[:282])}, desk.Attribute{}, "/label: "},
		{"label holds U+0000", desk.AttributeInput{Key: "tier", Type: sent("text"), Label: sent("a\x00")}, desk.Attribute{}, "/label: "},
		{"description is too long", desk.AttributeInput{Key: "tier", Type: sent("text"), Description: sent(long + "ş")}, desk.Attribute{}, "/description: "},
		{"position is negative", desk.AttributeInput{Key: "tier", Type: sent("text"), Position: sent[int64](-1)}, desk.Attribute{}, "/position: "},
		{"position is too great", desk.AttributeInput{Key: "tier", Type: sent("text"), Position: sent[int64](desk.MaxPosition + 1)}, desk.Attribute{}, "/position: "},
		{"options are missing", desk.AttributeInput{Key: "tier", Type: sent("select")}, desk.Attribute{}, "/options: "},
		{"options are null", desk.AttributeInput{Key: "tier", Type: sent("multiselect"), Options: null[[]string]()}, desk.Attribute{}, "/options: "},
		{"options are none", desk.AttributeInput{Key: "tier", Type: sent("select"), Options: sent([]string{})}, desk.Attribute{}, "/options: "},
		{"options are too many", desk.AttributeInput{Key: "tier", Type: sent("select"), Options: sent(many)}, desk.Attribute{}, "/options: "},
		{"options where none belong", desk.AttributeInput{Key: "tier", Type: sent("text"), Options: sent([]string{"A"})}, desk.Attribute{}, "/options: "},
		{"an option is empty", desk.AttributeInput{Key: "tier", Type: sent("select"), Options: sent([]string{"A", ""})}, desk.Attribute{}, "/options/1: "},
		{"an option is too long", desk.AttributeInput{Key: "tier", Type: sent("select"), Options: sent([]string{long[:512]})}, desk.Attribute{}, "/options/0: "},
		{"an option twice", desk.AttributeInput{Key: "tier", Type: sent("select"), Options: sent([]string{"A", "B", "a", "B"})}, desk.Attribute{}, "/options/3: this option is there twice: it is also number 2"},
		{"an option holds U+0000", desk.AttributeInput{Key: "tier", Type: sent("select"), Options: sent([]string{"\x00"})}, desk.Attribute{}, "/options/0: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := c.in.Apply(nil, 3, 7)
			checkApplied(t, got, err, c.want, desk.InvalidRequest, c.why)
		})
	}
}

// checkApplied checks that Apply returned the attribute or, if why is set, the refusal.
func checkApplied(t *testing.T, got desk.Attribute, err error, want desk.Attribute, refusal desk.ErrorType, why string) {
	t.Helper()
	if why == "" {
		if err != nil || !got.Equal(&want) {
			t.Errorf("got %+v, %v\nwant %+v", got, err, want)
		}
		return
	}
	if !desk.IsType(err, refusal) || !strings.Contains(err.Error(), why) || got.Key != "" {
		t.Errorf("got %+v, %v\nwant %s, %q", got, err, refusal, why)
	}
}

func TestAttributeInput_updates(t *testing.T) {
	t.Parallel()
	tier := desk.Attribute{Key: "tier", Label: "Tier", Description: "Of service", Type: "select", Options: []string{"A", "B"}, Position: 2}
	with := func(change func(*desk.Attribute)) desk.Attribute {
		a := tier
		change(&a)
		return a
	}
	const conflict = "is of type select"
	for _, c := range []struct {
		name string
		in   desk.AttributeInput
		want desk.Attribute
		why  string
	}{
		{"nothing", desk.AttributeInput{}, tier, ""},
		{"the same type", desk.AttributeInput{Type: sent("select")}, tier, ""},
		{"no type", desk.AttributeInput{Type: null[string]()}, tier, ""},
		{"label", desk.AttributeInput{Label: sent("Level")}, with(func(a *desk.Attribute) { a.Label = "Level" }), ""},
		{"no label", desk.AttributeInput{Label: null[string]()}, with(func(a *desk.Attribute) { a.Label = "tier" }), ""},
		{"no description", desk.AttributeInput{Description: null[string]()}, with(func(a *desk.Attribute) { a.Description = "" }), ""},
		{"empty description", desk.AttributeInput{Description: sent("")}, with(func(a *desk.Attribute) { a.Description = "" }), ""},
		{"options", desk.AttributeInput{Options: sent([]string{"C"})}, with(func(a *desk.Attribute) { a.Options = []string{"C"} }), ""},
		{"position", desk.AttributeInput{Position: sent[int64](9)}, with(func(a *desk.Attribute) { a.Position = 9 }), ""},
		{"last position", desk.AttributeInput{Position: null[int64]()}, with(func(a *desk.Attribute) { a.Position = 7 }), ""},
		{"null options", desk.AttributeInput{Options: null[[]string]()}, desk.Attribute{}, "/options: "},
		{"no options", desk.AttributeInput{Options: sent([]string{})}, desk.Attribute{}, "/options: "},
		{"blank label", desk.AttributeInput{Label: sent("")}, desk.Attribute{}, "/label: "},
		{"unknown type", desk.AttributeInput{Type: sent("list")}, desk.Attribute{}, "/type: "},
		{"another type", desk.AttributeInput{Type: sent("text")}, desk.Attribute{}, conflict},
		{"another type that takes no options", desk.AttributeInput{Type: sent("text"), Options: sent([]string{"A"})}, desk.Attribute{}, conflict},
		{"another type with options", desk.AttributeInput{Type: sent("multiselect"), Options: sent([]string{})}, desk.Attribute{}, conflict},
	} {
		for _, archived := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s archived=%v", c.name, archived), func(t *testing.T) {
				t.Parallel()
				existing, c := tier, c // both runs of the case are parallel
				existing.Archived, c.want.Archived = archived, archived
				refusal := desk.InvalidRequest
				if c.why == conflict {
					refusal = desk.TypeConflict
				}
				c.in.Key = "tier"
				got, err := c.in.Apply(&existing, desk.MaxAttributes, 7) // the limit does not apply to changes
				checkApplied(t, got, err, c.want, refusal, c.why)
				if existing.Archived = false; !existing.Equal(&tier) {
					t.Errorf("what existed became %+v", existing)
				}
			})
		}
	}
}

func TestAttributeInput_last_stays_last(t *testing.T) {
	t.Parallel()
	last := desk.Attribute{Key: "tier", Label: "tier", Type: "text", Position: 6}
	in := desk.AttributeInput{Key: "tier", Position: null[int64]()}
	if got, err := in.Apply(&last, 7, 7); err != nil || !got.Equal(&last) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAttributeInput_limits_attributes(t *testing.T) {
	t.Parallel()
	in := desk.AttributeInput{Key: "tier", Type: sent("text")}
	if _, err := in.Apply(nil, desk.MaxAttributes-1, 1); err != nil {
		t.Errorf("the last one: %v", err)
	}
	if _, err := in.Apply(nil, desk.MaxAttributes, 1); !desk.IsType(err, desk.InvalidRequest) {
		t.Errorf("one too many: %v", err)
	}
}

func TestAttributeEqual(t *testing.T) {
	t.Parallel()
	base := desk.Attribute{Key: "k", Label: "l", Description: "d", Type: "text", Position: 1}
	same := base
	same.Options = []string{}
	if !base.Equal(&same) {
		t.Error("no options and an empty list of them differ")
	}
	for i, change := range []func(*desk.Attribute){
		func(a *desk.Attribute) { a.Key = "x" },
		func(a *desk.Attribute) { a.Label = "x" },
		func(a *desk.Attribute) { a.Description = "x" },
		func(a *desk.Attribute) { a.Type = "url" },
		func(a *desk.Attribute) { a.Options = []string{"x"} },
		func(a *desk.Attribute) { a.Position = 2 },
		func(a *desk.Attribute) { a.Archived = true },
	} {
		if other := base; true {
			change(&other)
			if base.Equal(&other) {
				t.Errorf("change %d makes no difference", i)
			}
		}
	}
}

func str(s string) desk.Value { return desk.Value{Kind: desk.StringValue, Text: s} }
func num(s string) desk.Value { return desk.Value{Kind: desk.NumberValue, Text: s} }
func list(v ...desk.Value) desk.Value {
	l := desk.Value{Kind: desk.ListValue}
	for _, e := range v {
		if e.Kind != desk.StringValue {
			return desk.Value{Kind: desk.OtherValue}
		}
		l.Text += e.Text + desk.ListEnd
	}
	return l
}

var (
	trueValue   = desk.Value{Kind: desk.BoolValue, Bool: true}
	falseValue  = desk.Value{Kind: desk.BoolValue}
	objectValue = desk.Value{Kind: desk.OtherValue}
)

func TestCanonical(t *testing.T) {
	t.Parallel()
	const (
		oneOf  = "expected one of: A, B, c \"d\""
		listOf = "expected a list of: A, B, c \"d\""
		date   = "expected a date as YYYY-MM-DD"
		when   = "expected a time as RFC 3339"
		web    = "expected a URL"
		number = "expected a number"
		truth  = "expected true or false"
		long   = "longer than 4000 characters"
	)
	wide := strings.Repeat("ş", 4000)
	page := "https://example.com/" + strings.Repeat("ş", 1980)
	for _, c := range []struct {
		kind  desk.AttributeType
		value desk.Value
		want  string // JSON, a reason, or "" when it clears
	}{
		{"text", str("Ada"), `"Ada"`},
		{"text", str("  Ada\n\"&\" "), `"  Ada\n\"&\" "`},
		{"text", str(" "), `" "`},
		{"text", str(""), ""},
		{"text", str(wide), `"` + wide + `"`},
		{"text", str(wide + "a"), long},
		{"text", str("a\x00"), "expected text"},
		{"text", str("a\xff"), "expected text"},
		{"text", num("1"), "expected text"},
		{"text", trueValue, "expected text"},
		{"text", list(), "expected text"},
		{"text", objectValue, "expected text"},

		{"number", num("42"), "42"},
		{"number", num("1.50e3"), "1500"},
		{"number", str(" 42.50 "), "42.5"},
		{"number", str("-0"), "0"},
		{"number", str(""), number},
		{"number", str("+5"), number},
		{"number", str("0x10"), number},
		{"number", str("1e400"), number},
		{"number", num("1e400"), number},
		{"number", str("twelve"), number},
		{"number", trueValue, number},
		{"number", list(num("1")), number},
		{"number", objectValue, number},

		{"select", str("A"), `"A"`},
		{"select", str(`c "d"`), `"c \"d\""`},
		{"select", str("a"), oneOf},
		{"select", str(" A"), oneOf},
		{"select", str(""), oneOf},
		{"select", num("1"), oneOf},
		{"select", list(str("A")), oneOf},
		{"select", list(), oneOf},

		{"date", str("2026-02-28"), `"2026-02-28"`},
		{"date", str("2024-02-29"), `"2024-02-29"`},
		{"date", str("2000-02-29"), `"2000-02-29"`},
		{"date", str("0001-01-01"), `"0001-01-01"`},
		{"date", str("9999-12-31"), `"9999-12-31"`},
		{"date", str("2026-02-29"), date},
		{"date", str("1900-02-29"), date},
		{"date", str("2026-04-31"), date},
		{"date", str("2026-00-10"), date},
		{"date", str("2026-13-01"), date},
		{"date", str("2026-01-00"), date},
		{"date", str("2026-01-32"), date},
		{"date", str("0000-01-01"), date},
		{"date", str("2026-1-1"), date},
		{"date", str("20260101"), date},
		{"date", str("2026/01/01"), date},
		{"date", str("-026-01-01"), date},
		{"date", str("2026-01-+1"), date},
		{"date", str(" 2026-01-01"), date},
		{"date", str("2026-01-01T00:00:00Z"), date},
		{"date", str(""), date},
		{"date", num("20260101"), date},
		{"date", list(), date},

		{"boolean", trueValue, "true"},
		{"boolean", falseValue, "false"},
		{"boolean", str("true"), "true"},
		{"boolean", str("false"), "false"},
		{"boolean", str("True"), truth},
		{"boolean", str("1"), truth},
		{"boolean", str(""), truth},
		{"boolean", num("1"), truth},
		{"boolean", list(), truth},
		{"boolean", objectValue, truth},

		{"url", str("https://example.com"), `"https://example.com"`},
		{"url", str("HTTP://Example.com:8080/a?b=c#d"), `"HTTP://Example.com:8080/a?b=c#d"`},
		{"url", str("https://user:pw@[::1]/"), `"https://user:pw@[::1]/"`},
		{"url", str("https://çödé.example/ş?q=\"x\""), `"https://çödé.example/ş?q=\"x\""`},
		{"url", str(page), `"` + page + `"`},
		{"url", str(page + "a"), web},
		{"url", str("ftp://example.com"), web},
		{"url", str("javascript:alert(1)"), web},
		{"url", str("//example.com"), web},
		{"url", str("example.com"), web},
		{"url", str("/path"), web},
		{"url", str("https:example.com"), web},
		{"url", str("https://"), web},
		{"url", str("https:///path"), web},
		{"url", str("https://:80/"), web},
		{"url", str("https://user@/"), web},
		{"url", str("https://exa mple.com"), web},
		{"url", str(" https://example.com"), web},
		{"url", str("https://example.com/a b"), web},
		{"url", str("https://example.com/\u00a0"), web},
		{"url", str("https://example.com/\n"), web},
		{"url", str("https://example.com/\x00"), web},
		{"url", str("https://example.com/\xff"), web},
		{"url", str("https://example.com/%zz"), web},
		{"url", str(""), web},
		{"url", num("1"), web},

		{"multiselect", list(str("B"), str("A")), `["B","A"]`},
		{"multiselect", list(str("B"), str("A"), str("B")), `["B","A"]`},
		{"multiselect", list(str(`c "d"`)), `["c \"d\""]`},
		{"multiselect", list(), ""},
		{"multiselect", list(str("A"), str("C")), listOf},
		{"multiselect", list(str("")), listOf},
		{"multiselect", list(num("1")), listOf},
		{"multiselect", list(list(str("A"))), listOf},
		{"multiselect", list(desk.Value{}), listOf},
		{"multiselect", str("A"), listOf},
		{"multiselect", str(""), listOf},
		{"multiselect", objectValue, listOf},
		{"multiselect", list(slices.Repeat([]desk.Value{str("A")}, 500)...), `["A"]`},
		{"multiselect", list(slices.Repeat([]desk.Value{str("A")}, 501)...), listOf},

		{"datetime", str("2026-08-20T12:30:45Z"), `"2026-08-20T12:30:45.000Z"`},
		{"datetime", str("2026-08-20t12:30:45z"), `"2026-08-20T12:30:45.000Z"`},
		{"datetime", str("2026-08-20T12:30:45.5Z"), `"2026-08-20T12:30:45.500Z"`},
		{"datetime", str("2026-08-20T12:30:45.1239999Z"), `"2026-08-20T12:30:45.123Z"`},
		{"datetime", str("1969-12-31T23:59:59.9999Z"), `"1969-12-31T23:59:59.999Z"`},
		{"datetime", str("2026-08-20T12:30:45+03:00"), `"2026-08-20T09:30:45.000Z"`},
		{"datetime", str("2026-01-01T00:00:00+05:45"), `"2025-12-31T18:15:00.000Z"`},
		{"datetime", str("2026-12-31T23:00:00-02:30"), `"2027-01-01T01:30:00.000Z"`},
		{"datetime", str("2026-08-20T12:30:45-00:00"), `"2026-08-20T12:30:45.000Z"`},
		{"datetime", str("0001-01-01T00:00:00Z"), `"0001-01-01T00:00:00.000Z"`},
		{"datetime", str("9999-12-31T23:59:59.999Z"), `"9999-12-31T23:59:59.999Z"`},
		{"datetime", str("0001-01-01T00:00:00+00:01"), when},
		{"datetime", str("9999-12-31T23:59:59-00:01"), when},
		{"datetime", str("2026-02-29T00:00:00Z"), when},
		{"datetime", str("2026-08-20T24:00:00Z"), when},
		{"datetime", str("2026-08-20T23:60:00Z"), when},
		{"datetime", str("2026-12-31T23:59:60Z"), when},
		{"datetime", str("2026-08-20T1:30:45Z"), when},
		{"datetime", str("2026-08-20T12:30Z"), when},
		{"datetime", str("2026-08-20T12:30:45"), when},
		{"datetime", str("2026-08-20T12:30:45.Z"), when},
		{"datetime", str("2026-08-20T12:30:45,5Z"), when},
		{"datetime", str("2026-08-20T12:30:45+24:00"), when},
		{"datetime", str("2026-08-20T12:30:45+01:60"), when},
		{"datetime", str("2026-08-20T12:30:45+0100"), when},
		{"datetime", str("2026-08-20T12:30:45+1:00"), when},
		{"datetime", str("2026-08-20 12:30:45Z"), when},
		{"datetime", str("2026-08-20T12:30:45Zz"), when},
		{"datetime", str("2026-08-20T12-30-45Z"), when},
		{"datetime", str("2026-08-20"), when},
		{"datetime", str(""), when},
		{"datetime", num("1787229045"), when},
	} {
		a := desk.Attribute{Key: "k", Type: c.kind, Options: []string{"A", "B", `c "d"`}}
		got, reason := a.Canonical(c.value)
		start, _, _ := strings.Cut(reason, "; ") // the rest quotes the value: TestCanonical_quotes
		if got+start != c.want || reason != "" && got != "" || got != "" && !json.Valid([]byte(got)) {
			t.Errorf("%s %.60v: got JSON %.60q, reason %q, want %.60q", c.kind, c.value, got, reason, c.want)
		}
	}
}

// TestCanonical_quotes: after its reason, a refused option or date quotes what was sent.
func TestCanonical_quotes(t *testing.T) {
	t.Parallel()
	list := func(options ...string) desk.Value {
		return desk.Value{Kind: desk.ListValue, Text: strings.Join(options, desk.ListEnd) + desk.ListEnd}
	}
	for _, c := range []struct {
		kind  desk.AttributeType
		value desk.Value
		want  string
	}{
		{"select", str("gold"), `; got "gold"`},
		{"select", str(strings.Repeat("ü", 60)), `; got "` + strings.Repeat("ü", 60) + `"`},
		{"select", str(strings.Repeat("ü", 61)), `; got "` + strings.Repeat("ü", 60) + `…"`},
		{"select", num(strings.Repeat("7", 61)), "; got " + strings.Repeat("7", 60) + "…"},
		{"select", desk.Value{Kind: desk.BoolValue}, ""},
		{"select", str(""), "; empty; send null to clear"},
		{"multiselect", list("A", "x", "y"), `; got "x"`},
		{"multiselect", str("A"), `; got "A"`},
		{"date", str("31.01.2026"), `; got "31.01.2026"`},
		{"date", num("20260131"), "; got 20260131"},
		{"datetime", str("2026-01-31"), `; got "2026-01-31"`},
		{"date", str(""), "; empty; send null to clear"},
		{"number", str(""), "; empty; send null to clear"},
		{"number", str("twelve"), ""},
		{"url", str("parley"), ""},
	} {
		a := desk.Attribute{Key: "k", Type: c.kind, Options: []string{"A", "B"}}
		_, reason := a.Canonical(c.value)
		if start, got, _ := strings.Cut(reason, "; "); !strings.HasPrefix(start, "expected ") || strings.TrimPrefix(c.want, "; ") != got {
			t.Errorf("%s %.60v: %q, want %q at the end", c.kind, c.value, reason, c.want)
		}
	}
}

func TestCanonical_null_clears_and_archived_refuses(t *testing.T) {
	t.Parallel()
	values := []desk.Value{{}, str(""), str("x"), num("1"), trueValue, list(), objectValue}
	for _, kind := range desk.AttributeTypes {
		a := desk.Attribute{Key: "k", Type: kind, Options: []string{"x"}}
		if got, reason := a.Canonical(desk.Value{}); got != "" || reason != "" {
			t.Errorf("%s: null is %q, %q", kind, got, reason)
		}
		a.Archived = true
		for _, v := range values {
			if got, reason := a.Canonical(v); got != "" || reason != "this workspace attribute is archived" {
				t.Errorf("%s %v: got %q, %q", kind, v, got, reason)
			}
		}
	}
}

// checkDate compares date with the calendar of package time.
func checkDate(t tester, s string) {
	t.Helper()
	a := desk.Attribute{Type: desk.DateAttribute}
	got, reason := a.Canonical(str(s))
	day, err := time.Parse(time.DateOnly, s)
	real := err == nil && day.Year() >= 1 && day.Format(time.DateOnly) == s
	if real != (reason == "") || real && got != `"`+s+`"` {
		t.Fatalf("%q: got %q, %q; a real day: %v", s, got, reason, real)
	}
}

// checkDatetime compares datetime with package time, which accepts all of RFC 3339 and
// somewhat more, and checks that the canonical form is its own canonical form.
func checkDatetime(t tester, s string) {
	t.Helper()
	a := desk.Attribute{Type: desk.DatetimeAttribute}
	got, reason := a.Canonical(str(s))
	if reason != "" {
		return
	}
	when, err := time.Parse(time.RFC3339, strings.ToUpper(s))
	if want := when.UTC().Format(`"2006-01-02T15:04:05.000Z"`); err != nil || got != want {
		t.Fatalf("%q: got %s, want %s, %v", s, got, want, err)
	}
	if again, reason := a.Canonical(str(strings.Trim(got, `"`))); again != got {
		t.Fatalf("%q is %s, which is %q, %q", s, got, again, reason)
	}
}

func TestCanonical_days_are_real(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		checkDate(t, rapid.StringMatching(`[0-9]{4}-[01][0-9]-[0-3][0-9]`).Draw(t, "date"))
		checkDatetime(t, rapid.StringMatching(`[0-9]{4}-0[1-9]-[0-2][0-9][Tt][0-2][0-9]:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,10})?([Zz]|[+-][0-2][0-9]:[0-5][0-9])`).Draw(t, "time"))
	})
}

// A client reads the stored form. Sending it back must change nothing.
func TestCanonical_is_idempotent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := desk.Attribute{
			Type:    rapid.SampledFrom(desk.AttributeTypes).Draw(t, "type"),
			Options: []string{"A", "B", "é\n"},
		}
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom(a.Options),
			rapid.StringMatching(`-?[1-9][0-9]{0,5}(e[0-9])?|20[0-9]{2}-0[1-9]-1[0-9](T0[0-9]:00:00Z)?|https://\pL+`))
		v := rapid.OneOf(
			rapid.Map(text, str),
			rapid.Map(rapid.SliceOfN(rapid.Map(text, str), 0, 4), func(l []desk.Value) desk.Value { return list(l...) }),
		).Draw(t, "value")
		first, reason := a.Canonical(v)
		if first == "" || reason != "" {
			return
		}
		if again, reason := a.Canonical(valueOf(t, first)); again != first || reason != "" {
			t.Fatalf("%s: %s becomes %s, %q", a.Type, first, again, reason)
		}
	})
}

// valueOf reads canonical JSON as a caller's value.
func valueOf(t tester, text string) desk.Value {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	switch v := v.(type) {
	case string:
		return str(v)
	case bool:
		return desk.Value{Kind: desk.BoolValue, Bool: v}
	case float64:
		return num(text)
	case []any:
		var l []desk.Value
		for _, e := range v {
			l = append(l, str(e.(string)))
		}
		return list(l...)
	}
	t.Fatalf("%s is no canonical value", text)
	return desk.Value{}
}

func BenchmarkCanonical(b *testing.B) {
	for _, c := range []struct {
		kind  desk.AttributeType
		value desk.Value
	}{
		{"text", str("Ada Lovelace")},
		{"number", num("42.5")},
		{"select", str("B")},
		{"date", str("2026-08-20")},
		{"boolean", trueValue},
		{"url", str("https://example.com/a?b=c")},
		{"multiselect", list(str("B"), str("A"))},
		{"datetime", str("2026-08-20T12:30:45.123+03:00")},
	} {
		a := desk.Attribute{Type: c.kind, Options: []string{"A", "B"}}
		b.Run(string(c.kind), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, reason := a.Canonical(c.value); reason != "" {
					b.Fatal(reason)
				}
			}
		})
	}
}

// TestReasonNamesOptions: a reason names as many options as fit into 1,000 characters, and
// says how many more there are.
func TestReasonNamesOptions(t *testing.T) {
	t.Parallel()
	option := func(r string, i, n int) string { return strings.Repeat(r, n-3) + fmt.Sprintf("%03d", i) }
	for _, c := range []struct{ count, length, named int }{
		{99, 8, 99},   // 99*8 + 98*2 = 988
		{100, 8, 100}, // 998
		{101, 8, 100}, // 1008
		{500, 255, 3}, // of four, 1026
		{4, 248, 4},   // 998
		{5, 248, 4},   //
		{500, 3, 200}, // 998
	} {
		for _, r := range []string{"x", "\U0001F600"} {
			a := desk.Attribute{Key: "k", Type: desk.SelectAttribute}
			for i := range c.count {
				a.Options = append(a.Options, option(r, i, c.length))
			}
			want := strings.Join(a.Options[:c.named], ", ")
			if c.named < c.count {
				want += fmt.Sprintf(" and %d more", c.count-c.named)
			}
			if _, got := a.Canonical(str("no such")); got != "expected one of: "+want+`; got "no such"` {
				t.Errorf("%d options of %d: %q", c.count, c.length, got)
			}
			a.Type = desk.MultiselectAttribute
			if _, got := a.Canonical(list(str("no such"))); got != "expected a list of: "+want+`; got "no such"` {
				t.Errorf("%d options of %d: %q", c.count, c.length, got)
			}
		}
	}
}

// TestCheckAttributes: the answer with all attributes of a workspace has at most 4 MiB.
// Attributes that were larger before may become smaller.
func TestCheckAttributes(t *testing.T) {
	t.Parallel()
	large := func(key string, characters int) desk.Attribute {
		a := desk.Attribute{Key: key, Type: desk.SelectAttribute}
		for i := range 500 {
			a.Options = append(a.Options, fmt.Sprintf("%03d", i)+strings.Repeat("\U0001F600", characters-3))
		}
		return a
	}
	var stored []desk.Attribute
	settings := func() *desk.Settings {
		return desk.NewSettings(desk.Workspace{}, 1, stored, nil, nil, nil)
	}
	for {
		next := large(fmt.Sprintf("k%d", len(stored)), 255)
		if err := settings().CheckAttributes(&next); err != nil {
			if !desk.IsType(err, desk.InvalidRequest) {
				t.Error(err)
			}
			break
		}
		stored = append(stored, next)
	}
	if len(stored) != 8 { // of half a megabyte each
		t.Errorf("%d attributes of 500 options of 255 characters fit", len(stored))
	}
	stored = append(stored, large("before", 200)) // as an older release accepted it
	for characters, ok := range map[int]bool{100: true, 200: true, 201: false} {
		next := large("before", characters)
		if err := settings().CheckAttributes(&next); (err == nil) != ok {
			t.Errorf("from 200 to %d characters: %v", characters, err)
		}
	}
}

// TestValueStored: a list is read in the form in which the first release stored it in plans.
func TestValueStored(t *testing.T) {
	t.Parallel()
	for stored, want := range map[string]desk.Value{
		`{"Kind":4,"List":[{"Kind":3,"Text":"B"},{"Kind":3,"Text":"A"}]}`: list(str("B"), str("A")),
		`{"Kind":4,"List":[]}`: list(),
		`{"Kind":4,"List":[{"Kind":3,"Text":"B"},{"Kind":2,"Text":"1"}]}`: list(num("1")),
		`{"Kind":5}`:               objectValue,
		`{"Kind":2,"Text":"1.50"}`: num("1.50"),
		`{}`:                       {},
	} {
		var got desk.Value
		if err := json.Unmarshal([]byte(stored), &got); err != nil || got != want {
			t.Errorf("%s: %+v, %v", stored, got, err)
		}
		again, _ := json.Marshal(got)
		if err := json.Unmarshal(again, &got); err != nil || got != want {
			t.Errorf("%s: %+v, %v", again, got, err)
		}
	}
}
