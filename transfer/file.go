package transfer

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"parley/desk"

	"github.com/go-json-experiment/json/jsontext"
)

// Options say how a file is read.
type Options struct {
	Kind             desk.ImportKind
	JSONL            bool
	Map              []string // COLUMN=FIELD
	Delimiter        string   // "": it is guessed
	Encoding         string   // "": UTF-8, unless the file says otherwise
	ClearBlank       bool
	Dates            Dates
	DecimalComma     bool
	CreateAttributes bool
	IgnoreUnknown    bool
}

// A File is a file to import, which was read through once.
type File struct {
	Path      string
	Options   Options
	SHA256    [32]byte
	Rows      int64    // without blank ones
	Headers   []string // of CSV
	Delimiter rune     // of CSV
	Created   []desk.AttributeInput

	attributes map[string]*desk.Attribute
	fields     []field
	samples    []sample // of each column, for new attributes
}

// A Row is a row of a file.
type Row struct {
	Line  int    // in which it begins
	Body  []byte // of POST /contacts; nil if Err is set
	Err   error  // why it has none
	Cells []string
	Raw   []byte // of JSON Lines
}

// Open reads a file through. It returns a *FileError if the file can't be imported as a whole.
func Open(path string, o Options) (f *File, err error) {
	f = &File{Path: path, Options: o}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if state, err := file.Stat(); err != nil || !state.Mode().IsRegular() {
		return nil, errors.Join(err, &FileError{0, "this is no ordinary file: it is read several times, so it can't be a pipe or a directory"})
	}
	sum := sha256.New()
	if o.JSONL {
		err = f.throughLines(io.TeeReader(file, sum))
	} else {
		err = f.throughRecords(io.TeeReader(file, sum), sum, file)
	}
	if err != nil {
		return nil, err
	}
	sum.Sum(f.SHA256[:0])
	return f, nil
}

func (f *File) open() (io.ReadCloser, error) { return os.Open(f.Path) }

// throughRecords reads a CSV file through.
func (f *File) throughRecords(r io.Reader, sum hash.Hash, file io.Reader) error {
	delimiter, err := f.delimiter()
	if err != nil {
		return err
	}
	f.Delimiter = delimiter
	err = f.records(r, func(rec record) error {
		f.Rows++
		f.sample(rec)
		return nil
	})
	if err == nil {
		_, err = io.Copy(sum, file) // the reader has stopped at the end already
	}
	if err == nil && f.Headers == nil {
		err = &FileError{0, "the file has no row: the first one names the columns"}
	}
	return err
}

// delimiter returns the delimiter that the file says, that is given, or that fits best.
func (f *File) delimiter() (rune, error) {
	file, err := f.open()
	if err != nil {
		return 0, err
	}
	defer file.Close()
	text, _, err := textOf(file, f.Options.Encoding)
	if err != nil {
		return 0, err
	}
	var head []rune
	for range 6 {
		r, err := text.next()
		if err != nil {
			break
		}
		head = append(head, r)
	}
	if s := string(head); len(head) >= 5 && strings.EqualFold(s[:4], "sep=") {
		if end := head[5:]; len(end) == 0 || end[0] == '\r' || end[0] == '\n' {
			return head[4], nil
		}
	}
	switch d := f.Options.Delimiter; {
	case strings.EqualFold(d, "tab") || d == `\t`:
		return '\t', nil
	case utf8.RuneCountInString(d) == 1 && d != `"` && d != "\r" && d != "\n":
		r, _ := utf8.DecodeRuneInString(d)
		return r, nil
	case d != "":
		return 0, desk.InvalidAt("/delimiter", "give one character, or TAB")
	}
	return delimiterOf(f.open, f.Options.Encoding)
}

// records calls do for each row of a CSV file that is not blank, after the headers. The first
// time, it stores the headers.
func (f *File) records(r io.Reader, do func(record) error) error {
	text, encoding, err := textOf(r, f.Options.Encoding)
	if err != nil {
		return err
	}
	c := newCSV(text, encoding, f.Delimiter)
	headers := false
	for {
		rec, err := c.read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch {
		case rec.blank():
		case rec.line == 1 && len(rec.cells) == 2 && strings.EqualFold(rec.cells[0], "sep=") && rec.cells[1] == "": // the delimiter was read as one
		case !headers:
			headers = true
			if f.Headers == nil {
				for _, header := range rec.cells {
					f.Headers = append(f.Headers, strings.TrimSpace(unguard(header)))
				}
			}
		default:
			if err := do(rec); err != nil {
				return err
			}
		}
	}
}

// throughLines reads a file of JSON Lines through.
func (f *File) throughLines(r io.Reader) error {
	return f.lines(r, func(int, []byte) error {
		f.Rows++
		return nil
	})
}

// lines calls do for each line that is not blank.
func (f *File) lines(r io.Reader, do func(line int, text []byte) error) error {
	text, encoding, err := textOf(r, f.Options.Encoding)
	if err != nil {
		return err
	}
	var b []byte
	for line := 1; ; line++ {
		b = b[:0]
		var c rune
		for {
			if c, err = text.next(); err != nil || c == '\n' {
				break
			}
			if b = utf8.AppendRune(b, c); len(b) > maxRecord {
				return &FileError{line, fmt.Sprintf("has more than %d MiB", maxRecord>>20)}
			}
		}
		switch {
		case errors.Is(err, errEncoding):
			return &FileError{line, fmt.Sprintf("is not %s: name the file's encoding with --encoding", encoding)}
		case err != nil && !errors.Is(err, io.EOF):
			return err
		}
		if len(bytes.TrimSpace(b)) > 0 {
			if err := do(line, bytes.TrimSpace(b)); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
	}
}

// Columns finds the fields of the columns. attributes are the workspace's. New attributes are in
// f.Created, if they may be made.
func (f *File) Columns(attributes map[string]*desk.Attribute) error {
	f.attributes = attributes
	if f.Options.JSONL {
		return nil
	}
	m := &mapper{kind: f.Options.Kind, attributes: attributes, given: map[string]field{}}
	for _, pair := range f.Options.Map {
		i := strings.LastIndexByte(pair, '=')
		if i < 1 {
			return desk.InvalidAt("/map", "write COLUMN=FIELD")
		}
		to, ok := parseField(f.Options.Kind, pair[i+1:])
		if !ok {
			return desk.InvalidAt("/map", "no field is called %s: fields are %s, identity.KIND, attributes.KEY, or - for none", desk.Quote(pair[i+1:]), strings.Join(fieldsOf(f.Options.Kind), ", "))
		}
		m.given[pair[:i]] = to
	}
	var err error
	if f.fields, err = m.columns(f.Headers); err != nil {
		return err
	}
	for i, to := range f.fields {
		if to.name == attribute && attributes[to.key] == nil {
			return fmt.Errorf("the column %s is mapped to the attribute %s, which the workspace does not have: define it first, or leave the column out with --map '%s=-'", desk.Quote(f.Headers[i]), to.key, f.Headers[i])
		}
	}
	switch {
	case len(m.unknown) == 0 || f.Options.IgnoreUnknown && !f.Options.CreateAttributes:
		return nil
	case f.Options.CreateAttributes && f.Options.Kind == desk.ImportContacts:
		return f.newAttributes(m)
	}
	return fmt.Errorf("nobody knows the columns %s: say what each is with --map 'COLUMN=FIELD', leave them all out with --ignore-unknown, or make attributes of them with --create-attributes", quotedList(m.unknown))
}

// newAttributes plans an attribute for each unknown column.
func (f *File) newAttributes(m *mapper) error {
	f.attributes = maps.Clone(m.attributes)
	for i, header := range f.Headers {
		if f.fields[i].name != skipped || !slices.Contains(m.unknown, header) {
			continue
		}
		key := attributeKey(header)
		if f.attributes[key] != nil {
			return fmt.Errorf("the column %s would make the attribute %s, which is there already: say what it is with --map '%s=FIELD'", desk.Quote(header), key, header)
		}
		kind := f.samples[i].kind()
		in := desk.AttributeInput{Key: key, Label: desk.Field[string]{Set: true, Value: header}, Type: desk.Field[string]{Set: true, Value: string(kind)}}
		if err := in.Check(); err != nil {
			return fmt.Errorf("the column %s can't become an attribute: %w", desk.Quote(header), err)
		}
		f.Created = append(f.Created, in)
		if len(m.attributes)+len(f.Created) > desk.MaxAttributes {
			return fmt.Errorf("the workspace would have more than %d attributes: leave columns out with --map 'COLUMN=-' or --ignore-unknown", desk.MaxAttributes)
		}
		f.attributes[key] = &desk.Attribute{Key: key, Label: header, Type: kind}
		f.fields[i] = field{attribute, key}
	}
	return nil
}

// sampleRows is how many rows tell the types of new attributes.
const sampleRows = 10_000

// A sample says which types all cells of a column fit. The zero sample has seen none.
type sample struct{ seen, notBoolean, notDate, notNumber bool }

func (f *File) sample(rec record) {
	if !f.Options.CreateAttributes || f.Rows > sampleRows {
		return
	}
	if f.samples == nil {
		f.samples = make([]sample, len(f.Headers))
	}
	c := converter{dates: f.Options.Dates, decimalComma: f.Options.DecimalComma}
	for i := range min(len(rec.cells), len(f.samples)) {
		cell, s := strings.TrimSpace(unguard(rec.cells[i])), &f.samples[i]
		if cell == "" {
			continue
		}
		s.seen = true
		boolean, _ := c.value(&desk.Attribute{Type: desk.BooleanAttribute}, cell)
		s.notBoolean = s.notBoolean || boolean != "true" && boolean != "false"
		s.notDate = s.notDate || !desk.IsDate(c.date(cell))
		number, _ := c.value(&desk.Attribute{Type: desk.NumberAttribute}, cell)
		digits := strings.TrimLeft(strings.Trim(number, `"`), "+-")
		_, isNumber := desk.ParseDecimal(strings.Trim(number, `"`))
		s.notNumber = s.notNumber || !isNumber || len(digits) > 1 && digits[0] == '0' && digits[1] != '.'
	}
}

func (s sample) kind() desk.AttributeType {
	switch {
	case !s.seen:
		return desk.TextAttribute
	case !s.notBoolean:
		return desk.BooleanAttribute
	case !s.notDate:
		return desk.DateAttribute
	case !s.notNumber:
		return desk.NumberAttribute
	}
	return desk.TextAttribute
}

// Each calls do for each row after the given number of rows.
func (f *File) Each(after int64, do func(Row) error) error {
	file, err := f.open()
	if err != nil {
		return err
	}
	defer file.Close()
	sum := sha256.New()
	if err := f.each(io.TeeReader(file, sum), after, do); err != nil {
		return err
	}
	if _, err := io.Copy(sum, file); err != nil {
		return err
	}
	if [32]byte(sum.Sum(nil)) != f.SHA256 {
		return &FileError{0, "the file has changed while it was imported: run the command again"}
	}
	return nil
}

func (f *File) each(file io.Reader, after int64, do func(Row) error) error {
	n := int64(0)
	if f.Options.JSONL {
		return f.lines(file, func(line int, text []byte) error {
			if n++; n <= after {
				return nil
			}
			raw := bytes.Clone(text)
			return do(Row{Line: line, Raw: raw, Body: withoutOwn(raw)})
		})
	}
	c := converter{f.fields, f.attributes, f.Options.ClearBlank, f.Options.DecimalComma, f.Options.Dates}
	return f.records(file, func(rec record) error {
		if n++; n <= after {
			return nil
		}
		row := Row{Line: rec.line, Cells: rec.cells}
		for len(rec.cells) < len(f.Headers) {
			rec.cells = append(rec.cells, "")
		}
		if extra := (record{cells: rec.cells[len(f.Headers):]}); !extra.blank() {
			row.Err = refusal{"the row has " + strconv.Itoa(len(rec.cells)) + " cells, and the header " + strconv.Itoa(len(f.Headers))}
			return do(row)
		}
		rec.cells = rec.cells[:len(f.Headers)]
		row.Cells = rec.cells
		row.Body, row.Err = c.body(rec.cells)
		return do(row)
	})
}

// withoutOwn returns an object without the members that are parley's own, and any other text as
// it is: who reads it says what is wrong with it.
func withoutOwn(text []byte) []byte {
	d := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if token, err := d.ReadToken(); err != nil || token.Kind() != '{' {
		return text
	}
	var b bytes.Buffer
	b.WriteByte('{')
	for d.PeekKind() == '"' {
		name, err := d.ReadValue()
		if err != nil {
			return text
		}
		name = name.Clone()
		value, err := d.ReadValue()
		if err != nil {
			return text
		}
		unquoted, err := jsontext.AppendUnquote(nil, name)
		if err == nil && ignored(string(unquoted)) {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	if token, err := d.ReadToken(); err != nil || token.Kind() != '}' {
		return text
	}
	rest := text[d.InputOffset():]
	b.WriteByte('}')
	b.Write(rest)
	return b.Bytes()
}
