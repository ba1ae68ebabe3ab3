package api

import (
	"slices"
	"strings"

	"parley/desk"
)

// canonical returns the canonical form of a JSON value. It does not depend on spacing,
// escapes, the order of members or the spelling of numbers. It is not RFC 8785, which
// rounds numbers.
func canonical(text []byte) (b []byte, err error) {
	err = decode(text, func(d *decoder) error {
		b, err = d.canonical(nil)
		return err
	})
	return b, err
}

func (d *decoder) canonical(b []byte) ([]byte, error) {
	switch d.PeekKind() {
	case '{':
		return d.canonicalObject(b)
	case '[':
		b = append(b, '[')
		err := d.array(func(i int) (err error) {
			if i > 0 {
				b = append(b, ',')
			}
			b, err = d.canonical(b)
			return err
		})
		return append(b, ']'), err
	}
	t, err := d.token()
	if err != nil {
		return b, err
	}
	text := t.String()
	switch t.Kind() {
	case '"':
		return desk.AppendJSONString(b, text), nil
	case '0':
		if decimal, ok := desk.ParseDecimal(text); ok {
			text = decimal
		}
	}
	return append(b, text...), nil
}

func (d *decoder) canonicalObject(b []byte) ([]byte, error) {
	type member struct {
		name  string
		value []byte
	}
	var members []member
	err := d.object(func(name string) error {
		value, err := d.canonical(nil)
		members = append(members, member{name, value})
		return err
	})
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	b = append(b, '{')
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(desk.AppendJSONString(b, m.name), ':'), m.value...)
	}
	return append(b, '}'), err
}
