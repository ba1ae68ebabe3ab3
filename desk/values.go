package desk

import (
	"slices"
	"strings"
)

// Attributes are a contact's attribute values, kept as the canonical JSON object
// that the API answers: keys sorted by bytes, values as Attribute.Canonical makes
// them. It is immutable; the zero value holds nothing.
type Attributes struct{ json string }

// StoredAttributes takes back what JSON gave, as a store kept it.
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
		rest = after[n+1:] // past the comma or the closing brace
	}
	return list
}

// canonicalLength is the length of the canonical value that s begins with: it
// ends before the first comma or brace that is in no string and no list.
func canonicalLength(s string) int {
	inString, inList := false, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
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

// merge returns a with changes laid over it, and the keys whose value differs.
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
	b := make([]byte, 0, n)
	sep := byte('{')
	for _, v := range list {
		b = append(b, sep, '"')
		b = append(b, v.key...)
		b = append(b, '"', ':')
		b = append(b, v.json...)
		sep = ','
	}
	return Attributes{string(append(b, '}'))}
}
