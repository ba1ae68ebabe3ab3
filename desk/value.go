package desk

// A Field tells apart the three things a JSON member can say. The zero Field is
// an absent member: keep what is stored.
type Field[T any] struct {
	Set   bool // the member was sent
	Null  bool // it was sent as null
	Value T    // what was sent, when Set and not Null
}

// Has tells whether the field holds a value: sent, and not null.
func (f Field[T]) Has() bool { return f.Set && !f.Null }

// ValueKind is the JSON type of a Value.
type ValueKind uint8

// The JSON types.
const (
	NullValue ValueKind = iota
	BoolValue
	NumberValue
	StringValue
	ArrayValue
	ObjectValue
)

// A Value is a JSON value as a caller sent it for an attribute, before the
// attribute's type has judged it.
type Value struct {
	Kind ValueKind
	Bool bool
	Text string  // a string's content, or a number's literal exactly as sent
	List []Value // an array's elements; an object's members are not kept: no type takes one
}
