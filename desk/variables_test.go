package desk_test

import (
	"errors"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/desk"
)

func TestVariableAddress(t *testing.T) {
	t.Parallel()
	for want, v := range map[string]desk.Variable{"header.Name_1": {Part: desk.PartHeader, Key: "Name_1"}, "Name_1": {Part: desk.PartBody, Key: "Name_1"}} {
		if got := v.Address(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestTextAndComponents checks the text for a person and the data for the provider, for
// three of the provider's templates.
func TestTextAndComponents(t *testing.T) {
	t.Parallel()
	library := desk.NewLibrary(1, mirrored(t))
	byPlace := func(part desk.Part, values ...string) desk.Component {
		c := desk.Component{Part: part}
		for _, v := range values {
			c.Parameters = append(c.Parameters, desk.Parameter{Text: v})
		}
		return c
	}
	for _, c := range []struct {
		name, language string
		values         []string
		text           string
		components     []desk.Component
	}{
		{"order_update", "en_US", []string{"A-17", "Ann", "A-17", "Friday"},
			"*Order A-17 is on its way*\nHi Ann, order A-17 ships on Friday. Thank you, Ann!",
			[]desk.Component{byPlace(desk.PartHeader, "A-17"), byPlace(desk.PartBody, "Ann", "A-17", "Friday")}},
		{"siparis_hazir", "tr", []string{"Ayşe", "A-17", "Ali Kaya"},
			"*Merhaba Ayşe!*\nSiparişiniz A-17 hazır. Temsilciniz: Ali Kaya.",
			[]desk.Component{
				{Part: desk.PartHeader, Parameters: []desk.Parameter{{Name: "musteri_adi", Text: "Ayşe"}}},
				{Part: desk.PartBody, Parameters: []desk.Parameter{{Name: "siparis_no", Text: "A-17"}, {Name: "temsilci_adi", Text: "Ali Kaya"}}},
			}},
		{"welcome_plain", "en_US", nil, "*Welcome*\nThanks for joining us.", nil},
		{"call_us", "en_US", []string{"Ann"}, "Prefer to talk, Ann?",
			[]desk.Component{{Part: desk.PartBody, Parameters: []desk.Parameter{{Name: "first_name", Text: "Ann"}}}}},
	} {
		tmpl := library.Find(c.name, c.language)
		if got := tmpl.Text(c.values); got != c.text {
			t.Errorf("%s: got %q, want %q", c.name, got, c.text)
		}
		if got := tmpl.Components(c.values, nil); !reflect.DeepEqual(got, c.components) {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.components)
		}
	}
}

func TestTextAndComponents_of_one_part(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ header, body, text, parts string }{
		{"", "Hi", "Hi", ""},
		{"Title", "Hi {{1}}", "*Title*\nHi x", "body"},
		{"Title {{1}}", "Hi", "*Title x*\nHi", "header"},
		{"{{b}}{{a}}", "Hi {{a}}{{ b }}{{a}}", "*xy*\nHi zvz", "header body"},
		{"{{2}}{{1}}", "Hi {{2}}{{1}}", "*yx*\nHi vz", "header body"},
		{"{{1}}", "{{{1}}}{1}", "*x*\n{y}{1}", "header body"},
	} {
		tmpl := textTemplate(t, c.header, c.body, "")
		values := []string{"x", "y", "z", "v"}[:len(tmpl.Variables)]
		if got := tmpl.Text(values); got != c.text {
			t.Errorf("%s, %s: got %q, want %q", c.header, c.body, got, c.text)
		}
		var parts []string
		for _, component := range tmpl.Components(values, nil) {
			parts = append(parts, string(component.Part))
		}
		if got := strings.Join(parts, " "); got != c.parts {
			t.Errorf("%s, %s: components of %q, want %q", c.header, c.body, got, c.parts)
		}
	}
}

func listed(values ...string) desk.TemplateValues { return desk.TemplateValues{List: values} }

// keyed returns values by address. pairs has each address and, after it, its value.
func keyed(pairs ...string) desk.TemplateValues {
	in := desk.TemplateValues{Object: true}
	for pair := range slices.Chunk(pairs, 2) {
		in.Named = append(in.Named, desk.NamedValue{Address: pair[0], Value: pair[1]})
	}
	return in
}

func TestValues(t *testing.T) {
	t.Parallel()
	const (
		missing = "the value is missing"
		empty   = "the value is empty"
		none    = "the template has no variable for this value"
		refuses = "the provider refuses "
	)
	wide := func(n int) string { return strings.Repeat("ş", n) }
	for _, c := range []struct {
		name, header, body string
		in                 desk.TemplateValues
		want               []string // the values, or address and message in turn; $ marks the end of a message
		refused            bool
	}{
		{"a list", "{{1}}", "{{2}} {{1}}", listed("a", "b", "c"), []string{"a", "b", "c"}, false},
		{"an object", "{{1}}", "{{2}} {{1}}", keyed("2", "c", "1", "b", "header.1", "a"), []string{"a", "b", "c"}, false},
		{"an object of names", "{{Name}}", "{{city}} {{Name}}", keyed("Name", "c", "city", "b", "header.Name", "a"), []string{"a", "b", "c"}, false},
		{"nothing is trimmed", "", "{{1}}", listed("  {{1}} \u00a0"), []string{"  {{1}} \u00a0"}, false},
		{"four spaces, twice", "", "{{1}}", listed("a    b    c"), []string{"a    b    c"}, false},
		{"nothing for no variables", "", "Hi", desk.TemplateValues{}, []string{}, false},
		{"an empty object for no variables", "", "Hi", keyed(), []string{}, false},

		{"nothing", "{{1}}", "{{1}}", desk.TemplateValues{}, []string{"header.1", missing, "1", missing}, true},
		{"an empty object", "{{a}}", "{{b}}", keyed(), []string{"header.a", missing, "b", missing}, true},
		{"too short", "{{1}}", "{{1}} {{2}}", listed("a"), []string{"1", missing, "2", missing}, true},
		{"too long", "", "{{1}}", listed("a", "b", "c"), []string{"[1]", none, "[2]", none}, true},
		{"something for no variables", "", "Hi", listed(""), []string{"[0]", none}, true},
		{"unknown ones, in request order", "", "{{a}}", keyed("z", "", "A", "x", "a", "y", "header.a", "x", "", "x", "[0]", "x"),
			[]string{"z", none, "A", none, "header.a", none, "", none, "[0]", none}, true},
		{"a list's place in an object", "", "{{1}}", keyed("[0]", "x"), []string{"1", missing, "[0]", none}, true},
		{"empty", "", "{{1}} {{2}} {{3}} {{4}}", listed("", "  ", "\n\t", "\u00a0\u2028"), []string{"1", empty, "2", empty, "3", empty, "4", empty}, true},
		{"line breaks", "{{1}}", "{{1}} {{2}} {{3}} {{4}} {{5}} {{6}}", listed("a\nb", "a\rb", "a\vb", "a\fb", "a\u0085b", "a\u2028b", "a\u2029b"),
			[]string{"header.1", refuses + "line breaks in", "1", refuses + "line breaks in", "2", refuses + "line breaks in", "3", refuses + "line breaks in",
				"4", refuses + "line breaks in", "5", refuses + "line breaks in", "6", refuses + "line breaks in"}, true},
		{"a line break at the end", "", "{{1}}", listed("a\n"), []string{"1", refuses + "line breaks in"}, true},
		{"a tab", "", "{{1}}", listed("a\tb"), []string{"1", refuses + "tabs in a value: take them out$"}, true},
		{"five spaces", "", "{{1}}", listed("a     b"), []string{"1", refuses + "more than four spaces in a row in"}, true},
		{"all of it in one value", "", "{{1}}", listed("\ta\n     "), []string{"1", refuses + "line breaks, and tabs, and more than four spaces in a row in"}, true},
		{"what can't be stored", "", "{{1}} {{2}}", listed("a\x00", "a\xff"), []string{"1", "the text holds U+0000", "2", "the text is not valid UTF-8"}, true},
		{"all at once, in the template's order", "{{a}}", "{{b}} {{c}} {{d}}", keyed("x", "x", "d", "ok", "c", "a\tb", "header.a", ""),
			[]string{"header.a", empty, "b", missing, "c", refuses + "tabs in", "x", none}, true},

		{"1024 characters", "{{1}}", "Şş {{1}}", listed(wide(60), wide(1021)), []string{wide(60), wide(1021)}, false},
		{"1025 characters", "{{1}}", "Hi {{1}}", listed(wide(60), wide(1022)), []string{"1", "1 characters more than the 1024"}, true},
		{"a title of 60", "Şş {{1}}", "{{1}}", listed(wide(57), "a"), []string{wide(57), "a"}, false},
		{"a title of 61", "Şş {{1}}", "{{1}}", listed(wide(58), "a"), []string{"header.1", "the filled title has 1 characters more than the 60"}, true},
		{"both", "{{1}}", "{{1}}", listed(wide(61), wide(1025)), []string{"header.1", "the filled title has 1", "1", "the filled message has 1"}, true},
		{"the longest is named", "", "{{1}} {{2}} {{3}}", listed(wide(500), wide(501), strings.Repeat("a", 501)), []string{"2", "480 characters more"}, true},
		{"characters count, not bytes", "", "{{1}} {{2}}", listed(wide(500), strings.Repeat("a", 600)), []string{"2", "77 characters more"}, true},
		{"a value counts where it stands", "", "{{1}} {{1}}", listed(wide(512)), []string{"1", "1 characters more"}, true},
		{"placeholders don't count", "", strings.Repeat("{{1}}", 500), listed("ab"), []string{"ab"}, false},
		{"the longest has a tab too", "", "{{1}} {{2}}", listed("a\t"+wide(1024), "b"), []string{"1", refuses + "tabs in a value: take them out; the filled message has 4 characters more"}, true},
		{"the longest is missing", "", wide(1025) + "{{1}}", listed(), []string{"1", missing}, true},
		{"a long message that nothing fills", "{{1}}", wide(1025), listed("a"), []string{"a"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := textTemplate(t, c.header, c.body, "").Values(c.in)
			if !c.refused {
				if err != nil || !slices.Equal(got, c.want) {
					t.Errorf("got %q, %v, want %q", got, err, c.want)
				}
				return
			}
			var e *desk.Error
			if got != nil || !errors.As(err, &e) || e.Type != desk.InvalidVariables {
				t.Fatalf("got %q, %v", got, err)
			}
			problems, _ := e.Details.([]desk.VariableProblem)
			if len(problems) != len(c.want)/2 {
				t.Fatalf("got %+v, want %q", problems, c.want)
			}
			for i, p := range problems {
				if p.Address != c.want[2*i] || !strings.Contains(p.Message+"$", c.want[2*i+1]) {
					t.Errorf("got %+v, want %q", p, c.want[2*i:2*i+2])
				}
			}
		})
	}
}

// TestValues_refuses_before_it_fills: a value can be small in the request, and large in a
// template that has it 200 times.
func TestValues_refuses_before_it_fills(t *testing.T) { // not parallel: it looks at all memory
	tmpl := textTemplate(t, "", strings.Repeat("{{1}}", 200), "")
	in := listed(strings.Repeat("a", 1<<20))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := tmpl.Values(in)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 || !desk.IsType(err, desk.InvalidVariables) {
		t.Errorf("got %v for %d bytes", err, used)
	}
}

// anyTemplate draws a sendable template.
func anyTemplate(t *rapid.T) *desk.Template {
	key := rapid.SampledFrom([]string{"{{a}}", "{{b}}", "{{ c }}", "{{a_1}}"})
	if rapid.Bool().Draw(t, "positional") {
		key = rapid.SampledFrom([]string{"{{1}}{{2}}{{3}}", "{{1}}{{ 1 }}", "{{2}}{{1}}"})
	}
	text := func(part string) string {
		return strings.Join(rapid.SliceOfN(rapid.OneOf(key, rapid.SampledFrom([]string{"Hi ", "{", "}}", "ş"})), 0, 5).Draw(t, part), ".")
	}
	tmpl := textTemplate(t, text("header"), "."+text("body"), "")
	if !tmpl.Sendable() {
		t.Fatalf("%+v is not sendable", tmpl)
	}
	return tmpl
}

// anyFilling draws a value for each variable, braces included.
func anyFilling(t *rapid.T, tmpl *desk.Template) []string {
	n := len(tmpl.Variables)
	return rapid.SliceOfN(rapid.StringMatching(`[a-c]( ?(\{\{(1|2|a|b)\}\}|[{}$]{1,2}|[a-c]))*`), n, n).Draw(t, "values")
}

func TestValues_agree_in_both_forms(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tmpl := anyTemplate(t)
		values := anyFilling(t, tmpl)
		var named []desk.NamedValue
		for i, v := range tmpl.Variables {
			named = append(named, desk.NamedValue{Address: v.Address(), Value: values[i]})
		}
		if len(named) > 0 {
			named = rapid.Permutation(named).Draw(t, "named")
		}
		a, errA := tmpl.Values(listed(values...))
		b, errB := tmpl.Values(desk.TemplateValues{Object: true, Named: named})
		if !slices.Equal(a, b) || !reflect.DeepEqual(errA, errB) {
			t.Fatalf("a list gives %q, %v\nan object %q, %v", a, errA, b, errB)
		}
		if errA == nil && !slices.Equal(a, values) {
			t.Fatalf("%q became %q", values, a)
		}
	})
}

// TestText_fills_in_one_pass: placeholders in values are not filled. The result is the same
// as filling with neutral marks, and then replacing the marks with the values.
func TestText_fills_in_one_pass(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tmpl := anyTemplate(t)
		values := anyFilling(t, tmpl)
		marks := make([]string, len(values))
		var pairs []string
		for i := range values {
			marks[i] = string(rune(0xE000 + i))
			pairs = append(pairs, marks[i], values[i])
		}
		want := strings.NewReplacer(pairs...).Replace(tmpl.Text(marks))
		if got := tmpl.Text(values); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
		if strings.Contains(tmpl.Text(marks), "{{") {
			t.Fatalf("%q keeps a placeholder", tmpl.Text(marks))
		}
		var sent []string
		for _, c := range tmpl.Components(values, nil) {
			for _, p := range c.Parameters {
				sent = append(sent, p.Text)
				if (p.Name != "") != tmpl.Named {
					t.Fatalf("named = %v: %+v", tmpl.Named, p)
				}
			}
		}
		if !slices.Equal(sent, values) {
			t.Fatalf("%q is sent as %q", values, sent)
		}
	})
}
