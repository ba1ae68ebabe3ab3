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

	// Fields are the fields of the columns, in order: a field, "-" for none, NewAttribute, or
	// "" for what Map or the header says.
	Fields []string `json:",omitempty"`
}

// Undated tells whether a cell of a row has a date like 31.12.2026, and nothing says how it is
// read.
func (o *Options) Undated(cells []string) bool {
	return o.Dates == "" && slices.ContainsFunc(cells, writtenDate.MatchString)
}

// A Source opens a file to import. It is read several times.
type Source func() (io.ReadCloser, error)

// A File is a file to import, which was read through once.
type File struct {
	Options   Options
	SHA256    [32]byte
	Rows      int64    // without blank ones
	Headers   []string // of CSV
	Delimiter rune     // of CSV
	Created   []desk.AttributeInput
	Undated   bool // a date of a row that was read is like 31.12.2026, and Options.Dates is ""

	open       Source
	named      bool // its first line names the delimiter
	attributes map[string]*desk.Attribute
	fields     []field
	samples    []sample // of each column, for new attributes
	hasCell    []bool   // the columns in nameless
	nameless   []cell   // of each column without a header, the first cell that is not blank
}

// A cell is a cell of a row.
type cell struct {
	column, line int
	text         string
}

// A Row is a row of a file.
type Row struct {
	Line  int    // in which it begins
	Body  []byte // of POST /contacts, or a row of POST /broadcasts/{id}/rows; nil if Err is set
	Err   error  // why it has none
	Cells []string
	Raw   []byte // of JSON Lines
}

// Open reads a file of the file system through, as Read does.
func Open(path string, o Options) (*File, error) {
	state, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !state.Mode().IsRegular() {
		return nil, &FileError{Message: "this is no ordinary file: it is read several times, so it can't be a pipe or a directory"}
	}
	return Read(func() (io.ReadCloser, error) { return os.Open(path) }, o)
}

// Read reads a file through. It returns a *FileError if the file can't be imported as a whole.
func Read(open Source, o Options) (f *File, err error) {
	f = &File{Options: o, open: open}
	file, err := f.open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
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

// errEnough ends the reading of a file.
var errEnough = errors.New("enough was read")

const (
	// MostPeeked is how many columns Peek returns.
	MostPeeked = 200

	// mostShown is how many characters of a cell, or of a line, Peek returns.
	mostShown = 200
)

// Peek reads only the first rows of a file, up to most, and returns their first cells, or one cell
// with the line. f has the headers and the delimiter also if it returns a *FileError.
func Peek(open Source, o Options, most int) (f *File, rows [][]string, err error) {
	f = &File{Options: o, open: open}
	if !o.JSONL {
		if f.Delimiter, err = f.delimiter(); err != nil {
			return f, nil, err
		}
	}
	file, err := f.open()
	if err != nil {
		return f, nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	read := &counted{Reader: file}
	take := func(cells ...string) error {
		cells = cells[:min(len(cells), MostPeeked)]
		for i, cell := range cells {
			cells[i] = strings.Clone(shortened(unguard(cell)))
		}
		if rows = append(rows, slices.Clone(cells)); len(rows) == most || read.n > peekBytes {
			return errEnough
		}
		return nil
	}
	if o.JSONL {
		err = f.lines(read, func(_ int, text []byte) error { return take(string(text)) })
	} else {
		err = f.records(read, func(rec record) error { return take(rec.cells...) })
		if err == nil && f.Headers == nil {
			err = errNoRow
		}
	}
	if errors.Is(err, errEnough) {
		err = nil
	}
	return f, rows, err
}

// shortened cuts a text that is long to read.
func shortened(text string) string {
	n := 0
	for i := range text {
		if n++; n > mostShown {
			return text[:i] + "…"
		}
	}
	return text
}

var errNoRow = &FileError{Message: "the file has no row: the first one names the columns"}

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
		f.findNameless(rec)
		return nil
	})
	if err == nil {
		_, err = io.Copy(sum, file) // the reader has stopped at the end already
	}
	if err == nil && f.Headers == nil {
		err = errNoRow
	}
	return err
}

// findNameless remembers the cells of a row that have no header.
func (f *File) findNameless(rec record) {
	if f.hasCell == nil {
		f.hasCell = make([]bool, len(f.Headers))
	}
	for i, text := range rec.cells[:min(len(rec.cells), len(f.Headers))] {
		if f.Headers[i] != "" || strings.TrimSpace(text) == "" || f.hasCell[i] {
			continue
		}
		f.hasCell[i] = true
		f.nameless = append(f.nameless, cell{i, rec.line, strings.Clone(shortened(unguard(text)))})
	}
}

// checkNameless refuses a column that has cells, but no header, unless it was chosen what it is.
func (f *File) checkNameless() error {
	for _, c := range f.nameless {
		if f.Options.IgnoreUnknown || c.column < len(f.Options.Fields) && f.Options.Fields[c.column] != "" {
			continue
		}
		return columnError(c.column, "give it one, or leave it out with --ignore-unknown", "column %d has no header, and line %d has %s in it", c.column+1, c.line, desk.Quote(c.text))
	}
	return nil
}

// delimiter returns the delimiter that the file says, that is given, or that fits best.
func (f *File) delimiter() (rune, error) {
	head, err := f.beginning(6)
	if err != nil {
		return 0, err
	}
	if s := string(head); len(head) >= 5 && strings.EqualFold(s[:4], "sep=") {
		if end := head[5:]; separates(head[4]) && (len(end) == 0 || end[0] == '\r' || end[0] == '\n') {
			f.named = true
			return head[4], nil
		}
	}
	if d, given := f.Options.delimiter(); given {
		return d, nil
	}
	if f.Options.Delimiter != "" {
		return 0, desk.InvalidAt("/delimiter", "give one character, or TAB")
	}
	return delimiterOf(f.open, f.Options.Encoding)
}

// beginning returns the first characters of the file, up to n.
func (f *File) beginning(n int) (head []rune, err error) {
	file, err := f.open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	text, _, err := textOf(file, f.Options.Encoding)
	if err != nil {
		return nil, err
	}
	for len(head) < n {
		r, err := text.next()
		if err != nil {
			break
		}
		head = append(head, r)
	}
	return head, nil
}

// separates tells whether a character can be a delimiter.
func separates(r rune) bool { return r != '"' && r != '\r' && r != '\n' }

// delimiter returns the delimiter that is given.
func (o *Options) delimiter() (r rune, given bool) {
	if strings.EqualFold(o.Delimiter, "tab") || o.Delimiter == `\t` {
		return '\t', true
	}
	r, _ = utf8.DecodeRuneInString(o.Delimiter)
	return r, utf8.RuneCountInString(o.Delimiter) == 1 && separates(r)
}

// records calls do for each row of a CSV file that is not blank, after the headers. The first
// time, it stores the headers.
func (f *File) records(r io.Reader, do func(record) error) error {
	text, encoding, err := textOf(r, f.Options.Encoding)
	if err != nil {
		return err
	}
	c := newCSV(text, encoding, f.Delimiter)
	headers, rejected := false, false
	for {
		rec, err := c.read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !headers {
			rejected = rec.hasReasons()
		}
		if err := rec.check(rejected); err != nil {
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
			if b = utf8.AppendRune(b, c); len(b) > maxRecord+slackRecord {
				break
			}
		}
		switch {
		case len(b) > maxRecord+slackRecord, len(b) > maxRecord && !bytes.Contains(b, []byte(`"_error":`)): // with its reason, a row is longer
			return &FileError{Line: line, Message: fmt.Sprintf("has more than %d MiB", maxRecord>>20)}
		case errors.Is(err, errEncoding):
			return &FileError{Line: line, Message: "is not " + encoding, Flag: "name the file's encoding with --encoding", At: "encoding"}
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
	m := &mapper{kind: f.Options.Kind, attributes: attributes, given: map[string]field{}, chosen: f.Options.Fields}
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
			return columnError(i, "define it first, or leave the column out with --map '"+f.Headers[i]+"=-'", "the column %s is mapped to the attribute %s, which the workspace does not have", desk.Quote(f.Headers[i]), to.key)
		}
	}
	if f.Options.CreateAttributes && f.Options.Kind == desk.ImportContacts {
		m.made, m.unknown = append(m.made, m.unknown...), nil
	}
	if len(m.unknown) > 0 && !f.Options.IgnoreUnknown {
		flag := "say what each is with --map 'COLUMN=FIELD', or leave them all out with --ignore-unknown"
		if f.Options.Kind == desk.ImportContacts {
			flag = "say what each is with --map 'COLUMN=FIELD', leave them all out with --ignore-unknown, or make attributes of them with --create-attributes"
		}
		return &ColumnError{Columns: m.unknown, Message: "nobody knows the columns " + quotedList(pick(f.Headers, m.unknown)), Flag: flag}
	}
	if err := f.checkNameless(); err != nil {
		return err
	}
	return f.newAttributes(m)
}

// Guess returns the field of each column as its header says, and "" for a column that nobody
// knows. Of people of a broadcast, one column says who they are, and those that nobody knows are
// left out if all variables have a column.
func (f *File) Guess(attributes map[string]*desk.Attribute, variables ...Variable) []string {
	m := &mapper{kind: f.Options.Kind, attributes: attributes, variables: variables}
	list := make([]string, len(f.Headers))
	for i, header := range f.Headers {
		if to, ok := m.guess(header); ok {
			list[i] = to.String()
		} else if header == "" {
			list[i] = skipped
		}
	}
	if m.kind != desk.ImportPeople {
		return list
	}
	filled := !slices.ContainsFunc(variables, func(v Variable) bool { return !slices.Contains(list, v.Field()) })
	person := slices.IndexFunc(who, func(name string) bool { return slices.Contains(list, name) })
	for i, name := range list {
		if at := slices.Index(who, name); name == "" && filled && person >= 0 || at > person {
			list[i] = skipped
		}
	}
	return list
}

// Taken tells what each column of a CSV file is taken for: a field, "-" for none, or a new
// attribute with its type.
func (f *File) Taken() []string {
	list := make([]string, len(f.fields))
	for i, to := range f.fields {
		list[i] = to.String()
		for _, in := range f.Created {
			if to.name == attribute && to.key == in.Key {
				list[i] += ", a new " + in.Type.Value
			}
		}
	}
	return list
}

// fewer is what to do about too many new attributes.
const fewer = "leave columns out with --map 'COLUMN=-' or --ignore-unknown"

// newAttributes plans an attribute for each column that becomes one.
func (f *File) newAttributes(m *mapper) error {
	f.attributes = maps.Clone(m.attributes)
	for _, i := range slices.Sorted(slices.Values(m.made)) {
		header := f.Headers[i]
		key, label := newAttribute(header)
		flag := flagFor(f.Headers, header, "say what it is with --map '"+header+"=FIELD', or leave it out with --map '"+header+"=-'")
		if f.attributes[key] != nil {
			return columnError(i, flag, "the column %s would make the attribute %s, which is there already", desk.Quote(header), key)
		}
		if len(f.attributes) >= desk.MaxAttributes {
			return columnError(i, fewer, "the workspace would have more than %d attributes", desk.MaxAttributes)
		}
		kind := desk.TextAttribute
		if i < len(f.samples) {
			kind = f.samples[i].kind()
		}
		in := desk.AttributeInput{Key: key, Label: desk.Field[string]{Set: true, Value: label}, Type: desk.Field[string]{Set: true, Value: string(kind)}}
		made, err := in.Apply(nil, len(f.attributes), 0)
		if err != nil {
			e := desk.AsError(err)
			return columnError(i, flag, "the column %s can't become an attribute: %s: %s", desk.Quote(header), strings.TrimPrefix(e.At, "/"), e.Message)
		}
		if (&desk.Settings{Attributes: f.attributes}).CheckAttributes(&made) != nil {
			return columnError(i, fewer, "the workspace's attributes would take more than the %d MiB that all of them may", desk.MaxAttributesJSON>>20)
		}
		f.Created = append(f.Created, in)
		f.attributes[key] = &made
		f.fields[i] = field{attribute, key}
	}
	return nil
}

// sampleRows is how many rows tell the types of new attributes.
const sampleRows = 10_000

// A sample says which types all cells of a column fit. The zero sample has seen none.
type sample struct{ seen, notBoolean, notDate, notNumber bool }

func (f *File) sample(rec record) {
	if !f.Options.CreateAttributes && !slices.Contains(f.Options.Fields, NewAttribute) || f.Rows > sampleRows {
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
		return &FileError{Message: "the file has changed while it was imported", Flag: "run the command again"}
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
			return do(Row{Line: line, Raw: raw, Body: without(raw, ignored)})
		})
	}
	c := converter{fields: f.fields, attributes: f.attributes, clearBlank: f.Options.ClearBlank, decimalComma: f.Options.DecimalComma, dates: f.Options.Dates}
	defer func() { f.Undated = f.Undated || c.undated }()
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
		if f.Options.Kind == desk.ImportPeople {
			row.Body, row.Err = c.person(rec.cells)
		} else {
			row.Body, row.Err = c.body(rec.cells)
		}
		return do(row)
	})
}

// without returns an object without some members, and any other text as it is: who reads it says
// what is wrong with it.
func without(text []byte, drop func(name string) bool) []byte {
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
		if err == nil && drop(string(unquoted)) {
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
