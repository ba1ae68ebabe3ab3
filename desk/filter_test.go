package desk

import (
	"encoding/json"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// filterSettings has an attribute of each type, with the type as its key, and an archived one.
func filterSettings() *Settings {
	list := []Attribute{{Key: "old", Type: TextAttribute, Archived: true}}
	for _, t := range AttributeTypes {
		a := Attribute{Key: string(t), Type: t}
		if t.hasOptions() {
			a.Options = []string{"Pro", "Basic", "Déjà vu"}
		}
		list = append(list, a)
	}
	return NewSettings(Workspace{}, 1, list, nil, nil, nil)
}

func filterOf(t *testing.T, text string) *Filter {
	t.Helper()
	var f Filter
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		t.Fatal(text, err)
	}
	return &f
}

var filterNow = TimeOf(time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC))

func TestFilter_comparisons(t *testing.T) {
	owner := Member{ID: ID{15: 7}}
	full := &Contact{
		Name: "Ada", Email: "a@x.es", ExternalID: "1", Phone: "34612345678", Owner: &owner, CreatedAt: filterNow - 1000,
		Attributes: StoredAttributes(`{"boolean":false,"date":"2026-11-26","datetime":"2026-11-27T12:00:00.000Z","multiselect":["Pro","Déjà vu"],` +
			`"number":-12.5,"select":"Pro","text":"Ünal \"O'Brien\"","url":"https://x.es/A"}`),
	}
	empty := &Contact{CreatedAt: filterNow}
	chat := &Contact{Further: []Identity{{Kind: KindWhatsApp, Value: "447400123456"}}}
	const day = Time(24 * 60 * 60 * 1000)
	for _, test := range []struct {
		condition string // as JSON, without the braces
		contact   *Contact
		wrote     Time
		fits      bool
	}{
		{`"field":"name","is":"present"`, full, 0, true},
		{`"field":"name","is":"absent"`, empty, 0, true},
		{`"field":"email","is":"absent"`, full, 0, false},
		{`"field":"external_id","is":"present"`, empty, 0, false},
		{`"field":"phone","is":"present"`, full, 0, true},
		{`"field":"phone","is":"present"`, chat, 0, true},
		{`"field":"phone","is":"absent"`, empty, 0, true},
		{`"field":"owner","is":"present"`, full, 0, true},
		{`"field":"owner","is":"in","values":["00000000-0000-0000-0000-000000000007"]`, full, 0, true},
		{`"field":"owner","is":"in","values":["00000000-0000-0000-0000-000000000008"]`, full, 0, false},
		{`"field":"owner","is":"not_in","values":["00000000-0000-0000-0000-000000000007"]`, empty, 0, true},
		{`"field":"country","is":"in","values":["GB","es"]`, full, 0, true},
		{`"field":"country","is":"in","values":["GB"]`, chat, 0, true},
		{`"field":"country","is":"in","values":["GB"]`, empty, 0, false},
		{`"field":"country","is":"not_in","values":["GB"]`, empty, 0, true},
		{`"field":"country","is":"not_in","values":["ES"]`, full, 0, false},
		{`"field":"created_at","is":"at_least","value":"2026-11-27T11:59:59Z"`, full, 0, true},
		{`"field":"created_at","is":"below","value":"2026-11-27T11:59:59Z"`, full, 0, false},
		{`"field":"created_at","is":"below","value":"2026-11-27T12:00:00.001+00:00"`, empty, 0, true},
		{`"field":"created_at","is":"within","days":0`, empty, 0, true},
		{`"field":"created_at","is":"within","days":0`, full, 0, false},
		{`"field":"created_at","is":"older","days":0`, full, 0, true},
		{`"field":"created_at","is":"older","days":0`, empty, 0, false},
		{`"field":"wrote_at","is":"absent"`, full, 0, true},
		{`"field":"wrote_at","is":"present"`, full, 5, true},
		{`"field":"wrote_at","is":"older","days":90`, full, filterNow - 90*day - 1, true},
		{`"field":"wrote_at","is":"older","days":90`, full, filterNow - 90*day, false},
		{`"field":"wrote_at","is":"older","days":90`, full, 0, false},
		{`"field":"wrote_at","is":"within","days":90`, full, filterNow - 90*day, true},
		{`"field":"wrote_at","is":"within","days":90`, full, filterNow + 1, false},
		{`"field":"wrote_at","is":"within","days":90`, full, 0, false},
		{`"field":"wrote_at","is":"older","days":0`, full, filterNow + 1, false},
		{`"field":"wrote_at","is":"ahead","days":0`, full, filterNow, true},
		{`"field":"wrote_at","is":"ahead","days":1`, full, filterNow + day, true},
		{`"field":"wrote_at","is":"ahead","days":1`, full, filterNow + day + 1, false},
		{`"field":"wrote_at","is":"ahead","days":1`, full, filterNow - 1, false},
		{`"field":"wrote_at","is":"below","value":"2026-01-01T00:00:00Z"`, full, 0, false},
		{`"field":"attributes.text","is":"in","values":["unal \"OBRIEN\""]`, full, 0, true},
		{`"field":"attributes.text","is":"in","values":["unal"]`, full, 0, false},
		{`"field":"attributes.text","is":"not_in","values":["unal"]`, empty, 0, true},
		{`"field":"attributes.url","is":"in","values":["HTTPS://x.es/a"]`, full, 0, true},
		{`"field":"attributes.select","is":"in","values":["Basic","pro"]`, full, 0, true},
		{`"field":"attributes.select","is":"present"`, empty, 0, false},
		{`"field":"attributes.multiselect","is":"in","values":["deja vu"]`, full, 0, true},
		{`"field":"attributes.multiselect","is":"not_in","values":["Basic"]`, full, 0, true},
		{`"field":"attributes.multiselect","is":"not_in","values":["Basic","Pro"]`, full, 0, false},
		{`"field":"attributes.boolean","is":"in","values":[false]`, full, 0, true},
		{`"field":"attributes.boolean","is":"in","values":[false]`, empty, 0, false},
		{`"field":"attributes.boolean","is":"not_in","values":[true]`, empty, 0, true},
		{`"field":"attributes.boolean","is":"present"`, full, 0, true},
		{`"field":"attributes.number","is":"at_least","value":-12.50`, full, 0, true},
		{`"field":"attributes.number","is":"below","value":-12.49`, full, 0, true},
		{`"field":"attributes.number","is":"below","value":-12.5`, full, 0, false},
		{`"field":"attributes.number","is":"below","value":1e3`, empty, 0, false},
		{`"field":"attributes.date","is":"at_least","value":"2026-11-26"`, full, 0, true},
		{`"field":"attributes.date","is":"below","value":"2026-11-26"`, full, 0, false},
		{`"field":"attributes.date","is":"within","days":1`, full, 0, false}, // since 00:00 UTC are 36 hours
		{`"field":"attributes.date","is":"within","days":2`, full, 0, true},
		{`"field":"attributes.date","is":"older","days":1`, full, 0, true},
		{`"field":"attributes.datetime","is":"at_least","value":"2026-11-27T14:00:00+02:00"`, full, 0, true},
		{`"field":"attributes.datetime","is":"ahead","days":0`, full, 0, true},
		{`"field":"attributes.datetime","is":"within","days":3650`, empty, 0, false},
	} {
		m, err := filterOf(t, `{"all":[{`+test.condition+`}]}`).Matcher(filterSettings())
		if err != nil {
			t.Errorf("%s: %v", test.condition, err)
			continue
		}
		if m.Fits(test.contact, test.wrote, filterNow) != test.fits {
			t.Errorf("%s: fits %t, want %t", test.condition, !test.fits, test.fits)
		}
		if m.Wrote != strings.Contains(test.condition, "wrote_at") {
			t.Errorf("%s: Wrote is %t", test.condition, m.Wrote)
		}
	}
}

func TestFilter_clauses(t *testing.T) {
	m, err := filterOf(t, `{"all":[{"field":"name","is":"present"},{"any":[{"field":"email","is":"present"},{"field":"wrote_at","is":"present"}]}]}`).Matcher(filterSettings())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, email string
		wrote       Time
		fits        bool
	}{{"", "", 0, false}, {"A", "", 0, false}, {"", "e", 1, false}, {"A", "e", 0, true}, {"A", "", 1, true}} {
		if got := m.Fits(&Contact{Name: test.name, Email: test.email}, test.wrote, 5); got != test.fits {
			t.Errorf("%+v: fits %t", test, got)
		}
	}
	if !m.Wrote {
		t.Error("the filter asks when people wrote")
	}
}

func TestFilter_errors(t *testing.T) {
	present := `{"field":"name","is":"present"}`
	for _, test := range []struct{ filter, at, message string }{
		{`{}`, "/all", "1 to 20 conditions"},
		{`{"all":[]}`, "/all", "1 to 20 conditions"},
		{`{"all":[` + strings.Repeat(present+",", 20) + present + `]}`, "/all", "1 to 20 conditions"},
		{`{"all":[` + present + `,{"any":[` + strings.Repeat(present+",", 19) + present + `]}]}`, "/all", "1 to 20 conditions"},
		{`{"all":[{"any":[]}]}`, "/all/0/any", "at least one condition"},
		{`{"all":[{"field":"name","any":[` + present + `]}]}`, "/all/0", "not both"},
		{`{"all":[{}]}`, "/all/0/field", "send name, email"},
		{`{"all":[` + present + `,{"field":"nam","is":"present"}]}`, "/all/1/field", "send name, email"},
		{`{"all":[{"any":[` + present + `,{"field":"attributes.no","is":"present"}]}]}`, "/all/0/any/1/field", `no attribute with the key "no"`},
		{`{"all":[{"field":"attributes.old","is":"present"}]}`, "/all/0/field", "archived"},
		{`{"all":[{"field":"name","is":"in","values":["a"]}]}`, "/all/0/is", "name takes present or absent"},
		{`{"all":[{"field":"country","is":"present"}]}`, "/all/0/is", "country takes in or not_in"},
		{`{"all":[{"field":"created_at","is":"absent"}]}`, "/all/0/is", "created_at takes at_least, below, within, older or ahead"},
		{`{"all":[{"field":"attributes.number","is":"within","days":1}]}`, "/all/0/is", "attributes.number takes present, absent, at_least or below"},
		{`{"all":[{"field":"attributes.boolean","is":"below","value":true}]}`, "/all/0/is", "takes present, absent, in or not_in"},
		{`{"all":[{"field":"name","is":"present","days":1}]}`, "/all/0/days", "present takes no days"},
		{`{"all":[{"field":"owner","is":"in","values":["00000000-0000-0000-0000-000000000007"],"value":"x"}]}`, "/all/0/value", "in takes no value"},
		{`{"all":[{"field":"owner","is":"in","values":["Nora"]}]}`, "/all/0/values/0", "the id of a member"},
		{`{"all":[{"field":"owner","is":"in"}]}`, "/all/0/values", "1 to 100 values"},
		{`{"all":[{"field":"attributes.text","is":"in","values":["a"` + strings.Repeat(`,"a"`, 100) + `]}]}`, "/all/0/values", "1 to 100 values"},
		{`{"all":[{"field":"country","is":"in","values":["ES","XX"]}]}`, "/all/0/values/1", "ISO 3166"},
		{`{"all":[{"field":"country","is":"in","values":[""]}]}`, "/all/0/values/0", "ISO 3166"},
		{`{"all":[{"field":"attributes.text","is":"in","values":[""]}]}`, "/all/0/values/0", "1 to 4000 characters"},
		{`{"all":[{"field":"attributes.text","is":"in","values":[5]}]}`, "/all/0/values/0", "send a text"},
		{`{"all":[{"field":"attributes.boolean","is":"in","values":["true"]}]}`, "/all/0/values/0", "true or false"},
		{`{"all":[{"field":"attributes.number","is":"below","value":"5"}]}`, "/all/0/value", "a number"},
		{`{"all":[{"field":"attributes.number","is":"below"}]}`, "/all/0/value", "a number"},
		{`{"all":[{"field":"attributes.number","is":"below","value":1e400}]}`, "/all/0/value", "a number"},
		{`{"all":[{"field":"attributes.date","is":"below","value":"2026-02-30"}]}`, "/all/0/value", "YYYY-MM-DD"},
		{`{"all":[{"field":"attributes.date","is":"below","value":5}]}`, "/all/0/value", "YYYY-MM-DD"},
		{`{"all":[{"field":"wrote_at","is":"below","value":"2026-02-20"}]}`, "/all/0/value", "RFC 3339"},
		{`{"all":[{"field":"wrote_at","is":"within"}]}`, "/all/0/days", "0 to 3650"},
		{`{"all":[{"field":"wrote_at","is":"within","days":-1}]}`, "/all/0/days", "0 to 3650"},
		{`{"all":[{"field":"wrote_at","is":"within","days":3651}]}`, "/all/0/days", "0 to 3650"},
	} {
		_, err := filterOf(t, test.filter).Matcher(filterSettings())
		if e := AsError(err); err == nil || e.Type != InvalidRequest || e.At != test.at || !strings.Contains(e.Message, test.message) {
			t.Errorf("%.100s: %v, want at %s: %s", test.filter, err, test.at, test.message)
		}
	}
}

// A filter is stored and answered in its canonical form.
func TestFilter_canonical(t *testing.T) {
	sent := `{"all":[{"field":"owner","is":"in","values":["0000000A-0000-0000-0000-000000000007"]},{"any":[{"field":"country","is":"in","values":["tr"]},` +
		`{"field":"attributes.number","is":"below","value":1.50e2}]},{"field":"wrote_at","is":"at_least","value":"2026-11-27T14:00:00+02:00"},` +
		`{"field":"attributes.boolean","is":"not_in","values":[true,false]},{"field":"attributes.text","is":"in","values":["O'\"Brien"]},{"field":"wrote_at","is":"older","days":90}]}`
	want := `{"all":[{"field":"owner","is":"in","values":["0000000a-0000-0000-0000-000000000007"]},{"any":[{"field":"country","is":"in","values":["TR"]},` +
		`{"field":"attributes.number","is":"below","value":150}]},{"field":"wrote_at","is":"at_least","value":"2026-11-27T12:00:00.000Z"},` +
		`{"field":"attributes.boolean","is":"not_in","values":[true,false]},{"field":"attributes.text","is":"in","values":["O'\"Brien"]},{"field":"wrote_at","is":"older","days":90}]}`
	f := filterOf(t, sent)
	before := string(f.AppendJSON(nil))
	m, err := f.Matcher(filterSettings())
	if err != nil {
		t.Fatal(err)
	}
	if got := string(m.Filter.AppendJSON(nil)); got != want {
		t.Errorf("canonical:\n%s\nwant\n%s", got, want)
	}
	if again := filterOf(t, want); string(again.AppendJSON(nil)) != want {
		t.Errorf("read again: %s", again.AppendJSON(nil))
	}
	if after := string(f.AppendJSON(nil)); after != before {
		t.Errorf("the filter itself changed:\n%s", after)
	}
}

func TestFilterFields(t *testing.T) {
	var names []string
	for _, f := range filterSettings().FilterFields() {
		if len(f.Is) == 0 {
			t.Errorf("%s has no comparison", f.Name)
		}
		names = append(names, f.Name)
	}
	if got := strings.Join(names, " "); !strings.HasPrefix(got, "name email external_id phone owner country created_at wrote_at attributes.") || strings.Contains(got, "old") {
		t.Error(got)
	}
}

func TestCompareDecimals(t *testing.T) {
	list := []string{"0", "-0.5", "0.5", "0.05", "1", "9", "10", "10.01", "-10.01", "-10", "-9", "123456789012345678901234567890.1", "-123456789012345678901234567890.1"}
	for range 50 {
		n, ok := ParseDecimal(big.NewRat(rand.Int64N(2_000_000)-1_000_000, 1000).FloatString(3))
		if !ok {
			t.Fatal("no number")
		}
		list = append(list, n)
	}
	for _, a := range list {
		for _, b := range list {
			x, _ := new(big.Rat).SetString(a)
			y, _ := new(big.Rat).SetString(b)
			if got, want := compareDecimals(a, b), x.Cmp(y); got != want {
				t.Errorf("compare %s with %s: %d, want %d", a, b, got, want)
			}
		}
	}
}
