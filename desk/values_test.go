package desk_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/desk"
)

// members reads an Attributes with encoding/json: each value as it is written, by key. If
// the object is wrong, the result has a key "!".
func members(a desk.Attributes) map[string]string {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal([]byte(a.JSON()), &raw); err != nil {
		return map[string]string{"!": err.Error()}
	}
	m := map[string]string{}
	for key, v := range raw {
		m[key] = string(v)
	}
	return m
}

// keysOf lists the object's keys in the order in which they stand.
func keysOf(t tester, a desk.Attributes) (keys []string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(a.JSON()))
	_, _ = d.Token()
	for d.More() {
		key, err := d.Token()
		if err != nil {
			t.Fatalf("%s: %v", a.JSON(), err)
		}
		keys = append(keys, key.(string))
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%s: %v", a.JSON(), err)
		}
	}
	return keys
}

func TestAttributes_empty(t *testing.T) {
	t.Parallel()
	for _, json := range []string{"", "{}"} {
		a := desk.StoredAttributes(json)
		if a != (desk.Attributes{}) || a.JSON() != "{}" {
			t.Errorf("%q is %q", json, a.JSON())
		}
	}
}

// TestAttributes_merge inserts, replaces and removes values at each place.
func TestAttributes_merge(t *testing.T) {
	t.Parallel()
	const tricky = `a":1,"b":{]}[\,"`
	escaped := `"a\":1,\"b\":{]}[\\,\""`
	for _, c := range []struct {
		name, before string
		parts        []part
		want         string
	}{
		{"into nothing", `{}`, []part{attr("score", num("1"))}, `{"score":1}`},
		{"first", `{"score":1,"tier":"tin"}`, []part{attr("city", str("x"))}, `{"city":"x","score":1,"tier":"tin"}`},
		{"between", `{"city":"x","tier":"tin"}`, []part{attr("score", num("1"))}, `{"city":"x","score":1,"tier":"tin"}`},
		{"last", `{"city":"x","score":1}`, []part{attr("tier", str("tin"))}, `{"city":"x","score":1,"tier":"tin"}`},
		{"out of the first place", `{"city":"x","score":1,"tier":"tin"}`, []part{attr("city", desk.Value{})}, `{"score":1,"tier":"tin"}`},
		{"out of the middle", `{"city":"x","score":1,"tier":"tin"}`, []part{attr("score", desk.Value{})}, `{"city":"x","tier":"tin"}`},
		{"out of the last place", `{"city":"x","score":1,"tier":"tin"}`, []part{attr("tier", desk.Value{})}, `{"city":"x","score":1}`},
		{"out, and nothing is left", `{"city":"x"}`, []part{attr("city", desk.Value{})}, `{}`},
		{"what is not there stays away", `{"city":"x"}`, []part{attr("tier", desk.Value{})}, `{"city":"x"}`},
		{"over a tricky text", `{"city":` + escaped + `,"tags":["a,b","}","\"","\\","]["],"tier":"tin"}`, []part{attr("tier", str("gold"))},
			`{"city":` + escaped + `,"tags":["a,b","}","\"","\\","]["],"tier":"gold"}`},
		{"a tricky text", `{"tags":["]["],"tier":"tin"}`, []part{attr("city", str(tricky))}, `{"city":` + escaped + `,"tags":["]["],"tier":"tin"}`},
		{"a tricky list", `{"city":"}","tier":"tin"}`, []part{attr("tags", list(str("]["), str(`\`), str(`"`)))}, `{"city":"}","tags":["][","\\","\""],"tier":"tin"}`},
		{"a key that begins another", `{"city":"x","city_2":"y"}`, []part{attr("city", str("z"))}, `{"city":"z","city_2":"y"}`},
		{"everything at once", `{"city":"x","tier":"tin"}`, []part{attr("tier", desk.Value{}), attr("tags", list(str("}"))), attr("city", str("y")), attr("score", str("-0"))},
			`{"city":"y","score":0,"tags":["}"]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := &bench{Book: desk.NewBook(settings, 1)}
			b.Load(&desk.Contact{ID: id(1), Attributes: desk.StoredAttributes(c.before)})
			if got := b.must(t, patch(id(1), c.parts...)).Attributes.JSON(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if changed := c.before != c.want; changed != (len(b.Events()) == 1) {
				t.Errorf("%d events", len(b.Events()))
			}
		})
	}
}

// TestAttributes_hold_what_was_written: after any writes, with or without a store between
// them, the object is valid JSON and sorted by the bytes of its keys. It is equal to a map
// after the same writes.
func TestAttributes_hold_what_was_written(t *testing.T) {
	t.Parallel()
	storable := rapid.String().Filter(func(s string) bool { return !strings.ContainsRune(s, 0) })
	text := rapid.OneOf(storable, rapid.StringMatching(`[]\[{}",:\\nu0-9 ]{0,12}`))
	rapid.Check(t, func(t *rapid.T) {
		options := rapid.SliceOfNDistinct(text.Filter(func(s string) bool { return s != "" }), 1, 5, rapid.ID[string]).Draw(t, "options")
		types := []desk.AttributeType{desk.TextAttribute, desk.SelectAttribute, desk.MultiselectAttribute, desk.NumberAttribute, desk.BooleanAttribute}
		var defined []desk.Attribute
		for n, key := range rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z][a-z0-9_]{0,3}`), 1, 8, rapid.ID[string]).Draw(t, "keys") {
			defined = append(defined, desk.Attribute{Key: key, Type: types[n%len(types)], Options: options})
		}
		s := desk.NewSettings(desk.Workspace{}, 1, defined, nil, nil, nil)

		contact, want := &desk.Contact{ID: id(1)}, map[string]any{}
		for range rapid.IntRange(1, 6).Draw(t, "writes") {
			op := patch(id(1))
			for _, a := range rapid.SliceOfNDistinct(rapid.SampledFrom(defined), 0, 4, func(a desk.Attribute) string { return a.Key }).Draw(t, "attributes") {
				v, meaning := anyValue(t, a, text)
				attr(a.Key, v)(&op.Write)
				if meaning == nil {
					delete(want, a.Key)
				} else {
					want[a.Key] = meaning
				}
			}
			b := desk.NewBook(s, 1)
			b.Load(contact)
			o, err := b.Apply(op, actor, 1, nil)
			if err != nil {
				t.Fatal(explain(err))
			}
			contact = stored(o.Contact)
			if contact.Attributes != o.Contact.Attributes {
				t.Fatalf("%q comes back as %q", o.Contact.Attributes.JSON(), contact.Attributes.JSON())
			}

			got := contact.Attributes.JSON()
			d := json.NewDecoder(strings.NewReader(got))
			d.UseNumber()
			var read map[string]any
			if err := d.Decode(&read); err != nil || d.More() || !reflect.DeepEqual(read, want) {
				t.Fatalf("got %s, %v\nwant %v", got, err, want)
			}
			if keys := keysOf(t, contact.Attributes); !slices.Equal(keys, slices.Sorted(maps.Keys(want))) {
				t.Fatalf("the keys are %q", keys)
			}
			var compact bytes.Buffer
			if err := json.Compact(&compact, []byte(got)); err != nil || compact.String() != got {
				t.Fatalf("%s has white space, or worse: %v", got, err)
			}
			if len(b.Events()) > 0 && len(b.Events()[0].Changed) == 0 {
				t.Fatal("an event of nothing")
			}
		}
	})
}

// anyValue draws a value for an attribute. It also returns the value as encoding/json reads
// it, or nil if the value clears.
func anyValue(t *rapid.T, a desk.Attribute, text *rapid.Generator[string]) (desk.Value, any) {
	if rapid.IntRange(0, 4).Draw(t, "null") == 0 {
		return desk.Value{}, nil
	}
	switch a.Type {
	case desk.SelectAttribute:
		s := rapid.SampledFrom(a.Options).Draw(t, "option")
		return str(s), s
	case desk.MultiselectAttribute:
		chosen := rapid.SliceOfNDistinct(rapid.SampledFrom(a.Options), 0, len(a.Options), rapid.ID[string]).Draw(t, "list")
		v, meaning := list(), []any{}
		for _, s := range chosen {
			v.Text, meaning = v.Text+s+desk.ListEnd, append(meaning, s)
		}
		if len(chosen) == 0 {
			return v, nil
		}
		return v, meaning
	case desk.NumberAttribute:
		n := rapid.IntRange(-1000, 1000).Draw(t, "number")
		return num(fmt.Sprint(n)), json.Number(fmt.Sprint(n))
	case desk.BooleanAttribute:
		b := rapid.Bool().Draw(t, "boolean")
		return desk.Value{Kind: desk.BoolValue, Bool: b}, b
	}
	s := text.Draw(t, "text")
	if s == "" {
		return str(s), nil
	}
	return str(s), s
}
