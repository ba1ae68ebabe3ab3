package desk

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"
)

// Attributes are a contact's attribute values, kept as the canonical JSON object that
// the API answers: keys sorted by bytes, values as Attribute.Canonical makes them. It
// is immutable; the zero value is empty.
type Attributes struct{ json string }

// StoredAttributes returns the values from their stored form, which is the result of the
// method JSON.
func StoredAttributes(json string) Attributes {
	if json == "{}" {
		json = ""
	}
	return Attributes{json}
}

// JSON returns the values as a JSON object.
func (a Attributes) JSON() string {
	if a.json == "" {
		return "{}"
	}
	return a.json
}

// An attributeValue is one member of the object; JSON "" clears the key.
type attributeValue struct{ key, json string }

// values lists the members in order.
func (a Attributes) values() []attributeValue {
	var list []attributeValue
	for rest := strings.TrimPrefix(a.json, "{"); len(rest) > 1; {
		key, after, _ := strings.Cut(rest[1:], `":`) // keys hold no escapes
		n := canonicalLength(after)
		list = append(list, attributeValue{key, after[:n]})
		rest = after[n+1:] // after the comma or the closing brace
	}
	return list
}

// All returns an iterator over the keys and their values as JSON, in order.
func (a Attributes) All() iter.Seq2[string, string] {
	return func(yield func(key, json string) bool) {
		for _, v := range a.values() {
			if !yield(v.key, v.json) {
				return
			}
		}
	}
}

// get returns the value of a key as JSON; "" if there is none.
func (a Attributes) get(key string) string {
	for k, json := range a.All() {
		if k == key {
			return json
		}
	}
	return ""
}

// canonicalLength is the length of the canonical value at the start of s: it ends
// before the first comma or brace outside of strings and lists.
func canonicalLength(s string) int {
	inList := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			i += stringLength(s[i:]) - 1
		case c == '[':
			inList = true
		case c == ']':
			inList = false
		case !inList && (c == ',' || c == '}'):
			return i
		}
	}
	return len(s)
}

// stringLength is the length of the JSON string at the start of s, with its quotes.
func stringLength(s string) int {
	for i := 1; ; {
		n := strings.IndexByte(s[i:], '"')
		if n < 0 {
			return len(s)
		}
		escape := strings.IndexByte(s[i:i+n], '\\')
		if escape < 0 {
			return i + n + 1
		}
		i += escape + 2
	}
}

// merge returns a with the changes, and the keys whose value differs.
func (a Attributes) merge(changes []attributeValue) (Attributes, []string) {
	list := a.values()
	var changed []string
	for _, c := range changes {
		i, found := slices.BinarySearchFunc(list, c.key, func(v attributeValue, key string) int { return strings.Compare(v.key, key) })
		switch {
		case found && c.json == "":
			list = slices.Delete(list, i, i+1)
		case found && list[i].json == c.json, !found && c.json == "":
			continue
		case found:
			list[i].json = c.json
		default:
			list = slices.Insert(list, i, c)
		}
		changed = append(changed, c.key)
	}
	if changed == nil {
		return a, nil
	}
	return renderAttributes(list), changed
}

func renderAttributes(list []attributeValue) Attributes {
	if len(list) == 0 {
		return Attributes{}
	}
	n := 1
	for _, v := range list {
		n += len(v.key) + len(v.json) + 4
	}
	var b strings.Builder
	b.Grow(n)
	sep := byte('{')
	for _, v := range list {
		b.WriteByte(sep)
		b.WriteByte('"')
		b.WriteString(v.key)
		b.WriteString(`":`)
		b.WriteString(v.json)
		sep = ','
	}
	b.WriteByte('}')
	return Attributes{b.String()}
}

// holds tells whether an attribute has a value, or has it in its list. value is the text of an
// option, or a boolean.
func (a Attributes) holds(of *Attribute, value string) bool {
	want := value
	if of.Type.hasOptions() {
		want = quoteJSON(value)
	}
	for _, v := range a.values() {
		if v.key != of.Key {
			continue
		}
		if of.Type != MultiselectAttribute {
			return v.json == want
		}
		for rest := v.json; len(rest) > 1; { // each element follows a bracket or a comma
			n := 1 + stringLength(rest[1:])
			if rest[1:n] == want {
				return true
			}
			rest = rest[n:]
		}
	}
	return false
}

// factText is the canonical JSON of a value as a text for a message.
func factText(text string) string {
	switch {
	case strings.HasPrefix(text, `"`):
		var plain string
		_ = json.Unmarshal([]byte(text), &plain)
		return plain
	case strings.HasPrefix(text, "["):
		var list []string
		_ = json.Unmarshal([]byte(text), &list)
		return strings.Join(list, ", ")
	}
	return text // a number or a boolean
}
