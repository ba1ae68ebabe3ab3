package apitest

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A draft is a request before it is encoded, in parts that mutations can change.
type draft struct {
	op       *operation
	method   string
	segments []segment // of the path, after the prefix
	query    []pair
	header   http.Header
	body     *node
	// Changes that mutations make to the encoded target and body, in this order.
	retarget []func(string) string
	rebody   []func([]byte) []byte
}

type segment struct {
	parameter string // the name of its parameter, if any
	text      string // not yet escaped
}

type pair struct {
	name, value string // not yet escaped
	raw         string // if set, used instead of both
}

// A node is a JSON value with its members in order, which may repeat.
type node struct {
	kind    byte // one of the kinds below
	text    string
	members []member
	list    []*node
	// The value's schema, for mutations that use its limits.
	maxLength, maxItems int
}

// In text, scalars and raw text have their JSON form, and strings their content.
const (
	scalarNode = '1'
	stringNode = '"'
	arrayNode  = '['
	objectNode = '{'
)

type member struct {
	name    string
	rawName string // if set, the encoded name with its quotes
	value   *node
}

func scalar(text string) *node { return &node{kind: scalarNode, text: text} }
func text(s string) *node      { return &node{kind: stringNode, text: s} }

func (n *node) append(b []byte) []byte {
	switch n.kind {
	case stringNode:
		b, _ = jsontext.AppendQuote(b, n.text) // the error is about invalid UTF-8, which it replaces
	case arrayNode:
		b = append(b, '[')
		for i, e := range n.list {
			if i > 0 {
				b = append(b, ',')
			}
			b = e.append(b)
		}
		b = append(b, ']')
	case objectNode:
		b = append(b, '{')
		for i, m := range n.members {
			if i > 0 {
				b = append(b, ',')
			}
			if m.rawName != "" {
				b = append(b, m.rawName...)
			} else {
				b, _ = jsontext.AppendQuote(b, m.name)
			}
			b = append(b, ':')
			b = m.value.append(b)
		}
		b = append(b, '}')
	default:
		b = append(b, n.text...)
	}
	return b
}

// copy returns a deep copy.
func (n *node) copy() *node {
	c := *n
	c.members = slices.Clone(n.members)
	for i := range c.members {
		c.members[i].value = c.members[i].value.copy()
	}
	c.list = slices.Clone(n.list)
	for i := range c.list {
		c.list[i] = c.list[i].copy()
	}
	return &c
}

// walk calls f for n and all values in it, parents first.
func (n *node) walk(f func(*node)) {
	f(n)
	for _, m := range n.members {
		m.value.walk(f)
	}
	for _, e := range n.list {
		e.walk(f)
	}
}

// render encodes the request's target and body.
func (d *draft) render(base string) (target string, body []byte) {
	target = base
	for _, s := range d.segments {
		target += "/" + url.PathEscape(s.text)
	}
	for i, q := range d.query {
		target += map[bool]string{true: "?", false: "&"}[i == 0]
		if q.raw != "" {
			target += q.raw
		} else {
			target += url.QueryEscape(q.name) + "=" + url.QueryEscape(q.value)
		}
	}
	for _, f := range d.retarget {
		target = f(target)
	}
	if d.body != nil {
		body = d.body.append(nil)
	}
	for _, f := range d.rebody {
		body = f(body)
	}
	return target, body
}

// draft generates a request that the description's schemas allow.
func (m *Mutator) draft() *draft {
	op := m.doc.operations[m.rng.IntN(len(m.doc.operations))]
	d := &draft{op: op, method: op.Method, header: http.Header{}}
	for _, s := range op.pattern {
		if !isParameter(s) {
			d.segments = append(d.segments, segment{text: s})
			continue
		}
		name := strings.Trim(s, "{}")
		d.segments = append(d.segments, segment{parameter: name, text: m.generate(op.path[name].source, name).text})
	}
	for _, name := range slices.Sorted(maps.Keys(op.query)) {
		p := op.query[name]
		if name == "cursor" && (len(m.known[name]) == 0 || m.chance(2)) {
			continue // a made-up value would be refused before the rest is read
		}
		if p.required || m.chance(3) {
			d.query = append(d.query, pair{name: name, value: m.generate(p.source, name).text})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(op.header)) {
		if p := op.header[name]; p.required || m.chance(3) {
			d.header[name] = []string{m.generate(p.source, name).text}
		}
	}
	if op.body != nil {
		_, media, err := m.doc.at(pointer("", "paths", strings.TrimPrefix(op.Path, m.doc.base), strings.ToLower(op.Method),
			"requestBody", "content", "application/json"))
		if err != nil {
			panic(err) // Load compiled this very place
		}
		d.body = m.body(op, media["schema"])
		d.header.Set("Content-Type", "application/json")
	}
	return d
}

// body generates a body that the operation's schema allows. For conditions, such as "one
// of several members", it generates bodies until one is allowed.
func (m *Mutator) body(op *operation, schema any) (n *node) {
	for range 100 {
		n = m.generate(schema, "")
		if value, err := read(n.append(nil)); err == nil && op.body.Validate(value) == nil {
			break
		}
	}
	return n
}

// generate makes a value of a schema. name is the name of the member or parameter, for
// which the caller may have added values with Learn.
func (m *Mutator) generate(schema any, name string) *node {
	s := m.flat(schema)
	limit := func(keyword string) int { return number(s[keyword], 0) }
	n := m.value(s, name)
	n.maxLength, n.maxItems = limit("maxLength"), limit("maxItems")
	return n
}

func (m *Mutator) value(s map[string]any, name string) *node {
	if enum, ok := s["enum"].([]any); ok {
		switch v := enum[m.rng.IntN(len(enum))].(type) {
		case string:
			return text(v)
		case bool:
			return scalar(strconv.FormatBool(v))
		}
		return scalar("null")
	}
	switch s["type"] {
	case "null":
		return scalar("null")
	case "boolean":
		return scalar([]string{"true", "false"}[m.rng.IntN(2)])
	case "integer":
		least, most := number(s["minimum"], 0), number(s["maximum"], 1000)
		return scalar(decimal(m.pick(least, most, least+m.rng.IntN(min(most-least, 99)+1))))
	case "number":
		return scalar(decimal(m.rng.IntN(2000)-1000) + m.pickText("", ".5", ".250", "e2"))
	case "array":
		n := &node{kind: arrayNode}
		least := number(s["minItems"], 0)
		for range least + m.rng.IntN(4) {
			n.list = append(n.list, m.generate(s["items"], ""))
		}
		if s["uniqueItems"] == true {
			slices.SortFunc(n.list, func(a, b *node) int { return strings.Compare(a.text, b.text) })
			n.list = slices.CompactFunc(n.list, func(a, b *node) bool { return a.text == b.text })
		}
		return n
	case "object":
		return m.object(s)
	case "string":
		return text(m.text(s, name))
	}
	return m.anything() // a schema that allows everything
}

func (m *Mutator) object(s map[string]any) *node {
	n := &node{kind: objectNode}
	if examples, ok := s["examples"].([]any); ok { // its members belong together, like kind and value
		if example, ok := examples[m.rng.IntN(len(examples))].(map[string]any); ok && s["properties"] != nil {
			for _, name := range slices.Sorted(maps.Keys(example)) {
				v, _ := example[name].(string)
				n.members = append(n.members, member{name: name, value: text(m.vary(v))})
			}
			return n
		}
	}
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if slices.Contains(required, any(name)) || m.chance(3) {
			n.members = append(n.members, member{name: name, value: m.generate(properties[name], name)})
		}
	}
	if values, ok := s["additionalProperties"].(map[string]any); ok { // a map: the contact's attributes
		seen := map[string]bool{}
		for range m.rng.IntN(4) {
			key := m.vary("plan1")
			if known := m.known["key"]; len(known) > 0 && !m.chance(8) {
				key = known[m.rng.IntN(len(known))]
			}
			if !seen[key] {
				n.members = append(n.members, member{name: key, value: m.generate(values, "")})
			}
			seen[key] = true
		}
	}
	if m.chance(4) {
		m.rng.Shuffle(len(n.members), func(i, j int) { n.members[i], n.members[j] = n.members[j], n.members[i] })
	}
	return n
}

func (m *Mutator) text(s map[string]any, name string) string {
	if known := m.known[name]; len(known) > 0 && !m.chance(4) {
		return known[m.rng.IntN(len(known))]
	}
	if examples, ok := s["examples"].([]any); ok {
		var texts []string
		for _, e := range examples {
			if e, ok := e.(string); ok {
				texts = append(texts, e)
			}
		}
		if len(texts) > 0 {
			example := texts[m.rng.IntN(len(texts))]
			if s["format"] == "date-time" {
				return example // with other digits it may not be a time
			}
			return m.vary(example)
		}
	}
	if m.chance(8) {
		return odd[m.rng.IntN(len(odd))]
	}
	return m.pickText("x", "two words", "Zoë", "value "+decimal(m.rng.IntN(100)))
}

// vary changes the last digits of an example. So most requests concern different people,
// and some concern the same person.
func (m *Mutator) vary(example string) string {
	b := []byte(example)
	left := 2
	for i := len(b) - 1; i >= 0 && left > 0; i-- {
		if b[i] >= '0' && b[i] <= '9' {
			b[i] = byte('0' + m.rng.IntN(10))
			left--
		}
	}
	return string(b)
}

// anything returns some JSON value.
func (m *Mutator) anything() *node {
	switch m.rng.IntN(6) {
	case 0:
		return scalar("null")
	case 1:
		return scalar("true")
	case 2:
		return scalar(decimal(m.rng.IntN(100)))
	case 3:
		return text(m.pickText("", "x", "upsert"))
	case 4:
		return &node{kind: arrayNode, list: []*node{text("x")}}
	default:
		return &node{kind: objectNode, members: []member{{name: "op", value: text(m.pickText("upsert", "merge"))}}}
	}
}

// flat resolves a schema's reference and picks one of its alternatives. It returns one
// object with all keywords.
func (m *Mutator) flat(schema any) map[string]any {
	s, _ := schema.(map[string]any)
	out := map[string]any{}
	if ref, ok := s["$ref"].(string); ok {
		_, target, err := m.doc.at(ref[1:])
		if err != nil {
			panic(err) // Load compiled this reference
		}
		maps.Copy(out, m.flat(target))
	}
	overlay(out, s)
	for _, keyword := range []string{"oneOf", "anyOf"} {
		if alternatives, ok := s[keyword].([]any); ok {
			pick := m.flat(alternatives[m.rng.IntN(len(alternatives))])
			if (allowsAll(pick) || pick["type"] == "null") && !m.chance(8) { // rarely, because it makes the whole value arbitrary, or clears it
				pick = m.flat(alternatives[0])
			}
			overlay(out, pick)
		}
		delete(out, keyword)
	}
	return out
}

// allowsAll tells whether a schema has no keyword that restricts values.
func allowsAll(s map[string]any) bool {
	for keyword := range s {
		if keyword != "title" && keyword != "description" {
			return false
		}
	}
	return true
}

// overlay merges a schema into another: properties are merged one by one, required names
// are added, and every other keyword is replaced.
func overlay(s, by map[string]any) {
	for keyword, value := range by {
		switch value := value.(type) {
		case map[string]any:
			have, ok := s[keyword].(map[string]any)
			if !ok || keyword != "properties" {
				break
			}
			merged := maps.Clone(have)
			for name, narrow := range value {
				by := narrow.(map[string]any)
				if not, ok := by["not"].(map[string]any); ok && len(not) == 0 { // no value is allowed, so the property must be absent
					delete(merged, name)
					continue
				}
				property, _ := merged[name].(map[string]any)
				property = maps.Clone(property)
				if property == nil {
					property = map[string]any{}
				}
				overlay(property, by)
				merged[name] = property
			}
			s[keyword] = merged
			continue
		case []any:
			if have, ok := s[keyword].([]any); ok && keyword == "required" {
				s[keyword] = slices.Concat(have, value)
				continue
			}
		}
		if keyword != "$ref" || s[keyword] == nil {
			s[keyword] = value
		}
	}
}
