package desk

import "encoding/json"

// A Field distinguishes the three states of a JSON member: absent, null, or a value.
// The zero Field is an absent member: the stored value does not change.
type Field[T any] struct {
	Set   bool // the member was sent
	Null  bool // it was sent as null
	Value T    // the value, if Set and not Null
}

// Has tells whether the field holds a value: sent, and not null.
func (f Field[T]) Has() bool { return f.Set && !f.Null }

// ValueKind is the JSON type of a Value, as far as rules need it.
type ValueKind uint8

// The kinds of value.
const (
	NullValue ValueKind = iota
	BoolValue
	NumberValue
	StringValue
	ListValue  // an array of strings
	OtherValue // an object, or an array with other elements: no attribute type accepts it
)

// A Value is a JSON value that a caller sent for an attribute, before the attribute's
// type was checked.
type Value struct {
	Kind ValueKind
	Bool bool
	Text string // a string's content, a number exactly as sent, or a list's strings, each followed by ListEnd
}

// UnmarshalJSON reads a Value from a store. The first release stored the values of a
// list as an array.
func (v *Value) UnmarshalJSON(b []byte) error {
	var stored struct {
		Kind ValueKind
		Bool bool
		Text string
		List []Value
	}
	if err := json.Unmarshal(b, &stored); err != nil {
		return err
	}
	*v = Value{Kind: stored.Kind, Bool: stored.Bool, Text: stored.Text}
	for _, e := range stored.List {
		if e.Kind != StringValue {
			*v = Value{Kind: OtherValue}
			break
		}
		v.Text += e.Text + ListEnd
	}
	return nil
}

// ListEnd ends each string of a list. A list is kept as one text, because many short strings
// would take many times the memory of the request. No string contains ListEnd.
const ListEnd = "\x00"
