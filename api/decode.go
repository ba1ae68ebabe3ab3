package api

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"parley/desk"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth is how deep a body may nest (contract §2).
const maxDepth = 32

// A decoder reads one JSON text strictly: duplicate names, invalid UTF-8 and lone
// surrogates are errors of the whole body. If a value is well-formed but wrong, its
// methods return a desk.Error with the JSON pointer. They have then read at least the
// value's first token, so that skipTo can skip the rest.
type decoder struct {
	jsontext.Decoder
	source  bytes.Buffer
	defined map[string]*desk.Attribute // the workspace's
	most    int                        // how many identities a write may list
	name    string                     // of the member that was read last
	names   [maxDepth]nameSet          // of the open objects, by depth
}

var decoders = sync.Pool{New: func() any { return new(decoder) }}

// errNoBody refuses a request without a body.
var errNoBody = desk.Invalidf("the request has no body: send one JSON object")

// needsNone says of a request without a body that an empty object will do.
func needsNone(err error) error {
	if errors.Is(err, errNoBody) {
		return desk.Invalidf("the request has no body: send {}")
	}
	return err
}

// decode reads body with read, which must take exactly one JSON value.
func decode(body []byte, read func(*decoder) error) error {
	d := decoders.Get().(*decoder)
	defer decoders.Put(d)
	d.source, d.most = *bytes.NewBuffer(body), desk.MaxIdentities
	d.Reset(&d.source, jsontext.AllowDuplicateNames(true)) // the method token checks for duplicates
	err := read(d)
	if err == nil {
		if _, err = d.ReadToken(); errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = desk.Invalidf("the body holds more than one JSON value")
		}
	}
	var syntax *jsontext.SyntacticError
	switch {
	case bytes.HasPrefix(body, []byte("\uFEFF")):
		return desk.Invalidf("the body begins with a byte order mark: send UTF-8 without one")
	case len(bytes.TrimSpace(body)) == 0:
		return errNoBody
	case errors.As(err, &syntax):
		return badSyntax(syntax, body)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return desk.Invalidf("the body ends in the middle of a JSON value")
	}
	return err
}

func badSyntax(err *jsontext.SyntacticError, body []byte) error {
	switch at := min(max(err.ByteOffset, 0), int64(len(body))); {
	case surrogate.Match(body[at:]):
		return wrongAt(err.JSONPointer, "a lone surrogate, \\%s, is no character: send both halves of a pair", body[at+1:at+6])
	case errors.Is(err, io.ErrUnexpectedEOF):
		return desk.Invalidf("the body ends in the middle of a JSON value")
	case !utf8.FullRune(body[at:]) || !validRune(body[at:]):
		return wrongAt(err.JSONPointer, "this is not UTF-8, at byte %d of the body", at)
	}
	return wrongAt(err.JSONPointer, "this is not valid JSON, at byte %d of the body", err.ByteOffset)
}

func validRune(b []byte) bool {
	r, size := utf8.DecodeRune(b)
	return r != utf8.RuneError || size > 1
}

// wrong returns an error about the value that was just read.
func (d *decoder) wrong(format string, args ...any) *desk.Error {
	return wrongAt(d.StackPointer(), format, args...)
}

// wrongAt returns an error about a place in the body. Bytes of the pointer that are not
// UTF-8 are left out, because JSON can't contain them.
func wrongAt(p jsontext.Pointer, format string, args ...any) *desk.Error {
	if p == "" { // the whole body, whose pointer is empty
		return desk.Invalidf("the body: "+format, args...)
	}
	return desk.InvalidAt(cut(strings.ToValidUTF8(string(p), "\uFFFD")), format, args...)
}

// maxName is how many bytes of a name or a pointer an error shows.
const maxName = 1000

// cut shortens a text for an error; the text may be as long as a body.
func cut(s string) string {
	if len(s) <= maxName {
		return s
	}
	n := maxName
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.Clone(s[:n]) + "…"
}

// token reads a token. It refuses one that is nested too deep, and a duplicate member
// name.
func (d *decoder) token() (jsontext.Token, error) {
	t, err := d.ReadToken()
	if err != nil {
		return t, err
	}
	depth := d.StackDepth()
	if depth > maxDepth {
		return t, bodyError{desk.Invalidf("the body nests deeper than %d", maxDepth)}
	}
	switch t.Kind() {
	case '{':
		d.names[depth-1].reset()
	case '"':
		if kind, length := d.StackIndex(depth); kind != '{' || length%2 == 0 {
			break // a value
		}
		if d.name = t.String(); !d.names[depth-1].add(d.name) {
			return t, bodyError{d.wrong("this member is there twice")}
		}
	}
	return t, nil
}

// A bodyError refuses the whole body, even if it was found in a row.
type bodyError struct{ err *desk.Error }

func (e bodyError) Error() string { return e.err.Error() }

func (e bodyError) Unwrap() error { return e.err }

// surrogate matches the escape of half a surrogate pair.
var surrogate = regexp.MustCompile(`^\\u[dD][89a-fA-F][0-9a-fA-F]{2}`)

// kinds has the names of the JSON types for people.
var kinds = map[jsontext.Kind]string{
	'n': "null", 't': "true", 'f': "false", '"': "a string", '0': "a number", '{': "an object", '[': "an array",
}

// want reads the first token of a value of the given kind, or returns an error.
func (d *decoder) want(kind jsontext.Kind) (jsontext.Token, error) {
	t, err := d.token()
	if err == nil && t.Kind() != kind {
		return t, d.wrong("expected %s, got %s", kinds[kind], kinds[t.Kind()])
	}
	return t, err
}

// beginning is the offset at which the next value begins: after a comma and white space.
func (d *decoder) beginning() int64 {
	d.PeekKind() // fills the buffer up to the value
	rest := d.UnreadBuffer()
	return d.InputOffset() + int64(len(rest)-len(bytes.TrimLeft(rest, ", \t\r\n")))
}

// null reads a null, if it is the next value.
func (d *decoder) null() (bool, error) {
	if d.PeekKind() != 'n' {
		return false, nil
	}
	_, err := d.token()
	return true, err
}

func (d *decoder) text() (string, error) {
	t, err := d.want('"')
	if err != nil {
		return "", err
	}
	s := t.String()
	return s, d.storable(s)
}

// storable returns an error for a text that no database accepts.
func (d *decoder) storable(s string) error {
	if strings.IndexByte(s, 0) >= 0 {
		return d.wrong("U+0000 can't be stored")
	}
	return nil
}

func (d *decoder) bool() (bool, error) {
	t, err := d.token()
	if err != nil {
		return false, err
	}
	if kind := t.Kind(); kind != 't' && kind != 'f' {
		return false, d.wrong("expected true or false, got %s", kinds[kind])
	}
	return t.Bool(), nil
}

// id reads an id. A text that is not a UUID becomes the zero id, which no record has.
func (d *decoder) id() (desk.ID, error) {
	s, err := d.text()
	id, _ := desk.ParseID(s)
	return id, err
}

// object reads an object. It calls member for each name. member reads the value, or returns
// the error of the method unknown.
func (d *decoder) object(member func(name string) error) error {
	if _, err := d.want('{'); err != nil {
		return err
	}
	for d.PeekKind() != '}' {
		if _, err := d.token(); err != nil {
			return err
		}
		if err := member(d.name); err != nil {
			return err
		}
	}
	_, err := d.token()
	return err
}

// unknown returns an error about the member whose name was just read. The error suggests
// the nearest known member.
func (d *decoder) unknown(name string, known ...string) error {
	return d.wrong("%s", unknownMember(name, known))
}

func unknownMember(name string, known []string) string {
	if nearest := desk.Nearest(name, known); nearest != "" {
		return "unknown field: did you mean " + nearest + "?"
	}
	return "unknown field: those known are " + strings.Join(known, ", ")
}

// array reads an array. It calls element for each index, and element reads the value.
func (d *decoder) array(element func(i int) error) error {
	if _, err := d.want('['); err != nil {
		return err
	}
	for i := 0; d.PeekKind() != ']'; i++ {
		if err := element(i); err != nil {
			return err
		}
	}
	_, err := d.token()
	return err
}

// skipTo skips the rest of the values that were open below depth.
func (d *decoder) skipTo(depth int) error {
	for d.StackDepth() > depth {
		if _, err := d.token(); err != nil {
			return err
		}
	}
	return nil
}

// skip skips one value.
func (d *decoder) skip() error {
	depth := d.StackDepth()
	if _, err := d.token(); err != nil {
		return err
	}
	return d.skipTo(depth)
}

// value reads any JSON value.
func (d *decoder) value() (v desk.Value, err error) {
	switch d.PeekKind() {
	case '"':
		v.Kind = desk.StringValue
		v.Text, err = d.text()
	case '[':
		v.Kind = desk.ListValue
		var list strings.Builder
		err = d.array(func(int) error {
			e, err := d.value()
			if e.Kind != desk.StringValue {
				v.Kind = desk.OtherValue
			}
			list.WriteString(e.Text)
			list.WriteString(desk.ListEnd)
			return err
		})
		if v.Kind == desk.ListValue {
			v.Text = list.String()
		}
	case '{':
		v.Kind = desk.OtherValue
		err = d.object(func(name string) error {
			_, err := d.named(name)
			return err
		})
	default:
		var t jsontext.Token
		if t, err = d.token(); err != nil {
			return v, err
		}
		switch t.Kind() {
		case '0':
			v.Kind, v.Text = desk.NumberValue, t.String()
		case 't', 'f':
			v.Kind, v.Bool = desk.BoolValue, t.Bool()
		}
	}
	return v, err
}

// named reads the value of a member whose name the caller has chosen.
func (d *decoder) named(name string) (desk.Value, error) {
	if err := d.storable(name); err != nil {
		return desk.Value{}, err
	}
	return d.value()
}

// field reads a value that may be null.
func field[T any](d *decoder, f *desk.Field[T], read func() (T, error)) (err error) {
	f.Set = true
	if f.Null, err = d.null(); f.Null || err != nil {
		return err
	}
	f.Value, err = read()
	return err
}

// pointer reads a value and returns a pointer to it.
func pointer[T any](read func() (T, error)) (*T, error) {
	v, err := read()
	return &v, err
}
