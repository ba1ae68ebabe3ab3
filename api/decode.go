package api

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"

	"parley/desk"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth is how deep a body may nest (contract §2).
const maxDepth = 32

// A decoder reads one JSON text strictly: duplicate names, invalid UTF-8 and lone
// surrogates are syntax errors. Its methods return a desk.Error that names the
// JSON pointer when a value is well-formed but wrong, and have then read at least
// that value's first token, so that skipTo can pass over the rest.
type decoder struct {
	jsontext.Decoder
	source bytes.Buffer
}

var decoders = sync.Pool{New: func() any { return new(decoder) }}

// decode reads body with read, which must take exactly one JSON value.
func decode(body []byte, read func(*decoder) error) error {
	d := decoders.Get().(*decoder)
	defer decoders.Put(d)
	d.source = *bytes.NewBuffer(body)
	d.Reset(&d.source)
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
	case len(bytes.TrimSpace(body)) == 0:
		return desk.Invalidf("the request has no body: send one JSON object")
	case errors.As(err, &syntax):
		return badSyntax(syntax)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return desk.Invalidf("the body ends in the middle of a JSON value")
	}
	return err
}

func badSyntax(err *jsontext.SyntacticError) error {
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return desk.Invalidf("%s: this member is there twice", pointer(err.JSONPointer))
	case errors.Is(err, io.ErrUnexpectedEOF):
		return desk.Invalidf("the body ends in the middle of a JSON value")
	}
	return desk.Invalidf("the body is not valid JSON at byte %d (near %s)", err.ByteOffset, pointer(err.JSONPointer))
}

// pointer shows a JSON pointer; the whole document's is empty, which nobody reads.
// Bytes that are not UTF-8 are left out: they could not be answered as JSON.
func pointer(p jsontext.Pointer) string {
	if p == "" {
		return "the body"
	}
	return strings.ToValidUTF8(string(p), "\uFFFD")
}

// wrong says what is wrong with the value that was just read.
func (d *decoder) wrong(format string, args ...any) error {
	e := desk.Invalidf(format, args...)
	e.Message = pointer(d.StackPointer()) + ": " + e.Message
	return e
}

// token reads a token and refuses one too deep.
func (d *decoder) token() (jsontext.Token, error) {
	t, err := d.ReadToken()
	if err == nil && d.StackDepth() > maxDepth {
		return t, errTooDeep
	}
	return t, err
}

// errTooDeep refuses the whole body, even where a row could answer for itself.
var errTooDeep = errors.Join(desk.Invalidf("the body nests deeper than %d", maxDepth))

// kinds names the JSON types for people.
var kinds = map[jsontext.Kind]string{
	'n': "null", 't': "true", 'f': "false", '"': "a string", '0': "a number", '{': "an object", '[': "an array",
}

// want reads the first token of a value of the kind given, or says what is wrong.
func (d *decoder) want(kind jsontext.Kind) (jsontext.Token, error) {
	t, err := d.token()
	if err == nil && t.Kind() != kind {
		return t, d.wrong("expected %s, got %s", kinds[kind], kinds[t.Kind()])
	}
	return t, err
}

// null reads a null, if that is what comes next.
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

// storable refuses the text that was just read when no database takes it.
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

// id reads an id; one that is no UUID is the zero id, which no record has.
func (d *decoder) id() (desk.ID, error) {
	s, err := d.text()
	id, _ := desk.ParseID(s)
	return id, err
}

// object reads an object; member reads the value of the name it is given, or
// returns unknown.
func (d *decoder) object(member func(name string) error) error {
	if _, err := d.want('{'); err != nil {
		return err
	}
	for d.PeekKind() != '}' {
		name, err := d.token()
		if err != nil {
			return err
		}
		if err := member(name.String()); err != nil {
			return err
		}
	}
	_, err := d.token()
	return err
}

// unknown refuses the member whose name was just read.
func (d *decoder) unknown() error {
	return d.wrong("unknown field; /docs lists those that this endpoint takes")
}

// array reads an array; element reads the element with the index it is given.
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

// skipTo passes over what is left of the values that were open below depth.
func (d *decoder) skipTo(depth int) error {
	for d.StackDepth() > depth {
		if _, err := d.token(); err != nil {
			return err
		}
	}
	return nil
}

// skip passes over one value.
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
		v.Kind = desk.ArrayValue
		err = d.array(func(int) error {
			e, err := d.value()
			v.List = append(v.List, e)
			return err
		})
	case '{':
		v.Kind = desk.ObjectValue
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

// named reads the value of a member whose name is the caller's own choice.
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
