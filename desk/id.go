package desk

import (
	"bytes"
	"encoding/hex"
)

// An ID identifies a record: a UUID. app makes new ones. The zero ID identifies
// nothing.
type ID [16]byte

// dashes has the positions of '-' in the 36-character form.
var dashes = [4]int{8, 13, 18, 23}

// ParseID reads the 36-character form in any letter case. Any other text is not an id
// of this service; callers treat it as an unknown id.
func ParseID(s string) (ID, bool) {
	var id ID
	if len(s) != 36 {
		return id, false
	}
	var digits [32]byte
	n, dash := 0, 0
	for i := range len(s) {
		if dash < len(dashes) && i == dashes[dash] {
			if s[i] != '-' {
				return ID{}, false
			}
			dash++
			continue
		}
		digits[n] = s[i]
		n++
	}
	if _, err := hex.Decode(id[:], digits[:]); err != nil {
		return ID{}, false
	}
	return id, true
}

// IsZero tells whether the id is the zero ID.
func (id ID) IsZero() bool { return id == ID{} }

// Compare orders ids: newer ones are greater.
func (id ID) Compare(other ID) int { return bytes.Compare(id[:], other[:]) }

// Next is the next greater id; the zero ID after the greatest.
func (id ID) Next() ID {
	for i := len(id) - 1; i >= 0; i-- {
		if id[i]++; id[i] != 0 {
			break
		}
	}
	return id
}

// String returns the 36-character lower-case form.
func (id ID) String() string { return string(id.Append(make([]byte, 0, 36))) }

// Append appends the 36-character lower-case form.
func (id ID) Append(b []byte) []byte {
	b = hex.AppendEncode(b, id[:4])
	for _, part := range [4][]byte{id[4:6], id[6:8], id[8:10], id[10:]} {
		b = append(b, '-')
		b = hex.AppendEncode(b, part)
	}
	return b
}

// MarshalText writes an id into stored JSON.
func (id ID) MarshalText() ([]byte, error) { return id.Append(nil), nil }

// UnmarshalText reads what MarshalText wrote.
func (id *ID) UnmarshalText(text []byte) error {
	parsed, ok := ParseID(string(text))
	if !ok {
		return Invalidf("%q is no id", text)
	}
	*id = parsed
	return nil
}
